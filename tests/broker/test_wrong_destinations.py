"""Destinations that can never work are refused while their subscriber listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner, Result
from support.small_broker import small_broker
from support.subscribers import Broker, broker_in, found, mailbox, receiving, serving

from broker.api.pickup import Pickup
from broker.cli import main
from broker.delivery.apprise import AppriseChannel
from broker.delivery.attempt import OutcomeKind
from broker.delivery.letter import Letters, Sender
from broker.delivery.links import link_token
from broker.delivery.mail import MailChannel
from broker.delivery.sinks.channel import SinkChannel
from broker.delivery.webhook import WebhookChannel
from broker.registry.subscription import (
    Destination,
    DestinationKind,
    Options,
    SubscriptionError,
)
from feeds import networks

SENDER = Sender("broker@xscl.example")
LOOPBACK = networks(["127.0.0.0/8"])
QUERY = "news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


@pytest.fixture
async def pickup(broker: Broker) -> AsyncIterator[Pickup]:
    pickup = Pickup(
        broker.outbox, broker.registry, channels={DestinationKind.WEBHOOK: WebhookChannel()}
    )
    yield pickup
    await pickup.close()


@pytest.mark.parametrize(
    ("destination", "reason"),
    [
        ("ann@reader.example", "this broker sends no mail: `[smtp]` in its settings"),
        ("apprise:slack://a/b/c", "`apprise = true` in its settings"),
        ("http://hook.example/", "plain http is not allowed"),
        ("https://127.0.0.1/hook", "`allow_networks` in its settings"),
        ("https://localhost:8443/hook", "`allow_networks` in its settings"),
        ("https://[::1]/hook", "`allow_networks` in its settings"),
        ("https://169.254.169.254/latest", "`allow_networks` in its settings"),
        ("https://hooks.slack.com/services/T0/B0/x", "write `slack:` before the address"),
        ("https://discord.com/api/webhooks/1/x", "write `discord:` before the address"),
    ],
)
async def test_what_can_never_be_reached_is_refused_with_what_would_help(
    pickup: Pickup, destination: str, reason: str
) -> None:
    refusal = await pickup.refusal(Destination.parse(destination), "")
    assert refusal is not None
    assert reason in refusal


NUMBERS = (
    *("2130706433", "017700000001", "0x7f000001", "0177.0.0.1", "0x7f.0.0.1", "127.1", "0"),
    *("0xa9fea9fe", "１２７.0.0.1", "127.0.0.0x1"),
)
SPELLINGS = (
    *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]"),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "127。0。0。1"),
)
"""Ways to write addresses inside, which the resolver reads as such; of `NUMBERS` it alone."""


@pytest.mark.parametrize("host", SPELLINGS)
async def test_an_address_inside_is_refused_however_it_is_written(
    pickup: Pickup, tmp_path: Path, host: str
) -> None:
    reason = "is a private or reserved address"
    hook = await pickup.refusal(Destination.parse(f"https://{host}/hook"), "")
    sinks = SinkChannel(tmp_path)
    topic = await sinks.refusal(Destination.parse(f"kafkas://{host}/topic"))
    await sinks.close()
    assert reason in str(hook)
    assert reason in str(topic)


@pytest.mark.parametrize("host", NUMBERS)
async def test_numbers_that_are_no_address_are_none_for_anybody(tmp_path: Path, host: str) -> None:
    with pytest.raises(SubscriptionError, match="is no name, and no address"):
        Destination.parse(f"https://{host}/hook")
    sinks = SinkChannel(tmp_path)
    topic = await sinks.refusal(Destination.parse(f"kafkas://{host}/topic"))
    await sinks.close()
    assert "is a private or reserved address" in str(topic)


@pytest.mark.parametrize("destination", ["https://ann:hush@a.example/", "HTTPS://hush@a.example"])
def test_a_url_with_a_password_is_refused_and_not_repeated(destination: str) -> None:
    with pytest.raises(SubscriptionError, match="a user or a password") as refused:
        Destination.parse(destination)
    assert "hush" not in str(refused.value)


def test_a_scheme_may_be_in_capitals() -> None:
    assert Destination.parse("HTTPS://A.example/Hook").address == "https://A.example/Hook"


@pytest.mark.parametrize("destination", ["pull", "https://192.0.2.1.invalid/", "https://9.9.9.9/"])
async def test_what_may_work_is_taken(pickup: Pickup, destination: str) -> None:
    assert await pickup.refusal(Destination.parse(destination), "") is None


async def test_an_owner_whom_nobody_can_tell_is_refused(pickup: Pickup) -> None:
    refusal = await pickup.refusal(Destination.parse("pull"), "ann@reader.example")
    assert refusal is not None
    assert "its owner could not be told" in refusal


async def test_networks_that_are_allowed_are_called(broker: Broker) -> None:
    channel = WebhookChannel(allowed=LOOPBACK, allow_http=True)
    assert await channel.refusal(Destination.parse("http://127.0.0.1:8401/")) is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Apprise's plugins' own
async def test_an_address_of_no_service_is_refused() -> None:
    channel = AppriseChannel(Letters(SENDER))
    assert await channel.refusal(Destination.parse("apprise:nothing://x")) is not None
    assert await channel.refusal(Destination.parse("apprise:json://127.0.0.1/")) is None


async def test_an_address_that_has_bounced_is_refused(broker: Broker) -> None:
    broker.registry.suppressed.add("ann@reader.example", reason="no such mailbox")
    channel = MailChannel(
        Letters(SENDER),
        host="127.0.0.1",
        sender=SENDER.address,
        is_suppressed=broker.registry.suppressed.has,
    )
    refusal = await channel.refusal(Destination.parse("Ann@reader.example"))
    assert refusal is not None
    assert "suppression list" in refusal


# -- owners ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "owner", ["o@e.org\r\nBcc: v@e.org", "nobody", "a@b, c@d", "https://e.org"]
)
def test_an_owner_is_one_address(broker: Broker, owner: str) -> None:
    with pytest.raises(SubscriptionError, match="is no e-mail address"):
        broker.registry.subscribe(
            "Q1", Destination.parse("pull"), point=0, options=Options(owner=owner)
        )


async def test_an_owner_from_before_they_were_checked_fails_in_words() -> None:
    async with mailbox() as box:
        channel = MailChannel(
            Letters(SENDER), host="127.0.0.1", port=box.port, sender=SENDER.address
        )
        outcome = await channel.notify("o@e.org\r\nBcc: v@e.org", "Q1 is paused", "It is.")
        await channel.close()
    assert outcome.kind is OutcomeKind.REFUSED
    assert box.raw == []


# -- addresses beyond ASCII ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("jörg@example.org", "jörg@example.org"),
        ("jo\u0308rg@example.org", "jörg@example.org"),
        ("用户@例子.example", "用户@xn--fsqu00a.example"),
        ("ann@straße.example", "ann@xn--strae-oqa.example"),
    ],
)
def test_addresses_may_have_letters_beyond_ascii(text: str, address: str) -> None:
    assert Destination.parse(text).address == address


async def test_a_mail_to_such_an_address_arrives(broker: Broker) -> None:
    async with mailbox() as box:
        channel = MailChannel(
            Letters(SENDER), host="127.0.0.1", port=box.port, sender=SENDER.address
        )
        async with broker.delivering(channels={DestinationKind.EMAIL: channel}):
            broker.subscribe("jörg@reader.example")
            broker.commit(found(1))
            await box.wait_for(1)
    assert b"\r\nTo: j\xc3\xb6rg@reader.example\r\n" in box.raw[0]


async def test_a_server_that_takes_ascii_alone_is_said_to(broker: Broker) -> None:
    async with mailbox(is_utf8=False) as box:
        channel = MailChannel(
            Letters(SENDER), host="127.0.0.1", port=box.port, sender=SENDER.address
        )
        outcome = await channel.notify("jörg@reader.example", "Q1 is paused", "It is.")
        await channel.close()
    assert outcome.kind is OutcomeKind.REFUSED
    assert "SMTPUTF8" in outcome.detail


# -- over the API, and what a subscriber is told ---------------------------------------------------


async def verb(url: str, *arguments: str, stdin: str = "") -> Result:
    command = ["--broker", url, *arguments]
    return await asyncio.to_thread(lambda: CliRunner().invoke(main, command, input=stdin))


async def publish(url: str, path: Path) -> None:
    path.write_text("<item><title>One</title></item>")
    assert (await verb(url, "publish", "news", str(path))).exit_code == 0


async def test_a_subscriber_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "same.xscl").write_text(QUERY)
    async with small_broker(tmp_path / "data") as url, receiving() as receiver:
        await verb(url, "register", str(tmp_path / "same.xscl"))
        refused = await verb(url, "subscribe", "same", "ann@reader.example")
        assert refused.exit_code == 1
        assert "this broker sends no mail" in refused.stderr
        # A sample goes out by itself.
        made = await verb(url, "subscribe", "same", receiver.url)
        assert made.exit_code == 0
        assert "the sample was delivered" in made.stderr
        (sample,) = await receiver.wait_for(1)
        assert b"xscl.sample" in sample.body
        silent = await verb(url, "subscribe", "same", receiver.url, "--no-test")
        assert "sample" not in silent.stderr
        # One that fails is told, and the subscription stands; asked for, it is an error.
        receiver.always = 500
        told = await verb(url, "subscribe", "same", receiver.url)
        assert (told.exit_code, "not delivered (500)" in told.stderr) == (0, True)
        assert (await verb(url, "subscribe", "same", receiver.url, "--test")).exit_code == 1


async def test_a_destination_can_be_kept_out_of_the_arguments(tmp_path: Path) -> None:
    (tmp_path / "same.xscl").write_text(QUERY)
    async with small_broker(tmp_path / "data") as url, receiving() as receiver:
        await verb(url, "register", str(tmp_path / "same.xscl"))
        made = await verb(url, "subscribe", "same", "-", stdin=f"{receiver.url}\n")
        assert (made.exit_code, len(await receiver.wait_for(1))) == (0, 1)
        options = ["--escalate", "-", "--escalate-after", "1 h", "--format", "json"]
        lines = f"{receiver.url}\n{receiver.url}?second\n"
        made = await verb(url, "subscribe", "same", "-", *options, stdin=lines)
        assert json.loads(made.stdout)["options"]["escalate"] == f"{receiver.url}?second"
        nothing = await verb(url, "subscribe", "same", "-")
    assert nothing.exit_code == 1
    assert "standard input has no destination" in nothing.stderr


async def test_a_subscriber_hears_of_which_documents_it_gets_matches(tmp_path: Path) -> None:
    (tmp_path / "same.xscl").write_text(QUERY)
    async with small_broker(tmp_path / "data") as url:
        await publish(url, tmp_path / "one.xml")
        await verb(url, "register", str(tmp_path / "same.xscl"))
        await publish(url, tmp_path / "one.xml")
        later = (await verb(url, "subscribe", "same", "pull")).stderr
        assert "only if all documents of the match came after 2" in later
        assert "hint: with `--since all` it would get matches with earlier documents" in later
        back = (await verb(url, "subscribe", "same", "pull", "--since", "all")).stderr
        assert "only if all documents of the match came after 1" in back
        assert "hint: the query itself sees documents after 1 only" in back


async def test_the_page_of_the_link_fits_a_phone(broker: Broker) -> None:
    subscription = broker.subscribe("ann@reader.example")
    token = link_token(broker.registry.key("links"), "unsubscribe", subscription.id)
    async with (
        serving(broker) as url,
        aiohttp.ClientSession() as phone,
        phone.get(f"{url}/v1/unsubscribe/{token}") as response,
    ):
        page = await response.text()
    assert '<meta name="viewport" content="width=device-width' in page
