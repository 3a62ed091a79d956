from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import ClientResponse
from aiohttp.test_utils import TestClient
from support.api_room import Room, match
from yarl import URL

from broker.documents.spool import Spool
from broker.registry.subscription import Destination

PULL = Destination.parse("pull")
SAME = "news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b"


async def problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status == status, await response.text()
    assert response.content_type == "application/problem+json"
    details: dict[str, Any] = json.loads(await response.text())
    assert details["status"] == status
    return details


def lines(*documents: dict[str, str]) -> dict[str, Any]:
    body = "\n".join(json.dumps({"stream": "news", **document}) for document in documents)
    return {"data": body.encode(), "headers": {"Content-Type": "application/x-ndjson"}}


async def test_a_document_is_on_the_disk_when_it_is_acknowledged(
    client: TestClient, room: Room
) -> None:
    answer = await client.post("/v1/streams/news/documents?key=k1", data=b"<item>1</item>")
    assert answer.status == 200
    (receipt,) = (await answer.json())["documents"]
    assert receipt == {
        "line": 1,
        "outcome": "accepted",
        "docid": 1,
        "key": "k1",
        "reason": None,
        "late": False,
        "settled": False,
    }
    assert Spool(room.spool.directory).documents([1]) == {1: b"<item>1</item>"}


async def test_a_line_that_is_refused_does_not_hold_up_the_others(client: TestClient) -> None:
    body = lines({"xml": "<a/>", "key": "1"}, {"xml": "<a>"}, {"xml": "<b/>", "key": "2"})
    answer = await client.post("/v1/streams/news/documents", **body)
    receipts = (await answer.json())["documents"]
    assert [receipt["outcome"] for receipt in receipts] == ["accepted", "refused", "accepted"]
    assert "not well-formed XML" in receipts[1]["reason"]
    assert [receipt["docid"] for receipt in receipts] == [1, None, 2]


async def test_a_repeated_document_has_the_docid_of_the_first(client: TestClient) -> None:
    body = lines({"xml": "<a/>", "key": "1"})
    for outcome in ("accepted", "duplicate"):
        answer = await client.post("/v1/streams/news/documents", **body)
        (receipt,) = (await answer.json())["documents"]
        assert (receipt["outcome"], receipt["docid"]) == (outcome, 1)


@pytest.mark.parametrize("xml", [b"", b"no XML", b"<a>", b"<a/><b/>"])
async def test_one_document_that_is_not_xml_is_a_problem(client: TestClient, xml: bytes) -> None:
    details = await problem(await client.post("/v1/streams/news/documents", data=xml), 422)
    assert "not well-formed XML" in details["detail"]


@pytest.mark.parametrize("kind", ["application/xml", "application/x-ndjson"])
async def test_a_stream_that_no_query_could_name_is_refused(client: TestClient, kind: str) -> None:
    path = "/v1/streams/bad stream/documents"
    details = await problem(
        await client.post(path, data="<v/>", headers={"Content-Type": kind}), 422
    )
    assert details["detail"].startswith("'bad stream' cannot be the name of a stream")


async def test_the_id_of_a_query_has_a_bound(client: TestClient) -> None:
    assert (await client.put(f"/v1/queries/{'q' * 200}", data="S//a")).status == 200
    details = await problem(await client.put(f"/v1/queries/{'q' * 201}", data="S//a"), 422)
    assert "it has 201 characters, and at most 200 may be" in details["detail"]


async def test_a_line_of_another_stream_is_refused(client: TestClient) -> None:
    answer = await client.post("/v1/streams/sport/documents", **lines({"xml": "<a/>"}))
    (receipt,) = (await answer.json())["documents"]
    assert receipt["reason"] == "the line is for stream 'news', not 'sport'"


async def test_a_body_that_is_too_large_is_a_problem(client: TestClient) -> None:
    xml = b"<a>" + b"x" * 20_000 + b"</a>"
    await problem(await client.post("/v1/streams/news/documents", data=xml), 413)


