from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from standardwebhooks import Webhook
from support.subscribers import (
    IMPATIENT,
    LOOPBACK,
    Broker,
    broker_in,
    found,
    mailbox,
    receiving,
    serving,
    until,
)

from broker.delivery.letter import Letters, Sender
from broker.delivery.links import link_token
from broker.delivery.mail import MailChannel
from broker.delivery.webhook import WebhookChannel
from broker.registry.subscription import DestinationKind, SubscriptionState


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


class Api:
    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http, self._url = http, url

    async def __call__(self, method: str, path: str, *, status: int = 200) -> Any:
        async with self._http.request(method, f"{self._url}/v1/{path}") as response:
            assert response.status == status, await response.text()
            return await response.json() if response.content_type.endswith("json") else None


@pytest.fixture
async def api(broker: Broker) -> AsyncIterator[Api]:
    channels = {DestinationKind.WEBHOOK: WebhookChannel(allowed=LOOPBACK, allow_http=True)}
    async with serving(broker, channels=channels) as url, aiohttp.ClientSession() as http:
        yield Api(http, url)
    await channels[DestinationKind.WEBHOOK].close()


async def test_what_went_wrong_can_be_read_and_mended(broker: Broker, api: Api) -> None:
    async with receiving() as receiver, broker.delivering(policy=IMPATIENT):
        receiver.always = 500
        subscription = broker.subscribe(receiver.url)
        broker.commit(found(1), found(2))

        async def dead() -> list[Any]:
            return list((await api("GET", "deliveries?state=dead"))["deliveries"])

        await until(lambda: sum(event.kind == "dead" for event in broker.events) == 2)
        newest, oldest = await dead()
        assert (oldest["status"], oldest["detail"]) == (500, "says 500")
        shown = await api("GET", f"deliveries/{oldest['id']}")
        assert shown["matches"] == [found(1).id]
        assert [attempt["status"] for attempt in shown["made"]] == [500] * 10
        receiver.always = 204
        assert await api("POST", f"deliveries/{newest['id']}/retry") == {"retried": 1}
        await until(lambda: any(event.kind == "delivered" for event in broker.events))
        assert await api("POST", f"subscriptions/{subscription.id}/retry") == {"retried": 1}
        await until(lambda: sum(event.kind == "delivered" for event in broker.events) == 2)
        assert await dead() == []


async def test_matches_can_be_sent_again_under_their_ids(broker: Broker, api: Api) -> None:
    async with receiving() as receiver, broker.delivering():
        subscription = broker.subscribe(receiver.url)
        broker.commit(found(1), found(2), found(3))
        await receiver.wait_for(3)
        await until(lambda: sum(event.kind == "delivered" for event in broker.events) == 3)
        await api("POST", f"subscriptions/{subscription.id}/replay?since=3")
        received = await receiver.wait_for(5)
    ids = [each.id for each in received]
    assert ids[3:] == ids[1:3]


async def test_a_signed_sample_can_be_sent(broker: Broker, api: Api) -> None:
    async with receiving() as receiver:
        subscription = broker.subscribe(receiver.url)
        answer = await api("POST", f"subscriptions/{subscription.id}/test")
        assert (answer["outcome"], answer["status"]) == ("delivered", 204)
        (received,) = receiver.received
        payload = Webhook(subscription.secrets[0].value).verify(received.body, received.headers)
        assert payload["type"] == "xscl.sample"
        mail = broker.subscribe("ann@reader.example")
        await api("POST", f"subscriptions/{mail.id}/test", status=409)


async def test_a_paused_subscription_gets_what_it_missed(broker: Broker, api: Api) -> None:
    async with receiving() as receiver, broker.delivering():
        subscription = broker.subscribe(receiver.url)
        other = broker.subscribe(receiver.url + "/other")
        await api("POST", f"subscriptions/{subscription.id}/pause")
        broker.commit(found(1))
        await receiver.wait_for(1)
        await api("POST", f"subscriptions/{other.id}/pause")
        await api("POST", f"subscriptions/{subscription.id}/resume")
        await receiver.wait_for(2)
    assert [each.path for each in receiver.received] == ["/hook/other", "/hook"]


async def test_a_new_key_is_given_out_once(broker: Broker, api: Api) -> None:
    subscription = broker.subscribe("https://example.org/hook")
    answer = await api("POST", f"subscriptions/{subscription.id}/rotate-secret")
    keys = [secret.value for secret in broker.registry.subscriptions.get(subscription.id).secrets]
    assert keys == [answer["secret"], subscription.secrets[0].value]


async def test_one_click_ends_a_subscription_and_a_look_does_not(broker: Broker) -> None:
    sender = Sender("broker@xscl.example")
    async with (
        mailbox() as box,
        serving(broker) as url,
        aiohttp.ClientSession() as reader,
    ):
        key = broker.registry.key("links")

        def unsubscribe_url(subscription_id: str) -> str:
            return f"{url}/v1/unsubscribe/{link_token(key, 'unsubscribe', subscription_id)}"

        channel = MailChannel(
            Letters(sender),
            host="127.0.0.1",
            port=box.port,
            sender=sender.address,
            unsubscribe_url=unsubscribe_url,
        )
        async with broker.delivering(channels={DestinationKind.EMAIL: channel}):
            subscription = broker.subscribe("ann@reader.example")
            broker.commit(found(1))
            (message,) = await box.wait_for(1)
            link = message["List-Unsubscribe"].strip("<>")
            async with reader.get(link) as response:
                assert "Unsubscribe" in await response.text()
            assert (
                broker.registry.subscriptions.get(subscription.id).state is SubscriptionState.ACTIVE
            )
            for _ in range(2):
                async with reader.post(link, data={"List-Unsubscribe": "One-Click"}) as response:
                    assert "unsubscribed" in await response.text()
            assert (
                broker.registry.subscriptions.get(subscription.id).state
                is SubscriptionState.REMOVED
            )
            async with reader.post(re.sub(r".$", "~", link)) as response:
                assert response.status == 404


async def test_an_address_that_bounces_is_written_to_no_more(broker: Broker) -> None:
    sender = Sender("broker@xscl.example")
    async with mailbox() as box, serving(broker) as url, aiohttp.ClientSession() as http:
        box.unknown = {"gone@reader.example"}
        channel = MailChannel(
            Letters(sender),
            host="127.0.0.1",
            port=box.port,
            sender=sender.address,
            is_suppressed=broker.registry.suppressed.has,
        )
        async with broker.delivering(channels={DestinationKind.EMAIL: channel}):
            broker.subscribe("gone@reader.example")
            broker.commit(found(1))
            await until(lambda: broker.registry.suppressed.has("Gone@reader.example"))
            box.unknown = set()
            again = broker.subscribe("gone@reader.example")
            await until(lambda: broker.registry.subscriptions.get(again.id).state == "disabled")
            assert not box.raw
        api = Api(http, url)
        (suppressed,) = (await api("GET", "suppressed"))["suppressed"]
        assert suppressed["address"] == "gone@reader.example"
        await api("DELETE", "suppressed/gone@reader.example", status=204)
        await api("DELETE", "suppressed/gone@reader.example", status=404)
