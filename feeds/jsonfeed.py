"""JSON Feed 1.0 and 1.1."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urljoin

from feeds.charset import decode
from feeds.dates import parse_date
from feeds.draft import union
from feeds.item import Enclosure, FeedItem, Hints, ParsedFeed
from feeds.mentions import hrefs, mentions
from feeds.text import collapse, plain

__all__ = ["is_json", "read_json_feed"]


def is_json(body: bytes) -> bool:
    """Return whether `body` starts like a JSON object."""
    return body[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


def read_json_feed(body: bytes, *, url: str, items_max: int) -> ParsedFeed | None:
    """Return the feed in a JSON Feed document, or None where it is none."""
    try:
        feed = json.loads(decode(body).text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(feed, dict) or not isinstance(feed.get("items"), list):
        return None
    language = _text(feed, "language")
    entries = [entry for entry in feed["items"][:items_max] if isinstance(entry, dict)]
    return ParsedFeed(
        format="json11" if "1.1" in _text(feed, "version") else "json1",
        title=_text(feed, "title"),
        link=urljoin(url, _text(feed, "home_page_url")),
        language=language,
        items=tuple(_item(entry, feed, url, language) for entry in entries),
        hints=Hints(hubs=_hubs(feed), self_url=_text(feed, "feed_url")),
    )


def _item(entry: dict[str, Any], feed: dict[str, Any], url: str, language: str) -> FeedItem:
    links = [_text(entry, "url"), _text(entry, "external_url")]
    return FeedItem(
        id=_text(entry, "id"),
        title=collapse(_text(entry, "title")),
        links=union(urljoin(url, link) for link in links if link),
        authors=_authors(entry) or _authors(feed),
        categories=union(collapse(str(tag)) for tag in _list(entry, "tags")),
        published_us=parse_date(_text(entry, "date_published")),
        updated_us=parse_date(_text(entry, "date_modified")),
        summary=plain(_text(entry, "summary")),
        content=_text(entry, "content_text").strip() or plain(_text(entry, "content_html")),
        enclosures=tuple(
            Enclosure(urljoin(url, _text(file, "url")), _text(file, "mime_type"), _size(file))
            for file in _list(entry, "attachments")
            if isinstance(file, dict) and _text(file, "url")
        ),
        language=_text(entry, "language") or language,
        mentions=mentions(
            (urljoin(url, href) for href in hrefs(_text(entry, "content_html"))),
            own=(urljoin(url, link) for link in links),
        ),
    )


def _text(values: dict[str, Any], name: str) -> str:
    """Return a string; numbers are taken for one, because ids are often written as numbers."""
    value = values.get(name)
    return str(value) if isinstance(value, str | int | float) and value is not True else ""


def _list(values: dict[str, Any], name: str) -> list[Any]:
    value = values.get(name)
    return value if isinstance(value, list) else []


def _authors(values: dict[str, Any]) -> tuple[str, ...]:
    people = [*_list(values, "authors"), values.get("author")]
    return union(collapse(_text(each, "name")) for each in people if isinstance(each, dict))


def _size(file: dict[str, Any]) -> str:
    return _text(file, "size_in_bytes")


def _hubs(feed: dict[str, Any]) -> tuple[str, ...]:
    return union(
        _text(hub, "url")
        for hub in _list(feed, "hubs")
        if isinstance(hub, dict) and _text(hub, "type").lower() == "websub"
    )
