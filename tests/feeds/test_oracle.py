"""Our reading against feedparser's, on real files: equal, or different for a listed reason."""

from __future__ import annotations

import calendar
from pathlib import Path
from typing import Any

import feedparser

from feeds import FeedItem, ParsedFeed, parse
from feeds.text import collapse, plain

URL = "https://feed.example.org/path/feed.xml"
FIELDS = ("title", "link", "id", "author", "date", "category")


def theirs(entry: Any, feed: Any) -> dict[str, Any]:
    """What feedparser says, in the types that we use.

    It tells an Atom feed's own author with the feed; by RFC 4287, 4.2.1, that is the author of
    the entries that name none.
    """
    parsed = dict.get(entry, "published_parsed") or dict.get(entry, "updated_parsed")
    people = names(entry)
    return {
        "title": collapse(plain(entry.get("title", ""))),
        "link": entry.get("link", ""),
        "id": entry.get("id", ""),
        "author": people or (names(feed.feed) if feed.version.startswith("atom") else []),
        "date": None if parsed is None or parsed.tm_year < 1980 else calendar.timegm(parsed),
        "category": [collapse(tag["term"]) for tag in entry.get("tags", []) if tag.get("term")],
    }


def names(holder: Any) -> list[str]:
    people = [person.get("name") or person.get("email") for person in holder.get("authors", [])]
    return list(dict.fromkeys(collapse(name) for name in people if name))


def ours(item: FeedItem) -> dict[str, Any]:
    time_us = item.event_time_us
    return {
        "title": item.title,
        "link": item.link,
        "id": item.id,
        "author": list(item.authors),
        # feedparser leaves fractions of a second out.
        "date": None if time_us is None else time_us // 1_000_000,
        "category": list(item.categories),
    }


def test_real_feeds_are_read_as_feedparser_reads_them(real_feeds: list[Path], record_property):
    compared = heirs = 0
    differences, more = [], []
    for file in real_feeds:
        body = file.read_bytes()
        mine = parse(body, url=URL)
        feed = feedparser.parse(body, response_headers={"content-location": URL})
        assert isinstance(mine, ParsedFeed)
        if not feed.entries:
            more.append((file.name, len(mine.items)))
            continue
        assert len(mine.items) == len(feed.entries), file.name
        for item, entry in zip(mine.items, feed.entries, strict=True):
            left, right = ours(item), theirs(entry, feed)
            compared += 1
            heirs += bool(right["author"]) and not names(entry)
            differences += [
                (file.name, name, left[name], right[name])
                for name in FIELDS
                if left[name] != right[name]
            ]
    record_property(
        "figure",
        f"as feedparser reads it: {compared} items, {len(differences)} differences; "
        f"{heirs} Atom entries without an author have their feed's (RFC 4287, 4.2.1); "
        f"read here, but not by feedparser: {more}",
    )
    assert not differences
    assert compared > 900
