"""Subscribers for tests: a webhook receiver and a mailbox on loopback, and matches for them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiohttp import web
from aiosmtpd.smtp import SMTP, Envelope, Session

from broker.delivery.schedule import RetryPolicy
from broker.delivery.webhook import WebhookChannel
from broker.delivery.worker import DeliveryEvent, DeliveryWorker
from broker.matching.match import Match, MatchDocument, MatchNode
from broker.matching.stepresult import StepResult
from broker.pipeline.outbox import Outbox
from broker.registry.queries import Registry
from broker.registry.subscription import Destination, DestinationKind, Options, Subscription
from feeds.guard import networks

LOOPBACK = networks(["127.0.0.0/8", "::1"])

FAST = RetryPolicy().faster(1_000)
"""The real schedule, a thousand times faster: a day is 86 seconds, the first retry 5 ms away."""

IMPATIENT = replace(FAST.faster(20_000), disable_after_us=1 << 60)
"""All retries at once, and no endpoint is ever disabled."""


def item(number: int, *, feed: str = "one", author: str = "Ann", summary: str = "") -> str:
    return (
        f"<item><title>Story {number}</title><link>https://{feed}.example/{number}</link>"
        f"<author>{author}</author><summary>{summary}</summary><source>{feed}</source></item>"
    )


def found(
    number: int, *, query: str = "Q1", parameters: dict[str, Any] | None = None, output: str = ""
) -> Match:
    """Return the match of documents `number` and `number + 1` of a query, one hour apart."""
    start_us = 1_767_225_600_000_000 + number * 60_000_000
    documents = tuple(
        MatchDocument(number + i, "news", f"k{number + i}", start_us + i * 3_600_000_000)
        for i in (0, 1)
    )
    witness = {"who": MatchNode(0, 3, "Ann"), "later/author": MatchNode(1, 3, "Ann")}
    return Match(
        id=f"{query}-{number}-{json.dumps(parameters or {})}",
        query=query,
        start_us=start_us,
        end_us=start_us + 3_600_000_000,
        documents=documents,
        roots=(0, 0),
        nodes={},
        witnesses=(witness,),
        output=output or f"<match>{item(number)}{item(number + 1, feed='two')}</match>",
        parameters=parameters or {},
    )


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @cached_property
    def data(self) -> Any:
        """What was sent; who waits for more looks at it a hundred times a second."""
        return json.loads(self.body)["data"]


Answer = int | Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Receiver:
    """A webhook endpoint.  Answers are taken from `answers` in turn, then 204."""

    url: str = ""
    received: list[Received] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    always: Answer = 204
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = self.answers.pop(0) if self.answers else self.always
        async with self.arrived:
            self.received.append(Received(request.path, headers, body))
            self.arrived.notify_all()
        if isinstance(answer, int):
            return web.Response(status=answer, text=f"says {answer}")
        return await answer(request)

    async def wait_for(self, count: int) -> Sequence[Received]:
        async with self.arrived:
            async with asyncio.timeout(20):
                await self.arrived.wait_for(lambda: len(self.received) >= count)
        return self.received


@contextlib.asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    application = web.Application(client_max_size=1 << 26)
    application.router.add_route("*", "/{tail:.*}", receiver.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    receiver.url = f"http://127.0.0.1:{port}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()


@dataclass
class Mailbox:
    """A mail server that keeps what it gets.  `replies` answer to DATA in turn, then 250."""

    port: int = 0
    raw: list[bytes] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    drop_after_data: int = 0
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    _parsed: list[EmailMessage] = field(default_factory=list)

    @property
    def messages(self) -> list[EmailMessage]:
        for raw in self.raw[len(self._parsed) :]:
            message = message_from_bytes(raw, policy=default)
            assert isinstance(message, EmailMessage)
            self._parsed.append(message)
        return self._parsed[:]

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.unknown:
            return "550 5.1.1 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        reply = self.replies.pop(0) if self.replies else "250 kept"
        if reply.startswith("2"):
            async with self.arrived:
                self.raw.append(envelope.content or b"")
                self.arrived.notify_all()
        if self.drop_after_data:
            self.drop_after_data -= 1
            server.transport.abort()
        return reply

    async def wait_for(self, count: int) -> list[EmailMessage]:
        async with self.arrived:
            async with asyncio.timeout(20):
                await self.arrived.wait_for(lambda: len(self.raw) >= count)
        return self.messages


@contextlib.asynccontextmanager
async def mailbox(*, is_utf8: bool = True) -> AsyncIterator[Mailbox]:
    box = Mailbox()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(box, loop=loop, enable_SMTPUTF8=is_utf8, hostname="test"), "127.0.0.1", 0
    )
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()


@dataclass
class Broker:
    """The parts of a broker that delivery stands on, in one directory, and a worker on them."""

    directory: Path
    outbox: Outbox
    registry: Registry
    events: list[DeliveryEvent] = field(default_factory=list)

    def commit(self, *matches: Match) -> None:
        from oracle.lines import as_found

        through = self.outbox.through()
        assert self.outbox.commit(
            after=through, through=through + 1, step=StepResult([*map(as_found, matches)])
        )

    def subscribe(self, address: str, *, query: str = "Q1", **options: Any) -> Subscription:
        point = options.pop("point", 0)
        return self.registry.subscribe(
            query, Destination.parse(address), point=point, options=Options(**options)
        )

    @contextlib.asynccontextmanager
    async def delivering(self, **settings: Any) -> AsyncIterator[DeliveryWorker]:
        channels = settings.pop("channels", None) or {
            DestinationKind.WEBHOOK: WebhookChannel(allowed=LOOPBACK, allow_http=True, timeout_s=5)
        }
        worker = DeliveryWorker(
            self.outbox,
            self.registry,
            channels,
            **{"policy": FAST, "poll_s": 0.02, "on_event": self.events.append, **settings},
        )
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            async with asyncio.timeout(20):
                await running


@contextlib.contextmanager
def broker_in(directory: Path, *, now_us: Callable[[], int] | None = None) -> Any:
    outbox = Outbox(directory / "outbox.db", now_us=now_us)
    broker = Broker(directory, outbox, Registry(directory / "registry.db"))
    try:
        yield broker
    finally:
        broker.outbox.close()
        broker.registry.close()


async def _change(
    action: Callable[[int], Any], /, *, replan: bool = True, ahead: object = None
) -> Any:
    return action(0)


@contextlib.asynccontextmanager
async def serving(broker: Broker, **settings: Any) -> AsyncIterator[str]:
    """Serve delivery's part of the HTTP API; yields its URL."""
    # Processes that only deliver need none of it, and importing it takes longer than all the rest.
    from broker.api.backend import BACKEND
    from broker.api.http import add_deliveries
    from broker.api.pickup import Pickup
    from broker.api.problem import problems

    application = web.Application(middlewares=[problems])
    add_deliveries(application, Pickup(broker.outbox, broker.registry, **settings))
    application[BACKEND] = SimpleNamespace(registry=broker.registry, change=_change)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def until(condition: Callable[[], bool], *, seconds: float = 20) -> None:
    """Wait until a condition holds that nothing announces."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - that nothing announces it is the point
            await asyncio.sleep(0.01)
