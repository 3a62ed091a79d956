"""What each chat service is sent, as text and over the wire, and what its answers mean.

`XSCL_UPDATE_GOLDEN=1` writes tests/golden/chats; review the difference before you keep it.
"""

from __future__ import annotations

import html as html_module
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.lines import render
from standardwebhooks.webhooks import Webhook
from support.examples import examples
from support.subscribers import (
    IMPATIENT,
    LOOPBACK,
    Broker,
    Receiver,
    broker_in,
    found,
    item,
    receiving,
    until,
)

from broker.api.pickup import Pickup
from broker.delivery.attempt import ESCALATION, Attempt, OutcomeKind
from broker.delivery.channels import open_channels
from broker.delivery.chats import discord, matrix, ntfy, slack, teams, telegram
from broker.delivery.chats.channel import ChatChannel
from broker.delivery.chats.notice import Notice, TextSpan, compose
from broker.delivery.webhook import WebhookChannel
from broker.delivery.worker import DeliveryEventKind as Event
from broker.pipeline.matchlog import CommittedMatch
from broker.registry.destination import Destination, DestinationKind, SubscriptionError
from broker.registry.subscription import Options, Subscription, SubscriptionState
from broker.settings.config import Settings, WebhookSettings

GOLDEN = Path(__file__).parent.parent / "golden" / "chats"

RENDER = {
    DestinationKind.SLACK: slack.render,
    DestinationKind.DISCORD: discord.render,
    DestinationKind.TEAMS: teams.render,
    DestinationKind.NTFY: ntfy.render,
    DestinationKind.TELEGRAM: telegram.render,
    DestinationKind.MATRIX: matrix.render,
}
BOT = "123456:AAbb-ccDD_ee"

ADDRESSES = {
    DestinationKind.SLACK: "slack:https://hooks.slack.com/services/T0/B0/hush",
    DestinationKind.DISCORD: "discord:https://discord.com/api/webhooks/1/hush",
    DestinationKind.TEAMS: "teams:https://prod.logic.azure.com/workflows/1?sig=hush",
    DestinationKind.NTFY: "ntfy:tk_hush@https://ntfy.sh/harbour",
    DestinationKind.TELEGRAM: f"telegram:{BOT}@-100200300",
    DestinationKind.MATRIX: "matrix:syt_hush@https://matrix.example/!room:matrix.example",
}
ALERT_URL = "https://xscl.example/v1/alerts/msg_1.0123"

HOSTILE = (
    "<item><title>&lt;!channel&gt; @everyone &lt;@U1&gt; *b* _i_ `c` ``` &lt;b&gt;x&lt;/b&gt;"
    " [t](https://e.example) &amp;amp; \u202egpj.exe \u0085\u2028# h</title>"
    "<link>javascript:alert(1)</link><author>@room &lt;script&gt;</author></item>"
)
HOSTILE_LINK = (
    "<item><title>a|b&gt;c</title>"
    "<link>https://one.example/a_(b)?x=1&amp;y=*2*|z</link><author>||Ann||</author></item>"
)


def attempt(*outputs: str, kind: DestinationKind, name: str = "sub_1", **options: Any) -> Attempt:
    """Return an attempt to send matches with these outputs; without any, one of two stories."""
    matches = []
    for number, output in enumerate(outputs or ("",), 1):
        match = found(number, output=output)
        matches.append(
            CommittedMatch(number, match.id, "Q1", "{}", number, number, render(match), 0)
        )
    withheld = options.pop("withheld", 0)
    destination = Destination.parse(ADDRESSES[kind])
    subscription = Subscription(name, "Q1", "{}", destination, 0, options=Options(**options))
    return Attempt("msg_1", 1, subscription, matches, 0, withheld)


def rendered(made: Attempt, alert_url: str = ALERT_URL) -> tuple[dict[str, str], dict[str, Any]]:
    destination = made.subscription.destination
    headers, body = RENDER[destination.kind](compose(made, alert_url), destination)
    message: dict[str, Any] = json.loads(body)
    return headers, message


