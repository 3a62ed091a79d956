"""The documents behind matches as trees: parsed when a match is made of them, and kept a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from joins import Instance
from xpath_eval.structure import parse_xml
from xscl.nodes import NumberedTree

__all__ = ["DocumentTree", "Trees"]

ELEMENT_BYTES = 64
"""What an element costs beside its text, to parse and to number it: a microsecond."""

XPATH_ELEMENT_BYTES = 256
"""What it costs besides where a constructor sees it."""

TREES_BYTES = 64 << 20
"""What the trees that are kept cost together, beside those of the match in hand: memory is three to
ten times as much.  More than one query reads for one document by default (`budget`), so that none
of the documents behind its matches is parsed twice."""


class DocumentTree(NumberedTree):
    """A document's tree, and what it costs to read the document, in bytes.

    `nbytes` are those of its text, `cost` counts its elements too, `xpath_cost` is what it costs
    besides where a constructor sees it.
    """

    def __init__(self, xml: bytes) -> None:
        parsed = parse_xml(xml)
        super().__init__(parsed.root)
        self.nbytes = len(xml)
        self.cost = len(xml) + ELEMENT_BYTES * len(parsed.elements)
        self.xpath_cost = XPATH_ELEMENT_BYTES * len(parsed.elements)

    @property
    def skew(self) -> int:
        """How much of `TREES_BYTES` it takes."""
        return self.cost if self.xpath is None else self.cost + self.xpath_cost


class Trees:
    """The trees of documents, those used last; `xml_of` looks up their text."""

    def __init__(self, xml_of: Callable[[Instance], bytes]) -> None:
        self._xml_of = xml_of
        self._trees: OrderedDict[int, tuple[DocumentTree, int]] = OrderedDict()
        self._weight = 0

    def tree(self, instance: Instance) -> DocumentTree:
        """Return the tree of a document."""
        tree, skew = self._trees.pop(instance.instance, (None, 0))
        if tree is None:
            tree = DocumentTree(self._xml_of(instance))
        # It may have grown since it was used last.
        self._weight += tree.skew - skew
        self._trees[instance.instance] = tree, tree.skew
        while self._weight > TREES_BYTES and len(self._trees) > 1:
            _, (_, skew) = self._trees.popitem(last=False)
            self._weight -= skew
        return tree
