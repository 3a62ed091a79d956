from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner, Result
from standardwebhooks import Webhook
from support.small_broker import small_broker
from support.subscribers import (
    IMPATIENT,
    LOOPBACK,
    Broker,
    broker_in,
    found,
    receiving,
    serving,
    until,
)

from broker.cli import main
from broker.delivery.webhook import WebhookChannel
from broker.operations.log import log_delivery
from broker.registry.subscription import DestinationKind


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


async def xscl(url: str, *arguments: str, exit_code: int = 0) -> Result:
    """Run `xscl deliveries` as a user would, against the broker at `url`."""
    result = await asyncio.to_thread(
        CliRunner().invoke, main, ["--broker", url, "deliveries", *arguments]
    )
    assert result.exit_code == exit_code, result.output
    return result


async def test_a_broken_endpoint_is_found_looked_into_and_mended(broker: Broker) -> None:
    async with (
        receiving() as receiver,
        serving(broker) as url,
        broker.delivering(policy=IMPATIENT),
    ):
        receiver.always = 500
        subscription = broker.subscribe(receiver.url)
        broker.commit(found(1), found(2))
        await until(lambda: sum(event.kind == "dead" for event in broker.events) == 2)
        rows = json.loads((await xscl(url, "dead-letters", "--format", "json")).stdout)
        assert [row["status"] for row in rows] == [500, 500]
        assert {(row["query"], row["destination"]) for row in rows} == {("Q1", receiver.url)}
        [titles, first, _] = (await xscl(url, "dead-letters")).stdout.splitlines()
        assert titles.split()[:4] == ["id", "query", "destination", "subscription"]
        assert first.split()[1:4] == ["Q1", receiver.url, subscription.id]
        shown = (await xscl(url, "show", rows[0]["id"])).stdout
        assert "dead, 10 attempts" in shown
        assert "failed 500" in shown
        assert found(2).id in shown
        assert f"matches of Q1 to {receiver.url}" in shown
        receiver.always = 204
        assert "2 to be tried" in (await xscl(url, "retry", subscription.id)).stderr
        await until(lambda: sum(event.kind == "delivered" for event in broker.events) == 2)
        assert "no deliveries" in (await xscl(url, "list", "--state", "dead")).stderr
        await xscl(url, "replay", subscription.id, "--since", "all")
        await until(lambda: sum(event.kind == "delivered" for event in broker.events) == 4)
        assert "delivered" in (await xscl(url, "list", "-n", "1")).stdout


async def test_a_subscription_is_tried_paused_and_resumed(broker: Broker) -> None:
    channels = {DestinationKind.WEBHOOK: WebhookChannel(allowed=LOOPBACK, allow_http=True)}
    async with receiving() as receiver, serving(broker, channels=channels) as url:
        subscription = broker.subscribe(receiver.url)
        assert "delivered (204)" in (await xscl(url, "test", subscription.id)).stderr
        receiver.always = 403
        assert "says 403" in (await xscl(url, "test", subscription.id, exit_code=1)).stderr
        assert "paused" in (await xscl(url, "pause", subscription.id)).stderr
        assert "active" in (await xscl(url, "resume", subscription.id)).stderr
    await channels[DestinationKind.WEBHOOK].close()


async def test_what_is_not_there_is_said_in_plain_words(broker: Broker) -> None:
    async with serving(broker) as url:
        for verb in (["show", "msg_x"], ["retry", "msg_x"], ["resume", "sub_x"]):
            result = await xscl(url, *verb, exit_code=1)
            assert "no " in result.stderr
        result = await xscl(url, "replay", "sub_x", "--since", "all", exit_code=1)
        assert "no subscription" in result.stderr


async def test_a_subscription_is_made_and_tried_in_one_command(tmp_path: Path) -> None:
    async with receiving() as receiver, small_broker(tmp_path) as url:

        async def run(*arguments: str, exit_code: int = 0) -> Result:
            result = await asyncio.to_thread(
                CliRunner().invoke, main, ["--broker", url, *arguments]
            )
            assert result.exit_code == exit_code, result.output
            return result

        query = tmp_path / "authors.xscl"
        query.write_text("news//item[author = 'Ann']")
        await run("register", str(query))
        made = await run("subscribe", "authors", receiver.url, "--test", "--batch", "5")
        name, secret = made.stdout.splitlines()
        assert name.startswith("sub_")
        assert "the sample was delivered (204)" in made.stderr
        Webhook(secret).verify(receiver.received[0].body, receiver.received[0].headers)
        receiver.always = 500
        broken = await run("subscribe", "authors", receiver.url, "--test", exit_code=1)
        assert "says 500" in broken.stderr


async def _moved(request: web.Request) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": "https://example.org/new"})


async def test_why_a_delivery_fails_is_said_whole(broker: Broker) -> None:
    channels = {DestinationKind.WEBHOOK: WebhookChannel(allowed=LOOPBACK, allow_http=True)}
    nowhere = broker.subscribe("http://127.0.0.1:1/hook")
    async with receiving() as receiver, serving(broker, channels=channels) as url:
        elsewhere = broker.subscribe(receiver.url)
        receiver.answers = [_moved]
        said = (await xscl(url, "test", nowhere.id, exit_code=1)).stderr
        assert "it cannot be reached: Connection refused" in said
        said = (await xscl(url, "test", elsewhere.id, exit_code=1)).stderr
        assert "it redirects to https://example.org/new, which is not followed" in said
        secure = broker.subscribe(receiver.url.replace("http:", "https:"))
        said = (await xscl(url, "test", secure.id, exit_code=1)).stderr
        assert "does not speak TLS at this port: is the address an http:// one?" in said
    await channels[DestinationKind.WEBHOOK].close()


async def test_what_a_disabled_subscription_holds_has_no_next_time(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    async with receiving() as receiver:
        receiver.always = 410
        subscription = broker.subscribe(receiver.url)
        broker.commit(found(1))
        async with broker.delivering(on_event=log_delivery), serving(broker) as url:
            subscriptions = broker.registry.subscriptions
            await until(lambda: subscriptions.get(subscription.id).state == "disabled")
            [row] = json.loads((await xscl(url, "list", "--format", "json")).stdout)
            assert (row["state"], row["next"]) == ("due", None)
            assert row["held"] == "the subscription is disabled"
            assert "the subscription is disabled" in (await xscl(url, "list")).stdout
            assert (
                "no next attempt: the subscription is disabled"
                in (await xscl(url, "show", row["id"])).stdout
            )
    said = [each for each in caplog.messages if "disabled" in each]
    assert len(said) == 1
