"""Tokens that are good for some streams, or with which callers subscribe by themselves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.api_house import House, open_house

from broker.api import subscriptions

HOOK = "https://ann.example/hook"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        for name, scope in (
            ("news", "publish:news"),
            ("ann", "subscribe:same"),
            ("bob", "subscribe:same"),
        ):
            house.secrets[name] = house.tokens.create(name, [scope])[1]
        yield house


async def ask(house: House, token: str, method: str, path: str, **body: Any) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {house.secrets[token]}"}
    async with house.client.request(method, path, headers=headers, **body) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if "json" in answer.content_type else text


async def subscribe(house: House, token: str, query: str = "same", **asked: Any) -> tuple[int, Any]:
    body = {"query": query, "destination": "pull", **asked}
    return await ask(house, token, "POST", "/v1/subscriptions", json=body)


async def test_a_token_for_a_stream_publishes_to_it_and_to_no_other(house: House) -> None:
    path = "/v1/streams/{}/documents"
    assert (await ask(house, "news", "POST", path.format("news"), data=b"<a/>"))[0] == 200
    before = house.state()
    for stream in ("other", "newsx", "news%2Fx", "news%20"):
        status, problem = await ask(house, "news", "POST", path.format(stream), data=b"<a/>")
        assert status == 403, stream
        assert "publish:" in problem["detail"]
    line = json.dumps({"stream": "other", "xml": "<a/>"}).encode()
    headers = {
        "Authorization": f"Bearer {house.secrets['news']}",
        "Content-Type": "application/x-ndjson",
    }
    answer = await house.client.post(path.format("news"), data=line, headers=headers)
    (receipt,) = (await answer.json())["documents"]
    assert receipt["outcome"] == "refused"
    assert house.state() == before


async def test_who_subscribes_by_itself_sees_and_ends_its_own(house: House) -> None:
    status, made = await subscribe(house, "ann")
    assert status == 201
    place = f"/v1/subscriptions/{made['id']}"
    _, listed = await ask(house, "ann", "GET", "/v1/subscriptions")
    assert [each["id"] for each in listed["subscriptions"]] == [made["id"]]
    assert (await ask(house, "ann", "GET", f"{place}/matches?after=0"))[0] == 200
    assert (await ask(house, "ann", "GET", f"{place}/token"))[1]["token"]
    assert (await ask(house, "ann", "POST", f"{place}/pause"))[1]["state"] == "paused"
    assert (await ask(house, "ann", "POST", f"{place}/resume"))[1]["state"] == "active"
    assert (await ask(house, "ann", "DELETE", place))[0] == 204
    _, listed = await ask(house, "ann", "GET", "/v1/subscriptions")
    assert listed["subscriptions"] == []


async def test_who_subscribes_by_itself_reaches_nothing_of_others(house: House) -> None:
    _, made = await subscribe(house, "ann")
    before = house.state()
    for subscription in (made["id"], house.mine, "sub_none"):
        place = f"/v1/subscriptions/{subscription}"
        for method, path in (
            ("GET", place),
            ("DELETE", place),
            ("POST", f"{place}/pause"),
            ("POST", f"{place}/test"),
            ("GET", f"{place}/token"),
            ("GET", f"{place}/matches"),
        ):
            assert (await ask(house, "bob", method, path))[0] == 404, path
    assert (await ask(house, "bob", "GET", "/v1/subscriptions"))[1]["subscriptions"] == []
    assert house.state() == before


async def test_who_subscribes_by_itself_does_so_to_the_named_queries(house: House) -> None:
    before = house.state()
    for query in ("other", "none"):
        status, problem = await subscribe(house, "ann", query)
        assert status == 403
        assert f"subscribe:{query}" in problem["detail"]
        assert (await ask(house, "ann", "GET", f"/v1/queries/{query}"))[0] == 403
    assert (await ask(house, "ann", "GET", "/v1/queries/same"))[0] == 200
    assert (await ask(house, "ann", "GET", "/v1/queries"))[0] == 403
    assert (await ask(house, "ann", "PUT", "/v1/queries/same", data=b"S//a->x"))[0] == 403
    assert house.state() == before


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"destination": "ann@example.org"}, "smtp.confirm"),
        ({"destination": "apprise:json://ann.example"}, "one of email, pull, webhook"),
        ({"destination": "duckdb:ann.duckdb"}, "one of email, pull, webhook"),
        ({"destination": HOOK, "options": {"owner": "victim@example.org"}}, "the owner is"),
    ],
)
async def test_who_subscribes_by_itself_cannot_write_to_others(
    house: House, asked: dict[str, Any], reason: str
) -> None:
    before = house.state()
    status, problem = await subscribe(house, "ann", **asked)
    assert status == 422
    assert reason in problem["detail"]
    assert house.state() == before


async def test_who_subscribes_by_itself_may_have_a_webhook(house: House) -> None:
    status, made = await subscribe(house, "ann", destination=HOOK)
    assert (status, made["destination"]) == (201, HOOK)
    assert made["secret"].startswith("whsec_")


async def test_what_a_token_may_have_is_bounded_and_what_ended_counts_no_more(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "_OWN_MAX", 2)
    _, first = await subscribe(house, "ann")
    assert (await subscribe(house, "ann"))[0] == 201
    status, problem = await subscribe(house, "ann")
    assert (status, "as many as it may" in problem["detail"]) == (409, True)
    assert (await subscribe(house, "bob"))[0] == 201
    await ask(house, "admin", "DELETE", f"/v1/subscriptions/{first['id']}")
    assert (await subscribe(house, "ann"))[0] == 201


async def test_a_token_made_over_the_api_is_narrowed_as_asked(house: House) -> None:
    asked = {"name": "carl", "scopes": ["publish:news", "subscribe:same"]}
    status, made = await ask(house, "admin", "POST", "/v1/tokens", json=asked)
    assert (status, made["scopes"]) == (201, asked["scopes"])
    house.secrets["carl"] = made["token"]
    assert (await subscribe(house, "carl"))[0] == 201
    _, listed = await ask(house, "admin", "GET", "/v1/tokens")
    (carl,) = (each for each in listed["tokens"] if each["name"] == "carl")
    assert len(carl["subscriptions"]) == 1
