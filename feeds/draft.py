"""An item while its entry is being read, and the readings that RSS and Atom share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from lxml import etree

from feeds.dates import parse_date
from feeds.extension import render_element
from feeds.item import Enclosure, FeedItem
from feeds.mentions import hrefs, mentions
from feeds.namespaces import CONTENT, CORE_ATOM, CORE_RSS, MEDIA, XML
from feeds.text import collapse, plain

__all__ = ["Draft", "Handler", "Handlers", "person", "read_entry", "text_of", "union"]

_EMAIL = re.compile(r"[\w.+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]{2,24}(?:\?subject=\S+)?")
MEDIA_DESCRIPTION = f"{{{MEDIA}}}description"
_BASE = f"{{{XML}}}base"
_LANG = f"{{{XML}}}lang"
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NAMES_MAX = 2_000
_CORE = frozenset((*CORE_RSS, *CORE_ATOM, CONTENT))


@dataclass(slots=True)
class Draft:
    """An item while its entry is being read."""

    url: str
    language: str = ""
    id: str = ""
    is_permalink: bool = False
    title: str = ""
    links: list[str] = field(default_factory=list)
    authors: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    published_us: int | None = None
    updated_us: int | None = None
    summary: str = ""
    content: str = ""
    enclosures: list[Enclosure] = field(default_factory=list)
    comments: str = ""
    extensions: list[bytes] = field(default_factory=list)
    raw: bytes = b""
    mentions: list[str] = field(default_factory=list)

    def resolved(self, reference: str, element: etree._Element) -> str:
        """Return a link as an absolute one: against xml:base, else the feed's own address."""
        reference = reference.strip()
        if not reference or reference.startswith("http") or _ABSOLUTE.match(reference):
            return reference
        return urljoin(base_of(element, self.url), reference)

    def plain(self, markup: str, element: etree._Element) -> str:
        """Return the plain text of HTML in `element`; the pages it links to are taken down."""
        if "<" in markup:
            self.mentions += [
                target if target.startswith("http") else self.resolved(target, element)
                for target in hrefs(markup)
            ]
        return plain(markup)

    def item(self) -> FeedItem:
        """Return the finished item."""
        if not self.links and self.is_permalink and _ABSOLUTE.match(self.id):
            self.links.append(self.id)
        return FeedItem(
            self.id,
            self.title,
            union(self.links),
            union(self.authors),
            union(self.categories),
            self.published_us,
            self.updated_us,
            self.summary,
            self.content,
            tuple(self.enclosures),
            self.language,
            self.comments,
            tuple(self.extensions),
            self.raw,
            mentions(self.mentions, own=self.links) if self.mentions else (),
        )


Handler = Callable[[Draft, etree._Element], None]


class Handlers(dict[Any, tuple["Handler | None", bool]]):
    """What reads each element of an entry, and whether the element is kept as an extension.

    One look-up a child, because there are ten children to an entry.  Names that nobody reads
    are remembered as they come, up to a bound.
    """

    def __init__(self, table: Mapping[str, Handler]) -> None:
        super().__init__({tag: (handler, _is_foreign(tag)) for tag, handler in table.items()})

    def __missing__(self, tag: object) -> tuple[Handler | None, bool]:
        found = (None, isinstance(tag, str) and _is_foreign(tag))
        if len(self) < _NAMES_MAX:
            self[tag] = found
        return found


def _is_foreign(tag: str) -> bool:
    """Whether an element belongs to an extension, not to RSS or Atom themselves."""
    return tag[:1] == "{" and tag[1 : tag.index("}")] not in _CORE


def read_entry(
    entry: etree._Element,
    handlers: Handlers,
    *,
    url: str,
    language: str,
    raw: bool = False,
) -> Draft:
    """Return the draft of one entry: each child goes to its handler, foreign ones are kept."""
    draft = Draft(url, entry.get(_LANG) or language)
    for child in entry:
        handler, is_foreign = handlers[child.tag]
        if handler is not None:
            handler(draft, child)
        if is_foreign:
            draft.extensions.append(render_element(child))
    if raw:
        draft.raw = etree.tostring(entry, encoding="utf-8", with_tail=False)
    return draft


def base_of(element: etree._Element, url: str) -> str:
    """Return what relative links in `element` start from: its nearest xml:base, else `url`."""
    bases = [step.get(_BASE, "") for step in (element, *element.iterancestors())]
    for base in reversed(bases):
        url = urljoin(url, base) if base else url
    return url


def text_of(element: etree._Element) -> str:
    """Return all text in `element`, as it stands."""
    return "".join(map(str, element.itertext())) if len(element) else element.text or ""


def line_of(element: etree._Element) -> str:
    """Return the text of a title, name or category: plain, on one line."""
    text = text_of(element)
    return collapse(plain(text)) if "<" in text or "&" in text else collapse(text)


def person(text: str) -> str:
    """Return the name in an RSS author, else the address.

    >>> person("ann@example.org (Ann)"), person("ann@example.org"), person("Ann <a@b.org>")
    ('Ann', 'ann@example.org', 'Ann')
    """
    text = collapse(text)
    found = _EMAIL.search(text) if "@" in text else None
    if found is None:
        return text
    name = text.replace(found[0], "").replace("()", "").replace("<>", "").strip(" ()")
    return name or found[0]


def union(values: Iterable[str]) -> tuple[str, ...]:
    """Return the values that are not empty, each once, in order."""
    if isinstance(values, list) and len(values) < 2:
        return tuple(filter(None, values))
    return tuple(dict.fromkeys(value for value in values if value))


def add_author(draft: Draft, element: etree._Element) -> None:
    """Take an author written as text."""
    draft.authors.append(person(line_of(element)))


def add_category(draft: Draft, element: etree._Element) -> None:
    """Take a category written as text."""
    draft.categories.append(line_of(element))


def set_published(draft: Draft, element: etree._Element) -> None:
    """Take the time of publication; a later unreadable one does not undo it."""
    draft.published_us = parse_date(text_of(element)) or draft.published_us


def set_updated(draft: Draft, element: etree._Element) -> None:
    """Take the time of the last edit."""
    draft.updated_us = parse_date(text_of(element)) or draft.updated_us


def set_language(draft: Draft, element: etree._Element) -> None:
    """Take the entry's own language."""
    draft.language = line_of(element) or draft.language


def set_description(draft: Draft, element: etree._Element) -> None:
    """Take the description of a medium, or of a group of them, where there is no other."""
    if draft.summary:
        return
    found = element if element.tag == MEDIA_DESCRIPTION else element.find(MEDIA_DESCRIPTION)
    if found is not None:
        draft.summary = draft.plain(text_of(found), found)


def set_content(draft: Draft, element: etree._Element) -> None:
    """Take the full text, written as HTML in text."""
    draft.content = draft.plain(text_of(element), element) or draft.content


def add_atom_link(draft: Draft, element: etree._Element) -> None:
    """Take an Atom link by its relation: the entry's page, a file, the discussion."""
    relation = element.get("rel", "alternate")
    target = draft.resolved(element.get("href", ""), element)
    if not target:
        return
    if relation == "alternate":
        draft.links.append(target)
    elif relation == "enclosure":
        kind, length = element.get("type", ""), element.get("length", "")
        draft.enclosures.append(Enclosure(target, kind, length))
    elif relation == "replies" and "html" in element.get("type", "html"):
        draft.comments = draft.comments or target
