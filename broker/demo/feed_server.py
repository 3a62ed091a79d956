"""The example feeds, served over HTTP in rounds.

The files stand as they were on 2 March 2026.  All their times are moved so that the noon of that
day becomes the moment at which the demonstration started: the items are of yesterday and today.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path

from aiohttp import web

__all__ = ["ROUNDS", "FeedServer", "moved"]

ROUNDS = 3
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)

_ISO = re.compile(r"\b2026-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_RFC_822 = re.compile(r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} 2026 \d\d:\d\d:\d\d GMT")
_ITEM = re.compile(r"<(?:item|entry)[ >]")
_TYPES = {"rss": "application/rss+xml", "rdf:RDF": "application/rdf+xml"}


class FeedServer:
    """Serves `<directory>/<feed>/<round>.xml` at `/<feed>.xml`, with ETags.

    `round` is the one that is being served.  Answers are held back until `open` is called, so
    that queries can be registered before the first item.
    """

    def __init__(self, directory: Path, started: datetime) -> None:
        self._directory = directory
        self._opened = asyncio.Event()
        self.shift = started - NOON
        self.round = 1
        self.feeds = sorted(path.parent.name for path in directory.glob("*/1.xml"))

    def open(self) -> None:
        """Begin to answer."""
        self._opened.set()

    def item_count(self) -> int:
        """Return how many items there are, over all feeds, in this round and those before."""
        texts = [self._text(feed) for feed in self.feeds]
        return sum(len(_ITEM.findall(text)) for text in texts)

    def application(self) -> web.Application:
        """Return the application that serves the feeds."""
        application = web.Application()
        application.add_routes([web.get("/{feed}.xml", self._answer)])
        return application

    def _text(self, feed: str) -> str:
        return (self._directory / feed / f"{self.round}.xml").read_text(encoding="utf-8")

    async def _answer(self, request: web.Request) -> web.Response:
        feed = request.match_info["feed"]
        if feed not in self.feeds:
            raise web.HTTPNotFound(text=f"no feed {feed}")
        await self._opened.wait()
        text = moved(self._text(feed), self.shift)
        body = text.encode()
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers={"ETag": etag})
        kind = next((t for tag, t in _TYPES.items() if f"<{tag} " in text), "application/atom+xml")
        return web.Response(body=body, headers={"ETag": etag, "Content-Type": kind})


def moved(text: str, shift: timedelta) -> str:
    """Return `text` with all times of 2026 in it moved, in whole seconds.

    >>> moved("<updated>2026-03-02T12:00:00Z</updated>", timedelta(days=1, seconds=1.5))
    '<updated>2026-03-03T12:00:01Z</updated>'
    >>> moved("Mon, 02 Mar 2026 09:00:00 GMT", timedelta(hours=-10))
    'Sun, 01 Mar 2026 23:00:00 GMT'
    """
    whole = timedelta(seconds=shift // timedelta(seconds=1))

    def iso(found: re.Match[str]) -> str:
        moment = datetime.fromisoformat(found[0]) + whole
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def rfc_822(found: re.Match[str]) -> str:
        return format_datetime(parsedate_to_datetime(found[0]) + whole, usegmt=True)

    return _RFC_822.sub(rfc_822, _ISO.sub(iso, text))
