from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from aiohttp.test_utils import TestClient
from support.api_room import Room, match

from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.head import Segment
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.stepresult import StepResult
from broker.registry.queries import Registry
from broker.registry.streams import Streams

SAME = "news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b"
DIGEST = "SELECT <all>{a}</all> FROM *//item->a PUBLISH digest"


async def answer(client: TestClient, path: str, status: int = 200) -> Any:
    async with client.get(path) as response:
        assert response.status == status, await response.text()
        return await response.json(content_type=None)


async def publish(client: TestClient, stream: str, xml: str) -> None:
    answered = await client.post(f"/v1/streams/{stream}/documents", data=xml.encode())
    assert answered.status == 200


async def test_a_stream_says_how_many_documents_it_has_and_who_uses_it(
    client: TestClient,
) -> None:
    for stream in ("news", "blogs", "news"):
        await publish(client, stream, "<item/>")
    await client.put("/v1/queries/same", data=SAME)
    assert (await client.put("/v1/queries/digest", data=DIGEST)).status == 200
    streams = (await answer(client, "/v1/streams"))["streams"]
    keys = ("name", "documents", "newest", "readers", "publisher")
    assert [tuple(each[key] for key in keys) for each in streams] == [
        ("blogs", 1, 2, 1, None),
        ("digest", 0, None, 1, "digest"),
        ("news", 2, 3, 2, None),
    ]
    assert streams[2]["documents_per_second"] == pytest.approx(2 / 300)
    assert streams[2]["arrival"].endswith("Z")


def test_streams_are_counted_while_segments_are_merged_again_and_again(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "spool", Disk(is_durable=False))
    ingest = Ingest(writer, dedup_horizon_us=None)
    for number in range(12):
        ingest.append([DocumentLine("S", b"<i/>", number)], registry_version=1)

    class Merged(Spool):
        """Has segments merged whenever it is to read one."""

        def rows(self, segment: Segment) -> pa.RecordBatch:
            if merged := writer.compact(through=12, documents_max=sizes.pop(0) if sizes else 0):
                assert merged > 1
            return super().rows(segment)

    sizes = [3, 6, 12]
    streams = Streams(Merged(tmp_path / "spool"))
    [found] = streams.streams(Registry(tmp_path / "registry.db"), 0)
    assert (found.name, found.documents) == ("S", 12)
    assert not sizes
    writer.close()


async def test_a_broker_without_anything_has_statistics(client: TestClient) -> None:
    found = await answer(client, "/v1/statistics")
    assert found["is_ready"]
    assert (found["documents"], found["queries"], found["matches"]) == (0, {}, 0)


async def test_statistics_count_what_there_is(client: TestClient, room: Room) -> None:
    await publish(client, "news", "<item/>")
    await client.put("/v1/queries/same", data=SAME)
    await client.post("/v1/queries/same/pause")
    await room.commit(match(1))
    room.unready = "it is starting"
    found = await answer(client, "/v1/statistics")
    assert (found["is_ready"], found["reason"]) == (False, "it is starting")
    assert (found["documents"], found["queries"], found["matches"]) == (1, {"paused": 1}, 1)
    assert found["figures"] == {"documents_evaluated_total": 3.0}


async def test_dead_letters_are_read_newest_first_with_their_documents(
    client: TestClient, room: Room
) -> None:
    for xml in ("<a/>", "<b/>"):
        await publish(client, "news", xml)
    letters = [(1, "too deep"), (2, "too many witnesses"), (9, "gone")]
    room.outbox.commit(after=0, through=1, step=StepResult(dead_letters=letters))
    page = await answer(client, "/v1/dead-letters?limit=2")
    assert [(each["docid"], each["reason"], each["xml"]) for each in page["dead_letters"]] == [
        (9, "gone", None),
        (2, "too many witnesses", "<b/>"),
    ]
    rest = await answer(client, f"/v1/dead-letters?limit=2&before={page['next']}")
    assert [each["docid"] for each in rest["dead_letters"]] == [1]
    assert rest["next"] is None


async def test_matches_are_those_of_one_document(client: TestClient, room: Room) -> None:
    await room.commit(match(1), match(2), match(5, "other"))
    for document, ids in ((2, ["m1", "m2"]), (6, ["m5"]), (9, [])):
        found = await answer(client, f"/v1/matches?after=0&document={document}")
        assert [each["id"] for each in found["matches"]] == ids


async def test_matches_are_those_found_between_two_times(client: TestClient, room: Room) -> None:
    await room.commit(match(1))
    page = await answer(client, "/v1/matches?since=2001-01-01T00:00:00Z")
    assert [each["id"] for each in page["matches"]] == ["m1"]
    for nothing in ("since=2999-01-01", "after=0&until=2001-01-01", "after=0&query=none"):
        assert (await answer(client, f"/v1/matches?{nothing}"))["matches"] == []
    await answer(client, "/v1/matches?since=yesterday", 400)


async def test_no_matches_cannot_be_asked_for(client: TestClient, room: Room) -> None:
    await room.commit(match(1), match(2))
    await answer(client, "/v1/matches?after=0&limit=0", 400)
    found = await answer(client, "/v1/matches?after=0&limit=1")
    assert [each["id"] for each in found["matches"]] == ["m1"]
