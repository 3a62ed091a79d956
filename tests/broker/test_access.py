from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from support.api_house import BODY_BYTES_MAX, House, Route, routes_of
from support.api_room import Room
from support.sparkless_broker import Unstarted, running

from broker.api import pull
from broker.api.access import RULES, AccessRule, Gate
from broker.api.admission.browsers import FORMS, PAGES
from broker.api.http import add_deliveries, make_application
from broker.api.pickup import Pickup
from broker.matching.stepresult import StepResult
from broker.registry.tokens import TokenError, Tokens, TokenScope
from broker.service import lifecycle as service
from broker.settings.config import HttpSettings, Settings
from broker.tables.store import RowChange


def rule_of(route: Route) -> AccessRule:
    method = "GET" if route[0] == "HEAD" else route[0]
    return RULES.get(f"{method} {route[1]}", AccessRule.ADMIN)


def protected(house: House) -> list[Route]:
    found = [route for route in house.routes() if rule_of(route) is not AccessRule.PUBLIC]
    assert len(found) > 40
    return found


async def test_without_a_token_every_resource_but_the_public_ones_is_closed(house: House) -> None:
    before = house.state()
    for route in protected(house):
        status, text = await house.ask(route)
        assert status == 401, route
        if f"GET {route[1]}" in PAGES or " ".join(route) in FORMS:
            assert route[0] == "HEAD" or 'name="token"' in text, route
        elif route[0] != "HEAD":
            assert "xscl tokens create" in json.loads(text)["hint"], route
    assert (await house.ask(("GET", "/nothing/here")))[0] == 401
    assert house.state() == before


async def test_health_is_told_to_everyone(house: House) -> None:
    assert {f"{m} {p}" for m, p in house.routes() if rule_of((m, p)) is AccessRule.PUBLIC} == {
        *("GET /healthz", "HEAD /healthz", "GET /readyz", "HEAD /readyz"),
        *("GET /v1/openapi.json", "HEAD /v1/openapi.json"),
        *("GET /login", "HEAD /login", "POST /login", "POST /logout"),
        *("GET /assets/{name}", "HEAD /assets/{name}"),
        # Their tokens stand in their addresses.
        *("GET /v1/unsubscribe/{token}", "HEAD /v1/unsubscribe/{token}"),
        *("GET /v1/alerts/{token}", "HEAD /v1/alerts/{token}", "POST /v1/alerts/{token}"),
        *("GET /v1/confirm/{token}", "HEAD /v1/confirm/{token}", "POST /v1/confirm/{token}"),
        *("POST /v1/unsubscribe/{token}", "GET /websub/{token}", "POST /websub/{token}"),
    }
    assert (await house.ask(("GET", "/healthz")))[0] == 200
    assert (await house.ask(("GET", "/v1/unsubscribe/{token}")))[0] == 404


@pytest.mark.parametrize(
    "wrong", ["xscl_", "xscl_000000000000_" + "A" * 43, "nonsense", "é", "sub_1.0123"]
)
async def test_a_wrong_token_opens_nothing(house: House, wrong: str) -> None:
    for route in protected(house):
        assert (await house.ask(route, wrong))[0] == 401, route


