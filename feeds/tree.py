"""From the bytes of a feed to an XML tree: strict, else repaired, else recovered.

The parser never loads a DTD, resolves no entity, reads no network, and keeps libxml2's bounds
on depth (256) and on the size of a text.  A recovered tree is no success by itself: libxml2 turns
a blocked bomb into a silent, empty document, so its error log is read too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html.entities import html5
from typing import Any

from lxml import etree

from feeds.charset import decode, label_in_declaration, label_in_header
from feeds.item import ItemStep
from feeds.namespaces import PREFIXES
from feeds.text import drop_illegal

__all__ = ["Hostile", "MarkupTree", "read_tree"]

_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "collect_ids": False,
    "remove_comments": True,
    "remove_pis": True,
}
_UTF8_LABELS = frozenset(("", "utf-8", "utf8"))
_DECLARATION = re.compile(r"<\?xml(?!-)[^<>]*\?>")
_BARE_START = re.compile(r"<[A-Za-z][^<>\"']*=[^\s\"'<>][^<>]*>")
_BARE_VALUE = re.compile(r"(\s[\w:.-]+=)([^\s\"'<>/]+)")
_START = re.compile(r"<(?:\?xml\s|!DOCTYPE\s|!--|(?:[\w.-]+:)?(?:rss|feed|RDF|channel)[\s>])")
_ENTITY = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|&(?:([A-Za-z][A-Za-z0-9]{1,31});|(?!#x?[0-9a-fA-F]{1,8};))",
    re.DOTALL,
)
"""A CDATA section, which stays as it is; a named entity; an ampersand that means itself."""
_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,8})|(\d{1,8}));")
_XML_ENTITIES = frozenset(("lt", "gt", "amp", "quot", "apos"))
_HOSTILE = re.compile(r"amplification|entity reference loop|Excessive depth|huge", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MarkupTree:
    """The root element, how it was come by, and what was wrong with the document."""

    root: etree._Element
    step: ItemStep = ItemStep.STRICT
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hostile:
    """The document is built to exhaust whoever reads it; no further reader should try."""

    reason: str


def read_tree(body: bytes, content_type: str = "") -> MarkupTree | Hostile | None:
    """Return the tree in `body`; None where not even recovery finds an element."""
    labels = (label_in_header(content_type), label_in_declaration(body))
    if _UTF8_LABELS.issuperset(labels):
        try:
            return MarkupTree(etree.fromstring(body, _parser()))
        except etree.XMLSyntaxError as error:
            if _HOSTILE.search(str(error)):
                return Hostile(str(error))
    return _read_decoded(body, content_type)


def _read_decoded(body: bytes, content_type: str) -> MarkupTree | Hostile | None:
    decoded = decode(body, content_type)
    bare = _DECLARATION.sub("", decoded.text, count=1)
    try:
        root = etree.fromstring(_encoded(bare), _parser(encoding="utf-8"))
        step = ItemStep.RECOVERED if decoded.warnings else ItemStep.STRICT
        return MarkupTree(root, step, decoded.warnings)
    except etree.XMLSyntaxError as error:
        if _HOSTILE.search(str(error)):
            return Hostile(str(error))
        reason = f"not well-formed: {error}"
    text, repairs = _repaired(decoded.text)
    warnings = (*decoded.warnings, reason, *repairs)
    try:
        root = etree.fromstring(_encoded(text), _parser(encoding="utf-8"))
        return MarkupTree(root, ItemStep.RECOVERED, warnings)
    except etree.XMLSyntaxError:
        return _recovered(text, warnings)


def _recovered(text: str, warnings: tuple[str, ...]) -> MarkupTree | Hostile | None:
    parser = _parser(encoding="utf-8", recover=True)
    try:
        root = etree.fromstring(_encoded(text), parser)
    except etree.XMLSyntaxError:
        return None
    for entry in parser.error_log:
        if _HOSTILE.search(entry.message):
            return Hostile(entry.message)
    if root is None:
        return None
    _adopt_prefixes(root)
    return MarkupTree(root, ItemStep.RECOVERED, warnings)


def _repaired(text: str) -> tuple[str, list[str]]:
    """Return `text` with the usual damage undone, and what was done, in words."""
    done = []
    for words, repair in _REPAIRS:
        repaired = repair(text)
        if repaired != text:
            done.append(words)
            text = repaired
    return _DECLARATION.sub("", text), done


def _from_its_start(text: str) -> str:
    start = _START.search(text[:4096])
    return text[start.start() :] if start else text


def _without_illegal(text: str) -> str:
    return drop_illegal(_REFERENCE.sub(_legal_reference, text))


def _with_characters(text: str) -> str:
    return _ENTITY.sub(_named_character, text)


def _with_quotes(text: str) -> str:
    return _BARE_START.sub(lambda tag: _BARE_VALUE.sub(r'\1"\2"', tag[0]), text)


_REPAIRS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("something stood before the document", _from_its_start),
    ("characters that XML cannot hold were left out", _without_illegal),
    ("HTML entities and bare ampersands were replaced", _with_characters),
    ("attribute values without quotes were quoted", _with_quotes),
)


def _legal_reference(found: re.Match[str]) -> str:
    number = int(found[1], 16) if found[1] else int(found[2])
    is_legal = number <= 0x10FFFF and (number > 0xDFFF or number < 0xD800)
    return found[0] if is_legal and drop_illegal(chr(number)) else ""


def _named_character(found: re.Match[str]) -> str:
    if found[0].startswith("<") or found[1] in _XML_ENTITIES:
        return found[0]
    return html5.get(f"{found[1]};") or f"&amp;{found[0][1:]}"


def _adopt_prefixes(root: etree._Element) -> None:
    """Give names with a prefix that nobody declared the namespace that it usually means."""
    for element in root.iter(etree.Element):
        prefix, colon, name = str(element.tag).partition(":")
        if colon and "{" not in prefix and prefix in PREFIXES:
            element.tag = f"{{{PREFIXES[prefix]}}}{name}" if PREFIXES[prefix] else name


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _parser(*, encoding: str | None = None, recover: bool = False) -> etree.XMLParser:
    """A parser for one document: parsers keep the error log of what they parsed last."""
    return etree.XMLParser(encoding=encoding, recover=recover, **_OPTIONS)
