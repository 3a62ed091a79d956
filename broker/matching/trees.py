"""The documents behind matches as trees: parsed when a match is made of them, and kept a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from lxml import etree

from joins import Instance
from xpath_eval.structure import parse_xml

__all__ = ["Trees"]

TREES_BYTES = 64 << 20
"""Bytes of documents whose trees are kept, beside those of the match in hand: a tree takes three to
ten times as many."""


class Trees:
    """The root elements of documents, those used last; `xml_of` looks up their text."""

    def __init__(self, xml_of: Callable[[Instance], bytes]) -> None:
        self._xml_of = xml_of
        self._roots: OrderedDict[int, tuple[etree._Element, int]] = OrderedDict()
        self._bytes = 0

    def root(self, instance: Instance) -> etree._Element:
        """Return the root element of a document."""
        held = self._roots.pop(instance.instance, None)
        if held is None:
            xml = self._xml_of(instance)
            held = parse_xml(xml).root, len(xml)
            self._bytes += len(xml)
        self._roots[instance.instance] = held
        while self._bytes > TREES_BYTES and len(self._roots) > 1:
            _, (_, nbytes) = self._roots.popitem(last=False)
            self._bytes -= nbytes
        return held[0]
