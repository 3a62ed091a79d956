from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from oracle.lines import render
from standardwebhooks import Webhook
from support.subscribers import IMPATIENT, Broker, broker_in, found, receiving, until

from broker.delivery.attempt import OutcomeKind
from broker.delivery.webhook import judge
from broker.delivery.worker import DeliveryEventKind as Event
from broker.registry.file import RegistryError
from broker.registry.subscription import PayloadFormat, SubscriptionState


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


async def test_a_match_arrives_signed_so_that_the_published_library_accepts_it(
    broker: Broker,
) -> None:
    async with receiving() as receiver, broker.delivering():
        subscription = broker.subscribe(receiver.url)
        broker.commit(found(1))
        (received,) = await receiver.wait_for(1)
        payload = Webhook(subscription.secrets[0].value).verify(received.body, received.headers)
        assert payload["type"] == "xscl.match"
        assert payload["data"] == json.loads(render(found(1)))
        assert received.id.startswith("msg_")


async def test_a_failed_delivery_is_repeated_under_the_same_id(broker: Broker) -> None:
    async with receiving() as receiver, broker.delivering():
        receiver.answers = [500, 302, 400]
        broker.subscribe(receiver.url)
        broker.commit(found(1))
        received = await receiver.wait_for(4)
        await until(lambda: any(event.kind is Event.DELIVERED for event in broker.events))
        assert len({each.id for each in received}) == 1
        assert len({each.body for each in received}) == 1
        kinds = [event.kind for event in broker.events if event.kind is not Event.ATTEMPTED]
        assert kinds == [Event.FAILED] * 3 + [Event.DELIVERED]


async def test_first_attempts_go_out_in_the_order_of_matches(broker: Broker) -> None:
    async with receiving() as receiver:
        broker.subscribe(receiver.url)
        broker.commit(*(found(number) for number in range(1, 51)))
        async with broker.delivering():
            received = await receiver.wait_for(50)
        positions = [each.data["documents"][1]["docid"] for each in received]
        assert positions == sorted(positions)


async def test_410_disables_the_subscription_and_others_go_on(broker: Broker) -> None:
    async with receiving() as gone, receiving() as receiver, broker.delivering():
        gone.always = 410
        left = broker.subscribe(gone.url)
        broker.subscribe(receiver.url)
        broker.commit(found(1))
        await until(
            lambda: broker.registry.subscriptions.get(left.id).state is SubscriptionState.DISABLED
        )
        broker.commit(found(2), found(3))
        await receiver.wait_for(3)
        assert len(gone.received) == 1
        assert "410" in broker.registry.subscriptions.get(left.id).reason


async def test_a_disabled_subscription_gets_what_it_missed_when_it_is_resumed(
    broker: Broker,
) -> None:
    async with receiving() as receiver, broker.delivering():
        receiver.answers = [410]
        subscription = broker.subscribe(receiver.url)
        broker.commit(found(1), found(2))
        await until(lambda: broker.registry.subscriptions.get(subscription.id).state == "disabled")
        broker.registry.subscriptions.set_state(subscription.id, SubscriptionState.ACTIVE)
        received = await receiver.wait_for(3)
        assert {each.data["documents"][0]["docid"] for each in received} == {1, 2}


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_an_endpoint_that_is_overloaded_is_not_blamed(status: int) -> None:
    assert judge(status, None, "", 0).kind is OutcomeKind.THROTTLED
    assert judge(500, None, "", 0).kind is OutcomeKind.FAILED