async def test_bytes_that_are_no_text_are_a_wrong_token(house: House) -> None:
    url = house.client.make_url("")
    path = f"/v1/subscriptions/{house.mine}/matches"
    for given in (b"\xff\xfe", b"xscl_\xff", house.mine.encode() + b".\xff"):
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".encode()
        writer.write(head + b"Authorization: Bearer " + given + b"\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"401"
        writer.close()
        await writer.wait_closed()


async def test_who_publishes_can_do_nothing_else(house: House) -> None:
    before = house.state()
    for route in protected(house):
        if rule_of(route) is not AccessRule.PUBLISH:
            status, _ = await house.ask(route, "publish")
            assert status == 403, route
    assert house.state() == before
    assert (await house.ask(("POST", "/v1/streams/{stream}/documents"), "publish"))[0] == 200


async def test_who_measures_reads_the_figures_and_nothing_else(house: House) -> None:
    before = house.state()
    for route in protected(house):
        status, _ = await house.ask(route, "metrics")
        assert status == (200 if rule_of(route) is AccessRule.METRICS else 403), route
    assert house.state() == before
    with pytest.raises(TokenError, match="'metrics:x' is no scope"):
        house.tokens.create("narrow", ["metrics:x"])


async def test_who_subscribes_sees_nothing_of_another_and_changes_nothing(house: House) -> None:
    before = house.state()
    for route in protected(house):
        status, text = await house.ask(route, "subscribe", subscription=house.theirs)
        if route[1] in ("/v1/subscriptions", "/", "/live") and route[0] in ("GET", "HEAD"):
            assert status == 200
            assert house.theirs not in text
            continue
        assert status == (404 if rule_of(route) in (AccessRule.READ, AccessRule.OWN) else 403), (
            route
        )
        assert "other" not in text, route
    assert house.state() == before


async def test_whether_another_s_subscription_exists_is_not_told(house: House) -> None:
    route = ("GET", "/v1/subscriptions/{id}")
    theirs = await house.ask(route, "subscribe", subscription=house.theirs)
    none = await house.ask(route, "subscribe", subscription="sub_none")
    assert theirs[1].replace(house.theirs, "sub_none") == none[1]


async def test_who_subscribes_reads_what_is_theirs(house: House) -> None:
    wanted = [
        route for route in protected(house) if rule_of(route) in (AccessRule.READ, AccessRule.OWN)
    ]
    wanted.sort(key=lambda route: ("PUT", "GET", "HEAD", "POST", "DELETE").index(route[0]))
    for route in wanted:
        status, text = await house.ask(route, "subscribe", subscription=house.mine)
        assert status in (200, 201, 204), (route, text)
        assert house.theirs not in text


async def test_who_subscribes_cannot_change_even_what_is_theirs(house: House) -> None:
    before = house.state()
    for route in protected(house):
        if rule_of(route) is AccessRule.ADMIN:
            status, _ = await house.ask(route, "subscribe", subscription=house.mine)
            assert status == 403, route
    assert house.state() == before


async def test_a_table_is_read_by_those_whose_scope_names_it_and_written_by_others(
    house: House,
) -> None:
    for name in ("author", "secret"):
        text = f"CREATE TABLE {name} (id KEY, n DEFAULT 0)"
        house.room.registry.register(name, text, version="1", point=0)
    rows = [RowChange(name, "Ann", {"n": 1.0}, 7) for name in ("author", "secret")]
    through = house.room.outbox.through()
    house.room.outbox.commit(after=through, through=through + 1, step=StepResult(rows=rows))
    _, reader = house.tokens.create("reader", ["subscribe:author"])
    _, writer = house.tokens.create("writer", ["publish:TABLE.author"])

    async def status(method: str, path: str, token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        body = {"data": b"<rows/>"} if method == "POST" else {}
        async with house.client.request(method, path, headers=headers, **body) as answer:
            return answer.status

    headers = {"Authorization": f"Bearer {reader}"}
    async with house.client.get("/v1/tables", headers=headers) as answer:
        assert [each["name"] for each in (await answer.json())["tables"]] == ["author"]
    assert await status("GET", "/v1/tables/author/rows", reader) == 200
    assert await status("GET", "/v1/tables/secret/rows", reader) == 403
    assert await status("GET", "/v1/tables/author/rows", writer) == 403
    for name, token in (("author", reader), ("author", house.secrets["publish"])):
        assert await status("POST", f"/v1/streams/TABLE.{name}/documents", token) == 403
    assert await status("POST", "/v1/streams/TABLE.secret/documents", writer) == 403


async def test_the_list_of_subscriptions_has_one_s_own(house: House) -> None:
    _, text = await house.ask(("GET", "/v1/subscriptions"), "subscribe")
    assert [each["id"] for each in json.loads(text)["subscriptions"]] == [house.mine]
    _, text = await house.ask(("GET", "/v1/subscriptions"), "admin")
    found = {each["id"] for each in json.loads(text)["subscriptions"]}
    assert found == {house.mine, house.theirs}


async def test_an_admin_may_use_everything(house: House) -> None:
    for route in protected(house):
        status, text = await house.ask(route, "admin")
        assert status not in (401, 403, 500), (route, text)


async def test_a_subscription_s_own_token_reads_it_and_no_other(house: House) -> None:
    link = house.pickup.read_token(house.mine)
    for route in protected(house):
        rule = rule_of(route)
        status, _ = await house.ask(route, link, subscription=house.theirs)
        assert status == (404 if rule is AccessRule.READ else 401), route
    for place in ("matches", "feed.atom"):
        path = f"/v1/subscriptions/{house.mine}/{place}?token={link}&after=0"
        assert (await house.client.get(path)).status == 200


async def test_an_access_token_is_not_taken_from_an_address(house: House) -> None:
    secret = house.secrets["admin"]
    for path in ("/v1/queries", f"/v1/subscriptions/{house.mine}/matches"):
        assert (await house.client.get(path, params={"token": secret})).status == 401


async def test_a_revoked_token_opens_nothing_any_more(house: House) -> None:
    assert (await house.ask(("GET", "/v1/queries"), "admin"))[0] == 200
    status, _ = await house.ask(("DELETE", "/v1/tokens/{name}"), "admin")
    assert status == 404
    async with house.client.delete(
        "/v1/tokens/admin", headers={"Authorization": f"Bearer {house.secrets['admin']}"}
    ) as answer:
        assert answer.status == 204
    for route in protected(house):
        assert (await house.ask(route, "admin"))[0] == 401, route


async def test_a_token_made_over_the_api_works_and_is_shown_once(house: House) -> None:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    asked = {"name": "ann", "scopes": ["subscribe"], "subscriptions": [house.theirs]}
    answer = await house.client.post("/v1/tokens", json=asked, headers=headers)
    made = await answer.json()
    assert answer.status == 201
    status, _ = await house.ask(("GET", "/v1/subscriptions/{id}"), made["token"])
    assert status == 200
    _, listed = await house.ask(("GET", "/v1/tokens"), "admin")
    assert "xscl_" not in listed
    (ann,) = (each for each in json.loads(listed)["tokens"] if each["name"] == "ann")
    assert ann["subscriptions"] == [house.theirs]
    assert ann["used"] is not None


@pytest.mark.parametrize(
    ("asked", "status", "detail"),
    [
        ({"scopes": ["admin"]}, 422, "'name' must be a string"),
        ({"name": "a", "scopes": "admin"}, 422, "'scopes' must be a list"),
        ({"name": "a", "scopes": ["root"]}, 422, "'root' is not a valid Scope"),
        ({"name": "a", "scopes": ["admin"], "expires": "soon"}, 422, "soon"),
        ({"name": "a", "scopes": ["admin"], "expires": "2001-01-01T00:00:00Z"}, 422, "end before"),
        ({"name": "a", "scopes": ["subscribe"], "subscriptions": ["sub_x"]}, 404, "sub_x"),
        ({"name": "admin", "scopes": ["admin"]}, 422, "already"),
        ({"name": "a", "scopes": ["admin"], "colour": "red"}, 422, "unknown member 'colour'"),
        ([], 400, "JSON object"),
    ],
)
async def test_a_token_that_makes_no_sense_is_refused(
    house: House, asked: object, status: int, detail: str
) -> None:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    answer = await house.client.post("/v1/tokens", json=asked, headers=headers)
    assert answer.status == status
    assert detail in json.loads(await answer.text())["detail"]


async def test_a_broker_serves_what_these_tests_try_and_nothing_else(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[web.Application] = []

    def keep(*given: Any, **named: Any) -> web.Application:
        made.append(make_application(*given, **named))
        return made[-1]

    monkeypatch.setattr(service, "make_application", keep)
    http = HttpSettings(port=0, public_url="https://broker.example")
    async with running(Settings(data=tmp_path / "data", http=http), Unstarted):
        pass
    (application,) = made
    assert sorted(routes_of(application)) == sorted(house.routes())


async def test_every_rule_is_for_a_resource_that_there_is(house: House) -> None:
    served = {f"{method} {pattern}" for method, pattern in house.routes()}
    assert set(RULES) <= served


async def test_no_answer_lets_a_page_of_elsewhere_read_it(house: House) -> None:
    headers = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "PUT"}
    for token in (None, "admin"):
        given = {"Authorization": f"Bearer {house.secrets[token]}"} if token else {}
        for method in ("OPTIONS", "GET"):
            for path in ("/v1/queries", "/healthz", "/v1/matches?after=0"):
                async with house.client.request(
                    method, path, headers={**headers, **given}
                ) as answer:
                    assert not [name for name in answer.headers if "access-control" in name.lower()]
                    assert method == "GET" or answer.status in (401, 405)


async def test_a_body_that_is_too_large_is_refused_and_unread_without_a_token(
    house: House,
) -> None:
    path, body = "/v1/streams/news/documents", b"<a>" + b"x" * BODY_BYTES_MAX + b"</a>"
    before = house.state()
    assert (await house.client.post(path, data=body)).status == 401
    headers = {"Authorization": f"Bearer {house.secrets['publish']}"}
    answer = await house.client.post(path, data=body, headers=headers)
    assert answer.status == 413
    assert answer.content_type == "application/problem+json"
    assert house.state() == before


async def test_no_secret_stands_in_a_log_or_in_an_answer(
    house: House, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(house.room.registry, "queries", fail)
    status, text = await house.ask(("GET", "/v1/queries"), "admin")
    assert status == 500
    assert "on purpose" in caplog.text
    texts = [text]
    for token in ("publish", "subscribe", "xscl_000000000000_" + "A" * 43):
        texts += [(await house.ask(route, token))[1] for route in protected(house)]
    for secret in (*house.secrets.values(), "A" * 43):
        assert secret not in caplog.text
        assert not any(secret in text for text in texts)


async def test_a_stream_ends_with_the_token_that_opened_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull, "_CHECK_S", 0.0)
    monkeypatch.setattr(pull, "_HEARTBEAT_S", 0.02)
    headers = {"Authorization": f"Bearer {house.secrets['subscribe']}"}
    path = f"/v1/subscriptions/{house.mine}/stream"
    async with house.client.get(path, headers=headers) as answer:
        assert answer.status == 200
        assert await answer.content.readuntil(b"\n\n")
        assert await answer.content.readuntil(b":\n\n")
        house.tokens.revoke("subscribe")
        assert b"data:" not in await answer.content.read()


async def test_a_broker_in_which_no_token_was_made_is_closed(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.ingest.start()
    tokens = Tokens(tmp_path / "tokens.db")
    application = make_application(room.backend, body_bytes_max=BODY_BYTES_MAX, gate=Gate(tokens))
    async with TestClient(TestServer(application)) as client:
        # Nothing in the request says that a proxy has passed it on: nginx adds nothing by itself.
        for headers in ({}, {"Host": "127.0.0.1:8420"}):
            assert (await client.get("/v1/queries", headers=headers)).status == 401
            answer = await client.put("/v1/queries/pwned", data="news//item->a", headers=headers)
            assert answer.status == 401
        assert room.registry.revision() == 0
        _, secret = tokens.create("ops", [TokenScope.ADMIN])
        headers = {"Authorization": f"Bearer {secret}"}
        assert (await client.get("/v1/queries", headers=headers)).status == 200
        tokens.revoke("ops")
        assert (await client.get("/v1/queries")).status == 401
    room.close()
    tokens.close()


@pytest.fixture
async def open_client(tmp_path: Path) -> AsyncIterator[TestClient]:
    """An application without a store of tokens, which no broker is."""
    room = Room(tmp_path)
    room.ingest.start()
    application = make_application(room.backend, body_bytes_max=BODY_BYTES_MAX)
    add_deliveries(application, Pickup(room.outbox, room.registry))
    async with TestClient(TestServer(application)) as client:
        yield client
    room.close()


async def test_without_a_store_of_tokens_programs_on_this_machine_need_none(
    open_client: TestClient,
) -> None:
    assert (await open_client.get("/v1/queries")).status == 200
    own = str(open_client.make_url("")).rstrip("/")
    assert (await open_client.get("/v1/queries", headers={"Origin": own})).status == 200
    assert (await open_client.get("/v1/queries", headers={"Host": "localhost"})).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://[bad"},
        {"Host": "[bad"},
        {"Host": "user@localhost@evil.example"},
        {"Host": "rebound.example:8420"},
        {"X-Forwarded-For": "203.0.113.7"},
        {"Forwarded": "for=203.0.113.7"},
        {"Via": "1.1 proxy"},
    ],
    ids=lambda headers: " ".join(headers),
)
async def test_a_web_page_and_a_proxy_on_this_machine_need_a_token(
    open_client: TestClient, headers: dict[str, str]
) -> None:
    for method, path in (("GET", "/v1/queries"), ("POST", "/v1/streams/news/documents")):
        answer = await open_client.request(method, path, headers=headers)
        assert answer.status == 403
        assert "xscl tokens create" in json.loads(await answer.text())["hint"]
    assert (await open_client.get("/healthz", headers=headers)).status == 200
