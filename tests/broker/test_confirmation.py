"""Double opt-in: an address gets matches once somebody who reads its mail has said yes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.api_room import Room
from support.subscribers import Broker, Mailbox, found, mailbox

from broker.api.http import add_deliveries, make_application
from broker.api.pickup import Pickup
from broker.delivery.letter import Letters, Sender
from broker.delivery.links import link_token
from broker.delivery.mail import MailChannel
from broker.delivery.webhook import WebhookChannel
from broker.registry.subscription import DestinationKind
from broker.settings.config import parse_settings
from broker.settings.reader import SettingsError

SENDER = Sender("broker@xscl.example")


@dataclass
class House:
    """A broker whose API is served and whose deliveries run, with a mail server."""

    broker: Broker
    box: Mailbox
    http: aiohttp.ClientSession

    async def post(self, path: str, status: int = 200, **body: Any) -> dict[str, Any]:
        async with self.http.post(path, json=body) as response:
            assert response.status == status, await response.text()
            answer: dict[str, Any] = await response.json()
            return answer

    async def subscribe(
        self, destination: str = "ann@reader.example", **options: str
    ) -> dict[str, Any]:
        asked = {"query": "Q1", "destination": destination, "since": "all", "options": options}
        return await self.post("/v1/subscriptions", 201, **asked)


@contextlib.asynccontextmanager
async def house(directory: Path) -> AsyncIterator[House]:
    room = Room(directory)
    room.ingest.start()
    async with mailbox() as box:
        channel = MailChannel(
            Letters(SENDER), host="127.0.0.1", port=box.port, sender=SENDER.address
        )
        channels = {DestinationKind.EMAIL: channel, DestinationKind.WEBHOOK: WebhookChannel()}
        application = make_application(room.backend, body_bytes_max=1_000_000)
        pickup = Pickup(
            room.outbox,
            room.registry,
            channels=channels,
            base_url="https://broker.example.org",
            confirms_addresses=True,
        )
        add_deliveries(application, pickup)
        runner = aiohttp.web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
        broker = Broker(directory, room.outbox, room.registry)
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(url) as http, broker.delivering(channels=channels):
            async with http.put("/v1/queries/Q1", data=b"news//item") as response:
                assert response.status == 200
            yield House(broker, box, http)
        await runner.cleanup()
    room.close()


def link_in(box: Mailbox, number: int) -> str:
    """Return the path of the link in a mail."""
    text = box.messages[number].get_content()
    [path] = re.findall(r"https://broker\.example\.org(/v1/confirm/\S+)", text)
    return str(path)


async def test_nothing_is_sent_before_the_button_is_pressed(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        made = await at.subscribe()
        assert (made["state"], made["reason"]) == ("unconfirmed", "")
        [question] = await at.box.wait_for(1)
        assert question["To"] == "ann@reader.example"
        assert question["Subject"] == "Do you want the matches of Q1?"
        at.broker.commit(found(1))
        # Who looks at the link has not said yes: mail servers do that.
        async with at.http.get(link_in(at.box, 0)) as page:
            assert "<button>Confirm</button>" in await page.text()
        assert at.broker.registry.subscriptions.get(made["id"]).state == "unconfirmed"
        async with at.http.post(link_in(at.box, 0)) as page:
            assert "It is confirmed" in await page.text()
        _, match = await at.box.wait_for(2)
        assert match["Subject"] == "Q1: Story 2"
        async with at.http.post(link_in(at.box, 0)) as page:
            assert "There is nothing to confirm: it is active" in await page.text()


async def test_the_question_can_be_asked_again_and_not_be_passed_over(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        made = await at.subscribe()
        path = f"/v1/subscriptions/{made['id']}"
        for way in ("resume", "pause"):
            refused = await at.post(f"{path}/{way}", 409)
            assert "has not confirmed it" in refused["detail"]
        assert (await at.post(f"{path}/test"))["outcome"] == "delivered"
        await at.box.wait_for(2)
        assert link_in(at.box, 0) == link_in(at.box, 1)


async def test_a_question_that_could_not_be_sent_is_told(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        at.box.replies = ["554 5.6.0 not from you"]
        made = await at.subscribe()
        assert made["state"] == "unconfirmed"
        assert "could not be asked to confirm: 5.6.0 not from you" in made["reason"]


async def test_a_link_of_another_kind_confirms_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        await at.subscribe()
        token = link_in(at.box, 0).rpartition("/")[2]
        async with at.http.post(f"/v1/unsubscribe/{token}") as response:
            assert response.status == 404
        async with at.http.post(f"/v1/confirm/{token[:-1]}~") as response:
            assert response.status == 404


ESCALATED = {"escalate": "boss@reader.example", "escalate_after": "1 h"}


async def test_an_address_that_is_escalated_to_is_asked_after_the_first(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        made = await at.subscribe(**ESCALATED)
        at.broker.commit(found(1))
        get = at.broker.registry.subscriptions.get
        for _ in range(2):  # pressed twice, it is asked once
            async with at.http.post(link_in(at.box, 0)) as page:
                assert "once another address says so, too" in await page.text()
        _, question = await at.box.wait_for(2)
        assert question["To"] == "boss@reader.example"
        assert question["Subject"] == "Do you want the matches of Q1 that nobody acknowledges?"
        assert get(made["id"]).reason == "boss@reader.example has not confirmed it"
        refused = await at.post(f"/v1/subscriptions/{made['id']}/resume", 409)
        assert "boss@reader.example has not confirmed it" in refused["detail"]
        assert (await at.post(f"/v1/subscriptions/{made['id']}/test"))["outcome"] == "delivered"
        assert link_in(at.box, 1) == link_in(at.box, 2)
        assert len(at.box.raw) == 3
        async with at.http.get(link_in(at.box, 1)) as page:
            assert "what nobody acknowledges" in await page.text()
        async with at.http.post(link_in(at.box, 1)) as page:
            assert "matches are sent from now on" in await page.text()
        *_, match = await at.box.wait_for(4)
        assert (match["To"], match["Subject"]) == ("ann@reader.example", "Q1: Story 2")
        assert (get(made["id"]).state, get(made["id"]).reason) == ("active", "")


async def test_a_webhook_waits_for_the_address_that_it_is_escalated_to(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        made = await at.subscribe("https://9.9.9.9/", **ESCALATED)
        assert made["state"] == "unconfirmed"
        [question] = await at.box.wait_for(1)
        assert question["To"] == "boss@reader.example"
        async with at.http.post(link_in(at.box, 0)) as page:
            assert "It is confirmed" in await page.text()
        assert at.broker.registry.subscriptions.get(made["id"]).state == "active"


async def test_a_first_address_cannot_say_yes_for_the_second(tmp_path: Path) -> None:
    async with house(tmp_path) as at:
        made = await at.subscribe(**{**ESCALATED, "escalate": "ann@reader.example"})
        async with at.http.post(link_in(at.box, 0)) as page:
            assert "It is confirmed: matches are sent from now on" in await page.text()
        other = await at.subscribe(**ESCALATED)
        token = link_token(at.broker.registry.key("links"), "confirm", other["id"])
        async with at.http.post(f"/v1/confirm/{token}") as page:
            assert page.status == 200
        states = [at.broker.registry.subscriptions.get(each["id"]).state for each in (made, other)]
        assert states == ["active", "unconfirmed"]


def test_it_needs_an_address_that_links_begin_with() -> None:
    text = '[smtp]\nhost = "a"\nsender = "b@c.example"\nconfirm = true\n'
    with pytest.raises(SettingsError, match=r"'smtp\.confirm' needs 'http\.public_url'"):
        parse_settings(text, Path("/x/xscl.toml"))
