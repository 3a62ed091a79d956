"""Send messages to chat services as webhooks are sent, and read what these services answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from broker.delivery.attempt import Attempt, Outcome, OutcomeKind
from broker.delivery.chats import discord, matrix, ntfy, slack, teams, telegram
from broker.delivery.chats.notice import Notice, compose
from broker.delivery.signature import headers
from broker.delivery.webhook import WebhookChannel
from broker.registry.destination import Destination, DestinationKind

__all__ = ["ChatChannel"]

_WAIT_MAX_S = 86_400.0


@dataclass(frozen=True, slots=True)
class _Service:
    """How one service is written to, and which (status, word) of its answers means never again."""

    render: Callable[[Notice, Destination], tuple[dict[str, str], bytes]]
    url: Callable[[Destination, str], str] = lambda destination, delivery_id: destination.place
    method: str = "POST"
    ends: frozenset[tuple[int, str]] = frozenset()


_SERVICES: Mapping[DestinationKind, _Service] = {
    DestinationKind.SLACK: _Service(
        slack.render,
        ends=frozenset({(403, "action_prohibited"), (404, "no_service"), (404, "no_team")}),
    ),
    DestinationKind.DISCORD: _Service(
        discord.render, discord.url, ends=frozenset({(404, "10015")})
    ),
    DestinationKind.TEAMS: _Service(teams.render),
    DestinationKind.NTFY: _Service(ntfy.render, ntfy.url),
    DestinationKind.TELEGRAM: _Service(
        telegram.render,
        ends=frozenset({(401, "Unauthorized"), (403, "Forbidden"), (404, "Not Found")}),
    ),
    DestinationKind.MATRIX: _Service(
        matrix.render, matrix.url, "PUT", frozenset({(401, "M_UNKNOWN_TOKEN")})
    ),
}


class ChatChannel:
    """Posts one service's messages over the connections of `webhooks`, signed as those are.

    `alert_url` returns the page on which a message is answered, or "".  `telegram_url` is where
    the API of Telegram's bots is.
    """

    def __init__(
        self,
        kind: DestinationKind,
        webhooks: WebhookChannel,
        *,
        alert_url: Callable[[str], str] = lambda delivery_id: "",
        telegram_url: str = "https://api.telegram.org",
    ) -> None:
        self._service = _SERVICES[kind]
        self._webhooks = webhooks
        self._alert_url = alert_url
        self._telegram_url = telegram_url.rstrip("/")

    async def send(self, attempt: Attempt) -> Outcome:
        """Post the message once; what goes wrong is an outcome, never an exception."""
        subscription, destination = attempt.subscription, attempt.subscription.destination
        alert_url = "" if attempt.is_sample else self._alert_url(attempt.delivery_id)
        asked, body = self._service.render(compose(attempt, alert_url), destination)
        seconds = attempt.now_us // 1_000_000
        signed = headers(subscription.secrets, attempt.delivery_id, seconds, body)
        outcome = await self._webhooks.post(
            self._url(destination, attempt.delivery_id),
            body,
            {**signed, **asked},
            attempt.now_us,
            method=self._service.method,
        )
        return self._judged(outcome).hiding(_secrets(destination))

    async def refusal(self, destination: Destination) -> str | None:
        """Return why a service is never called."""
        return await self._webhooks.unreachable(self._url(destination, ""))

    async def close(self) -> None:
        """Give connections back."""
        await self._webhooks.close()

    def _url(self, destination: Destination, delivery_id: str) -> str:
        if destination.kind is DestinationKind.TELEGRAM:
            return f"{self._telegram_url}/bot{destination.token}/sendMessage"
        return self._service.url(destination, delivery_id)

    def _judged(self, outcome: Outcome) -> Outcome:
        """Return what an answer means to someone who knows the service."""
        words = _words(outcome.detail)
        if any((outcome.status, word) in self._service.ends for word in words):
            return replace(outcome, kind=OutcomeKind.GONE)
        if outcome.kind is OutcomeKind.THROTTLED:
            wait_us = max(outcome.retry_after_us or 0, _wait_us(_members(outcome.detail)))
            return replace(outcome, retry_after_us=wait_us or None)
        return outcome


def _members(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _words(text: str) -> set[str]:
    """Return the words by which services name an error: all of a text, or members of an object.

    >>> sorted(_words('{"ok": false, "description": "Forbidden: bot was blocked by the user"}'))
    ['Forbidden']
    >>> _words("no_service")
    {'no_service'}
    """
    members = _members(text)
    if not members:
        return {text.strip()}
    named = [members[name] for name in ("code", "errcode", "description") if name in members]
    return {str(each).partition(":")[0] for each in named}


def _wait_us(members: Mapping[str, Any]) -> int:
    """Return how long the body of an answer asks to be left in peace, a day at most.

    >>> _wait_us({"retry_after": 0.65}), _wait_us({"parameters": {"retry_after": 5}})
    (650000, 5000000)
    >>> _wait_us({"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 2000})
    2000000
    """
    parameters = members.get("parameters")
    inner = parameters.get("retry_after") if isinstance(parameters, dict) else None
    for asked, unit_us in (
        (members.get("retry_after"), 1e6),
        (inner, 1e6),
        (members.get("retry_after_ms"), 1e3),
    ):
        if isinstance(asked, int | float) and asked > 0:
            return round(min(asked * unit_us, _WAIT_MAX_S * 1e6))
    return 0


def _secrets(destination: Destination) -> Iterator[str]:
    """Return what of a destination nobody is shown."""
    parts = urlsplit(destination.place)
    address = "" if destination.token else parts.path.rpartition("/")[2]
    return filter(None, (destination.token, address, parts.query))
