"""A removal holds from the next document on: what was accepted before is matched and delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.small_broker import small_broker
from support.subscribers import Broker, broker_in, found, receiving, serving, until

from broker.delivery.links import link_token
from broker.registry.queries import QueryState
from broker.registry.subscription import Subscription, SubscriptionState


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        broker.registry.register("Q1", "S//a", version="v", point=0)
        yield broker


def remove_query(broker: Broker, effective: int) -> None:
    """Remove the query, and state it anew: what it finds then is nobody's who was there before."""
    broker.registry.set_state("Q1", QueryState.REMOVED, effective=effective)
    broker.registry.register("Q1", "S//a", version="v", point=effective)


def present(broker: Broker, made: Subscription) -> Subscription:
    return broker.registry.subscriptions.get(made.id)


async def test_subscribers_of_a_removed_query_are_sent_what_was_accepted_before(
    broker: Broker,
) -> None:
    async with receiving() as receiver, receiving() as later, broker.delivering():
        receiver.answers = [500]
        made = broker.subscribe(receiver.url)
        remove_query(broker, effective=3)
        broker.subscribe(later.url)
        broker.commit(found(1), found(2), found(3))
        await later.wait_for(3)
        received = await receiver.wait_for(3)
        sent = [each.data["documents"][0]["docid"] for each in received]
        assert sorted(sent) == [1, 1, 2], "one of them twice: it was refused once"
        assert present(broker, made).until == 3


async def test_a_subscription_that_is_removed_is_sent_nothing_more(broker: Broker) -> None:
    async with receiving() as receiver, broker.delivering():
        made = broker.subscribe(receiver.url)
        remove_query(broker, effective=3)
        broker.registry.subscriptions.remove(made.id, until=9)
        other = broker.subscribe(receiver.url + "/other")
        broker.commit(found(1))
        [received] = await receiver.wait_for(1)
        assert received.path == "/hook/other"
        assert present(broker, made).until == 3
        assert present(broker, other).until is None


async def test_subscribers_of_a_removed_query_fetch_what_was_accepted_before(
    broker: Broker,
) -> None:
    made = broker.subscribe("pull")
    remove_query(broker, effective=3)
    broker.commit(found(1), found(2), found(3))
    async with serving(broker) as url, aiohttp.ClientSession() as http:
        address = f"{url}/v1/subscriptions/{made.id}"

        async def ask(method: str, path: str, **body: Any) -> Any:
            async with http.request(method, address + path, json=body or None) as answer:
                return await answer.json(content_type=None)

        page = await ask("GET", "/matches?after=0")
        assert [each["seq"] for each in page["matches"]] == [1, 2]
        await ask("PUT", "/consumers/mine", start="all")
        fetched = await ask("POST", "/consumers/mine/fetch", limit=9)
        assert [each["seq"] for each in fetched["matches"]] == [1, 2]
        async with http.get(address + "/feed.atom") as feed:
            assert (await feed.text()).count("<entry>") == 2


async def test_subscriptions_go_thirty_days_after_their_query(broker: Broker) -> None:
    days = [0]
    broker.registry._file.now_us = lambda: days[0] * 86_400_000_000
    made = broker.subscribe("pull")
    remove_query(broker, effective=3)
    other = broker.subscribe("pull")
    days[0] = 29
    async with broker.delivering(now_us=broker.registry._file.now_us, poll_s=0.01):
        assert present(broker, made).state is SubscriptionState.ACTIVE
        days[0] = 31
        await until(lambda: present(broker, made).state is SubscriptionState.REMOVED)
    assert present(broker, other).state is SubscriptionState.ACTIVE


@pytest.mark.parametrize("how", ["remove", "unsubscribe"])
async def test_an_assignment_that_somebody_leaves_is_matched_until_then(
    tmp_path: Path, how: str
) -> None:
    async with small_broker(tmp_path) as url, aiohttp.ClientSession(url) as http:

        async def ask(method: str, path: str, **body: Any) -> Any:
            async with http.request(method, f"/v1/{path}", **body) as answer:
                assert answer.status < 300, await answer.text()
                return await answer.json(content_type=None)

        async def publish() -> None:
            xml = {"Content-Type": "application/xml"}
            await ask("POST", "streams/S/documents", data=b"<i>Ann</i>", headers=xml)

        async def matches(query: str) -> int:
            return len((await ask("GET", f"matches?query={query}&after=0"))["matches"])

        await ask("PUT", "queries/all", data="S//i")
        await ask("PUT", "queries/who", data="S//i[. = $who]->a")
        asked = {"query": "who", "destination": "pull", "parameters": {"who": "Ann"}}
        made = await ask("POST", "subscriptions", json=asked)
        await publish()
        if how == "remove":
            await ask("DELETE", f"subscriptions/{made['id']}")
        else:
            with broker_in(tmp_path) as files:
                token = link_token(files.registry.key("links"), "unsubscribe", made["id"])
            async with http.post(f"/v1/unsubscribe/{token}") as answer:
                assert "unsubscribed" in await answer.text()
        await publish()
        async with asyncio.timeout(20):
            while await matches("all") < 2:  # noqa: ASYNC110 - the broker says no more than that
                await asyncio.sleep(0.02)
        assert await matches("who") == 1
