"""Messages on the wire: what a webhook and a mailbox get, when, and what the API says of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from standardwebhooks import Webhook
from support.api_house import House
from support.subscribers import (
    LOOPBACK,
    Broker,
    Receiver,
    broker_in,
    found,
    mailbox,
    receiving,
    serving,
    until,
)

from broker.delivery.dispatch import Dispatch
from broker.delivery.letter import Letters, Sender
from broker.delivery.links import link_token
from broker.delivery.mail import MailChannel
from broker.delivery.store import open_deliveries
from broker.delivery.webhook import WebhookChannel
from broker.matching.match import Match
from broker.registry.subscription import Destination, DestinationKind, Options, SubscriptionState

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
KEY = ("output/k",)


@dataclass
class Clock:
    """The time of the broker, of its outbox and of its deliveries: noon of 1 January 2026."""

    now_us: int = 1_767_268_800 * SECOND_US

    def __call__(self) -> int:
        return self.now_us

    def go_on(self, *, hours: float) -> None:
        self.now_us += round(hours * HOUR_US)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(tmp_path: Path, clock: Clock) -> Iterator[Broker]:
    with broker_in(tmp_path, now_us=clock) as broker:
        yield broker


def keyed(number: int, key: str) -> Match:
    return found(2 * number, output=f"<match><title>Story {number}</title><k>{key}</k></match>")


async def placed(broker: Broker, lanes: int) -> None:
    """Wait until the worker knows the subscriptions."""
    db = open_deliveries(broker.directory / "deliveries.db")
    await until(lambda: db.execute("SELECT count(*) FROM lane").fetchone()[0] == lanes)
    db.close()


async def scanned(broker: Broker) -> None:
    """Wait until the worker has seen what was committed, and has put it where it belongs."""
    db = open_deliveries(broker.directory / "deliveries.db")
    seq = broker.outbox.matches.last_seq()

    def is_seen() -> bool:
        return bool(db.execute("SELECT seq FROM scanned").fetchone()[0] >= seq)

    await until(is_seen)
    db.close()


async def attempted(broker: Broker, count: int) -> None:
    """Wait until so many attempts are noted: what failed is due a time after that."""
    db = open_deliveries(broker.directory / "deliveries.db")
    await until(lambda: db.execute("SELECT count(*) FROM attempt").fetchone()[0] == count)
    db.close()


async def suppressed(broker: Broker, count: int) -> None:
    """Wait until so many messages have been held back."""
    db = open_deliveries(broker.directory / "deliveries.db")
    held = "SELECT count(*) FROM delivery WHERE state = 'suppressed'"
    await until(lambda: db.execute(held).fetchone()[0] == count)
    db.close()


def titles(receiver: Receiver) -> list[list[str]]:
    """Return the titles in each call."""
    return [
        [
            str(line["output"]).partition("<title>")[2].partition("</title>")[0]
            for line in _lines(one)
        ]
        for one in receiver.received
    ]


def _lines(received: Any) -> list[Any]:
    return list(received.data.get("matches", [received.data]))


@asynccontextmanager
async def mailing(broker: Broker, clock: Clock) -> AsyncIterator[Any]:
    """Deliver by mail; yields the mailbox."""
    sender = Sender("broker@xscl.example")
    async with mailbox() as box:
        channel = MailChannel(
            Letters(sender), host="127.0.0.1", port=box.port, sender=sender.address
        )
        channels = {DestinationKind.EMAIL: channel}
        async with broker.delivering(channels=channels, now_us=clock):
            yield box


async def test_one_call_has_all_matches_of_a_key_within_the_time(
    broker: Broker, clock: Clock
) -> None:
    async with receiving() as receiver, broker.delivering(now_us=clock):
        broker.subscribe(receiver.url, key=KEY, group="1 h")
        broker.subscribe(receiver.url + "/all", group="1 h")
        await placed(broker, 2)
        broker.commit(keyed(1, "a"), keyed(2, "b"), keyed(3, "a"))
        await scanned(broker)
        clock.go_on(hours=0.5)
        broker.commit(keyed(4, "b"))
        await scanned(broker)
        assert not receiver.received
        clock.go_on(hours=0.5)
        await receiver.wait_for(3)
    calls = sorted(zip([each.path for each in receiver.received], titles(receiver), strict=True))
    assert calls == [
        ("/hook", ["Story 1", "Story 3"]),
        ("/hook", ["Story 2", "Story 4"]),
        ("/hook/all", ["Story 1", "Story 2", "Story 3", "Story 4"]),
    ]


async def test_a_failed_message_is_repeated_as_it_was(broker: Broker, clock: Clock) -> None:
    async with receiving() as receiver, broker.delivering(now_us=clock):
        receiver.answers = [500]
        broker.subscribe(receiver.url, key=KEY, group="1 h")
        await placed(broker, 1)
        broker.commit(keyed(1, "a"))
        await scanned(broker)
        clock.go_on(hours=1)
        await receiver.wait_for(1)
        await attempted(broker, 1)
        broker.commit(keyed(2, "a"))
        await scanned(broker)
        clock.go_on(hours=0.5)
        await receiver.wait_for(2)
        clock.go_on(hours=0.5)
        first, second, third = await receiver.wait_for(3)
    assert (first.id, first.body) == (second.id, second.body)
    assert third.id != first.id


async def test_no_more_than_agreed_go_out_and_the_others_can_be_asked_for(
    broker: Broker, clock: Clock
) -> None:
    async with receiving() as receiver, broker.delivering(now_us=clock):
        broker.subscribe(receiver.url, key=KEY, throttle="2 per 1 h")
        broker.commit(*(keyed(number, "a") for number in range(1, 6)), keyed(6, "b"))
        await receiver.wait_for(3)
        await suppressed(broker, 3)
        clock.go_on(hours=1)
        broker.commit(keyed(7, "a"))
        await receiver.wait_for(4)
    assert titles(receiver) == [["Story 1"], ["Story 2"], ["Story 6"], ["Story 7"]]
    withheld = [each.headers.get("xscl-withheld") for each in receiver.received]
    assert withheld == [None, None, None, "3"]


async def test_mails_wait_for_the_morning_and_come_as_one(broker: Broker, clock: Clock) -> None:
    async with mailing(broker, clock) as box:
        broker.subscribe("ann@reader.example", quiet="22:00-07:00", timezone="Europe/Berlin")
        broker.commit(found(1))
        (noon,) = await box.wait_for(1)
        clock.go_on(hours=9.5)
        broker.commit(found(3), found(5))
        await scanned(broker)
        clock.go_on(hours=8)
        broker.commit(found(7))
        await scanned(broker)
        assert len(box.raw) == 1
        clock.go_on(hours=0.5)
        _, morning = await box.wait_for(2)
    assert noon["Subject"] == "Q1: Story 2"
    assert morning["Subject"] == "Q1: Story 4 and 2 more"


async def test_a_mail_says_how_many_were_held_back(broker: Broker, clock: Clock) -> None:
    async with mailing(broker, clock) as box:
        broker.subscribe("ann@reader.example", key=KEY, throttle="1 per 1 h")
        broker.commit(keyed(1, "a"))
        await box.wait_for(1)
        for number in (2, 3):
            broker.commit(keyed(number, "a"))
            await suppressed(broker, number - 1)
        clock.go_on(hours=1)
        broker.commit(keyed(4, "a"))
        first, second = await box.wait_for(2)
    said = [
        mail.get_body((kind,)).get_content()
        for mail in (first, second)
        for kind in ("plain", "html")
    ]
    assert ["not sent" in text for text in said] == [False, False, True, True]
    assert "Before this, 2 messages of the same key were not sent." in said[2]


async def test_a_digest_comes_at_the_times_of_a_cron_expression(
    broker: Broker, clock: Clock
) -> None:
    async with mailing(broker, clock) as box:
        broker.subscribe("ann@reader.example", digest="0 8 * * Mon-Fri", timezone="Europe/Berlin")
        await placed(broker, 1)
        broker.commit(found(1))
        await scanned(broker)
        clock.go_on(hours=18.9)
        broker.commit(found(3))
        await scanned(broker)
        assert not box.raw
        clock.go_on(hours=0.1)
        (digest,) = await box.wait_for(1)
    assert digest["Subject"] == "Q1: Story 2 and 1 more"


async def test_a_link_in_a_mail_snoozes_and_looking_at_it_does_not(
    broker: Broker, clock: Clock
) -> None:
    sender = Sender("broker@xscl.example")
    async with (
        mailbox() as box,
        serving(broker, now_us=clock) as url,
        aiohttp.ClientSession() as reader,
    ):
        key = broker.registry.key("links")

        def alert_url(delivery_id: str) -> str:
            return f"{url}/v1/alerts/{link_token(key, 'alert', delivery_id)}"

        channel = MailChannel(
            Letters(sender),
            host="127.0.0.1",
            port=box.port,
            sender=sender.address,
            alert_url=alert_url,
        )
        channels = {DestinationKind.EMAIL: channel}
        async with broker.delivering(channels=channels, now_us=clock):
            broker.subscribe("ann@reader.example", key=KEY)
            broker.commit(keyed(1, "harbour"))
            (first,) = await box.wait_for(1)
            text = first.get_body(("plain",)).get_content()
            link = re.search(r"Not now: (\S+)", text)[1]
            async with reader.get(link) as response:
                assert "all of <b>harbour</b>" in await response.text()
            for what in ("message", "key"):
                async with reader.post(link, data={"what": what, "until": "8 hours"}) as response:
                    assert (response.status, "20:00 UTC" in await response.text()) == (200, True)
            broker.commit(keyed(2, "harbour"), keyed(3, "tide"))
            _, other = await box.wait_for(2)
            assert other["Subject"] == "Q1: tide"
            clock.go_on(hours=8)
            *_, again = await box.wait_for(3)
            assert again["Subject"] == "Q1: harbour"
            assert again["Message-ID"] != first["Message-ID"]
            for token in ("~", link_token(key, "unsubscribe", "x")):
                async with reader.post(f"{url}/v1/alerts/{token}") as response:
                    assert response.status == 404


async def test_a_mail_that_nobody_acknowledges_goes_to_a_second_address(
    broker: Broker, clock: Clock
) -> None:
    async with (
        mailbox() as box,
        receiving() as receiver,
        serving(broker, now_us=clock) as url,
        aiohttp.ClientSession() as reader,
    ):
        key = broker.registry.key("links")

        def alert_url(delivery_id: str) -> str:
            return f"{url}/v1/alerts/{link_token(key, 'alert', delivery_id)}"

        mail = MailChannel(
            Letters(Sender("broker@xscl.example")),
            host="127.0.0.1",
            port=box.port,
            sender="broker@xscl.example",
            alert_url=alert_url,
            unsubscribe_url=lambda subscription_id: f"{url}/{subscription_id}",
        )
        hook = WebhookChannel(allowed=LOOPBACK, allow_http=True, alert_url=alert_url)
        channels = {DestinationKind.EMAIL: mail, DestinationKind.WEBHOOK: hook}
        async with broker.delivering(channels=channels, now_us=clock):
            made = broker.subscribe(
                "ann@reader.example", key=KEY, escalate=receiver.url, escalate_after="30 min"
            )
            broker.subscribe(
                receiver.url + "/own", escalate="boss@reader.example", escalate_after="2 h"
            )
            broker.commit(keyed(1, "a"), keyed(2, "b"))
            first, second = await box.wait_for(2)
            own = await receiver.wait_for(2)
            text = first.get_body(("plain",)).get_content()
            link = re.search(r"To acknowledge it, or not now: (\S+)", text)[1]
            async with reader.get(link) as response:
                assert ">Acknowledge</button>" in await response.text()
            for _ in range(2):
                async with reader.post(link, data={"what": "seen"}) as response:
                    assert "It is acknowledged" in await response.text()
            async with reader.post(own[0].headers["xscl-alert"], data={"what": "seen"}) as response:
                assert response.status == 200
            clock.go_on(hours=0.5)
            *_, escalated = await receiver.wait_for(3)
            assert escalated.headers["xscl-escalation"] == "true"
            # Not `verify`: the broker's clock is not that of the library.
            at = datetime.fromtimestamp(clock() // SECOND_US, tz=UTC)
            signed = Webhook(made.secrets[0].value).sign(escalated.id, at, escalated.body.decode())
            assert escalated.headers["webhook-signature"] == signed
            assert "Story 2" in escalated.data["output"]
            clock.go_on(hours=1.5)
            *_, boss = await box.wait_for(3)
            async with reader.get(f"{url}/v1/deliveries") as response:
                rows = (await response.json())["deliveries"]
    seconds = {each["destination"] for each in rows if each["origin"] is not None}
    assert seconds == {receiver.url, "boss@reader.example"}
    assert boss["To"] == "boss@reader.example"
    assert boss["Subject"].startswith("Not acknowledged: Q1:")
    assert "nobody has acknowledged it" in boss.get_body(("plain",)).get_content()
    assert boss["List-Unsubscribe"] is None, "who is told then is no subscriber"
    assert first["List-Unsubscribe"] is not None
    assert [each.path for each in receiver.received] == ["/hook/own", "/hook/own", "/hook"]
    assert second["Subject"] == "Q1: b"


async def test_a_second_address_that_bounces_is_written_to_no_more_and_stops_nothing(
    broker: Broker, clock: Clock
) -> None:
    async with mailing(broker, clock) as box:
        box.unknown = {"gone@reader.example"}
        made = broker.subscribe(
            "ann@reader.example", escalate="gone@reader.example", escalate_after="30 min"
        )
        broker.commit(found(1))
        await box.wait_for(1)
        clock.go_on(hours=0.5)
        await until(lambda: broker.registry.suppressed.has("gone@reader.example"))
        broker.commit(found(3))
        await box.wait_for(2)
    assert broker.registry.subscriptions.get(made.id).state is SubscriptionState.ACTIVE
    assert not [event for event in broker.events if event.kind == "disabled"]


async def test_a_sample_of_what_gathers_says_that_it_is_one(broker: Broker, clock: Clock) -> None:
    channels = {DestinationKind.WEBHOOK: WebhookChannel(allowed=LOOPBACK, allow_http=True)}
    async with (
        receiving() as receiver,
        serving(broker, now_us=clock, channels=channels) as url,
        aiohttp.ClientSession() as http,
    ):
        made = broker.subscribe(receiver.url, group="1 h")
        async with http.post(f"{url}/v1/subscriptions/{made.id}/test") as answer:
            assert (await answer.json())["outcome"] == "delivered"
    await channels[DestinationKind.WEBHOOK].close()
    assert b'"type":"xscl.sample"' in receiver.received[0].body


async def test_a_subscription_is_snoozed_over_http(broker: Broker, clock: Clock) -> None:
    async with (
        receiving() as receiver,
        serving(broker, now_us=clock) as url,
        aiohttp.ClientSession() as http,
        broker.delivering(now_us=clock),
    ):
        made = broker.subscribe(receiver.url, key=KEY)
        await placed(broker, 1)
        snooze = f"{url}/v1/subscriptions/{made.id}/snooze"
        async with http.post(snooze, json={"until": "1 h", "key": "a"}) as answer:
            assert answer.status == 200
        async with http.post(snooze, json={"until": "2026-01-01T14:00:00Z"}) as answer:
            assert await answer.json() == {
                "until": "2026-01-01T14:00:00Z",
                "keys": [{"key": "a", "until": "2026-01-01T13:00:00Z", "has_messages": False}],
            }
        for wrong in ("yesterday", "0 s", "2025-01-01", "3 years", 5):
            async with http.post(snooze, json={"until": wrong}) as answer:
                assert answer.status == 422
        broker.commit(keyed(1, "a"), keyed(2, "b"))
        await scanned(broker)
        clock.go_on(hours=0.5)
        async with http.delete(snooze) as answer:
            assert (await answer.json())["until"] is None
        await receiver.wait_for(1)
        async with http.get(snooze) as answer:
            assert [each["has_messages"] for each in (await answer.json())["keys"]] == [True]
    assert titles(receiver) == [["Story 2"]]


def scan(house: House) -> None:
    """Put the matches that are there into messages, as delivery does when it looks."""
    room, now_us = house.room, house.pickup.now_us()
    dispatch = Dispatch(
        room.outbox.path.with_name("deliveries.db"), room.outbox, room.registry, SECOND_US
    )
    dispatch.visit([], 5, now_us)
    dispatch.close([], now_us)


async def test_a_subscription_says_until_when_it_gets_nothing(house: House) -> None:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    house.pickup.now_us = lambda: 1_767_268_800_000_000  # 2026-01-01, noon
    destination = Destination.parse("https://h.example/")

    def made(options: Options) -> str:
        return house.room.registry.subscribe("other", destination, point=0, options=options).id

    plain = made(Options())
    quiet, snoozed = (made(Options(quiet="00:00-12:30")) for _ in range(2))
    scan(house)
    snooze = f"/v1/subscriptions/{snoozed}/snooze"
    async with house.client.post(snooze, json={"until": "1 h"}, headers=headers) as answer:
        assert answer.status == 200
    async with house.client.get("/v1/subscriptions?query=other", headers=headers) as answer:
        listed = {row["id"]: row["quiet_until"] for row in (await answer.json())["subscriptions"]}
    assert [listed[each] for each in (plain, quiet, snoozed)] == [
        None,
        "2026-01-01T12:30:00Z",
        "2026-01-01T13:00:00Z",
    ]
    house.pickup.now_us = lambda: 1_767_276_000_000_000  # two hours later
    async with house.client.get(f"/v1/subscriptions/{snoozed}", headers=headers) as answer:
        assert (await answer.json())["quiet_until"] is None


async def test_the_page_shows_messages_and_what_is_snoozed(house: House) -> None:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    made = house.room.registry.subscribe(
        "other", Destination.parse("https://h.example/"), point=0, options=Options(collect=True)
    )
    scan(house)
    body = {"until": "2 h"}
    async with house.client.post(
        f"/v1/subscriptions/{made.id}/snooze", json=body, headers=headers
    ) as answer:
        assert answer.status == 200
    async with house.client.get(f"/subscriptions/{made.id}", headers=headers) as answer:
        text = await answer.text()
    assert "Snoozed until" in text
    assert ">collected<" in text
    link = re.search(r'href="(/v1/alerts/[^"]+)"', text)[1]
    async with house.client.get(link) as answer:
        assert "Snooze" in await answer.text()


async def subscribing(house: House, destination: str, **options: Any) -> tuple[int, Any]:
    async with house.client.post(
        "/v1/subscriptions",
        json={"query": "other", "destination": destination, "options": options},
        headers={"Authorization": f"Bearer {house.secrets['admin']}"},
    ) as answer:
        return answer.status, await answer.json()


async def test_options_are_kept_as_they_were_written(house: House) -> None:
    options = {
        "key": ["a/title", "output/item/@id"],
        "group": "10 min",
        "throttle": "3 per 1 h",
        "quiet": "22:00-07:00; Sat-Sun 00:00-24:00",
        "timezone": "Europe/Berlin",
        "collect": True,
    }
    status, made = await subscribing(house, "https://example.org/hook", **options)
    assert (status, made["options"]) == (201, options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"key": ["c/title"]}, "'c/title' is no key: other compares `a/title`, `b/title`"),
        ({"key": ["output/@id/k"]}, "is no path into the output"),
        ({"key": ["output/"]}, "is no path into the output"),
        ({"key": "a/title"}, "a key is a list of names"),
        ({"key": ["a/title"] * 5}, "at most 4 terms"),
        ({"group": "a while"}, "the time of a group"),
        ({"group": "0 s"}, "1 second to 30 days"),
        ({"group": "1 h", "digest": "daily"}, "a digest is a group"),
        ({"throttle": "many"}, "a throttle is `3 per 1 h`"),
        ({"quiet": "00:00-24:00"}, "never end"),
        ({"timezone": "Middle-earth"}, "is no time zone"),
        ({"collect": 1}, "'collect' is true or false"),
        ({"escalate": "b@example.org"}, "an escalation has an address and a time"),
        ({"escalate": "pull", "escalate_after": "1 h"}, "an escalation is sent"),
        ({"escalate": "nobody", "escalate_after": "1 h"}, "neither an http(s) URL"),
        ({"escalate": "b@example.org", "escalate_after": "1 ms"}, "1 second to 30 days"),
        (
            {"escalate": "b@example.org", "escalate_after": "1 h", "collect": True},
            "cannot be escalated",
        ),
    ],
)
async def test_options_that_cannot_be_are_refused(
    house: House, options: dict[str, Any], said: str
) -> None:
    status, problem = await subscribing(house, "https://example.org/hook", **options)
    assert status == 422
    assert said in problem["detail"]


async def test_who_pulls_has_no_messages(house: House) -> None:
    status, problem = await subscribing(house, "pull", group="1 h")
    assert status == 422
    assert "who pulls gets each match" in problem["detail"]
