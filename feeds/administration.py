"""What people do with a broker's feeds; answers are JSON values.

The HTTP API works through one of these, and so does the command line where no broker runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from feeds.errors import Fault, FeedError
from feeds.feed import Feed, feed_at, moved, with_headers
from feeds.fetcher import same_origin
from feeds.guard import Network
from feeds.health import health, healths, render_health
from feeds.opml import parse_opml, render_opml
from feeds.options import OptionError, parse_headers, parse_options, render_options
from feeds.poller import open_session
from feeds.preview import Preview, preview, render_preview
from feeds.state import STEERING
from feeds.store import FeedStore, UnknownFeedError
from feeds.websub import parse_lease

__all__ = ["DOCUMENTS_SHOWN", "REFUSALS", "FeedAdministration", "KnownFeedError"]

DOCUMENTS_SHOWN = 10
"""How many documents of a feed a check shows, where nobody asks for more."""

_LOOK_S = 75.0
"""How long a look may take: a page can name many feeds, and each may be slow."""


class KnownFeedError(ValueError):
    """A feed of this URL is subscribed already."""

    def __str__(self) -> str:
        return f"{self.args[0]} is subscribed already"


REFUSALS = (FeedError, OptionError, KnownFeedError, UnknownFeedError)
"""What the methods of `FeedAdministration` raise where they cannot do what they are asked."""


class FeedAdministration:
    """The feeds of one store; private networks are asked where they are `allowed`.

    Its methods wait for the disk; `add` and `check` wait for the feed too, at most `_LOOK_S`.
    """

    def __init__(self, store: FeedStore, allowed: Sequence[Network] = ()) -> None:
        self.store = store
        self._allowed = allowed

    def feeds(self) -> list[dict[str, Any]]:
        """Return how each feed does, by URL."""
        return [render_health(found) for found in healths(self.store, _now_us())]

    def feed(self, url: str) -> dict[str, Any]:
        """Return how one feed does, and its options; secrets stay here."""
        subscribed = self.store.get(url)
        lease = self.store.leases().get(url)
        found = health(subscribed, _now_us(), None if lease is None else parse_lease(lease))
        return {
            **render_health(found),
            "options": render_options(subscribed.feed.options),
            "has_secrets": bool(subscribed.feed.secrets),
        }

    def add(
        self,
        url: str,
        stream: str,
        *,
        options: Mapping[str, Any],
        headers: Mapping[str, Any],
        check: bool = True,
    ) -> dict[str, Any]:
        """Subscribe a feed, or the one that the page at `url` names; return it as `feed` does.

        It is looked at first, and `checked` says what is there; not without `check`.
        """
        feed = _feed(url, stream, options, headers)
        checked = {}
        if check:
            found = self._look(feed)
            feed = moved(feed, found.url, keeps_secrets=same_origin(feed.url, found.url))
            checked = {"checked": {"format": found.feed.format, "items": len(found.entries)}}
        if not self.store.add(feed):
            raise KnownFeedError(feed.url)
        return {**self.feed(feed.url), **checked}

    def check(
        self,
        url: str,
        *,
        options: Mapping[str, Any],
        headers: Mapping[str, Any],
        documents: int = DOCUMENTS_SHOWN,
    ) -> dict[str, Any]:
        """Return what would be made of a feed, with so many of its newest documents."""
        return render_preview(self._look(_feed(url, "", options, headers)), documents_max=documents)

    def steer(self, url: str, action: str) -> dict[str, Any]:
        """Do one of `STEERING` with a feed; return it as `feed` does."""
        self.store.change(url, **STEERING[action])
        return self.feed(url)

    def remove(self, url: str) -> None:
        """Unsubscribe a feed and forget which of its entries were seen."""
        self.store.remove(url)

    def take_list(self, opml: bytes, stream: str) -> dict[str, Any]:
        """Subscribe the feeds of an OPML document, unseen; those in no folder go to `stream`."""
        found = parse_opml(opml, stream=stream)
        added = sum(self.store.add(feed) for feed in found.feeds)
        return {
            "added": added,
            "known": len(found.feeds) - added,
            "problems": list(found.problems),
        }

    def list_as_opml(self) -> bytes:
        """Return all feeds as an OPML document, without their secrets."""
        found = self.store.all()
        titles = {each.feed.url: each.state.title for each in found}
        return render_opml((each.feed for each in found), titles)

    def _look(self, feed: Feed) -> Preview:
        # In a loop of its own: reading a large feed must not hold up anything else.
        found = asyncio.run(self._preview(feed))
        if isinstance(found, FeedError):
            raise found
        return found

    async def _preview(self, feed: Feed) -> Preview | FeedError:
        async with open_session(self._allowed) as session:
            try:
                async with asyncio.timeout(_LOOK_S):
                    return await preview(session, feed, _now_us())
            except TimeoutError:
                words = f"nothing was found within {_LOOK_S:.0f} s"
                return FeedError(Fault.TIMEOUT, feed.url, words)


def _feed(url: str, stream: str, options: Mapping[str, Any], headers: Mapping[str, Any]) -> Feed:
    """Return the feed that is meant; who names no scheme means https."""
    feed = feed_at(url if "://" in url else f"https://{url}", stream)
    feed = replace(feed, options=parse_options(options))
    sent = parse_headers(headers)
    return with_headers(feed, sent) if sent else feed


def _now_us() -> int:
    return time.time_ns() // 1_000
