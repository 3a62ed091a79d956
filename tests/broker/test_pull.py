from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import feedparser
import pytest
from lxml import etree
from support.subscribers import Broker, broker_in, found, serving

from broker.api import pull
from broker.delivery.links import link_token
from broker.documents.document import Document
from broker.matching.stepresult import StepResult


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def events(response: aiohttp.ClientResponse, count: int) -> list[tuple[int, Any]]:
    """Return the next events of a stream as (id, data)."""
    read: list[tuple[int, Any]] = []
    number = 0
    async with asyncio.timeout(10):
        async for line in response.content:
            if line.startswith(b"id: "):
                number = int(line[4:])
            if line.startswith(b"data: "):
                read.append((number, json.loads(line[6:])))
            if len(read) == count:
                return read
    raise AssertionError("the stream ended")


async def test_a_stream_brings_matches_as_they_come_and_goes_on_behind_the_last_event(
    broker: Broker, http: aiohttp.ClientSession
) -> None:
    subscription = broker.subscribe("pull")
    async with serving(broker) as url:
        address = f"{url}/v1/subscriptions/{subscription.id}/stream"
        async with http.get(address) as response:
            assert response.content_type == "text/event-stream"
            await response.content.readline()
            broker.commit(found(1), found(2), found(7, query="Q2"))
            first, second = await events(response, 2)
        assert [first[1]["id"], second[1]["id"]] == [found(1).id, found(2).id]
        broker.commit(found(3))
        async with http.get(address, headers={"Last-Event-ID": str(first[0])}) as response:
            again = await events(response, 2)
        assert [data["id"] for _, data in again] == [found(2).id, found(3).id]


