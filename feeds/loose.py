"""The last step of the parsing ladder, and the oracle of the first two: feedparser.

It reads what is hardly a feed any more, at about a thousand items a second.
"""

from __future__ import annotations

import calendar
import logging
from time import struct_time
from typing import Any

import feedparser

from feeds.item import Enclosure, FeedItem, Hints, ItemStep, ParsedFeed
from feeds.mentions import hrefs, mentions
from feeds.text import collapse, plain

__all__ = ["read_loosely"]

logger = logging.getLogger(__name__)


def read_loosely(body: bytes, *, url: str = "", content_type: str = "") -> ParsedFeed | None:
    """Return what feedparser makes of `body`, or None where it sees no feed in it."""
    headers = {"content-location": url} if url else {}
    if content_type:
        headers["content-type"] = content_type
    try:
        found = feedparser.parse(
            body, response_headers=headers, sanitize_html=False, resolve_relative_uris=False
        )
    except Exception:
        # Hostile bytes do make it fail, such as a reference of 5,000 digits: it read no feed.
        logger.warning("feedparser failed over %s", url or "a feed", exc_info=True)
        return None
    if not found.version and not found.entries:
        return None
    channel = found.feed
    language = channel.get("language", "")
    inherited = _authors(channel) if found.version.startswith("atom") else ()
    return ParsedFeed(
        format=found.version or "unknown",
        title=plain(channel.get("title", "")),
        link=channel.get("link", ""),
        language=language,
        items=tuple(_item(entry, inherited, language) for entry in found.entries),
        hints=_hints(channel),
        step=ItemStep.LOOSE,
        warnings=_warnings(found),
    )


def _warnings(found: Any) -> tuple[str, ...]:
    return (f"not well-formed: {found.bozo_exception}",) if found.bozo else ()


def _hints(channel: Any) -> Hints:
    links = channel.get("links", [])
    ttl = str(channel.get("ttl", ""))
    return Hints(
        ttl_s=int(ttl) * 60.0 if ttl.isdecimal() and len(ttl) < 7 else None,
        hubs=tuple(link["href"] for link in links if link.get("rel") == "hub" and "href" in link),
        self_url=next((link.get("href", "") for link in links if link.get("rel") == "self"), ""),
    )


def _item(entry: Any, inherited: tuple[str, ...], language: str) -> FeedItem:
    content = entry.get("content") or [{}]
    texts = (dict.get(entry, "summary") or "", content[0].get("value") or "")
    return FeedItem(
        id=entry.get("id", ""),
        title=collapse(plain(entry.get("title", ""))),
        links=_links(entry),
        authors=_authors(entry) or _authors(entry.get("source", {})) or inherited,
        categories=tuple(collapse(tag["term"]) for tag in entry.get("tags", []) if tag.get("term")),
        published_us=_time(dict.get(entry, "published_parsed")),
        updated_us=_time(dict.get(entry, "updated_parsed")),
        summary=plain(dict.get(entry, "summary") or ""),
        content=plain(content[0].get("value") or ""),
        enclosures=tuple(
            Enclosure(file["href"], file.get("type", ""), str(file.get("length", "")))
            for file in entry.get("enclosures", [])
            if file.get("href")
        ),
        language=content[0].get("language") or language,
        comments=entry.get("comments", ""),
        mentions=mentions((href for text in texts for href in hrefs(text)), own=_links(entry)),
    )


def _links(entry: Any) -> tuple[str, ...]:
    links = [entry.get("link", "")]
    links += [link.get("href", "") for link in entry.get("links", []) if _is_page(link)]
    return tuple(dict.fromkeys(link for link in links if link))


def _is_page(link: Any) -> bool:
    return bool(link.get("rel", "alternate") == "alternate")


def _authors(entry: Any) -> tuple[str, ...]:
    people = [person.get("name") or person.get("email") for person in entry.get("authors", [])]
    names = [collapse(name) for name in people if name] or [collapse(entry.get("author", ""))]
    return tuple(dict.fromkeys(name for name in names if name))


def _time(parsed: struct_time | None) -> int | None:
    return None if parsed is None else calendar.timegm(parsed) * 1_000_000
