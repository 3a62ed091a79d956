"""Where tricks are played: a server, a store, and a poller that can be restarted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from support.feed_server import FeedServer

from feeds import (
    FeedOptions,
    FeedStore,
    Poller,
    PollReport,
    feed_at,
)

__all__ = ["DAY", "HOUR", "Play", "Trick", "faults"]

HOUR = 3_600
DAY = 24 * HOUR


@dataclass
class Play:
    """One trick on stage: a server, a store, and a poller that can be restarted."""

    server: FeedServer
    store: FeedStore
    inbox: Any
    clock: Any
    make: Callable[..., Poller]

    async def add(self, path: str = "/feed", *, host: str = "127.0.0.1", **options: Any) -> str:
        await self.server.listen(host)
        url = self.server.url(path, host)
        self.store.add(feed_at(url, "news", FeedOptions(**options)))
        return url

    async def poll(self, **options: Any) -> list[PollReport]:
        """Check what is due, by a poller that knows only what the store remembers."""
        return await self.make(**options).check_due()

    async def days(self, count: float, *, step: float = 0.25 * HOUR) -> None:
        """Let time pass; check whatever falls due on the way."""
        for _ in range(int(count * DAY / step)):
            self.clock.advance(step)
            await self.poll()

    def state(self, path: str = "/feed", host: str = "127.0.0.1") -> Any:
        return self.store.get(self.server.url(path, host)).state


Trick = Callable[[Play], Awaitable[list[str]]]


def faults(**checks: bool) -> list[str]:
    return [name for name, is_right in checks.items() if not is_right]
