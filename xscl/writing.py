"""The content of constructed elements: text, written at once, where no namespace has a say.

Most constructors have names without prefixes and no default namespace.  What stands between their
tags is known as it is found: no tree is made of it to be serialised, and a copy stands where it is
put.  Else a tree grows, and `splicing` says which declarations there have to be.

Invariant: what is written is what lxml writes of the tree (a test compares them).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lxml import etree

from xscl.constructor import ConstructedElement
from xscl.meter import Meter, size
from xscl.nodes import AttributeNode, Node, copy_of
from xscl.splicing import Copy, copied, mark

__all__ = [
    "TextContent",
    "TreeContent",
    "add_run",
    "attribute_text",
    "is_bare",
    "tagged",
    "text_content",
]

_IN_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_ASKS_MORE = re.compile("[&<>\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What is not written as it is, wherever it stands."""


def is_bare(element: ConstructedElement) -> bool:
    """Return whether an element, and all within it, is in no namespace and declares none."""
    names = (element.name, *[attribute.name for attribute in element.attributes])
    return (
        not element.namespaces
        and not any(":" in name for name in names)
        and all(is_bare(part) for part in element.content if isinstance(part, ConstructedElement))
    )


def tagged(name: str, attributes: Sequence[str], content: Sequence[str]) -> str:
    """Return an element; what is given as its attributes and content is written already.

    >>> tagged("a", [' b="c"'], ["d", "e"]), tagged("a", [], [""]), tagged("a", [], [])
    ('<a b="c">de</a>', '<a></a>', '<a/>')
    """
    start = "".join([f"<{name}", *attributes])
    return "".join([start, ">", *content, f"</{name}>"]) if content else f"{start}/>"


def text_content(text: str) -> str:
    r"""Return text as it stands between tags; raise `ValueError` where XML cannot have it.

    >>> text_content("a < b\r")
    'a &lt; b&#13;'
    """
    return _escaped(text).replace("\r", "&#13;")


def attribute_text(text: str) -> str:
    r"""Return text as it stands in double quotes; raise `ValueError` where XML cannot have it.

    >>> attribute_text('a "b"\n')
    'a &quot;b&quot;&#10;'
    """
    text = _escaped(text).replace('"', "&quot;")
    return text.replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")


def _escaped(text: str) -> str:
    if not _ASKS_MORE.search(text):
        return text
    if _IN_NO_XML.search(text):
        etree.Element("none").text = text  # raises, and says what lxml would have said
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class TextContent:
    """The content of an element that is written at once, in `parts`."""

    def __init__(self, meter: Meter, kept_prefixes: Sequence[str]) -> None:
        self._meter = meter
        self._kept_prefixes = kept_prefixes
        self.parts: list[str] = []

    def add_text(self, text: str) -> None:
        """Add text behind all that is there."""
        self.parts.append(text_content(text))

    def add_copy(self, node: Node) -> None:
        """Add a copy."""
        self.parts.append(copied(_copy(node, self._meter), "", self._kept_prefixes))


class TreeContent:
    """The content of an element of a tree, with marks for `copies`, which are written later."""

    def __init__(self, meter: Meter, element: Any, copies: list[Copy]) -> None:
        self._meter = meter
        self._element = element
        self._copies = copies

    def add_text(self, text: str) -> None:
        """Add text behind all that is there."""
        above = self._element
        if len(above):
            above[-1].tail = (above[-1].tail or "") + text
        else:
            above.text = (above.text or "") + text

    def add_copy(self, node: Node) -> None:
        """Keep a place for a copy."""
        self._element.append(mark(len(self._copies)))
        self._copies.append(_copy(node, self._meter))


def add_run(content: TextContent | TreeContent, run: list[str]) -> None:
    """Add adjacent texts at once: a text of a tree costs its whole length whenever it grows."""
    if run:
        content.add_text("".join(run))
        run.clear()


def _copy(node: Node, meter: Meter) -> Copy:
    """Return a copy of a node; that of an element is paid for first."""
    if isinstance(node, AttributeNode):
        return copy_of(node)
    text = etree.tostring(node, encoding="unicode", with_tail=False)
    meter.spend(size(text))
    return copy_of(node) if " xmlns" in text else text  # of elements around it perhaps
