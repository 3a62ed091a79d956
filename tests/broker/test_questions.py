from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp.test_utils import TestClient
from support.api_room import Room

from broker.documents.spool import Spool
from broker.documents.stored import newest_documents, stored_document

SAME = "news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b"
BY_AUTHOR = (
    "news//item->a FOLLOWED BY {a/author = $who AND a/title = b/title, 2 days} news//item->b"
)


async def publish(client: TestClient, *titles: str) -> None:
    for n, title in enumerate(titles):
        xml = f"<item><author>Ann</author><title>{title}</title></item>"
        path = f"/v1/streams/news/documents?key=k{n}&time=2026-01-01T0{n}:00:00Z"
        assert (await client.post(path, data=xml.encode())).status == 200


async def asked(answer: Any, status: int = 200) -> dict[str, Any]:
    text = await answer.text()
    assert answer.status == status, text
    found: dict[str, Any] = json.loads(text)
    return found


async def test_why_two_documents_match_or_do_not_is_told(client: TestClient) -> None:
    await client.put("/v1/queries/same", data=SAME.encode())
    await publish(client, "One", "one", "One")
    near = await asked(await client.get("/v1/queries/same/why-not?documents=1,2"))
    assert near["holds"] is False
    assert "'One'" in near["rendered"]
    assert "'one'" in near["rendered"]
    assert near["parts"]
    both = await asked(await client.get("/v1/queries/same/why-not?documents=1,3"))
    assert both["holds"] is True


async def test_a_document_from_before_the_query_does_not_match_it(client: TestClient) -> None:
    await publish(client, "One", "One")
    await client.put("/v1/queries/same", data=SAME.encode())
    found = await asked(await client.get("/v1/queries/same/why-not?documents=1,2"))
    assert found["holds"] is False
    assert "registration" in found["rendered"]


async def test_parameters_are_given_with_the_question(client: TestClient) -> None:
    await client.put("/v1/queries/by-author", data=BY_AUTHOR.encode())
    await publish(client, "One", "One")
    path = "/v1/queries/by-author/why-not"
    for who, holds in (("Ann", True), ("Bob", False)):
        query = {"documents": "1,2", "parameters": json.dumps({"who": who})}
        assert (await asked(await client.get(path, params=query)))["holds"] is holds
    assert (await asked(await client.get(path + "?documents=1,2")))["kind"] == "parameters"
    wrong = {"documents": "1,2", "parameters": json.dumps({"whom": "Ann"})}
    await asked(await client.get(path, params=wrong), 422)


@pytest.mark.parametrize(
    ("question", "status", "detail"),
    [
        ("", 400, "must be document numbers"),
        ("documents=", 400, "must be document numbers"),
        ("documents=1,k2", 400, "must be document numbers"),
        ("documents=" + ",".join("1" * 9), 400, "at most 8"),
        ("documents=1,99", 404, "no document 99"),
        ("documents=1,0", 404, "no document 0"),
        ("documents=1,2&parameters={", 400, "not JSON"),
        ("documents=1,2&parameters=[]", 400, "JSON object"),
    ],
)
async def test_a_wrong_question_is_told_what_is_wrong(
    client: TestClient, question: str, status: int, detail: str
) -> None:
    await client.put("/v1/queries/same", data=SAME.encode())
    await publish(client, "One", "Two")
    problem = await asked(await client.get(f"/v1/queries/same/why-not?{question}"), status)
    assert detail in problem["detail"]
    await asked(await client.get("/v1/queries/none/why-not?documents=1,2"), 404)


async def test_what_a_query_becomes_is_told(client: TestClient) -> None:
    await client.put("/v1/queries/same", data=SAME.encode())
    found = await asked(await client.get("/v1/queries/same/explain"))
    assert [query["id"] for query in found["queries"]] == ["same"]
    assert found["templates"]
    await asked(await client.get("/v1/queries/none/explain"), 404)


async def test_what_a_query_would_match_is_told_and_nothing_is_registered(
    client: TestClient, room: Room
) -> None:
    empty = await asked(await client.post("/v1/queries/same/estimate", data=SAME.encode()))
    assert empty["sample"]["documents"] == 0
    await publish(client, "One", "Two", "One", "One")
    before = room.registry.revision()
    found = await asked(await client.post("/v1/queries/same/estimate", data=SAME.encode()))
    assert found["sample"]["documents"] == 4
    assert found["matches_per_day"] is None
    assert found["refusal"] == "it takes 30 documents to tell, and there are 4"
    assert found["operators"][0]["partners"] > 0
    assert "same" in found["rendered"]
    assert room.registry.revision() == before


async def test_what_could_not_be_registered_has_no_estimate(client: TestClient) -> None:
    problem = await asked(await client.post("/v1/queries/same/estimate", data=b"news//item->"), 422)
    assert problem["diagnostics"]
    publishing = f"FROM {SAME} SELECT * PUBLISH stories"
    await asked(await client.put("/v1/queries/first", data=publishing.encode()))
    await asked(await client.post("/v1/queries/second/estimate", data=publishing.encode()), 422)


async def test_the_newest_documents_are_in_the_order_of_their_arrival(
    client: TestClient, room: Room
) -> None:
    await publish(client, "One", "Two", "Three")
    spool = Spool(room.spool.directory)
    assert [each.docid for each in newest_documents(spool, 2)] == [2, 3]
    assert [each.docid for each in newest_documents(spool, 9)] == [1, 2, 3]
    assert newest_documents(spool, 0) == []
    second = stored_document(spool, 2)
    assert second is not None
    assert (second.docid, second.key, b"Two" in second.xml) == (2, "k1", True)
    assert stored_document(spool, 4) is None


async def test_comments_before_a_query_say_whose_it_is(client: TestClient) -> None:
    text = "-- Stories.\n-- owner: ann@example.org\n-- tags: news, wire\nnews//item->a"
    answer = await client.put("/v1/queries/stories", data=text)
    assert answer.status == 200, await answer.text()
    listed = (await (await client.get("/v1/queries")).json())["queries"]
    one = await (await client.get("/v1/queries/stories")).json()
    for query in (await answer.json(), one, *(each for each in listed if each["id"] == "stories")):
        assert (query["owner"], query["tags"]) == ("ann@example.org", ["news", "wire"])
        assert query["description"].startswith("Stories.")
    assert "stories" in {each["id"] for each in listed}
    # Words of the query itself, and comments behind its beginning, are nobody's labels.
    text = "news//item->a -- owner: bob@example.org\n"
    found = await (await client.put("/v1/queries/stories", data=text)).json()
    assert (found["owner"], found["tags"]) == (None, [])
