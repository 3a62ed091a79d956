"""RSS 0.9x, 1.0 (RDF) and 2.0: what each element becomes."""

from __future__ import annotations

from itertools import islice

from lxml import etree

from feeds.draft import (
    Draft,
    Handler,
    Handlers,
    add_atom_link,
    add_author,
    add_category,
    line_of,
    read_entry,
    set_content,
    set_description,
    set_language,
    set_published,
    set_updated,
    text_of,
)
from feeds.hints import read_hints
from feeds.item import Enclosure, FeedItem, ParsedFeed
from feeds.namespaces import ATOM, CONTENT, CORE_RSS, DC, DCTERMS, ITUNES, MEDIA, RDF

__all__ = ["RSS", "is_rss", "read_rss"]

_ABOUT = f"{{{RDF}}}about"


def _set_id(draft: Draft, element: etree._Element) -> None:
    draft.id = line_of(element)
    draft.is_permalink = element.get("isPermaLink", "true").lower() != "false"
    if draft.is_permalink and "/" in draft.id:
        # A path, offered as a permanent link, is one; "12345" is a number.
        draft.id = draft.resolved(draft.id, element)


def _set_title(draft: Draft, element: etree._Element) -> None:
    draft.title = line_of(element) or draft.title


def _add_link(draft: Draft, element: etree._Element) -> None:
    target = text_of(element) or element.get("href", "")
    # The entry's own link goes before those that an Atom extension adds.
    draft.links.insert(0, draft.resolved(target, element))


def _set_summary(draft: Draft, element: etree._Element) -> None:
    draft.summary = draft.plain(text_of(element), element) or draft.summary


def _set_short_summary(draft: Draft, element: etree._Element) -> None:
    draft.summary = draft.summary or draft.plain(text_of(element), element)


def _add_enclosure(draft: Draft, element: etree._Element) -> None:
    target = draft.resolved(element.get("url", ""), element)
    if target:
        kind, length = element.get("type", ""), element.get("length", "")
        draft.enclosures.append(Enclosure(target, kind, length))


def _set_comments(draft: Draft, element: etree._Element) -> None:
    draft.comments = draft.resolved(text_of(element), element)


_CORE: dict[str, Handler] = {
    "guid": _set_id,
    "title": _set_title,
    "link": _add_link,
    "author": add_author,
    "category": add_category,
    "pubDate": set_published,
    "description": _set_summary,
    "enclosure": _add_enclosure,
    "comments": _set_comments,
}
RSS: dict[str, Handler] = {
    f"{{{DC}}}title": lambda draft, element: None if draft.title else _set_title(draft, element),
    f"{{{DC}}}creator": add_author,
    f"{{{DC}}}subject": add_category,
    f"{{{DC}}}date": set_updated,
    f"{{{DC}}}description": _set_short_summary,
    f"{{{DC}}}language": set_language,
    f"{{{DCTERMS}}}issued": set_published,
    f"{{{DCTERMS}}}modified": set_updated,
    f"{{{CONTENT}}}encoded": set_content,
    f"{{{ITUNES}}}author": add_author,
    f"{{{ITUNES}}}summary": _set_short_summary,
    f"{{{MEDIA}}}description": set_description,
    f"{{{MEDIA}}}group": set_description,
    f"{{{ATOM}}}link": add_atom_link,
    f"{{{ATOM}}}updated": set_updated,
    f"{{{ATOM}}}published": set_published,
    **{f"{{{uri}}}{name}" if uri else name: h for uri in CORE_RSS for name, h in _CORE.items()},
}
"""Each element of an RSS item, by its expanded name, with what reads it."""

_HANDLERS = Handlers(RSS)
_ITEMS = tuple(f"{{{uri}}}item" if uri else "item" for uri in CORE_RSS)
_CHANNELS = tuple(f"{{{uri}}}channel" if uri else "channel" for uri in CORE_RSS)
_ROOTS = frozenset(("rss", "RDF", "rdf", "channel", "RSS"))


def is_rss(root: etree._Element) -> bool:
    """Return whether the tree is some kind of RSS."""
    return etree.QName(root).localname in _ROOTS


def read_rss(root: etree._Element, *, url: str, items_max: int, raw: bool = False) -> ParsedFeed:
    """Return the feed in an RSS tree; `url` is its address."""
    channel = next(root.iter(*_CHANNELS), root)
    uri = str(channel.tag).rpartition("}")[0]
    prefix = f"{uri}}}" if uri else ""
    language = _text(channel, f"{prefix}language") or _text(channel, f"{{{DC}}}language")
    entries = islice(root.iter(*_ITEMS), items_max)
    return ParsedFeed(
        format=_format(root, prefix),
        title=_text(channel, f"{prefix}title"),
        link=_text(channel, f"{prefix}link"),
        language=language,
        items=tuple(_item(entry, url, language, raw) for entry in entries),
        hints=read_hints(channel, prefix, url),
    )


def _item(entry: etree._Element, url: str, language: str, raw: bool) -> FeedItem:
    draft = read_entry(entry, _HANDLERS, url=url, language=language, raw=raw)
    if not draft.id:
        draft.id = entry.get(_ABOUT, "")
    return draft.item()


def _text(channel: etree._Element, tag: str) -> str:
    found = channel.find(tag)
    return "" if found is None else line_of(found)


def _format(root: etree._Element, prefix: str) -> str:
    if etree.QName(root).localname.lower() == "rdf":
        return "rss10" if "purl.org/rss/1.0" in prefix else "rss090"
    version = root.get("version", "")
    return f"rss{version.replace('.', '')[:4]}"
