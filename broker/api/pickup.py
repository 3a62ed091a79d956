"""What the HTTP handlers of delivery stand on, and who may see what."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

from aiohttp import web

from broker.api.access import caller_of, is_still_admitted
from broker.api.problem import Problem
from broker.delivery.alerts.answers import Answers
from broker.delivery.attempt import Channel, Outcome
from broker.delivery.channels import notifier
from broker.delivery.confirmation import waiting_for
from broker.delivery.consumers import Consumers
from broker.delivery.deliveries import Deliveries
from broker.delivery.hub import Hub
from broker.delivery.links import Purpose, link_token, read_link_token
from broker.delivery.store import open_deliveries
from broker.pipeline.outbox import Outbox
from broker.registry.queries import Registry
from broker.registry.subscription import (
    Destination,
    DestinationKind,
    Subscription,
    SubscriptionState,
)
from broker.registry.tokens import TOKEN_PREFIX

__all__ = ["PICKUP", "Pickup"]

T = TypeVar("T")

_NO_MAIL = "this broker sends no mail: `[smtp]` in its settings names a mail server"

_NO_WEBHOOKS = "this broker calls no webhooks"

_UNSENT = {
    DestinationKind.EMAIL: _NO_MAIL,
    DestinationKind.APPRISE: (
        "this broker does not send through Apprise: `apprise = true` in its settings has it do so"
    ),
}


class Pickup:
    """Where subscribers fetch, and where operators look after what is sent.

    With `token_required` a subscription is shown only to who has its token; without, a token
    that is given must be right all the same.  `base_url` is how the broker is reached from
    outside, for links.  `channels` are the ways to send; where none are named, none are checked.
    With `confirms_addresses` a subscription is delivered once its e-mail addresses have confirmed.
    """

    def __init__(
        self,
        outbox: Outbox,
        registry: Registry,
        *,
        path: Path | None = None,
        channels: dict[DestinationKind, Channel] | None = None,
        base_url: str = "",
        confirms_addresses: bool = False,
        token_required: bool = False,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self.outbox = outbox
        self.registry = registry
        self.channels = channels or {}
        self.confirms_addresses = confirms_addresses
        self._is_sending = channels is not None
        self.base_url = base_url.rstrip("/")
        self.now_us = now_us
        self.hub = Hub(outbox)
        self._token_required = token_required
        self._key = registry.key("links")
        # Consumers and deliveries are one connection, and so one thread's.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pickup")
        self._db = open_deliveries(path or outbox.path.with_name("deliveries.db"))
        self.consumers = Consumers(self._db, outbox)
        self.deliveries = Deliveries(self._db)
        self.answers = Answers(self._db)

    async def close(self) -> None:
        """End the watch and give the file back."""
        await self.hub.close()
        self._thread.shutdown()
        self._db.close()

    async def write(self, work: Callable[[], T]) -> T:
        """Run work on `consumers`, `deliveries` or `answers` in their thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def quiet_until_us(self, subscriptions: Sequence[Subscription]) -> dict[str, int]:
        """Return until when each subscription that is snoozed or in quiet hours gets nothing."""
        now_us = self.now_us()
        names = [each.id for each in subscriptions]
        found = await self.write(lambda: self.answers.snoozed(names, now_us))
        for each in subscriptions:
            if each.options.quiet and (loud_us := each.options.cadence.loud_us(now_us)) > now_us:
                found[each.id] = max(loud_us, found.get(each.id, 0))
        return found

    async def refusal(self, destination: Destination, owner: str) -> str | None:
        """Return why a subscription could never work, None where it may."""
        if not self._is_sending:
            return None
        if owner and DestinationKind.EMAIL not in self.channels:
            return f"{_NO_MAIL}, so its owner could not be told"
        if destination.kind is DestinationKind.PULL:
            return None
        channel = self.channels.get(destination.kind)
        if channel is None:
            return _UNSENT.get(destination.kind, _NO_WEBHOOKS)
        return await channel.refusal(destination)

    def read_token(self, subscription_id: str) -> str:
        """Return the token with which a subscription's matches are read."""
        return link_token(self._key, "read", subscription_id)

    def unsubscribe_url(self, subscription_id: str) -> str:
        """Return the one-click page of a subscription, "" if the broker has no outside address."""
        if not self.base_url:
            return ""
        return f"{self.base_url}/v1/unsubscribe/{self.unsubscribe_token(subscription_id)}"

    def unsubscribe_token(self, subscription_id: str) -> str:
        """Return the token with which a subscription can be ended, and nothing else be done."""
        return link_token(self._key, "unsubscribe", subscription_id)

    def alert_url(self, delivery_id: str) -> str:
        """Return the page on which a message is answered, "" without an outside address."""
        if not self.base_url:
            return ""
        return f"{self.base_url}/v1/alerts/{self.alert_token(delivery_id)}"

    def alert_token(self, delivery_id: str) -> str:
        """Return the token with which a message is answered, and nothing else be done."""
        return link_token(self._key, "alert", delivery_id)

    def named_by(self, purpose: Purpose, token: str) -> str | None:
        """Return the subscription or message that a link's token is for, None if it is not ours."""
        return read_link_token(self._key, purpose, token)

    async def ask_to_confirm(self, subscription: Subscription) -> Outcome:
        """Mail the link with which the address that an unconfirmed one waits for says yes."""
        mail = notifier(self.channels)
        assert mail is not None, "addresses confirm only where mails are sent"
        asked = waiting_for(subscription)
        token = link_token(self._key, asked.purpose, subscription.id)
        text = asked.text(f"{self.base_url}/v1/confirm/{token}")
        return await mail.notify(asked.address, asked.subject, text)

    async def subscription(self, request: web.Request) -> Subscription:
        """Return the subscription that a request names, if it may be seen and is not stopped.

        A wrong token and a wrong id are answered alike: whether an id exists is not told.
        """
        name = request.match_info["id"]
        if not self._may_read(request, name):
            raise Problem(HTTPStatus.NOT_FOUND, f"no subscription {name!r} for this token")
        found = await asyncio.to_thread(self.registry.subscriptions.get, name)
        if found.state is SubscriptionState.REMOVED:
            raise Problem(HTTPStatus.NOT_FOUND, f"no subscription {name!r}")
        if found.state is not SubscriptionState.ACTIVE:
            reason = f": {found.reason}" if found.reason else ""
            raise Problem(HTTPStatus.CONFLICT, f"the subscription is {found.state.value}{reason}")
        return found

    def _may_read(self, request: web.Request, subscription_id: str) -> bool:
        if not is_still_admitted(request):
            return False
        if caller_of(request) is not None:
            return True  # the access rules have looked at the token, and at the subscription
        token = request.query.get("token")
        kind, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if token is None and kind.lower() == "bearer":
            token = bearer.strip()
        if token is None or token.startswith(TOKEN_PREFIX):
            return not self._token_required
        return read_link_token(self._key, "read", token) == subscription_id


PICKUP = web.AppKey("pickup", Pickup)
