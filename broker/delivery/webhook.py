"""Hand matches over by HTTP POST, as Standard Webhooks 1.0 has it."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import aiohttp

from broker.delivery.attempt import RESPONSE_KEPT_MAX, Attempt, Outcome, OutcomeKind
from broker.delivery.payload import notes, render_payload
from broker.delivery.signature import headers
from broker.delivery.taking import message_max
from broker.registry.subscription import Destination, DestinationKind
from feeds.guard import REASON, BlockedAddressError, Network, guarded_connector, is_allowed

__all__ = ["WebhookChannel"]

_RESPONSE_READ_MAX = 64 * 1024
"""An endpoint has nothing to tell us; what it sends beyond this closes the connection."""

_CHATS = {
    "hooks.slack.com": DestinationKind.SLACK,
    "discord.com": DestinationKind.DISCORD,
    "discordapp.com": DestinationKind.DISCORD,
    "webhook.office.com": DestinationKind.TEAMS,
    "outlook.office.com": DestinationKind.TEAMS,
    "api.telegram.org": DestinationKind.TELEGRAM,
}
"""Hosts of chat services: their webhooks refuse whatever is not one of their own messages."""

_LOOK_UP_S = 3.0

_OVERLOADED = frozenset({429, 502, 503, 504})


class WebhookChannel:
    """Posts to endpoints over kept connections, without cookies, proxies or redirects.

    Only global addresses are dialled, and those in the `allowed` networks; `allow_http` admits
    URLs that are not https.  `alert_url` returns the page on which a message is answered, or "".
    """

    def __init__(
        self,
        *,
        allowed: Iterable[Network] = (),
        allow_http: bool = False,
        timeout_s: float = 15.0,
        user_agent: str = "xscl-broker",
        alert_url: Callable[[str], str] = lambda delivery_id: "",
    ) -> None:
        self._alert_url = alert_url
        self._allowed = tuple(allowed)
        self._allow_http = allow_http
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None

    async def send(self, attempt: Attempt) -> Outcome:
        """POST the matches once; what goes wrong is an outcome, never an exception."""
        subscription = attempt.subscription
        url = subscription.destination.address
        content_type, body = render_payload(
            attempt.matches,
            subscription.options.format,
            is_batch=message_max(subscription) > 1,
        )
        signed = headers(
            subscription.secrets, attempt.delivery_id, attempt.now_us // 1_000_000, body
        )
        sent = {"Content-Type": content_type, **signed, **notes(attempt, self._alert_url)}
        return await self.post(url, body, sent, attempt.now_us)

    async def post(
        self, url: str, body: bytes, sent: Mapping[str, str], now_us: int, *, method: str = "POST"
    ) -> Outcome:
        """Send a body once and judge the answer."""
        if not self._allow_http and not url.startswith("https://"):
            return Outcome(OutcomeKind.FAILED, detail="plain http is not allowed by this broker")
        began = time.perf_counter_ns()
        try:
            async with self._opened().request(
                method, url, data=body, headers=sent, allow_redirects=False
            ) as response:
                text = await _beginning(response)
                status, retry_after = response.status, response.headers.get("Retry-After")
                if 300 <= status < 400:
                    place = response.headers.get("Location", "nowhere")
                    text = f"it redirects to {place}, which is not followed: subscribe that address"
                    text = text[:RESPONSE_KEPT_MAX]
        except TimeoutError:
            outcome = Outcome(OutcomeKind.THROTTLED, detail="no answer in time")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            outcome = Outcome(OutcomeKind.THROTTLED, detail=_reason(error))
        else:
            outcome = judge(status, retry_after, text, now_us)
        return _timed(outcome, (time.perf_counter_ns() - began) // 1_000)

    async def refusal(self, destination: Destination) -> str | None:
        """Return why a URL is never called, or why what it names cannot understand a match."""
        host = urlsplit(destination.address).hostname or ""
        chat = next((_CHATS[name] for name in _CHATS if f".{host}".endswith(f".{name}")), None)
        if chat is not None:
            return (
                f"{host} takes messages of its own kind, and no matches: write `{chat.value}:`"
                " before the address"
            )
        return await self.unreachable(destination.address)

    async def unreachable(self, url: str) -> str | None:
        """Return why a URL is never called, None where it may be."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        if not self._allow_http and parts.scheme != "https":
            return "plain http is not allowed by this broker (`[webhooks] allow_http = true` does)"
        addresses = await _addresses(host, parts.port or 443)
        if addresses and not any(is_allowed(each, self._allowed) for each in addresses):
            return (
                f"{host} {REASON} ({addresses[0]}), which this broker does not call:"
                " `allow_networks` in its settings admits some"
            )
        return None

    async def close(self) -> None:
        """Give connections back."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        # Made here because a session wants the running loop.
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=guarded_connector(self._allowed, limit=0),
                timeout=self._timeout,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self._user_agent},
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


async def _addresses(host: str, port: int) -> list[str]:
    """Return what a host's name means now; nothing where that cannot be found out in time."""
    try:
        async with asyncio.timeout(_LOOK_UP_S):
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
    except (OSError, TimeoutError, UnicodeError):
        return []
    return [str(place[0]) for *_, place in found]


def judge(status: int, retry_after: str | None, text: str, now_us: int) -> Outcome:
    """Return what an answer means: 2xx is a success, 410 an end, all else a failure."""
    if 200 <= status < 300:
        return Outcome(OutcomeKind.DELIVERED, status, text)
    if status == 410:
        return Outcome(OutcomeKind.GONE, status, text)
    wait_us = _retry_after_us(retry_after, now_us)
    if status in _OVERLOADED or wait_us:
        return Outcome(OutcomeKind.THROTTLED, status, text, wait_us)
    return Outcome(OutcomeKind.FAILED, status, text)


async def _beginning(response: aiohttp.ClientResponse) -> str:
    """Return the start of the answer, and read it to the end if that is near."""
    body = await response.content.read(_RESPONSE_READ_MAX)
    if not response.content.at_eof():
        response.close()
    return body[:RESPONSE_KEPT_MAX].decode("utf-8", "replace")


def _retry_after_us(value: str | None, now_us: int) -> int | None:
    """Read Retry-After: seconds or a date.

    >>> _retry_after_us("120", 0), _retry_after_us("Thu, 01 Jan 1970 00:01:00 GMT", 0)
    (120000000, 60000000)
    """
    if value is None:
        return None
    if value.strip().isdecimal():
        return int(value) * 1_000_000
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0, round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6) - now_us)


def _reason(error: Exception) -> str:
    """Return why no answer came, in words where there are some."""
    if isinstance(error, aiohttp.ClientConnectorSSLError) and "WRONG_VERSION" in str(error):
        return "it does not speak TLS at this port: is the address an http:// one?"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, BlockedAddressError | socket.gaierror):
        return f"it cannot be reached: {cause.strerror}"
    if isinstance(cause, OSError) and cause.errno in errno.errorcode:
        return f"it cannot be reached: {os.strerror(cause.errno or 0)}"
    return f"{type(error).__name__}: {error}"[:RESPONSE_KEPT_MAX]


def _timed(outcome: Outcome, elapsed_us: int) -> Outcome:
    return Outcome(outcome.kind, outcome.status, outcome.detail, outcome.retry_after_us, elapsed_us)
