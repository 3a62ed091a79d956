"""Atom 1.0 and 0.3: what each element becomes."""

from __future__ import annotations

import base64
import binascii
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
    person,
    read_entry,
    set_description,
    set_published,
    set_updated,
    text_of,
    union,
)
from feeds.hints import read_hints
from feeds.item import FeedItem, ParsedFeed
from feeds.namespaces import CORE_ATOM, DC, MEDIA, XML
from feeds.text import collapse, unescaped

__all__ = ["ATOM_ENTRY", "is_atom", "read_atom"]

_LANG = f"{{{XML}}}lang"


def construct(element: etree._Element, draft: Draft) -> str:
    """Return the plain text of an Atom text construct, by its `type` (1.0) and `mode` (0.3).

    The pages that it links to are taken down in `draft`.
    """
    kind = element.get("type", "text")
    if element.get("mode") == "base64":
        return draft.plain(_decoded(text_of(element)), element)
    if "xhtml" in kind or len(element):
        return draft.plain(etree.tostring(element, encoding="unicode", with_tail=False), element)
    if kind in ("text", "text/plain") and element.get("mode") != "escaped":
        # Some publishers escape entities twice: "&nbsp;" is never meant to be read as such.
        return collapse(unescaped(element.text or ""))
    if kind == "html" or kind.startswith("text/") or element.get("mode") == "escaped":
        return draft.plain(element.text or "", element)
    return ""


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=False).decode("utf-8", "replace")
    except binascii.Error:
        return ""


def _set_id(draft: Draft, element: etree._Element) -> None:
    draft.id = line_of(element)


def _set_title(draft: Draft, element: etree._Element) -> None:
    draft.title = collapse(construct(element, draft))


def _set_summary(draft: Draft, element: etree._Element) -> None:
    draft.summary = construct(element, draft)


def _set_content(draft: Draft, element: etree._Element) -> None:
    draft.content = construct(element, draft) or draft.content
    draft.language = draft.language or element.get(_LANG, "")
    if element.get("src") and not draft.links:
        draft.links.append(draft.resolved(element.get("src", ""), element))


def _add_person(draft: Draft, element: etree._Element) -> None:
    draft.authors.append(_person(element))


def _add_category(draft: Draft, element: etree._Element) -> None:
    draft.categories.append(collapse(element.get("term") or "") or line_of(element))


_ENTRY: dict[str, Handler] = {
    "id": _set_id,
    "title": _set_title,
    "link": add_atom_link,
    "author": _add_person,
    "category": _add_category,
    "published": set_published,
    "issued": set_published,
    "updated": set_updated,
    "modified": set_updated,
    "summary": _set_summary,
    "content": _set_content,
}
ATOM_ENTRY: dict[str, Handler] = {
    **{f"{{{uri}}}{name}": handler for uri in CORE_ATOM for name, handler in _ENTRY.items()},
    f"{{{MEDIA}}}description": set_description,
    f"{{{MEDIA}}}group": set_description,
    f"{{{DC}}}creator": add_author,
    f"{{{DC}}}subject": add_category,
}
"""Each element of an Atom entry, by its expanded name, with what reads it."""

_HANDLERS = Handlers(ATOM_ENTRY)
_ENTRIES = tuple(f"{{{uri}}}entry" for uri in CORE_ATOM)


def is_atom(root: etree._Element) -> bool:
    """Return whether the tree is an Atom feed, or a lone entry."""
    return etree.QName(root).localname in ("feed", "entry") and (
        str(root.tag).rpartition("}")[0][1:] in CORE_ATOM
    )


def read_atom(root: etree._Element, *, url: str, items_max: int, raw: bool = False) -> ParsedFeed:
    """Return the feed in an Atom tree; `url` is its address."""
    prefix = str(root.tag).rpartition("}")[0] + "}"
    language = root.get(_LANG, "")
    title = root.find(f"{prefix}title")
    entries = islice(root.iter(*_ENTRIES), items_max)
    return ParsedFeed(
        format="atom03" if "purl.org/atom" in prefix else "atom10",
        title="" if title is None else collapse(construct(title, Draft(url))),
        link=_own_page(root, prefix, url),
        language=language,
        items=tuple(_item(entry, prefix, url, language, raw) for entry in entries),
        hints=read_hints(root, prefix, url),
    )


def _item(entry: etree._Element, prefix: str, url: str, language: str, raw: bool) -> FeedItem:
    draft = read_entry(entry, _HANDLERS, url=url, language=language, raw=raw)
    if not draft.authors:
        draft.authors += _inherited_authors(entry, prefix)
    return draft.item()


def _inherited_authors(entry: etree._Element, prefix: str) -> tuple[str, ...]:
    """An entry without an author has its source's, else its feed's (RFC 4287, 4.2.1)."""
    people = entry.findall(f"{prefix}source/{prefix}author")
    parent = entry.getparent()
    if not people and parent is not None:
        people = parent.findall(f"{prefix}author")
    return union(_person(each) for each in people)


def _person(element: etree._Element) -> str:
    prefix = str(element.tag).rpartition("}")[0] + "}"
    for name in ("name", "email"):
        found = element.find(prefix + name)
        if found is not None and line_of(found):
            return line_of(found)
    return person(element.text or "")


def _own_page(root: etree._Element, prefix: str, url: str) -> str:
    for link in root.findall(f"{prefix}link"):
        if link.get("rel", "alternate") == "alternate":
            return Draft(url).resolved(link.get("href", ""), link)
    return ""
