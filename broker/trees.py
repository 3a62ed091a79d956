"""The documents behind matches as trees: parsed when a match is made of them, and kept a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from joins.instance import Instance
from xpath_eval.structure import parse_xml
from xscl.nodes import NumberedTree

__all__ = ["Trees"]

TREES_BYTES = 64 << 20
"""Bytes of documents whose trees are kept, beside those of the match in hand: a tree takes three to
ten times as many."""


class Trees:
    """The numbered trees of documents, those used last; `xml_of` looks up their text."""

    def __init__(self, xml_of: Callable[[Instance], bytes]) -> None:
        self._xml_of = xml_of
        self._trees: OrderedDict[int, tuple[NumberedTree, int]] = OrderedDict()
        self._bytes = 0

    def tree(self, instance: Instance) -> NumberedTree:
        """Return the tree of a document."""
        held = self._trees.pop(instance.instance, None)
        if held is None:
            xml = self._xml_of(instance)
            held = NumberedTree(parse_xml(xml).root), len(xml)
            self._bytes += len(xml)
        self._trees[instance.instance] = held
        while self._bytes > TREES_BYTES and len(self._trees) > 1:
            _, (_, nbytes) = self._trees.popitem(last=False)
            self._bytes -= nbytes
        return held[0]