def cases(kind: DestinationKind) -> Iterator[tuple[str, Attempt, str]]:
    pair = f"<match>{HOSTILE}{HOSTILE_LINK}</match>"
    yield "one match", attempt(kind=kind), ""
    yield "what publishers wrote is text", attempt(pair, kind=kind), ALERT_URL
    yield (
        "three of a key, after two that were held back, for a second address",
        attempt(
            *["", "", "<out><host>one.example</host></out>"],
            kind=kind,
            name="sub_1" + ESCALATION,
            key=("who",),
            withheld=2,
        ),
        ALERT_URL,
    )


@pytest.mark.parametrize("kind", RENDER)
def test_a_message_is_as_its_golden_text_says(kind: DestinationKind) -> None:
    texts = []
    for name, made, alert_url in cases(kind):
        headers, message = rendered(made, alert_url)
        said = "\n".join(f"{name}: {value}" for name, value in headers.items())
        texts.append(f"# {name}\n{said}\n\n{json.dumps(message, indent=1, ensure_ascii=False)}\n")
    text, path = "\n".join(texts), GOLDEN / f"{kind.value}.txt"
    if os.environ.get("XSCL_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


# -- bounds ----------------------------------------------------------------------------------------


def length(kind: DestinationKind, message: dict[str, Any]) -> tuple[int, int]:
    """Return how long a message is by its service's own count, and what the service allows."""
    whole = len(json.dumps(message, ensure_ascii=False).encode())
    match kind:
        case DestinationKind.SLACK:
            longest = max(sum(map(_characters, each["elements"])) for each in message["blocks"])
            assert len(message["blocks"]) <= 50
            assert len(message["text"]) <= 40_000
            return longest, 3_000
        case DestinationKind.DISCORD:
            return len(message["content"].encode("utf-16-le")) // 2, 2_000
        case DestinationKind.TEAMS:
            return whole, 28 * 1024
        case DestinationKind.NTFY:
            return len(message["message"].encode()), 4_096
        case DestinationKind.TELEGRAM:
            return len(message["text"].encode("utf-16-le")) // 2, 4_096
        case _:
            return whole, 64 * 1024


def _characters(section: dict[str, Any]) -> int:
    return sum(len(each["text"]) + len(each.get("url", "")) for each in section["elements"])


def said(kind: DestinationKind, message: dict[str, Any]) -> str:
    """Return the text that people see."""
    match kind:
        case DestinationKind.SLACK:
            spans = [
                span["text"]
                for block in message["blocks"]
                for section in block["elements"]
                for span in section["elements"]
            ]
            return "".join(spans)
        case DestinationKind.DISCORD:
            return re.sub(r"\\(.)", r"\1", message["content"])
        case DestinationKind.TEAMS:
            blocks = message["attachments"][0]["content"]["body"]
            return "\n".join("".join(run["text"] for run in each["inlines"]) for each in blocks)
        case DestinationKind.NTFY:
            return f"{message['title']}\n{message['message']}"
        case DestinationKind.TELEGRAM:
            return html_module.unescape(re.sub(r"<[^>]*>", "", message["text"]))
        case _:
            return str(message["body"])


@pytest.mark.parametrize("kind", RENDER)
def test_what_there_is_no_room_for_is_counted(kind: DestinationKind) -> None:
    long = "<match>" + item(1).replace("Story", "&lt;&amp;\U0001f30a*_" * 500) * 3 + "</match>"
    alert_url = "https://xscl.example/" + "a" * 550
    made = attempt(*[long] * 200, kind=kind, key=("who",), escalate="b@e.org", escalate_after="1 h")
    _, message = rendered(made, alert_url)
    size, bound = length(kind, message)
    assert size <= bound
    text = said(kind, message)
    assert "and 199 more" in text
    (more,) = re.findall(r"and (\d+) more of the same key", text)
    assert text.count(" apart") == 200 - int(more)
    assert alert_url in json.dumps(message)


@pytest.mark.parametrize("service", [matrix, teams], ids=lambda each: each.__name__[-6:])
def test_a_line_takes_the_room_that_it_adds_to_a_message(service: Any) -> None:
    line = (TextSpan('Müller: "é"'), TextSpan("there", "https://a.example/?b=1&c=2"), TextSpan("."))
    destination = Destination.parse(ADDRESSES[DestinationKind(service.__name__.rpartition(".")[2])])

    def body(lines: int) -> bytes:
        notice = Notice("Q1", (), ((line,) * lines,), "matches", None)
        made: bytes = service.render(notice, destination)[1]
        return made

    assert len(body(3)) - len(body(2)) == service._size(line)
    assert "Müller".encode() in body(1)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)