async def test_a_time_that_is_none_is_a_problem(client: TestClient) -> None:
    response = await client.post("/v1/streams/news/documents?time=noon", data=b"<a/>")
    assert "'noon'" in (await problem(response, 400))["detail"]


async def test_documents_are_read_back_page_by_page(client: TestClient) -> None:
    await client.post("/v1/streams/news/documents", **lines(*({"xml": f"<a{n}/>"} for n in "123")))
    await client.post("/v1/streams/news/documents", **lines({"xml": "<a4/>"}))
    answer = await (await client.get("/v1/documents?after=1&limit=2")).json()
    assert [(d["docid"], d["xml"]) for d in answer["documents"]] == [(2, "<a2/>"), (3, "<a3/>")]
    assert (await (await client.get("/v1/documents/4")).json())["xml"] == "<a4/>"
    await problem(await client.get("/v1/documents/5"), 404)


async def test_a_query_is_registered_behind_the_newest_document(client: TestClient) -> None:
    await client.post("/v1/streams/news/documents", **lines({"xml": "<a/>"}))
    answer = await client.put("/v1/queries/same", data=SAME)
    assert (await answer.json())["point"] == 1
    listed = (await (await client.get("/v1/queries")).json())["queries"]
    assert [(q["id"], q["state"], q["matches"]) for q in listed] == [("same", "active", 0)]


async def test_a_sequence_with_units_a_key_a_bound_and_a_condition_is_registered(
    client: TestClient,
) -> None:
    text = (
        "(news//item->a | news//note->b) FOLLOWED BY news//item->c"
        " WITHIN 1 h SAME (//k) WHERE exists(b) OR time(c) - time(a) > 1 min"
    )
    assert (await client.put("/v1/queries/sequence", data=text)).status == 200
    answer = await (await client.get("/v1/queries/sequence")).json()
    assert answer["state"] == "active"
    assert "SAME (//k)" in answer["text"]


async def test_registering_the_same_text_again_changes_nothing(client: TestClient) -> None:
    first = await (await client.put("/v1/queries/same", data=SAME)).json()
    await client.post("/v1/streams/news/documents", **lines({"xml": "<a/>"}))
    again = await (await client.put("/v1/queries/same", data=SAME)).json()
    assert (first.pop("outcome"), again.pop("outcome")) == ("registered", "unchanged")
    assert again == first


async def test_a_query_that_does_not_parse_has_its_diagnostics(client: TestClient) -> None:
    details = await problem(await client.put("/v1/queries/q", data="news//item->"), 422)
    (finding, *_) = details["diagnostics"]
    assert finding["code"].startswith("XS")
    assert finding["start"]["line"] == 1
    assert "^" in details["rendered"]


async def test_a_query_that_is_not_run_yet_is_refused_with_one_message(client: TestClient) -> None:
    text = "news//item->a JOIN {a/k = b/k AND confidence() > 0.5, 1 h} news//item->b"
    details = await problem(await client.put("/v1/queries/q", data=text), 422)
    [finding] = details["diagnostics"]
    assert finding["code"] == "XS800"
    assert finding["message"] == "this broker does not run `confidence()` in a condition yet"
    await problem(await client.get("/v1/queries/q"), 404)


async def test_several_statements_are_not_one_query(client: TestClient) -> None:
    await problem(await client.put("/v1/queries/q", data="a; b"), 422)


async def test_a_query_is_paused_resumed_and_removed(client: TestClient) -> None:
    await client.put("/v1/queries/same", data=SAME)
    await client.post("/v1/subscriptions", json={"query": "same", "destination": "pull"})
    for action, state in (("pause", "paused"), ("resume", "active")):
        answer = await client.post(f"/v1/queries/same/{action}")
        assert (await answer.json())["state"] == state
    assert (await client.delete("/v1/queries/same")).status == 204
    await problem(await client.get("/v1/queries/same"), 404)
    await problem(await client.post("/v1/queries/same/pause"), 404)
    [left] = (await (await client.get("/v1/subscriptions")).json())["subscriptions"]
    assert (left["state"], left["until"]) == ("active", 0)
    await client.delete(f"/v1/subscriptions/{left['id']}")
    assert (await (await client.get("/v1/subscriptions")).json())["subscriptions"] == []


