"""robots.txt, for feeds that are told to heed it.

No reader of subscribed feeds does by default, because a subscription is a person's choice and
not a crawl; the option is there for anyone who wants it (`robots = true`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from urllib.parse import urljoin
from urllib.robotparser import RobotFileParser

import aiohttp

from feeds.errors import FeedError
from feeds.fetcher import Limits, Request, fetch

__all__ = ["Robots"]

_KEEP_US = 24 * 3_600 * 1_000_000
_LIMITS = Limits(body_bytes_max=512_000, total_s=20.0)
_NAME = "xscl-broker"


@dataclass(slots=True)
class Robots:
    """The robots.txt files of the hosts asked lately, kept for a day."""

    session: aiohttp.ClientSession
    now_us: Callable[[], int]
    _rules: dict[str, tuple[int, RobotFileParser]] = field(default_factory=dict)

    async def allows(self, request: Request) -> bool:
        """Return whether the host of `request.url` lets us ask for it.

        A file that is not there, or cannot be read, allows everything (RFC 9309, 2.3.1.3).
        """
        place = urljoin(request.url, "/robots.txt")
        known = self._rules.get(place)
        if known is None or self.now_us() - known[0] > _KEEP_US:
            known = (self.now_us(), await self._read(request, place))
            self._rules[place] = known
        return known[1].can_fetch(_NAME, request.url)

    async def _read(self, request: Request, place: str) -> RobotFileParser:
        rules = RobotFileParser()
        answer = await fetch(self.session, replace(Request(place), proxy=request.proxy), _LIMITS)
        text = "" if isinstance(answer, FeedError) else answer.body.decode("utf-8", "replace")
        rules.parse(text.splitlines())
        return rules