@settings(max_examples=examples(30), deadline=None)
@given(titles=st.lists(texts, min_size=1, max_size=40), kind=st.sampled_from(list(RENDER)))
def test_whatever_titles_say_a_message_has_its_bounds_and_its_answer(
    titles: list[str], kind: DestinationKind
) -> None:
    outputs = []
    for title in titles:
        allowed = "".join(c for c in title if c.isprintable() or c in "\t\n")
        outputs.append(f"<match>{item(1).replace('Story 1', html_module.escape(allowed))}</match>")
    _, message = rendered(attempt(*outputs, kind=kind))
    size, bound = length(kind, message)
    assert size <= bound
    assert ALERT_URL in json.dumps(message)


def test_markup_of_titles_is_none_of_telegrams_or_matrix() -> None:
    tags = re.compile(r"</?(?!a |a>|b>|br>)[a-z]")
    for kind, member in (
        (DestinationKind.TELEGRAM, "text"),
        (DestinationKind.MATRIX, "formatted_body"),
    ):
        _, message = rendered(attempt(f"<match>{HOSTILE}{HOSTILE_LINK}</match>", kind=kind))
        assert not tags.search(message[member])
        assert "javascript:" not in message[member]


def test_nobody_is_called_by_a_name_in_a_title() -> None:
    made = {
        kind: rendered(attempt(f"<match>{HOSTILE}{HOSTILE_LINK}</match>", kind=kind))[1]
        for kind in RENDER
    }
    assert made[DestinationKind.DISCORD]["allowed_mentions"] == {"parse": []}
    assert made[DestinationKind.MATRIX]["m.mentions"] == {}
    assert not re.search(r"@\w", made[DestinationKind.TELEGRAM]["text"])
    assert "<" not in made[DestinationKind.SLACK]["text"]
    assert "msteams" not in made[DestinationKind.TEAMS]["attachments"][0]["content"]


# -- addresses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ADDRESSES.values())
def test_an_address_is_read_and_shown_without_its_secret(text: str) -> None:
    destination = Destination.parse(text)
    assert str(destination) == text
    assert "hush" not in destination.shown
    assert BOT not in destination.shown
    assert destination.shown.startswith(destination.kind.value + ":")


@pytest.mark.parametrize(
    "text",
    [
        "slack:hush",
        "slack:https://",
        "slack:hush@https://hooks.slack.com/",
        "discord:ftp://discord.com/hush",
        "ntfy:https://ntfy.sh/",
        "ntfy:https://ntfy.sh/a b",
        "ntfy:hush\r\nX: y@https://ntfy.sh/a",
        "telegram:123:hushhushhush",
        "telegram:123/hushhushhush@5",
        "telegram:123:hushhushhush@5/6",
        "matrix:https://matrix.example/!r:e",
        "matrix:hush@https://matrix.example/#alias:e",
        "matrix:hush@https://matrix.example/",
    ],
)
def test_what_is_no_address_is_refused_without_its_secret(text: str) -> None:
    with pytest.raises(SubscriptionError, match="is written") as refused:
        Destination.parse(text)
    assert "hush" not in str(refused.value)


def test_an_escalation_is_shown_without_its_secret() -> None:
    options = Options(escalate=ADDRESSES[DestinationKind.SLACK], escalate_after="1 h")
    assert options.shown["escalate"] == "slack:https://hooks.slack.com/..."
    assert Options.parse(options.render()) == options


# -- over the wire ---------------------------------------------------------------------------------


Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


def says(status: int, text: str = "", **headers: str) -> Reply:
    async def answer(request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=text, headers=named)

    return answer