async def test_a_stream_shows_what_another_process_commits(
    broker: Broker, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    subscription = broker.subscribe("pull")
    with broker_in(tmp_path) as other:
        async with (
            serving(broker) as url,
            http.get(f"{url}/v1/subscriptions/{subscription.id}/stream?after=0") as response,
        ):
            other.commit(found(1))
            ((_, data),) = await events(response, 1)
    assert data["id"] == found(1).id


async def test_a_long_poll_waits_for_the_first_match(
    broker: Broker, http: aiohttp.ClientSession
) -> None:
    subscription = broker.subscribe("pull", point=1)
    async with serving(broker) as url:
        address = f"{url}/v1/subscriptions/{subscription.id}/matches"
        asking = asyncio.create_task(http.get(f"{address}?after=0&wait=10"))
        await asyncio.sleep(0.05)
        broker.commit(found(1), found(2))
        async with asyncio.timeout(8):  # it is told at once, and does not look when its time is up
            page = await (await asking).json()
        # Match 1 has a document that the subscription does not see.
        assert [match["id"] for match in page["matches"]] == [found(2).id]
        empty = await (await http.get(f"{address}?after={page['next']}")).json()
        assert empty == {"matches": [], "next": page["next"]}


async def test_the_atom_feed_reads_in_feedparser_and_is_not_sent_twice(
    broker: Broker, http: aiohttp.ClientSession
) -> None:
    subscription = broker.subscribe("pull")
    broker.commit(found(1), found(2))
    async with serving(broker, base_url="https://b.example") as url:
        address = f"{url}/v1/subscriptions/{subscription.id}/feed.atom"
        async with http.get(address) as response:
            body, tag = await response.read(), response.headers["ETag"]
        read = feedparser.parse(body)
        assert not read.bozo
        assert [entry.title for entry in read.entries] == ["Story 3", "Story 2"]
        assert read.entries[0].link == "https://two.example/3"
        assert read.feed.links[0].href.startswith("https://b.example/v1/subscriptions/")
        async with http.get(address, headers={"If-None-Match": tag}) as response:
            assert response.status == 304
        broker.commit(found(3))
        async with http.get(address, headers={"If-None-Match": tag}) as response:
            assert response.status == 200
    output = etree.fromstring(body).findtext(".//{urn:xscl:output}output")
    assert output == found(2).output


async def test_a_published_stream_is_a_feed(broker: Broker, http: aiohttp.ClientSession) -> None:
    document = Document(2, "pairs", "m1", 1, 2, 3, 4, b"<pair><title>Two</title></pair>", 1, "m1")
    broker.outbox.commit(after=0, through=1, step=StepResult(published=[document]))
    async with serving(broker) as url:
        async with http.get(f"{url}/v1/streams/pairs/feed.atom") as response:
            (entry,) = feedparser.parse(await response.read()).entries
            assert entry.title == "Two"
        async with http.get(f"{url}/v1/streams/other/feed.atom") as response:
            assert response.status == 404


async def test_a_token_opens_its_own_subscription_only(
    broker: Broker, http: aiohttp.ClientSession
) -> None:
    mine, other = broker.subscribe("pull"), broker.subscribe("pull")
    key = broker.registry.key("links")
    async with serving(broker, token_required=True) as url:

        async def status(subscription_id: str, token: str | None) -> int:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            address = f"{url}/v1/subscriptions/{subscription_id}/matches"
            async with http.get(address, headers=headers) as response:
                return response.status

        token = link_token(key, "read", mine.id)
        assert await status(mine.id, token) == 200
        assert await status(other.id, token) == 404
        assert await status(mine.id, None) == 404
        assert await status(mine.id, link_token(key, "unsubscribe", mine.id)) == 404
        assert await status(mine.id, link_token(b"other", "read", mine.id)) == 404


class Durable:
    """A durable consumer over HTTP."""

    def __init__(self, http: aiohttp.ClientSession, url: str, subscription_id: str) -> None:
        self._http = http
        self._address = f"{url}/v1/subscriptions/{subscription_id}/consumers/mine"

    async def create(self, **settings: Any) -> Any:
        async with self._http.put(self._address, json=settings) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def state(self) -> Any:
        async with self._http.get(self._address) as response:
            return await response.json()

    async def delete(self) -> int:
        async with self._http.delete(self._address) as response:
            return response.status

    async def fetch(self, **settings: Any) -> list[Any]:
        async with self._http.post(f"{self._address}/fetch", json=settings) as response:
            assert response.status == 200, await response.text()
            return list((await response.json())["matches"])

    async def answer(self, **answers: Any) -> Any:
        async with self._http.post(f"{self._address}/answer", json=answers) as response:
            assert response.status == 200, await response.text()
            return await response.json()


async def test_a_consumer_that_was_deleted_is_gone_with_what_it_had_pending(
    broker: Broker, http: aiohttp.ClientSession
) -> None:
    subscription = broker.subscribe("pull")
    broker.commit(found(1), found(2))
    async with serving(broker) as url:
        consumer = Durable(http, url, subscription.id)
        await consumer.create(start="all", ack_wait_s=60)
        assert len(await consumer.fetch(limit=1)) == 1
        assert await consumer.delete() == 204
        assert await consumer.delete() == 404
        assert (await consumer.state())["status"] == 404
        assert (await consumer.create(start="all", ack_wait_s=60))["pending"] == 0
        again = await consumer.fetch(limit=5)
        assert [(each["seq"], each["attempt"]) for each in again] == [(1, 1), (2, 1)]


async def test_a_consumer_keeps_its_place_until_matches_are_acknowledged(
    broker: Broker, http: aiohttp.ClientSession
) -> None:
    subscription = broker.subscribe("pull")
    broker.commit(*(found(n) for n in range(1, 5)))
    async with serving(broker) as url:
        consumer = Durable(http, url, subscription.id)
        await consumer.create(start="all", ack_wait_s=2)
        first = await consumer.fetch(limit=3)
        assert [(each["seq"], each["attempt"]) for each in first] == [(1, 1), (2, 1), (3, 1)]
        assert await consumer.answer(ack=[1, 2]) == {"ack": 2, "nak": 0, "extend": 0, "term": 0}
        assert (await consumer.answer(ack=[1, 2]))["ack"] == 0
    async with serving(broker) as url:
        consumer = Durable(http, url, subscription.id)
        await consumer.create(start="new")
        assert [each["seq"] for each in await consumer.fetch(limit=1)] == [4]
        # Match 3 was never answered: it comes again when its time is over.
        (again,) = await consumer.fetch(limit=1, wait_s=10)
        assert (again["seq"], again["attempt"]) == (3, 2)


async def test_a_refused_match_comes_again_after_its_delay_and_a_given_up_one_does_not(
    broker: Broker, http: aiohttp.ClientSession
) -> None:
    subscription = broker.subscribe("pull")
    broker.commit(found(1), found(2))
    async with serving(broker) as url:
        consumer = Durable(http, url, subscription.id)
        await consumer.create(start="all")
        await consumer.fetch()
        await consumer.answer(nak=[1], delay_s=2, term=[2], reason="cannot read it")
        assert await consumer.fetch() == []
        (again,) = await consumer.fetch(wait_s=10)
        assert (again["seq"], again["attempt"]) == (1, 2)
        assert (await consumer.state())["pending"] == 1
        async with http.get(f"{url}/v1/deliveries?state=dead") as response:
            (dead,) = (await response.json())["deliveries"]
    assert (dead["first_match"], dead["detail"]) == (2, "cannot read it")


async def test_a_match_that_is_never_acknowledged_ends_as_a_dead_letter(
    broker: Broker, http: aiohttp.ClientSession
) -> None:
    subscription = broker.subscribe("pull")
    broker.commit(found(1))
    async with serving(broker) as url:
        consumer = Durable(http, url, subscription.id)
        await consumer.create(start="all", max_deliver=2)
        for attempt in (1, 2):
            (fetched,) = await consumer.fetch(wait_s=5)
            assert fetched["attempt"] == attempt
            await consumer.answer(nak=[1])
        assert await consumer.fetch() == []
        async with http.get(f"{url}/v1/deliveries?state=dead") as response:
            assert len((await response.json())["deliveries"]) == 1


async def test_a_consumer_has_no_more_pending_than_it_wants(
    broker: Broker, http: aiohttp.ClientSession
) -> None:
    subscription = broker.subscribe("pull")
    broker.commit(*(found(n) for n in range(1, 6)))
    async with serving(broker) as url:
        consumer = Durable(http, url, subscription.id)
        await consumer.create(start="all", max_pending=2)
        assert [each["seq"] for each in await consumer.fetch()] == [1, 2]
        assert await consumer.fetch() == []
        await consumer.answer(ack=[1])
        assert [each["seq"] for each in await consumer.fetch()] == [3]


@pytest.mark.parametrize(
    ("start", "cursor"), [("new", 3), ("all", 0), (3, 1), ("2100-01-01T00:00:00Z", 3)]
)
async def test_a_consumer_starts_where_it_is_told(
    broker: Broker, http: aiohttp.ClientSession, start: object, cursor: int
) -> None:
    subscription = broker.subscribe("pull")
    broker.commit(*(found(n) for n in range(1, 4)))
    async with serving(broker) as url:
        consumer = Durable(http, url, subscription.id)
        assert (await consumer.create(start=start))["cursor"] == cursor


@pytest.mark.parametrize(
    ("body", "status"),
    [('{"start": "x"}', 422), ('{"max_deliver": 0}', 422), ("[", 400), ('{"colour": 1}', 422)],
)
async def test_a_consumer_that_cannot_be_is_refused(
    broker: Broker, http: aiohttp.ClientSession, body: str, status: int
) -> None:
    subscription = broker.subscribe("pull")
    async with serving(broker) as url:
        address = f"{url}/v1/subscriptions/{subscription.id}/consumers/mine"
        async with http.put(address, data=body) as response:
            assert response.status == status
        async with http.post(f"{address}/fetch") as response:
            assert response.status == 404


async def test_a_stream_ends_with_its_subscription(
    broker: Broker, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull, "_CHECK_S", 0.0)
    subscription = broker.subscribe("pull")
    async with serving(broker) as url:
        address = f"{url}/v1/subscriptions/{subscription.id}/stream?after=0"
        async with http.get(address) as response:
            broker.commit(found(1))
            await events(response, 1)
            broker.registry.subscriptions.remove(subscription.id, until=2)
            broker.commit(found(2))
            rest = await response.content.read()
        assert rest.count(b"event: match") <= 1
        async with http.get(address) as response:
            assert response.status == 404
