"""Courtesy towards hosts: how many requests at a time, how far apart, and who wants silence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from publicsuffixlist import PublicSuffixList

from feeds.guard import Network
from feeds.store import FeedStore

__all__ = ["Hosts", "Pauses", "host_of", "registrable_domain"]


def host_of(url: str) -> str:
    """Return the lower-case host name of a URL."""
    return (urlsplit(url).hostname or "").rstrip(".")


@lru_cache(maxsize=65_536)
def registrable_domain(host: str) -> str:
    """Return the part of a host name that one registrant owns; an address stands for itself.

    Platforms in the private part of the public suffix list (github.io, blogspot.com) count as
    one registrant, because their rate limits do.

    >>> registrable_domain("ann.blog.example.co.uk")
    'example.co.uk'
    """
    try:
        return str(ip_address(host))
    except ValueError:
        return _suffixes().privatesuffix(host) or host


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList(only_icann=True)


@dataclass(slots=True)
class Pauses:
    """The registrable domains that asked for silence.  Kept in the store over restarts."""

    store: FeedStore
    _until: dict[str, tuple[int, str]] = field(init=False)

    def __post_init__(self) -> None:
        self._until = self.store.pauses()

    def holding(self, url: str, now_us: int) -> tuple[int, str] | None:
        """Return until when the domain of `url` is left alone, and why; None: it is not."""
        held = self._until.get(registrable_domain(host_of(url)))
        return held if held and held[0] > now_us else None

    def pause(self, url: str, until_us: int, why: str) -> None:
        """Leave the whole domain of `url` alone until then; a longer pause stays."""
        domain = registrable_domain(host_of(url))
        if until_us > self._until.get(domain, (0, ""))[0]:
            self._until[domain] = until_us, f"{domain}: {why}"
            self.store.set_pause(domain, until_us, f"{domain}: {why}")


@dataclass(slots=True)
class _Host:
    lock: asyncio.Semaphore
    free_at: float = 0.0
    users: int = 0


@dataclass(slots=True)
class Hosts:
    """Turns at hosts: at most `in_flight_max` requests each, `gap_s` after each of them.

    Hosts given as addresses of a network in `ours` are asked without a gap: whoever allows a
    private network is at home there.
    """

    in_flight_max: int = 1
    gap_s: float = 1.0
    ours: tuple[Network, ...] = ()
    _hosts: dict[str, _Host] = field(default_factory=dict)

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[None]:
        """Wait until `name` may be asked, and hold the place while asking."""
        host = self._hosts.setdefault(name, _Host(asyncio.Semaphore(self.in_flight_max)))
        host.users += 1
        try:
            async with host.lock:
                await asyncio.sleep(max(0.0, host.free_at - time.monotonic()))
                try:
                    yield
                finally:
                    gap_s = 0.0 if self._is_ours(name) else self.gap_s
                    host.free_at = time.monotonic() + gap_s
        finally:
            host.users -= 1
            self._drop_idle(name, host)

    def _is_ours(self, name: str) -> bool:
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return any(address in network for network in self.ours)

    def _drop_idle(self, name: str, host: _Host) -> None:
        if not host.users and time.monotonic() >= host.free_at:
            self._hosts.pop(name, None)
        elif len(self._hosts) > 1_000:
            now = time.monotonic()
            idle = [key for key, each in self._hosts.items() if not each.users]
            for key in idle:
                if self._hosts[key].free_at <= now:
                    del self._hosts[key]