async def echo(request: web.Request) -> web.StreamResponse:
    said = f"{request.headers.get('Authorization')} {request.path_qs} is not understood"
    return web.Response(status=400, text=said)


@dataclass
class Service:
    """How a service answers: that a message was taken, that it came too soon, that none is wanted.

    `address` makes a destination of the receiver's URL; `path` is where messages must arrive.
    """

    address: Callable[[str], str]
    path: str
    taken: Reply
    too_soon: Reply
    wait_us: int | None
    gone: Reply
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)


def below(kind: str, path: str) -> Callable[[str], str]:
    return lambda url: f"{kind}:{url.removesuffix('/hook')}{path}"


SERVICES = {
    DestinationKind.SLACK: Service(
        below("slack", "/services/T0/B0/hush"),
        "/services/T0/B0/hush",
        says(200, "ok"),
        says(429, "rate_limited", Retry_After="30"),
        30_000_000,
        says(404, "no_service"),
    ),
    DestinationKind.DISCORD: Service(
        below("discord", "/api/webhooks/1/hush"),
        "/api/webhooks/1/hush",
        says(200, '{"id": "1"}'),
        says(429, '{"message": "hush", "retry_after": 64.57, "global": false}', Retry_After="64"),
        64_570_000,
        says(404, '{"message": "Unknown Webhook", "code": 10015}'),
    ),
    DestinationKind.TEAMS: Service(
        below("teams", "/workflows/1?sig=hush"),
        "/workflows/1",
        says(202),
        says(429, "{}", Retry_After="17"),
        17_000_000,
        says(410, "gone"),
    ),
    DestinationKind.NTFY: Service(
        lambda url: f"ntfy:tk_hush@{url.removesuffix('/hook')}/harbour",
        "/",
        says(200, '{"id": "x", "event": "message"}'),
        says(429, '{"code": 42901, "http": 429, "error": "limit reached"}'),
        None,
        says(410, "gone"),
        headers={"authorization": "Bearer tk_hush"},
    ),
    DestinationKind.TELEGRAM: Service(
        lambda url: f"telegram:{BOT}@@harbour",
        f"/bot{BOT}/sendMessage",
        says(200, '{"ok": true, "result": {}}'),
        says(
            429,
            '{"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 5",'
            ' "parameters": {"retry_after": 5}}',
        ),
        5_000_000,
        says(
            403,
            '{"ok": false, "error_code": 403,'
            ' "description": "Forbidden: bot was blocked by the user"}',
        ),
    ),
    DestinationKind.MATRIX: Service(
        lambda url: f"matrix:syt_hush@{url.removesuffix('/hook')}/!room:matrix.example",
        "/_matrix/client/v3/rooms/!room:matrix.example/send/m.room.message/",
        says(200, '{"event_id": "$1"}'),
        says(429, '{"errcode": "M_LIMIT_EXCEEDED", "error": "no", "retry_after_ms": 2500}'),
        2_500_000,
        says(401, '{"errcode": "M_UNKNOWN_TOKEN", "error": "syt_hush is unknown"}'),
        method="PUT",
        headers={"authorization": "Bearer syt_hush"},
    ),
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


@asynccontextmanager
async def calling(
    kind: DestinationKind, receiver: Receiver
) -> AsyncIterator[dict[DestinationKind, ChatChannel]]:
    webhooks = WebhookChannel(allowed=LOOPBACK, allow_http=True, timeout_s=5)
    channel = ChatChannel(kind, webhooks, telegram_url=receiver.url.removesuffix("/hook"))
    yield {kind: channel}
    await channel.close()


@pytest.mark.parametrize("kind", SERVICES)
async def test_a_match_arrives_after_a_service_asked_to_wait(
    broker: Broker, kind: DestinationKind
) -> None:
    service = SERVICES[kind]
    async with receiving() as receiver, calling(kind, receiver) as channels:
        receiver.answers = [says(500, "broken"), service.taken]
        made = broker.subscribe(service.address(receiver.url))
        broker.commit(found(1))
        async with broker.delivering(channels=channels, policy=IMPATIENT):
            first, second = await receiver.wait_for(2)
            await until(lambda: any(each.kind is Event.DELIVERED for each in broker.events))
    assert second.path.startswith(service.path)
    assert first.body == second.body
    assert (first.path, first.id) == (second.path, second.id)
    assert service.headers.items() <= second.headers.items()
    assert "Story 2" in second.body.decode()
    assert "https://two.example/2" in second.body.decode()
    (secret,) = broker.registry.subscriptions.get(made.id).secrets
    Webhook(secret.value).verify(second.body, second.headers)


@pytest.mark.parametrize("kind", SERVICES)
async def test_a_service_says_how_long_to_wait_and_that_nobody_is_there(
    broker: Broker, kind: DestinationKind
) -> None:
    service = SERVICES[kind]
    async with receiving() as receiver, calling(kind, receiver) as channels:
        destination = Destination.parse(service.address(receiver.url))
        match = found(1)
        matches = [CommittedMatch(1, match.id, "Q1", "{}", 1, 1, render(match), 0)]
        made = Attempt("msg_1", 1, Subscription("sub_1", "Q1", "{}", destination, 0), matches, 0)
        receiver.answers = [service.too_soon, service.gone, echo]
        throttled, gone, failed = [await channels[kind].send(made) for _ in range(3)]
    assert (throttled.kind, throttled.status) == (OutcomeKind.THROTTLED, 429)
    assert throttled.retry_after_us == service.wait_us
    assert gone.kind is OutcomeKind.GONE
    assert failed.kind is OutcomeKind.FAILED
    assert "hush" not in gone.detail
    assert not re.search(f"hush|{BOT}", failed.detail)


async def test_a_channel_that_is_gone_disables_its_subscription(broker: Broker) -> None:
    service = SERVICES[DestinationKind.SLACK]
    async with receiving() as receiver, calling(DestinationKind.SLACK, receiver) as channels:
        receiver.always = service.gone
        made = broker.subscribe(service.address(receiver.url))
        broker.commit(found(1))
        async with broker.delivering(channels=channels):
            await until(lambda: any(each.kind is Event.DISABLED for each in broker.events))
    stopped = broker.registry.subscriptions.get(made.id)
    assert stopped.state is SubscriptionState.DISABLED


async def test_a_broker_sends_to_every_chat_by_its_settings(broker: Broker) -> None:
    webhooks = WebhookSettings(telegram_url="https://127.0.0.1:8443/")
    channels = open_channels(
        Settings(webhooks=webhooks), broker.registry, lambda name: "", lambda name: ""
    )
    assert set(RENDER) <= set(channels)
    telegram_address = Destination.parse(ADDRESSES[DestinationKind.TELEGRAM])
    refusal = await channels[DestinationKind.TELEGRAM].refusal(telegram_address)
    assert refusal is not None
    assert refusal.startswith("127.0.0.1 ")
    for channel in channels.values():
        await channel.close()


async def test_inside_addresses_are_not_called(broker: Broker) -> None:
    webhooks = WebhookChannel(allow_http=True)
    channels: Any = {kind: ChatChannel(kind, webhooks) for kind in SERVICES}
    pickup = Pickup(broker.outbox, broker.registry, channels=channels)
    for text in (
        "slack:https://127.0.0.1/x",
        "ntfy:https://[::1]/x",
        "matrix:t@https://10.0.0.1/!r",
    ):
        refusal = await pickup.refusal(Destination.parse(text), "")
        assert refusal is not None
        assert "`allow_networks` in its settings" in refusal
    async with receiving() as receiver:
        address = SERVICES[DestinationKind.SLACK].address(receiver.url)
        made = attempt(kind=DestinationKind.SLACK)
        destination = Destination.parse(address)
        subscription = Subscription("sub_1", "Q1", "{}", destination, 0)
        outcome = await channels[DestinationKind.SLACK].send(
            Attempt("msg_1", 1, subscription, made.matches, 0)
        )
        assert outcome.kind is OutcomeKind.THROTTLED
        assert "cannot be reached" in outcome.detail
        assert receiver.received == []
    await pickup.close()
    await webhooks.close()
