"""One entry as a feed published it, whatever the dialect, and the feed around it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Enclosure", "FeedItem", "Hints", "ItemStep", "ParsedFeed"]


class ItemStep(StrEnum):
    """Which step of the parsing ladder read the feed: the first that gave a feed."""

    STRICT = "strict"
    RECOVERED = "recovered"
    LOOSE = "loose"


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file that goes with an item; `type` and `length` are the publisher's claims."""

    url: str
    type: str = ""
    length: str = ""


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One entry.  Text fields are plain text, times microseconds since 1970 in UTC or None.

    `id` is what the publisher gave (guid, atom:id, rdf:about, JSON id), else "".
    `links` has the entry's own page first.  `extensions` are serialised elements of foreign
    namespaces, `raw` is the serialised entry element; both only where an XML tree was read.
    `mentions` are the other pages that the item's text links to.
    """

    id: str = ""
    title: str = ""
    links: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    published_us: int | None = None
    updated_us: int | None = None
    summary: str = ""
    content: str = ""
    enclosures: tuple[Enclosure, ...] = ()
    language: str = ""
    comments: str = ""
    extensions: tuple[bytes, ...] = ()
    raw: bytes = b""
    mentions: tuple[str, ...] = ()

    @property
    def event_time_us(self) -> int | None:
        """The time that queries see: published, else updated, else None (arrival)."""
        return self.updated_us if self.published_us is None else self.published_us

    @property
    def link(self) -> str:
        """The entry's own page, or ""."""
        return self.links[0] if self.links else ""


@dataclass(frozen=True, slots=True)
class Hints:
    """What a feed says about when to read it: lower bound, hours and days to stay away, hub."""

    ttl_s: float | None = None
    skip_hours: frozenset[int] = frozenset()
    skip_days: frozenset[int] = frozenset()
    hubs: tuple[str, ...] = ()
    self_url: str = ""


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """A feed document, read.  `warnings` say in words what was wrong with it."""

    format: str
    title: str = ""
    link: str = ""
    language: str = ""
    items: tuple[FeedItem, ...] = ()
    hints: Hints = Hints()
    step: ItemStep = ItemStep.STRICT
    warnings: tuple[str, ...] = ()
