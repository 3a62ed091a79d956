"""The delivering process is killed with SIGKILL; its successor finds everything and its ids."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from aiohttp import web
from support.examples import examples
from support.subscribers import (
    Broker,
    Mailbox,
    Receiver,
    broker_in,
    found,
    mailbox,
    receiving,
    until,
)

from broker.delivery.deliveries import Deliveries
from broker.delivery.store import open_deliveries

TESTS = Path(__file__).parents[1]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


@asynccontextmanager
async def delivering_process(
    broker: Broker, smtp_port: int = 0
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.delivering_process", broker.directory, str(smtp_port)),
        env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("answers_first", [False, True], ids=["before", "after"])
async def test_a_kill_around_the_answer_repeats_the_attempt_under_its_id(
    broker: Broker, answers_first: bool
) -> None:
    async with receiving() as receiver:
        processes: list[asyncio.subprocess.Process] = []

        async def kill(request: web.Request) -> web.StreamResponse:
            response = web.Response(status=204)
            if answers_first:
                # The worker has the answer on its socket, and no time to write it down.
                os.kill(processes[0].pid, signal.SIGSTOP)
                await response.prepare(request)
                await response.write_eof()
            os.kill(processes[0].pid, signal.SIGKILL)
            return response

        receiver.answers = [204, kill]
        broker.subscribe(receiver.url)
        broker.commit(found(1), found(2), found(3))
        async with delivering_process(broker) as process:
            processes.append(process)
            await receiver.wait_for(2)
            assert await process.wait() == -signal.SIGKILL
        async with delivering_process(broker):
            received = await receiver.wait_for(4)
        docids = [each.data["documents"][0]["docid"] for each in received]
        assert docids == [1, 2, 2, 3]
        assert received[1].id == received[2].id
        assert len({each.id for each in received}) == 3


async def test_a_kill_lets_out_no_more_messages_of_a_key_than_agreed(broker: Broker) -> None:
    async with receiving() as receiver:
        processes: list[asyncio.subprocess.Process] = []

        async def kill(request: web.Request) -> web.StreamResponse:
            os.kill(processes[-1].pid, signal.SIGKILL)
            return web.Response(status=204)

        receiver.answers = [kill, kill]
        second = f"{receiver.url}/second"
        made = broker.subscribe(
            receiver.url,
            key=("who",),
            throttle="2 per 1 h",
            escalate=second,
            escalate_after="1 s",
        )
        broker.commit(*(found(number) for number in range(1, 6)))
        for _ in range(2):
            async with delivering_process(broker) as process:
                processes.append(process)
                assert await process.wait() == -signal.SIGKILL
        async with delivering_process(broker):
            await until(lambda: len(ids(receiver, "/hook/second")) == 2)
            await until(lambda: states(broker) == {"delivered": 4, "suppressed": 3})
    assert len(ids(receiver, "/hook")) == 2
    with closing(open_deliveries(broker.directory / "deliveries.db")) as db:
        rows = Deliveries(db).find(subscription=made.id)
    assert ids(receiver, "/hook") | ids(receiver, "/hook/second") == {
        row.id for row in rows if row.state == "delivered"
    }


def ids(receiver: Receiver, path: str) -> set[str]:
    return {each.id for each in receiver.received if each.path == path}


def states(broker: Broker) -> dict[str, int]:
    with closing(open_deliveries(broker.directory / "deliveries.db")) as db:
        return Deliveries(db).counts()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(1)))
async def test_chaos_loses_nothing_and_renames_nothing(broker: Broker, seed: int) -> None:
    """Endpoints time out, reset, answer 500 and 429; mail is cut off after DATA; all is killed."""
    dice = random.Random(seed)
    matches = [found(number) for number in range(1, 61)]
    async with receiving() as receiver, mailbox() as box:
        receiver.always = _moods(dice)
        box.drop_after_data = 5
        box.replies = ["451 later", "250 ok"] * 3
        hooks = [broker.subscribe(f"{receiver.url}/{name}").id for name in range(6)]
        broker.subscribe("ann@reader.example")
        for start in range(0, 60, 20):
            broker.commit(*matches[start : start + 20])
            async with delivering_process(broker, box.port) as process:
                await asyncio.sleep(0.8 + dice.random())
                process.kill()
        async with delivering_process(broker, box.port):
            await until(lambda: _is_complete(receiver, len(hooks), len(matches)), seconds=60)
            await until(lambda: _mailed(box) == {match.id for match in matches}, seconds=60)
    ids = defaultdict(set)
    for each in receiver.received:
        ids[each.path, each.data["id"]].add(each.id)
    assert len(ids) == len(hooks) * len(matches)
    assert all(len(names) == 1 for names in ids.values())
    assert len(set.union(*ids.values())) == len(ids)


def _moods(dice: random.Random):  # type: ignore[no-untyped-def]
    async def answer(request: web.Request) -> web.StreamResponse:
        mood = dice.random()
        if mood < 0.05:
            assert request.transport is not None
            request.transport.abort()
        elif mood < 0.08:
            await asyncio.sleep(1.5)
        elif mood < 0.2:
            return web.Response(status=dice.choice([429, 500, 503]))
        return web.Response(status=204, headers={"X-Taken": "yes"})

    return answer


def _mailed(box: Mailbox) -> set[str]:
    """Return the matches that are in some mail: each has a title and a link of its own."""
    bodies = [message.get_body(("plain",)) for message in box.messages]
    words = {word for body in bodies if body for word in body.get_content().split()}
    return {
        match.id
        for match in map(found, range(1, 61))
        if f"https://one.example/{match.documents[0].docid}" in words
    }


def _is_complete(receiver: Receiver, hooks: int, matches: int) -> bool:
    return len({(each.path, each.data["id"]) for each in receiver.received}) == hooks * matches
