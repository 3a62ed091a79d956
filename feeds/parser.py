"""Read a feed document: the ladder from the fast strict reading to the tolerant one.

Whatever the bytes, the result is a `ParsedFeed` or a `FeedError`, in bounded time and memory.
"""

from __future__ import annotations

from dataclasses import replace

from feeds.errors import Fault, FeedError
from feeds.item import ParsedFeed
from feeds.loose import read_loosely

__all__ = ["ITEMS_MAX", "parse"]

ITEMS_MAX = 2_000
"""Entries taken from one feed document; the largest real ones hold some hundreds."""


def parse(body: bytes, *, url: str = "", content_type: str = "") -> ParsedFeed | FeedError:
    """Return the feed that `body` holds; `url` is where relative links start from."""
    if not body.strip():
        return FeedError(Fault.NOT_A_FEED, url, "the answer is empty")
    found = read_loosely(body, url=url, content_type=content_type)
    if found is None:
        return FeedError(Fault.NOT_A_FEED, url, _what_it_is(body))
    return _capped(found)


def _capped(found: ParsedFeed) -> ParsedFeed:
    if len(found.items) <= ITEMS_MAX:
        return found
    warning = f"only the first {ITEMS_MAX} of {len(found.items)} entries were read"
    return replace(found, items=found.items[:ITEMS_MAX], warnings=(*found.warnings, warning))


def _what_it_is(body: bytes) -> str:
    start = body[:2048].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")) or b"<html" in start:
        return "a web page came back instead of a feed (try `xscl feeds add` with discovery)"
    if start.startswith(b"<"):
        return f"XML that is not a feed came back: {start[:40].decode('utf-8', 'replace')}"
    return "what came back is not XML and not JSON Feed"