@pytest.mark.parametrize(
    ("destination", "shown"),
    [
        ("apprise:slack://tokenA/tokenB", "apprise:slack://..."),
        ("slack:https://hooks.slack.com/services/tokenA", "slack:https://hooks.slack.com/..."),
        ("telegram:123456:tokenAtoken@-100", "telegram:...@-100"),
        (
            "matrix:tokenA@https://m.example/!r:m.example",
            "matrix:...@https://m.example/!r:m.example",
        ),
    ],
)
async def test_the_tokens_in_an_address_are_not_shown(
    client: TestClient, destination: str, shown: str
) -> None:
    await client.put("/v1/queries/same", data=SAME)
    second = {"escalate": destination, "escalate_after": "1 h"}
    asked = {"query": "same", "destination": destination, "options": second}
    answer = await client.post("/v1/subscriptions", json=asked)
    made = await answer.json()
    assert (made["destination"], made["options"]["escalate"]) == (shown, shown)
    assert "token" not in await (await client.get("/v1/subscriptions")).text()
    wrong = await client.post("/v1/subscriptions", json={**asked, "destination": "ntfy:tokenA"})
    assert wrong.status == 422
    assert "tokenA" not in await wrong.text()


async def test_the_secret_of_a_webhook_is_shown_once(client: TestClient) -> None:
    await client.put("/v1/queries/same", data=SAME)
    body = {"query": "same", "destination": "https://example.org/hook"}
    answer = await client.post("/v1/subscriptions", json=body)
    assert answer.status == 201
    made = await answer.json()
    assert made["secret"].startswith("whsec_")
    again = await (await client.get(f"/v1/subscriptions/{made['id']}")).json()
    assert "secret" not in again
    assert again["destination"] == "https://example.org/hook"


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({"query": "same"}, 422, "'destination' must be a string"),
        ({"query": "same", "destination": "nowhere"}, 422, "neither an http(s) URL"),
        ({"query": "none", "destination": "pull"}, 404, "no query 'none'"),
        ({"query": "same", "destination": "pull", "to": 1}, 422, "unknown member 'to'"),
        (["same"], 400, "a JSON object"),
    ],
)
async def test_a_subscription_that_cannot_be_made_is_a_problem(
    client: TestClient, body: Any, status: int, detail: str
) -> None:
    await client.put("/v1/queries/same", data=SAME)
    response = await client.post("/v1/subscriptions", json=body)
    assert detail in (await problem(response, status))["detail"]


async def test_a_parameterised_query_wants_its_values(client: TestClient) -> None:
    await client.put("/v1/queries/by", data="news//item[author = $who]")
    wanting = {"query": "by", "destination": "pull"}
    await problem(await client.post("/v1/subscriptions", json=wanting), 422)
    answer = await client.post("/v1/subscriptions", json={**wanting, "parameters": {"who": "Ann"}})
    assert (await answer.json())["parameters"] == {"who": "Ann"}


async def test_matches_come_page_by_page_and_by_query(client: TestClient, room: Room) -> None:
    await room.commit(match(1), match(2, "other"), match(3))
    page = await (await client.get("/v1/matches?after=0&limit=2")).json()
    assert [found["id"] for found in page["matches"]] == ["m1", "m2"]
    rest = await (await client.get(f"/v1/matches?after={page['next']}")).json()
    assert [found["id"] for found in rest["matches"]] == ["m3"]
    same = await (await client.get("/v1/matches?after=0&query=same")).json()
    assert [found["id"] for found in same["matches"]] == ["m1", "m3"]
    assert same["next"] == rest["next"] == 3


