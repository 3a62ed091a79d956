"""Forms of pages: sent by whom they were given to, done as the API would do it, and noted."""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from typing import Any

import pytest
from lxml import html
from support.api_house import SAME, House

from broker.api.access import RULES, AccessRule
from broker.api.admission.browsers import FORM_TOKEN, FORMS
from broker.api.audit import AUDIT
from broker.registry.audit import AuditOutcome
from broker.registry.queries import QueryState
from broker.registry.subscription import DestinationKind


async def send(house: House, path: str, token: str, **fields: str) -> tuple[int, str]:
    form = {FORM_TOKEN: token, **fields}
    async with house.client.post(path, data=form, allow_redirects=False) as answer:
        return answer.status, answer.headers.get("Location") or await answer.text()


async def test_a_session_changes_nothing_without_the_token_of_one_of_its_pages(
    house: House,
) -> None:
    first = await house.log_in("admin")
    house.client.session.cookie_jar.clear()
    own = await house.log_in("admin")
    before = house.state()
    for wrong in ("", "x", first, own[:-1] + ("0" if own[-1] != "0" else "1")):
        status, said = await send(house, "/queries/same/pause", wrong)
        assert status == 403
        assert "was not ours" in said
        headers = {"X-Xscl-Form": wrong} if wrong else {}
        async with house.client.post("/v1/queries/same/pause", headers=headers) as answer:
            assert answer.status in (401, 403)
    cross = {"Sec-Fetch-Site": "same-site"}
    form = {FORM_TOKEN: own}
    async with house.client.post("/queries/same/pause", data=form, headers=cross) as answer:
        assert answer.status == 403
    assert house.state() == before
    assert await send(house, "/queries/same/pause", own) == (303, "/queries/same")
    assert house.room.registry.query("same").state is QueryState.PAUSED
    async with house.client.post("/logout", allow_redirects=False):
        assert (await send(house, "/queries/same/resume", own))[0] == 401


async def test_a_script_of_a_page_uses_the_api_as_its_caller(house: House) -> None:
    headers = {"X-Xscl-Form": await house.log_in("subscribe")}
    async with house.client.get(f"/v1/subscriptions/{house.mine}", headers=headers) as answer:
        assert answer.status == 200
    async with house.client.get(f"/v1/subscriptions/{house.theirs}", headers=headers) as answer:
        assert answer.status == 404
    async with house.client.get("/v1/queries", headers=headers) as answer:
        assert answer.status == 403
    async with house.client.get(f"/v1/subscriptions/{house.mine}") as answer:
        assert answer.status == 401, "a cookie alone opens pages to read"


@pytest.mark.parametrize("path", [name.partition(" ")[2] for name in FORMS])
async def test_who_may_not_use_an_operation_may_not_send_its_form(house: House, path: str) -> None:
    token = await house.log_in("subscribe")
    before = house.state()
    status, _ = await send(house, path.format(id=house.theirs, docid=1, url="u"), token)
    assert status in (403, 404)
    assert house.state() == before


def test_every_form_stands_for_an_operation_that_is_not_for_everyone() -> None:
    assert all(
        RULES.get(operation, AccessRule.ADMIN) is not AccessRule.PUBLIC
        for operation in FORMS.values()
    )


async def test_what_a_form_did_is_noted_as_the_operation_it_stands_for(house: House) -> None:
    token = await house.log_in("admin")
    assert await send(house, "/register?since=all", token, id="mine", text=SAME) == (
        *(303, "/queries/mine"),
    )
    assert (await send(house, "/register", token, id="mine", text="news//"))[0] == 422
    trail = house.client.app[AUDIT]
    wrong, right = trail.entries(subject="mine")[:2]
    assert (wrong.action, wrong.outcome) == ("put_query", AuditOutcome.REFUSED)
    assert (right.action, right.outcome) == ("put_query", AuditOutcome.DONE)
    assert right.detail["since"] == "all"
    assert right.who == "admin"


