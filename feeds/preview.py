"""What the broker would make of a feed, without subscribing it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from feeds import schedule
from feeds.checker import learnt
from feeds.discovery import FoundFeed, NamedFeed, discover
from feeds.document import item_document
from feeds.errors import FeedError
from feeds.feed import Feed
from feeds.fetcher import Limits, Request, user_agent
from feeds.freshness import fresh_s
from feeds.health import render_time
from feeds.identity import FeedEntry, choose_policy, entries
from feeds.item import ParsedFeed
from feeds.schedule import Check, PollPolicy
from feeds.state import FeedState

__all__ = ["Preview", "preview", "render_preview"]


@dataclass(frozen=True, slots=True)
class Preview:
    """One feed, read once: where it was found, what it holds, when it would be read again."""

    url: str
    feed: ParsedFeed
    identity: str
    entries: tuple[FeedEntry, ...]
    next: Check
    elapsed_s: float
    body_bytes: int
    has_validators: bool
    others: tuple[NamedFeed, ...] = ()

    def documents(self) -> list[bytes]:
        """Return the item documents, oldest first."""
        return [
            item_document(each.item, feed=self.url, source=self.feed.title, entry_id=each.key)
            for each in self.entries
        ]


def render_preview(found: Preview, *, documents_max: int = 10) -> dict[str, Any]:
    """Return the preview as JSON values, with its newest documents, the newest last."""
    return {
        "url": found.url,
        "title": found.feed.title,
        "format": found.feed.format,
        "step": found.feed.step.value,
        "warnings": list(found.feed.warnings),
        "items": len(found.entries),
        "identity": found.identity,
        "next_check": render_time(found.next.at_us),
        "why": found.next.why,
        "body_bytes": found.body_bytes,
        "elapsed_s": round(found.elapsed_s, 3),
        "has_validators": found.has_validators,
        "hubs": list(found.feed.hints.hubs),
        "others": [{"url": other.url, "title": other.title} for other in found.others],
        "documents": [each.decode() for each in found.documents()[-documents_max:]],
    }


async def preview(
    session: aiohttp.ClientSession,
    feed: Feed,
    now_us: int,
    *,
    policy: PollPolicy | None = None,
    limits: Limits | None = None,
) -> Preview | FeedError:
    """Return what would be made of the feed at `feed.url`, or of the one its page names."""
    request = Request(feed.url, secrets=feed.secrets, user_agent=user_agent())
    request = replace(request, proxy=feed.options.proxy)
    found = await discover(session, request, limits)
    if isinstance(found, FeedError):
        return found
    return _preview(found, feed, now_us, policy or PollPolicy())


def _preview(found: FoundFeed, feed: Feed, now_us: int, policy: PollPolicy) -> Preview:
    answer = found.answer
    identity = choose_policy(found.feed.items)
    state = learnt(FeedState(last_check_us=now_us), found.feed, answer)
    state = replace(
        state, etag=answer.validators.etag, last_modified=answer.validators.last_modified
    )
    check = schedule.after_success(
        state,
        now_us,
        0.5,
        policy,
        fresh_s=fresh_s(answer.headers, now_us / 1e6),
        interval_s=feed.options.interval_s,
    )
    return Preview(
        url=found.url,
        feed=found.feed,
        identity=identity,
        entries=tuple(entries(found.feed.items, identity)),
        next=check,
        elapsed_s=answer.elapsed_s,
        body_bytes=len(answer.body),
        has_validators=bool(answer.validators),
        others=found.others,
    )
