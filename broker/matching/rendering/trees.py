"""The documents behind matches as trees: parsed when a match needs them, kept for the next one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from lxml import etree

from broker.matching.rendering.leaf import Leaf
from xpath_eval.parsing import parse_root
from xscl.nodes import NumberedTree

__all__ = ["DocumentTree", "Trees"]

ELEMENT_BYTES = 64
"""The cost of parsing and numbering an element, beside its text: a microsecond."""

XPATH_ELEMENT_BYTES = 256
"""The further cost of an element that a constructor sees."""

_count = etree.XPath("count(//*)")


def _element_count(root: etree._Element) -> int:
    # Without an object for each, which costs four times as much.
    found = _count(root)
    assert isinstance(found, float)
    return int(found)


class DocumentTree(NumberedTree):
    """A document's tree, and the cost of reading the document, in bytes.

    `nbytes` are the bytes of its text; `cost` adds its elements; `xpath_cost` is the further cost
    where a constructor sees it.
    """

    def __init__(self, xml: bytes) -> None:
        root = parse_root(xml)
        super().__init__(root)
        elements = _element_count(root)
        self.nbytes = len(xml)
        self.cost = len(xml) + ELEMENT_BYTES * elements
        self.xpath_cost = XPATH_ELEMENT_BYTES * elements

    @property
    def weight(self) -> int:
        """How much of the cost of all trees that are kept is its own."""
        return self.cost + len(self.xpath) * self.xpath_cost


class Trees:
    """The trees of the documents used last; `xml_of` returns the text of one.

    Together they cost `cost_max` at most, the last one aside.
    """

    def __init__(self, xml_of: Callable[[Leaf], bytes], cost_max: int) -> None:
        self._xml_of = xml_of
        self._cost_max = cost_max
        self._trees: OrderedDict[int, tuple[DocumentTree, int]] = OrderedDict()
        self._weight = 0

    def tree(self, leaf: Leaf) -> DocumentTree:
        """Return the tree of a document."""
        tree, weight = self._trees.pop(leaf.instance, (None, 0))
        if tree is None:
            tree = DocumentTree(self._xml_of(leaf))
        # It may have grown since it was used last.
        self._weight += tree.weight - weight
        self._trees[leaf.instance] = tree, tree.weight
        while self._weight > self._cost_max and len(self._trees) > 1:
            _, (_, weight) = self._trees.popitem(last=False)
            self._weight -= weight
        return tree
