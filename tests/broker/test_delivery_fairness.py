"""No subscriber pays for another one, and the broker reaches only what it may."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.subscribers import FAST, LOOPBACK, Broker, broker_in, found, mailbox, receiving, until

from broker.delivery import worker
from broker.delivery.endpoints import EndpointLimits
from broker.delivery.leases import Leases
from broker.delivery.letter import Letters, Sender
from broker.delivery.mail import MailChannel
from broker.delivery.store import open_deliveries
from broker.delivery.webhook import WebhookChannel
from broker.delivery.worker import DeliveryEventKind as Event
from broker.registry.subscription import DestinationKind, Digest, SubscriptionState


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


def webhooks(**settings: Any) -> dict[DestinationKind, Any]:
    return {DestinationKind.WEBHOOK: WebhookChannel(**settings)}


def scanned(broker: Broker) -> int:
    """Return the newest match that the worker has seen."""
    with contextlib.closing(open_deliveries(broker.directory / "deliveries.db")) as db:
        return int(db.execute("SELECT seq FROM scanned").fetchone()[0])


def mails(port: int) -> MailChannel:
    sender = Sender("broker@xscl.example")
    return MailChannel(Letters(sender), host="127.0.0.1", port=port, sender=sender.address)


async def test_endpoints_that_hang_delay_nobody_else(broker: Broker) -> None:
    hanging = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await hanging.wait()
        return web.Response(status=204)

    async with receiving() as slow, receiving() as receiver:
        slow.always = hang
        for number in range(30):
            broker.subscribe(f"{slow.url}/{number}")
        broker.subscribe(receiver.url)
        broker.commit(*(found(number) for number in range(1, 21)))
        # Room for 8 attempts in all, of which one endpoint may have 4.
        limits = {DestinationKind.WEBHOOK: EndpointLimits(concurrency=4)}
        async with broker.delivering(concurrency=8, limits=limits):
            await receiver.wait_for(20)
            assert len(slow.received) <= 4
            hanging.set()
            await slow.wait_for(30)


async def test_a_subscriber_bounds_the_rate_of_its_endpoint(broker: Broker) -> None:
    async with receiving() as receiver:
        broker.subscribe(receiver.url, rate_per_s=10)
        broker.commit(*(found(number) for number in range(1, 31)))
        async with broker.delivering():
            begun = asyncio.get_running_loop().time()
            await receiver.wait_for(25)
            # A second's worth comes at once, then ten a second.
            assert 1.0 < asyncio.get_running_loop().time() - begun < 10


async def test_private_addresses_are_not_reached_unless_allowed(broker: Broker) -> None:
    async with receiving() as receiver:
        broker.subscribe(receiver.url)
        broker.subscribe(receiver.url.replace("127.0.0.1", "localhost"))
        broker.subscribe(receiver.url.replace("127.0.0.1", "[::ffff:127.0.0.1]"))
        broker.commit(found(1))
        async with broker.delivering(channels=webhooks(allow_http=True)):
            await until(lambda: sum(event.kind is Event.FAILED for event in broker.events) >= 3)
        assert not receiver.received
        outcomes = [event.outcome for event in broker.events if event.outcome is not None]
        assert any("private or reserved" in outcome.detail for outcome in outcomes)


async def test_plain_http_is_refused_unless_allowed(broker: Broker) -> None:
    async with receiving() as receiver:
        broker.subscribe(receiver.url)
        broker.commit(found(1))
        async with broker.delivering(channels=webhooks(allowed=LOOPBACK)):
            await until(lambda: any(event.kind is Event.FAILED for event in broker.events))
        assert not receiver.received


async def test_an_endpoint_that_only_fails_is_disabled_and_its_owner_is_told(
    broker: Broker,
) -> None:
    policy = replace(FAST.faster(50), disable_after_us=200_000)
    async with receiving() as receiver, mailbox() as box:
        receiver.always = 500
        subscription = broker.subscribe(receiver.url, owner="owner@reader.example")
        broker.commit(*(found(number) for number in range(1, 40)))
        channel = mails(box.port)
        async with broker.delivering(policy=policy, notifier=channel):
            (message,) = await box.wait_for(1)
        await channel.close()
        assert message["To"] == "owner@reader.example"
        assert subscription.id in message.get_content()
        assert (
            broker.registry.subscriptions.get(subscription.id).state is SubscriptionState.DISABLED
        )


async def test_a_digest_waits_for_its_hour_and_holds_what_came_until_then(
    broker: Broker,
) -> None:
    hour_us = 3_600_000_000
    now_us = [1_000 * hour_us + 5]
    async with mailbox() as box:
        broker.subscribe("daily@reader.example", digest=Digest.DAILY)
        broker.subscribe("hourly@reader.example", digest=Digest.HOURLY)
        channels = {DestinationKind.EMAIL: mails(box.port)}
        async with broker.delivering(channels=channels, now_us=lambda: now_us[0]):
            broker.commit(found(1), found(2))
            await until(lambda: scanned(broker) == 2)
            broker.commit(found(3))
            await until(lambda: scanned(broker) == 3)
            assert not box.raw
            now_us[0] = 1_001 * hour_us
            (hourly,) = await box.wait_for(1)
            assert hourly["To"] == "hourly@reader.example"
            assert hourly["Subject"] == "Q1: Story 2 and 2 more"
            broker.commit(found(4))
            await until(lambda: scanned(broker) == 4)
            now_us[0] = 1_008 * hour_us
            messages = await box.wait_for(3)
            subjects = {message["To"]: message["Subject"] for message in messages[1:]}
            assert subjects == {
                "hourly@reader.example": "Q1: Story 5",
                "daily@reader.example": "Q1: Story 2 and 3 more",
            }


async def test_two_workers_share_the_work_and_send_nothing_twice(broker: Broker) -> None:
    async with receiving() as receiver:
        for number in range(20):
            broker.subscribe(f"{receiver.url}/{number}")
        broker.commit(*(found(number) for number in range(1, 11)))
        async with broker.delivering(), broker.delivering():
            await receiver.wait_for(200)
            await asyncio.sleep(0.1)
        ids = [each.id for each in receiver.received]
        assert len(ids) == len(set(ids)) == 200


async def test_a_disk_that_is_full_for_a_while_delays_and_loses_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_TROUBLE_S", 0.02)
    failures = iter([True] * 5)
    finish = Leases.finish

    def failing(self: Leases, finished: Any, now_us: int) -> None:
        if next(failures, False):
            raise sqlite3.OperationalError("database or disk is full")
        finish(self, finished, now_us)

    monkeypatch.setattr(Leases, "finish", failing)
    async with receiving() as receiver:
        broker.subscribe(receiver.url)
        broker.commit(*(found(number) for number in range(1, 6)))
        async with broker.delivering():
            received = await receiver.wait_for(5)
            await asyncio.sleep(0.1)
    assert [each.data["documents"][0]["docid"] for each in received] == [1, 2, 3, 4, 5]


async def test_a_registry_that_was_restored_from_an_older_copy_rules(
    broker: Broker, tmp_path: Path
) -> None:
    async with receiving() as receiver:
        for _ in range(3):
            broker.subscribe(receiver.url)
        async with broker.delivering():
            await until(lambda: lanes(broker) == 3)
        with broker_in(tmp_path / "restored") as restored:
            restored.outbox.close()
            restored.outbox = broker.outbox
            broker.commit(found(1))
            async with restored.delivering(path=broker.directory / "deliveries.db"):
                await until(lambda: lanes(broker) == 0)
                restored.subscribe(receiver.url + "/new")
                await receiver.wait_for(1)
    assert [each.path for each in receiver.received] == ["/hook/new"]


def lanes(broker: Broker) -> int:
    with contextlib.closing(open_deliveries(broker.directory / "deliveries.db")) as db:
        return int(db.execute("SELECT count(*) FROM lane").fetchone()[0])