async def test_an_id_that_cannot_be_one_keeps_the_text(house: House) -> None:
    token = await house.log_in("admin")
    status, said = await send(house, "/register", token, id="not an id", text=SAME)
    assert status == 422
    (text,) = html.fromstring(said).xpath("//textarea")
    assert text.text_content().strip() == SAME
    assert "cannot be the id" in said


async def test_a_subscription_is_made_with_the_options_that_are_filled_in(house: House) -> None:
    token = await house.log_in("admin")
    fields = {"query": "same", "destination": "https://hook.example", FORM_TOKEN: token}
    fields |= {"option.digest": "", "option.throttle": " 3 per 1 h"}
    fields |= {"option.key": "a/title, b/title"}
    async with house.client.post("/subscribe", data=fields) as answer:
        assert answer.status == 201, await answer.text()
    found = house.room.registry.subscriptions.find(query="same")
    (options,) = (
        each.options for each in found if each.destination.kind is DestinationKind.WEBHOOK
    )
    assert (options.throttle, options.key) == ("3 per 1 h", ("a/title", "b/title"))
    async with house.client.post("/subscribe", data={**fields, "option.quiet": "never"}) as answer:
        assert answer.status == 422


async def test_a_webhooks_key_is_shown_once(house: House) -> None:
    token = await house.log_in("admin")
    fields = {"query": "same", "destination": "https://example.org/hook"}
    status, said = await send(house, "/subscribe", token, **fields)
    assert status == 201
    (key,) = html.fromstring(said).xpath("//pre/text()")
    assert key.startswith("whsec_")
    (back,) = html.fromstring(said).xpath("//main//a/@href")
    async with house.client.get(back) as answer:
        assert key not in await answer.text()


def test_the_editor_is_the_file_that_its_notice_speaks_of() -> None:
    assets = resources.files("broker.web").joinpath("assets")
    notice = assets.joinpath("codemirror.txt").read_text()
    (said,) = re.findall("sha256 ([0-9a-f]{64})", notice)
    assert hashlib.sha256(assets.joinpath("codemirror.js").read_bytes()).hexdigest() == said
    assert "Marijn Haverbeke" in notice


async def test_help_of_the_language_comes_with_places_in_characters(house: House) -> None:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}

    async def asked(path: str, text: str) -> Any:
        url = f"/v1/language/{path}"
        async with house.client.post(url, data=text.encode(), headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    assert (await asked("check", SAME))["parameters"] == []
    (wanted,) = (await asked("check", "news//item->a[title = $t]"))["parameters"]
    assert wanted["name"] == "t"
    text = "-- 😀\nnews//item->who WHERE whom = 'x'"
    (found,) = (await asked("check", text))["diagnostics"]
    assert text[found["start"] : found["end"]] == "whom"
    (fix,) = found["fixes"]
    assert fix["text"] == "who"
    table = "ON MATCH SET author[a/x].posts = 1"
    written = f"news//item->a {table}"
    assert (await asked("check?id=mine", written))["diagnostics"], "there is no such table"
    assert "cannot" not in str(await asked("check?id=mine", SAME))
    await house.client.post(
        "/v1/streams/news/documents",
        data=b"<item xmlns:d='urn:d' at='1'><d:date/><title/></item>",
        headers=headers,
    )
    offered = (await asked("completions?offset=7", "news//i"))["completions"]
    assert [each["text"] for each in offered] == ["item"]
    offered = (await asked("completions", "news//item->a["))["completions"]
    assert {"title", "@at", "*:date"} <= {each["text"] for each in offered}
    assert "window" in (await asked("hover?offset=14", SAME))["hover"]["text"]
    said = (await asked("hover?offset=7", "news//item"))["hover"]["text"]
    assert said == "`item`: in recent documents, 1 of 1 of `news`"
    assert (await asked("hover?offset=0", "  "))["hover"] is None
    assert (await asked("format", "news  //item->a"))["text"] == "news//item->a\n"
