"""The web's feeds as items: fetched politely, parsed whatever they are, each entry once.

The usual way through: a `FeedStore` holds the feeds, a `Poller` checks them when they are due
and hands each new entry, as an `<item>` document, to a sink.

Invariants: an entry is handed on once, whatever the feed does with it, and not noted as known
before the sink has it; no address inside is dialled for a feed from outside.

Begin with `poller`.
"""

from __future__ import annotations

from feeds.checker import PollReport, Sink
from feeds.document import item_document
from feeds.errors import Fault, FeedError
from feeds.feed import Feed, FeedOptions, Secrets, feed_at
from feeds.fetcher import Limits, Request, Response, Validators, fetch
from feeds.guard import guarded_connector, networks
from feeds.hosts import Hosts
from feeds.item import Enclosure, FeedItem, ParsedFeed
from feeds.parser import parse
from feeds.poller import Poller, open_session
from feeds.schedule import PollPolicy
from feeds.state import FeedState
from feeds.store import FeedStore, FeedStoreError, Subscribed, UnknownFeedError

__all__ = [
    "Enclosure",
    "Fault",
    "Feed",
    "FeedError",
    "FeedItem",
    "FeedOptions",
    "FeedState",
    "FeedStore",
    "FeedStoreError",
    "Hosts",
    "Limits",
    "ParsedFeed",
    "PollPolicy",
    "PollReport",
    "Poller",
    "Request",
    "Response",
    "Secrets",
    "Sink",
    "Subscribed",
    "UnknownFeedError",
    "Validators",
    "feed_at",
    "fetch",
    "guarded_connector",
    "item_document",
    "networks",
    "open_session",
    "parse",
]
