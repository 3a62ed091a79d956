"""A feed document, understood: its items, which of them are news, and their documents.

All that takes processor time between a fetch and the sink is here, in one function, because it
runs beside the event loop: no feed, however large, holds up the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from feeds.document import item_document
from feeds.errors import FeedError
from feeds.feed import Feed
from feeds.identity import FeedEntry, News, choose_policy, entries, news
from feeds.item import ParsedFeed
from feeds.parser import parse
from feeds.state import FeedState
from feeds.store import FeedStore

__all__ = ["FeedReading", "ItemDocument", "Received", "read"]


@dataclass(frozen=True, slots=True)
class Received:
    """A feed document as it came: fetched, or pushed by a hub."""

    body: bytes
    url: str
    content_type: str
    is_pushed: bool = False


@dataclass(frozen=True, slots=True)
class ItemDocument:
    """A document for the sink."""

    key: str
    time_us: int | None
    xml: bytes


@dataclass(frozen=True, slots=True)
class FeedReading:
    """What a feed document holds: `documents` are due, oldest first."""

    found: ParsedFeed
    identity: str
    news: News
    documents: tuple[ItemDocument, ...]


def read(
    store: FeedStore, feed: Feed, state: FeedState, received: Received
) -> FeedReading | FeedError:
    """Return what `received` brings to a feed of which `state` is remembered."""
    found = parse(
        received.body,
        url=received.url,
        content_type=received.content_type,
        raw=feed.options.item == "raw",
    )
    if isinstance(found, FeedError):
        return found
    identity = state.identity
    if not identity or not received.is_pushed:
        # A push may hold a single entry: too little to judge the feed's guids by.
        identity = choose_policy(found.items, state.identity)
    fresh = _compare(store, feed, state, found, identity)
    title = feed.options.title or found.title or state.title
    documents = (_document(feed, title, entry) for entry in _due(feed, state, fresh))
    return FeedReading(found, identity, fresh, tuple(documents))


def _compare(
    store: FeedStore, feed: Feed, state: FeedState, found: ParsedFeed, identity: str
) -> News:
    current = entries(found.items, identity)
    seen = store.seen(feed.url, (entry.key for entry in current))
    if identity == state.identity or not state.identity:
        return news(current, seen)
    # On another rung of the ladder every key is new: known entries show by their content.
    known = store.known_content(feed.url, (entry.content for entry in current))
    return news(current, seen, known)


def _due(feed: Feed, state: FeedState, fresh: News) -> list[FeedEntry]:
    """Return the entries that become documents, by the feed's backlog and revision options."""
    new = list(fresh.new)
    if not state.is_backlog_read and feed.options.backlog == "new":
        new = []
    if not state.is_backlog_read and feed.options.backlog == "since":
        since_us = feed.options.since_us or 0
        new = [entry for entry in new if (entry.item.event_time_us or since_us) >= since_us]
    if feed.options.on_update == "new document":
        new += fresh.revised
    return new


def _document(feed: Feed, title: str, entry: FeedEntry) -> ItemDocument:
    xml = entry.item.raw
    if feed.options.item != "raw" or not xml:
        xml = item_document(entry.item, feed=feed.url, source=title, entry_id=entry.key)
    return ItemDocument(f"{feed.url} {entry.key}", entry.item.event_time_us, xml)
