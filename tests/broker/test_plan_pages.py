"""The plan of what a broker evaluates: by the API, at a shell, and drawn on pages."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner
from lxml import html
from support.api_house import SAME, House, open_house
from support.page_room import HOSTILE
from support.small_broker import small_broker
from support.sparkless_broker import when

import xscl
from broker.api.asking.plans import Plans
from broker.cli import main
from broker.explain.plan import plan_of, plan_read, render_plan
from broker.matching.queries.queryset import InForce
from broker.web.planpicture import StreamFlow, picture_of

NESTED = (
    "(news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b)"
    " FOLLOWED BY {b/title = c/title, 1 day} wire//item->c"
)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        house.room.registry.register("nested", NESTED, version="1", point=0)
        yield house


async def asked(house: House, path: str = "/v1/plan", status: int = 200) -> Any:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    async with house.client.get(path, headers=headers) as answer:
        assert answer.status == status
        return await answer.json()


async def test_what_is_evaluated_is_the_plan_of_the_registered_texts(house: House) -> None:
    answer = await asked(house)
    texts = {"same": SAME, "other": SAME, "nested": NESTED}
    queries = [xscl.parse(text, id=name)[0] for name, text in texts.items()]
    plan = plan_of(queries, lateness_us=house.room.backend.lateness_us)
    assert plan_read(answer).fired() == plan.fired()
    shape = [(op["kind"], sorted(op["queries"]), len(op["below"])) for op in answer["m_ops"]]
    assert sorted(shape) == sorted((op.kind, sorted(op.queries), len(op.below)) for op in plan.ops)
    assert answer["is_newest"]
    assert render_plan(plan_read(answer)) == answer["rendered"]


async def test_of_one_query_only_what_works_for_it_is_told(house: House) -> None:
    answer = await asked(house, "/v1/plan?query=same")
    assert all("same" in op["queries"] for op in answer["m_ops"])
    assert {tuple(op["reads"]) for op in answer["m_ops"] if op["kind"] == "patterns"} == {("news",)}
    await asked(house, "/v1/plan?query=none", 404)


async def test_one_request_waits_for_a_batch_and_others_have_the_plan_before(house: House) -> None:
    plans, backend = Plans(), house.room.backend
    before = plans.read(backend)
    house.room.registry.register("late", SAME, version="1", point=0)
    is_asked, is_over = threading.Event(), threading.Event()

    def in_force() -> tuple[int, InForce] | None:
        is_asked.set()
        assert is_over.wait(60)
        return backend.in_force()

    busy = replace(backend, in_force=in_force)
    waiting = asyncio.create_task(asyncio.to_thread(plans.read, busy))
    await asyncio.to_thread(is_asked.wait, 60)
    assert plans.read(busy) is before
    is_over.set()
    version, plan = await waiting
    assert version == house.room.registry.revision() > before[0]
    assert "late" in {name for op in plan.ops for name in op.queries}
    nobody = replace(backend, in_force=lambda: pytest.fail("the newest plan is read again"))
    assert plans.read(nobody) == (version, plan)


async def test_a_shell_prints_the_plan_of_the_running_broker(house: House) -> None:
    url = house.url
    words = ["--broker", url, "--token", house.secrets["admin"], "explain", "--plan"]
    run = CliRunner().invoke
    shown = await asyncio.to_thread(run, main, [*words, "--format", "json"])
    assert {each for op in json.loads(shown.stdout)["m_ops"] for each in op["queries"]} == {
        *("same", "other", "nested")
    }
    one = await asyncio.to_thread(run, main, [*words, "--query", "same", "--format", "dot"])
    assert one.stdout.startswith("digraph {")
    assert "wire" not in one.stdout
    wrong = await asyncio.to_thread(run, main, ["explain"])
    assert (wrong.exit_code, "name files" in wrong.output) == (2, True)


async def test_the_page_draws_what_is_shared_and_says_it_in_a_table(house: House) -> None:
    await house.log_in("admin")
    async with house.client.get("/plan?query=same") as answer:
        tree = html.fromstring(await answer.text())
    drawn = " ".join(tree.xpath("//*[local-name()='svg']")[0].text_content().split())
    assert "shared with 2" in drawn
    assert "0.0 /s" in drawn
    assert "/plan?query=nested" in tree.xpath("//tbody//a/@href")
    async with house.client.get("/plan") as answer:
        text = await answer.text()
    assert "m-ops for" in text
    assert HOSTILE not in text
    async with house.client.get("/queries/same") as answer:
        assert "/plan?query=same" in await answer.text()


async def test_a_paused_query_says_that_nothing_is_evaluated_for_it(house: House) -> None:
    await house.log_in("admin")
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    await house.client.post("/v1/queries/same/pause", headers=headers)
    async with house.client.get("/plan?query=same") as answer:
        assert "Nothing is evaluated for it" in await answer.text()


def test_a_picture_of_many_queries_is_bounded_and_counts_what_it_leaves_out() -> None:
    texts = [
        f"S{n % 40}//item[e{n % 30}]->a FOLLOWED BY {{a/t{n} = b/t, 1 h}} S{n % 40}//item->b"
        for n in range(300)
    ]
    texts += [f"S1//item[w = 'v{n}']->a" for n in range(300)]
    queries = [xscl.parse(text, id=f"q{n}")[0] for n, text in enumerate(texts)]
    plan = plan_of(queries, lateness_us=0)
    picture = picture_of(plan, {"S1": StreamFlow(7, 0.5)}, {"q301": 4})
    assert len(picture.boxes) <= 60
    assert picture.streams_left == 30
    assert "S1" in {box.title for box in picture.boxes}
    assert {"0.5 /s", "4"} <= {line.count for line in picture.lines}
    drawn = {op.number for op in plan.ops if op.kind == "patterns"}
    assert len(drawn) == 40
    for box in picture.boxes:
        assert 0 <= box.x <= picture.width - picture.wide
        assert 0 <= box.y <= picture.height - picture.high


async def test_what_was_registered_is_in_the_plan_of_the_next_documents(tmp_path: Path) -> None:
    async with small_broker(tmp_path) as url, aiohttp.ClientSession(url) as session:
        await session.put("/v1/queries/first", data=SAME)
        async with session.get("/v1/plan") as answer:
            before = await answer.json()
        assert (before["m_ops"], before["is_newest"]) == ([], False)
        await session.post("/v1/streams/news/documents", data="<item><title>x</title></item>")
        found = await when(session, f"{url}/v1/plan", lambda plan: plan["is_newest"])
        assert {name for op in found["m_ops"] for name in op["queries"]} == {"first"}