async def test_a_request_waits_for_the_next_match(client: TestClient, room: Room) -> None:
    await room.commit(match(1))
    waiting = asyncio.create_task(client.get("/v1/matches?wait=20"))
    done, _ = await asyncio.wait([waiting], timeout=0.1)
    assert not done
    await room.commit(match(2))
    page = await (await waiting).json()
    assert [found["id"] for found in page["matches"]] == ["m2"]


async def test_a_number_that_is_none_is_a_problem(client: TestClient) -> None:
    await problem(await client.get("/v1/matches?after=soon"), 400)


async def test_readiness_says_why_not(client: TestClient, room: Room) -> None:
    assert (await client.get("/readyz")).status == 200
    room.unready = "the broker is starting"
    assert (await problem(await client.get("/readyz"), 503))["detail"] == room.unready
    assert (await client.get("/healthz")).status == 200


async def test_figures_are_shown_in_the_format_of_prometheus(client: TestClient) -> None:
    text = await (await client.get("/metrics")).text()
    assert text.splitlines() == [
        "# HELP xscl_ready 1 where documents are taken and evaluated, else 0, as /readyz says it",
        "# TYPE xscl_ready gauge",
        "xscl_ready 1",
        "# HELP xscl_documents_evaluated_total documents evaluated; ticks of the clock are none",
        "# TYPE xscl_documents_evaluated_total counter",
        "xscl_documents_evaluated_total 3",
    ]


async def test_an_unknown_address_is_a_problem(client: TestClient) -> None:
    await problem(await client.get("/v2/nothing"), 404)
    response = await client.patch("/v1/queries")
    await problem(response, 405)
    assert "GET" in response.headers["Allow"]


async def test_a_publish_name_belongs_to_one_query(client: TestClient) -> None:
    text = "SELECT * FROM news//item PUBLISH seen"
    assert (await client.put("/v1/queries/one", data=text)).status == 200
    details = await problem(await client.put("/v1/queries/two", data=text), 422)
    assert "seen" in details["detail"]
    assert (await client.put("/v1/queries/one", data=text.replace("news", "sport"))).status == 200


async def test_a_publish_name_that_was_taken_meanwhile_keeps_a_query_paused(
    client: TestClient,
) -> None:
    text = "SELECT * FROM news//item PUBLISH seen"
    for name in ("one", "two"):
        assert (await client.put(f"/v1/queries/{name}", data=text)).status == 200
        assert (await client.post(f"/v1/queries/{name}/pause")).status == 200
    assert (await client.post("/v1/queries/one/resume")).status == 200
    details = await problem(await client.post("/v1/queries/two/resume"), 422)
    assert "seen" in details["detail"]


async def test_a_full_disk_changes_no_query_and_says_so(client: TestClient, room: Room) -> None:
    database = room.registry._file.db
    [pages] = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    text = "news//item[title = '" + "x" * 9_000 + "']"
    details = await problem(await client.put("/v1/queries/long", data=text), 507)
    assert "disk is full" in details["detail"]
    await problem(await client.get("/v1/queries/long"), 404)


@pytest.mark.parametrize(
    "name", ["..%2f..%2fetc", "a%0d%0ab", "a%1b", "%20", "a%E2%80%AEb", "2nd", "a%20b", "-a"]
)
async def test_an_id_is_as_plain_as_the_name_of_a_stream(
    client: TestClient, room: Room, name: str
) -> None:
    address = URL(f"/v1/queries/{name}", encoded=True)
    details = await problem(await client.put(address, data=SAME), 422)
    assert "cannot be the id of a query: a letter or `_`" in details["detail"]
    assert room.registry.queries() == []


@pytest.mark.parametrize("verb", ["estimate", "rehearsal"])
async def test_what_could_not_be_registered_is_not_tried_either(
    client: TestClient, verb: str
) -> None:
    address = f"/v1/queries/{'q' * 201}/{verb}"
    details = await problem(await client.post(address, data=SAME), 422)
    assert "at most 200 may be" in details["detail"]


