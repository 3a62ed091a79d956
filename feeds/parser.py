"""Read a feed document: the ladder from the fast strict reading to the tolerant one.

    strict      well-formed RSS, RDF, Atom or JSON Feed, read by lxml
    recovered   the same after the usual damage was undone, or with lxml's recovery: flagged
    loose       feedparser, which reads what is hardly a feed any more: flagged

Whatever the bytes, the result is a `ParsedFeed` or a `FeedError`, in bounded time and memory.
"""

from __future__ import annotations

import re
from dataclasses import replace

from feeds.atom import is_atom, read_atom
from feeds.errors import Fault, FeedError
from feeds.item import ParsedFeed
from feeds.jsonfeed import is_json, read_json_feed
from feeds.loose import read_loosely
from feeds.rss import is_rss, read_rss
from feeds.tree import Hostile, MarkupTree, read_tree

__all__ = ["ITEMS_MAX", "parse"]

ITEMS_MAX = 2_000
"""Entries taken from one feed document; the largest real ones hold some hundreds."""
LOOSE_BYTES_MAX = 3_000_000
"""feedparser takes seconds for a megabyte of rubbish; more than this is not tried."""

_ENTRY = re.compile(rb"<(?:[\w.-]+:)?(?:item|entry)[\s>]")


def parse(
    body: bytes, *, url: str = "", content_type: str = "", raw: bool = False
) -> ParsedFeed | FeedError:
    """Return the feed that `body` holds; `url` is where relative links start from.

    With `raw` each item keeps its serialised entry element.
    """
    if not body.strip():
        return FeedError(Fault.NOT_A_FEED, url, "the answer is empty")
    if is_json(body):
        found = read_json_feed(body, url=url, items_max=ITEMS_MAX)
    else:
        tree = read_tree(body, content_type)
        if isinstance(tree, Hostile):
            return FeedError(Fault.MALFORMED, url, f"built to exhaust its reader: {tree.reason}")
        found = _read(tree, url, raw)
        if found is None or _is_missing_entries(found, tree, body):
            found = _looser(found, body, url, content_type)
    if found is None:
        return FeedError(Fault.NOT_A_FEED, url, _what_it_is(body))
    return _capped(found, body)


def _read(tree: MarkupTree | None, url: str, raw: bool) -> ParsedFeed | None:
    if tree is None:
        return None
    if is_rss(tree.root):
        found = read_rss(tree.root, url=url, items_max=ITEMS_MAX, raw=raw)
    elif is_atom(tree.root):
        found = read_atom(tree.root, url=url, items_max=ITEMS_MAX, raw=raw)
    else:
        return None
    return replace(found, step=tree.step, warnings=tree.warnings)


def _is_missing_entries(found: ParsedFeed, tree: MarkupTree | None, body: bytes) -> bool:
    """Recovery may lose what follows the damage: count the entries that the bytes show."""
    if tree is None or not tree.warnings:
        return False
    return len(found.items) < min(len(_ENTRY.findall(body)), ITEMS_MAX)


def _looser(
    found: ParsedFeed | None, body: bytes, url: str, content_type: str
) -> ParsedFeed | None:
    """Return feedparser's reading where it sees more than `found`."""
    if len(body) > LOOSE_BYTES_MAX:
        return found
    loose = read_loosely(body, url=url, content_type=content_type)
    if loose is None or (found is not None and len(found.items) >= len(loose.items)):
        return found
    return loose


def _capped(found: ParsedFeed, body: bytes) -> ParsedFeed:
    if len(found.items) < ITEMS_MAX:
        return found
    shown = max(len(_ENTRY.findall(body)), len(found.items))
    if shown <= ITEMS_MAX:
        return found
    warning = f"only the first {ITEMS_MAX} of {shown} entries were read"
    return replace(found, items=found.items[:ITEMS_MAX], warnings=(*found.warnings, warning))


def _what_it_is(body: bytes) -> str:
    start = body[:2048].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<html" in start or start.startswith(b"<!doctype html"):
        return "a web page came back instead of a feed"
    if start.startswith(b"<"):
        return f"XML that is not a feed came back: {start[:40].decode('utf-8', 'replace')}"
    return "what came back is neither XML nor JSON Feed"
