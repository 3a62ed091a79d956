"""Where the demonstration's matches go: a webhook receiver and a mail server, on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import web
from aiosmtpd.smtp import SMTP, Envelope
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

__all__ = ["MailSink", "Receipts", "ReceivedDelivery", "WebhookReceiver"]


@dataclass(frozen=True, slots=True)
class ReceivedDelivery:
    """A delivery that arrived: its id, by which way, and how often it was refused before."""

    delivery_id: str
    way: str
    refusals: int = 0


class Receipts:
    """The deliveries that have arrived, by id.  They are written down, to outlive the process."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.by_id: dict[str, ReceivedDelivery] = {}
        if log.exists():
            for line in log.read_text().splitlines():
                self._note(ReceivedDelivery(**json.loads(line)))

    def add(self, received: ReceivedDelivery) -> None:
        """Keep a delivery; of one that is here already the first is what counts."""
        with self._log.open("a", encoding="utf-8") as file:
            row = {name: getattr(received, name) for name in received.__slots__}
            file.write(json.dumps(row) + "\n")
        self._note(received)

    def _note(self, received: ReceivedDelivery) -> None:
        self.by_id.setdefault(received.delivery_id, received)


class WebhookReceiver:
    """Takes webhooks at `/<query>`, checks their signatures, and answers the first one with 500.

    That one refusal is there to show that a webhook that fails is tried again, under its id.
    """

    def __init__(self, receipts: Receipts) -> None:
        self._receipts = receipts
        self._refusals: dict[str, int] = {}
        self.keys: dict[str, str] = {}
        self.forged = 0

    def application(self) -> web.Application:
        """Return the application that takes the webhooks."""
        application = web.Application()
        application.add_routes([web.post("/{query}", self._take)])
        return application

    async def _take(self, request: web.Request) -> web.Response:
        body, query = await request.read(), request.match_info["query"]
        try:
            Webhook(self.keys[query]).verify(body, dict(request.headers))
        except (KeyError, WebhookVerificationError):
            self.forged += 1
            return web.Response(status=HTTPStatus.UNAUTHORIZED)
        delivery_id = request.headers["webhook-id"]
        if not self._refusals and not self._receipts.by_id:
            self._refusals[delivery_id] = 1
            return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR, text="try again")
        refusals = self._refusals.get(delivery_id, 0)
        self._receipts.add(ReceivedDelivery(delivery_id, "the webhook", refusals))
        return web.Response(status=HTTPStatus.NO_CONTENT)


class MailSink:
    """A mail server that keeps what it is sent.  `delivery_id` reads a message's."""

    def __init__(self, receipts: Receipts, delivery_id: Callable[[Message], str]) -> None:
        self._receipts = receipts
        self._delivery_id = delivery_id
        self.messages: list[Message] = []

    def protocol(self) -> SMTP:
        """Return the protocol of one connection, for `loop.create_server`."""
        return SMTP(self, hostname="localhost", enable_SMTPUTF8=True)

    async def handle_DATA(  # noqa: N802 - the name that aiosmtpd calls
        self, server: SMTP, session: Any, envelope: Envelope
    ) -> str:
        """Keep one message."""
        content = envelope.content
        assert isinstance(content, bytes)
        message = message_from_bytes(content)
        self.messages.append(message)
        self._receipts.add(ReceivedDelivery(self._delivery_id(message), str(message["To"])))
        return "250 kept"