async def test_an_id_that_was_given_before_there_was_a_rule_stays(
    client: TestClient, room: Room
) -> None:
    room.registry.register("a b/c", SAME, version="v", point=0)
    address = URL("/v1/queries/a%20b%2Fc", encoded=True)
    assert (await client.put(address, data=SAME)).status == 200
    assert (await client.put(address, data=SAME.replace("2", "3"))).status == 200
    assert (await client.delete(address)).status == 204
    assert (await client.put(address, data=SAME)).status == 200


async def test_a_subscription_looks_back_with_a_publisher_only_while_nobody_reads_it(
    client: TestClient,
) -> None:
    await client.post("/v1/streams/news/documents", data="<item><k>a</k></item>")
    text = "SELECT * FROM news//item[k = $k] PUBLISH seen"
    assert (await client.put("/v1/queries/one", data=text)).status == 200

    async def look_back(value: str) -> ClientResponse:
        asked = {"query": "one", "destination": "pull", "parameters": {"k": value}, "since": "all"}
        await client.post("/v1/streams/news/documents", data=f"<item><k>{value}</k></item>")
        return await client.post("/v1/subscriptions", json=asked)

    await client.put("/v1/queries/one?since=all", data=text)
    assert (await look_back("a")).status == 201
    assert (await client.put("/v1/queries/two", data="seen//item")).status == 200
    details = await problem(await look_back("b"), 422)
    assert "'two' reads 'seen' already" in details["detail"]
    assert (await look_back("a")).status == 201, "which nobody has to find again"


async def test_queries_that_publish_in_a_cycle_are_refused(client: TestClient) -> None:
    await client.put("/v1/queries/one", data="SELECT * FROM b//item PUBLISH a")
    response = await client.put("/v1/queries/two", data="SELECT * FROM a//item PUBLISH b")
    assert "cycle" in (await problem(response, 422))["detail"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/matches?afterr=0", "there is no parameter 'afterr' here"),
        ("/v1/documents?stream=news", "there is no parameter 'stream' here"),
        ("/v1/matches?limit=1001", "'limit' must be from 1 to 1000, not 1001"),
        ("/v1/documents?limit=0", "'limit' must be from 1 to 1000, not 0"),
        ("/v1/subscriptions?limit=5000", "'limit' must be from 1 to 1000"),
        ("/v1/dead-letters?limit=5000", "'limit' must be from 1 to 1000"),
    ],
)
async def test_what_would_be_ignored_or_cut_is_refused(
    client: TestClient, path: str, said: str
) -> None:
    details = await problem(await client.get(path), 400)
    assert said in details["detail"]
    assert ("hint" in details) == ("afterr" in path)


async def test_subscriptions_come_page_by_page(client: TestClient, room: Room) -> None:
    await client.put("/v1/queries/same", data=SAME)
    made = sorted(room.registry.subscribe("same", PULL, point=0).id for _ in range(5))
    seen: list[str] = []
    after = ""
    for _ in range(3):
        page = await (await client.get(f"/v1/subscriptions?limit=2&after={after}")).json()
        seen += [each["id"] for each in page["subscriptions"]]
        after = page["next"]
    assert (seen, after) == (made, None)


async def test_long_answers_are_compressed_for_who_can_read_that(client: TestClient) -> None:
    await client.put("/v1/queries/long", data="news//item[t = '" + "x" * 3_000 + "']")
    for wanted, used in (("gzip", "gzip"), ("identity", None)):
        answer = await client.get("/v1/queries", headers={"Accept-Encoding": wanted})
        assert answer.headers.get("Content-Encoding") == used
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert "xxx" in await answer.text()
    short = await client.get("/healthz", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in short.headers


@pytest.mark.parametrize("path", ["/healthz", "/v1/queries", "/v1/queries/none", "/nowhere"])
async def test_what_the_server_is_made_of_is_not_told(client: TestClient, path: str) -> None:
    assert (await client.get(path)).headers["Server"] == "xscl"
