"""The `<item>` document: one vocabulary, whatever dialect the feed speaks.

The children stand in this order, the core ones in no namespace; `docs/item.md` has the table
from each dialect to it.

    id title? link* author* category* published? updated? summary? content? enclosure*
    source? feed language? comments? mention* (extension elements in their own namespaces)*
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from feeds.item import Enclosure, FeedItem
from feeds.text import drop_illegal, escaped, has_illegal

__all__ = ["fingerprint", "item_document"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def item_document(item: FeedItem, *, feed: str, source: str = "", entry_id: str = "") -> bytes:
    """Return the `<item>` document of one item, UTF-8, without an XML declaration.

    `feed` is the feed's URL and `source` its title; `entry_id` stands in where the publisher
    gave no id.  The bytes depend on nothing else, so that a refetch gives the same document.
    """
    body = "".join(_core(item, feed, source, entry_id))
    if has_illegal(body):
        body = drop_illegal(body)
    return b"".join((b"<item>", body.encode(), *item.extensions, b"</item>"))


def fingerprint(item: FeedItem) -> bytes:
    """Return 16 bytes that change when the publisher edits the item.

    The id is left out, so that an entry is known again when the feed's guids change, and the
    feed's title: renaming a feed does not revise all its items.  Extensions are left out too,
    because counters live there (`slash:comments`, `media:statistics`).
    """
    item = replace(item, id="")
    return hashlib.blake2b("".join(_core(item, "", "", "")).encode(), digest_size=16).digest()


def _core(item: FeedItem, feed: str, source: str, entry_id: str) -> Iterator[str]:
    yield _element("id", item.id or entry_id)
    yield _element("title", item.title)
    for link in item.links:
        yield _element("link", link)
    for author in item.authors:
        yield _element("author", author)
    for category in item.categories:
        yield _element("category", category)
    yield _element("published", _time(item.published_us))
    yield _element("updated", _time(item.updated_us))
    yield _element("summary", item.summary)
    yield _element("content", item.content)
    for enclosure in item.enclosures:
        yield _enclosure(enclosure)
    yield _element("source", source)
    yield _element("feed", feed)
    yield _element("language", item.language)
    yield _element("comments", item.comments)
    for page in item.mentions:
        yield _element("mention", page)


def _element(name: str, text: str) -> str:
    return f"<{name}>{escaped(text)}</{name}>" if text else ""


def _enclosure(enclosure: Enclosure) -> str:
    kind = f' type="{escaped(enclosure.type)}"' if enclosure.type else ""
    length = f' length="{escaped(enclosure.length)}"' if enclosure.length else ""
    return f"<enclosure{kind}{length}>{escaped(enclosure.url)}</enclosure>"


def _time(time_us: int | None) -> str:
    if time_us is None:
        return ""
    return (_EPOCH + timedelta(microseconds=time_us)).isoformat().replace("+00:00", "Z")