async def test_retry_after_is_honoured(broker: Broker) -> None:
    async def busy(request: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": "1"})

    async with receiving() as receiver, broker.delivering():
        receiver.answers = [busy]
        broker.subscribe(receiver.url)
        broker.commit(found(1))
        # The policy of tests caps what an endpoint may ask for at 86 s.
        await receiver.wait_for(1)
        before = asyncio.get_running_loop().time()
        await receiver.wait_for(2)
        assert asyncio.get_running_loop().time() - before > 0.9


async def test_a_delivery_that_always_fails_ends_as_a_dead_letter(broker: Broker) -> None:
    async with receiving() as receiver, broker.delivering(policy=IMPATIENT):
        receiver.always = 500
        broker.subscribe(receiver.url)
        broker.commit(found(1))
        await until(lambda: any(event.kind is Event.DEAD for event in broker.events))
        assert len(receiver.received) == len(IMPATIENT.delays_us) + 1


async def test_redirects_are_not_followed(broker: Broker) -> None:
    async with receiving() as target, receiving() as receiver, broker.delivering():

        async def elsewhere(request: web.Request) -> web.Response:
            return web.Response(status=307, headers={"Location": target.url})

        receiver.answers = [elsewhere]
        broker.subscribe(receiver.url)
        broker.commit(found(1))
        await receiver.wait_for(2)
        assert not target.received


async def test_a_subscription_gets_matches_of_its_own_topic_behind_its_point(
    broker: Broker,
) -> None:
    async with receiving() as receiver:
        broker.commit(*(found(number) for number in range(1, 6)), found(9, query="Q2"))
        broker.subscribe(receiver.url, point=3)
        async with broker.delivering():
            received = await receiver.wait_for(2)
            await asyncio.sleep(0.1)
        assert [each.data["documents"][0]["docid"] for each in received] == [4, 5]


async def test_a_removed_subscription_gets_nothing_more(broker: Broker) -> None:
    async with receiving() as receiver, broker.delivering():
        subscription = broker.subscribe(receiver.url)
        broker.commit(found(1))
        await receiver.wait_for(1)
        broker.registry.subscriptions.remove(subscription.id, until=2)
        other = broker.subscribe(receiver.url + "/other")
        broker.commit(found(2))
        received = await receiver.wait_for(2)
        assert [each.path for each in received] == ["/hook", "/hook/other"]
        assert other.id != subscription.id
        with pytest.raises(RegistryError):
            broker.registry.subscriptions.set_state(subscription.id, SubscriptionState.ACTIVE)


async def test_messages_carry_signatures_of_the_old_and_the_new_key_while_they_overlap(
    broker: Broker,
) -> None:
    async with receiving() as receiver, broker.delivering():
        subscription = broker.subscribe(receiver.url)
        new = broker.registry.subscriptions.rotate_secret(
            subscription.id, overlap=timedelta(hours=1)
        )
        broker.commit(found(1))
        (received,) = await receiver.wait_for(1)
        for secret in (new, subscription.secrets[0].value):
            Webhook(secret).verify(received.body, received.headers)
        newest = broker.registry.subscriptions.rotate_secret(subscription.id, overlap=timedelta(0))
        broker.commit(found(2))
        received = (await receiver.wait_for(2))[1]
        Webhook(newest).verify(received.body, received.headers)
        assert len(received.headers["webhook-signature"].split()) == 1


async def test_a_batch_holds_the_matches_that_are_waiting(broker: Broker) -> None:
    async with receiving() as receiver:
        broker.subscribe(receiver.url, batch_max=10)
        broker.commit(*(found(number) for number in range(1, 26)))
        async with broker.delivering():
            received = await receiver.wait_for(3)
        assert [len(each.data["matches"]) for each in received] == [10, 10, 5]


async def test_a_cloud_event_can_be_asked_for(broker: Broker) -> None:
    async with receiving() as receiver, broker.delivering():
        broker.subscribe(receiver.url, format=PayloadFormat.CLOUDEVENTS)
        broker.commit(found(1))
        (received,) = await receiver.wait_for(1)
        assert received.headers["content-type"] == "application/cloudevents+json"
        event = json.loads(received.body)
        assert (event["specversion"], event["id"]) == ("1.0", found(1).id)
        assert event["data"] == json.loads(render(found(1)))


async def test_an_answer_without_end_is_cut_off(broker: Broker) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65_536)

    async with receiving() as receiver, broker.delivering():
        receiver.answers = [endless]
        broker.subscribe(receiver.url)
        broker.commit(found(1))
        await until(lambda: any(event.kind is Event.DELIVERED for event in broker.events))
        outcome = broker.events[-1].outcome
        assert outcome is not None
        assert len(outcome.detail) == 1_024
