"""What the broker reaches from here: the mail server, and the feeds of the settings."""

from __future__ import annotations

import asyncio
import contextlib
import smtplib
import ssl
import time
from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime

import aiohttp

from broker.operations.checkup.finding import CheckupFinding
from broker.operations.remedies import remedy_of
from broker.settings.config import Settings, SmtpSettings
from broker.settings.feeds import configured_feeds
from broker.settings.reader import SettingsError
from feeds import Feed, FeedError, FeedStore, networks
from feeds.poller import open_session
from feeds.preview import Preview, preview

__all__ = ["look_at_network"]

_FEEDS = "feeds.db"
_WAIT_S = 10.0
_FEEDS_MAX = 50
_SKEW_MAX_S = 60.0


def look_at_network(settings: Settings) -> Iterator[CheckupFinding]:
    """Yield what was found of the mail server and of the feeds, each tried once."""
    if settings.smtp is not None:
        yield _mail_server(settings.smtp)
    if settings.feeds or (settings.data / _FEEDS).is_file():
        yield from _feeds(settings)


def _mail_server(smtp: SmtpSettings) -> CheckupFinding:
    """Connect and log in as the broker does, and send nothing."""
    place = f"{smtp.host}:{smtp.port}"
    try:
        with _connected(smtp) as server:
            server.ehlo_or_helo_if_needed()
            if smtp.security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if smtp.username is not None:
                server.login(smtp.username, smtp.password() or "")
    except smtplib.SMTPAuthenticationError as error:
        remedy = "check smtp.username and the password (XSCL_SMTP_PASSWORD or smtp.password_file)"
        return CheckupFinding(
            "mail", f"{place} refuses the login: {_said(error.smtp_error)}", remedy
        )
    except smtplib.SMTPNotSupportedError as error:
        remedy = 'set smtp.security to what the server offers: "none", "starttls" or "tls"'
        return CheckupFinding("mail", f"{place}: {error}", remedy)
    except ssl.SSLError as error:
        remedy = "smtp.security does not fit the port (587 starttls, 465 tls), or the certificate"
        return CheckupFinding("mail", f"{place}: {error.reason or error}", remedy)
    except (OSError, smtplib.SMTPException) as error:
        remedy = "check smtp.host and smtp.port in xscl.toml, and whether the server runs"
        return CheckupFinding("mail", f"{place} does not answer: {error}", remedy)
    login = f", takes the login of {smtp.username}" if smtp.username else ""
    return CheckupFinding("mail", f"{place} answers{login}")


def _connected(smtp: SmtpSettings) -> smtplib.SMTP:
    if smtp.security == "tls":
        return smtplib.SMTP_SSL(
            smtp.host, smtp.port, timeout=_WAIT_S, context=ssl.create_default_context()
        )
    return smtplib.SMTP(smtp.host, smtp.port, timeout=_WAIT_S)


def _said(answer: bytes | str) -> str:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else answer


def _feeds(settings: Settings) -> Iterator[CheckupFinding]:
    try:
        feeds = _all_feeds(settings)
    except SettingsError as error:
        yield CheckupFinding("feeds", str(error), "correct it in xscl.toml")
        return
    looked_at = feeds[:_FEEDS_MAX]
    results, skew_s = asyncio.run(_look_at(settings, looked_at))
    failed = [(f, r) for f, r in zip(looked_at, results, strict=True) if isinstance(r, FeedError)]
    said = f"{len(looked_at) - len(failed)} of {len(looked_at)} can be read"
    if len(feeds) > len(looked_at):
        said += f"; {len(feeds) - len(looked_at)} more were not looked at"
    yield CheckupFinding("feeds", said)
    for feed, fault in failed:
        yield CheckupFinding("feed", f"{feed.url}: {fault}", remedy_of(fault.fault))
    if skew_s is not None and abs(skew_s) > _SKEW_MAX_S:
        which = "behind" if skew_s > 0 else "ahead of"
        yield CheckupFinding(
            "clock",
            f"{abs(skew_s):,.0f} s {which} the servers of the feeds",
            "set the clock (timedatectl set-ntp true)",
        )


def _all_feeds(settings: Settings) -> list[Feed]:
    """Return the feeds of the settings, and the added feeds that are not paused."""
    found = {feed.url: feed for feed in configured_feeds(settings.feeds)}
    if (settings.data / _FEEDS).is_file():
        with contextlib.closing(FeedStore(settings.data / _FEEDS)) as store:
            for each in store.all():
                if not each.state.paused:
                    found.setdefault(each.feed.url, each.feed)
    return list(found.values())


async def _look_at(
    settings: Settings, feeds: Sequence[Feed]
) -> tuple[list[Preview | FeedError], float | None]:
    """Return what each feed is, and how far the clocks of most of their servers are ahead."""
    async with open_session(networks(settings.allow_networks)) as session:
        now_us = time.time_ns() // 1_000
        results = await asyncio.gather(*(preview(session, feed, now_us) for feed in feeds))
        skews = await asyncio.gather(*(_skew_s(session, feed.url) for feed in feeds[:5]))
    known = sorted(each for each in skews if each is not None)
    return list(results), known[len(known) // 2] if known else None


async def _skew_s(session: aiohttp.ClientSession, url: str) -> float | None:
    """Return how far the clock of a feed's server is ahead of this one."""
    timeout = aiohttp.ClientTimeout(_WAIT_S)
    try:
        async with session.head(url, timeout=timeout, allow_redirects=False) as answer:
            said = answer.headers.get("Date", "")
            return parsedate_to_datetime(said).timestamp() - time.time() if said else None
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return None
