"""Bytes from outside become a tree, or a reason that their publisher understands.

Everything is bounded before anything is built on it.  libxml2 itself stops at 256 levels, at
10 MB in one text or name and at entities that multiply; the limits here are named, so that they
can be documented, and are lower where the rest of the broker would feel it.  `recover` is never
used: on a blocked entity bomb it yields a tree that is silently empty.
"""

from __future__ import annotations

import threading
from typing import Any

from lxml import etree

__all__ = [
    "ATTRIBUTES_MAX",
    "DEPTH_MAX",
    "DOCUMENT_BYTES_MAX",
    "ELEMENTS_MAX",
    "NAME_BYTES_MAX",
    "NESTED_TEXT_BYTES_MAX",
    "TEXT_BYTES_MAX",
    "XmlError",
    "parse_elements",
    "parse_root",
]

DOCUMENT_BYTES_MAX = 32 * 1024 * 1024
"""Bytes of one document.  Feed items have some kilobytes; a tree takes ten times its bytes."""

ELEMENTS_MAX = 1_000_000
"""Elements of one document: about 100 bytes each while it is evaluated."""

DEPTH_MAX = 256
"""Levels of elements, the root's included: libxml2's own limit without its `huge` option."""

ATTRIBUTES_MAX = 1_000
"""Attributes of one element.  They are sorted to be numbered; no feed format has over 30."""

NESTED_TEXT_BYTES_MAX = 256 << 20
"""Bytes of a document's text, counted once for each element around it: the string values of all its
elements.  Queries may compare each of them, so this much of one document is held at a time."""

TEXT_BYTES_MAX = 10_000_000
"""Bytes of one text or of one attribute's value: libxml2's own limit."""

NAME_BYTES_MAX = 50_000
"""Bytes of a name: libxml2's own limit."""

_REASONS = {
    "Excessive depth": f"elements are nested more than {DEPTH_MAX} levels deep",
    "Text node too long": f"a text has more than {TEXT_BYTES_MAX} bytes",
    "CData section too big": f"a text has more than {TEXT_BYTES_MAX} bytes",
    "Buffer size limit": f"a name or an attribute has more than {TEXT_BYTES_MAX} bytes",
    "Name too long": f"a name has more than {NAME_BYTES_MAX} bytes",
    "Maximum entity": "the document's entities multiply beyond all measure",
    "Detected an entity reference loop": "the document's entities refer to themselves",
    "Document is empty": "the document is empty",
    "Unsupported encoding": "the document declares an encoding that is not known",
    "Invalid bytes in character encoding": "the document is not in the encoding that it declares",
    "Input is not proper UTF-8": "the document is not in the encoding that it declares",
}
"""What libxml2 says, and what a publisher can act on.  Its words are kept where ours add none."""


class XmlError(ValueError):
    """Bytes that are not a document that can be read.  The publisher can act on the message."""


class _TreeParser(threading.local):
    """One parser for each thread: making one costs as much as reading a short document.

    A tree keeps its own names alive, and lxml keeps one table of names for each thread in any
    case, so nothing is gained by a parser for each document.
    """

    def __init__(self) -> None:
        self.parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
            collect_ids=False,
        )


_OF_THREAD = _TreeParser()


def parse_root(xml: bytes) -> etree._Element:
    """Return the root of a document; raise `XmlError` where it cannot be parsed.

    Alone it is for documents that `parse_elements` has accepted before: the limits that hold after
    the parse are not looked at.
    """
    if len(xml) > DOCUMENT_BYTES_MAX:
        raise XmlError(f"the document has {len(xml)} bytes, the limit is {DOCUMENT_BYTES_MAX}")
    try:
        return etree.fromstring(xml, _OF_THREAD.parser)
    except etree.XMLSyntaxError as error:
        raise XmlError(_reason(error)) from error
    except (ValueError, AssertionError) as error:
        raise XmlError(str(error)) from error


def parse_elements(xml: bytes) -> list[etree._Element]:
    """Return all elements of a document, in order; raise `XmlError` where it cannot be read.

    Entities are never expanded and nothing is loaded from outside.
    """
    root = parse_root(xml)
    # Then no declaration of the document type stands before it.  Two characters of ASCII at the
    # start also rule out every encoding that is not like ASCII.
    begins_with_root = xml[:1] == b"<" and xml[1:2].isalpha()
    if not begins_with_root:
        _refuse_entities(root)
    elements = [*root.iter()]
    if not begins_with_root or xml.count(b"=") > ATTRIBUTES_MAX:
        most = max(len(element.attrib) for element in elements)
        if most > ATTRIBUTES_MAX:
            raise XmlError(f"an element has {most} attributes, the limit is {ATTRIBUTES_MAX}")
    if len(elements) > ELEMENTS_MAX:
        raise XmlError(f"the document has {len(elements)} elements, the limit is {ELEMENTS_MAX}")
    # Of most documents the bytes say enough.
    if len(xml) > NESTED_TEXT_BYTES_MAX // DEPTH_MAX:
        _check_nested_text(root)
    return elements


def _check_nested_text(root: etree._Element) -> None:
    nested = depth = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        text = element.text if event == "start" else element.tail
        nested += depth * len((text or "").encode())
    if nested > NESTED_TEXT_BYTES_MAX:
        raise XmlError(
            f"the document has {nested} bytes of text where it is counted once for each element "
            f"around it, the limit is {NESTED_TEXT_BYTES_MAX}: nest long texts less deeply"
        )


def _refuse_entities(root: etree._Element) -> None:
    declarations: Any = root.getroottree().docinfo.internalDTD
    if declarations is None:
        return
    if any(True for _ in declarations.iterentities()):
        raise XmlError("the document declares entities, which are not expanded here")
    for reference in root.iter(etree.Entity):
        raise XmlError(f"the document refers to the entity {reference.text}, which is not known")


def _reason(error: etree.XMLSyntaxError) -> str:
    text = str(error.msg or error)
    for theirs, ours in _REASONS.items():
        if theirs in text:
            return ours
    return text.replace("\n", "")
