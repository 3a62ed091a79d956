"""The documents behind matches as trees: parsed when a match needs them, kept for the next one.

Most matches copy whole documents, and most documents are written as they were read (`verbatim`): of
these the text is taken, and no tree is made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from json.encoder import encode_basestring
from typing import NamedTuple

import numpy as np
from lxml import etree

from broker.matching.boxes.columns import Ints
from broker.matching.rendering.leaf import Leaf
from xpath_eval.parsing import parse_root
from xpath_eval.verbatim import Verbatim, element_count, is_verbatim
from xscl.nodes import NumberedTree

__all__ = ["DocumentTree", "Trees", "WholeTexts"]

ELEMENT_BYTES = 64
"""The cost of parsing and numbering an element, beside its text: a microsecond."""

XPATH_ELEMENT_BYTES = 256
"""The further cost of an element that a constructor sees."""

_count = etree.XPath("count(//*)")


def _is_escaped(xml: bytes) -> bool:
    """Return whether JSON writes a character of a well-formed document as several."""
    # To look for each of them is a tenth of looking for any of them.
    return b'"' in xml or b"\n" in xml or b"\\" in xml or b"\t" in xml or b"\r" in xml


def _element_count(root: etree._Element) -> int:
    # Without an object for each, which costs four times as much.
    found = _count(root)
    assert isinstance(found, float)
    return int(found)


class DocumentTree(NumberedTree):
    """A document's tree, and the cost of reading the document, in bytes.

    `nbytes` are the bytes of its text; `cost` adds its elements; `xpath_cost` is the further cost
    where a constructor sees it.  A document that `is_verbatim` is its own copy.  It is parsed when
    something other than a copy of the whole is asked for, or where a copy is not the text itself.
    """

    def __init__(self, xml: bytes) -> None:
        super().__init__(None)
        self._xml = xml
        self.is_verbatim = is_verbatim(xml)
        elements = element_count(xml) if self.is_verbatim else _element_count(self.root)
        self.nbytes = len(xml)
        self.cost = len(xml) + ELEMENT_BYTES * elements
        self.xpath_cost = XPATH_ELEMENT_BYTES * elements
        self._spelled: str | None = None

    @cached_property
    def root(self) -> etree._Element:
        """The root, without comments and processing instructions."""
        return parse_root(self._xml)

    @cached_property
    def text(self) -> str:
        """The root as XML."""
        return self._xml.decode() if self.is_verbatim else super().text

    @property
    def spelled(self) -> str:
        """The same as JSON has it within a string."""
        if self._spelled is None:
            # A text that is shown once need not be kept beside what is spelled.
            text = self._xml.decode() if self.is_verbatim else self.text
            is_same = self.is_verbatim and not _is_escaped(self._xml)
            self._spelled = text if is_same else encode_basestring(text)[1:-1]
        return self._spelled

    @property
    def weight(self) -> int:
        """How much of the cost of all trees that are kept is its own."""
        return self.cost + len(self.xpath) * self.xpath_cost


class WholeTexts(NamedTuple):
    """Documents as JSON has them within a string, None where one is not written as it was read.

    `nbytes` and `costs` are those of their trees.
    """

    spelled: Sequence[str | None]
    nbytes: Ints
    costs: Ints


class Trees:
    """The trees of the documents used last; `texts_of` returns the texts of documents.

    Together they cost `cost_max` at most, the last one aside.
    """

    def __init__(
        self, texts_of: Callable[[Sequence[Leaf]], Sequence[bytes]], cost_max: int
    ) -> None:
        self._texts_of = texts_of
        self._cost_max = cost_max
        self._trees: OrderedDict[int, DocumentTree] = OrderedDict()
        self._weights: dict[int, int] = {}
        self._weight = 0

    def tree(self, leaf: Leaf) -> DocumentTree:
        """Return the tree of a document."""
        number = leaf.instance
        tree = self._trees.get(number)
        if tree is None:
            tree = self._trees[number] = DocumentTree(*self._texts_of([leaf]))
            self._weigh(number, tree)
        else:
            self._trees.move_to_end(number)
            if tree.xpath:  # it may have grown since it was used last
                self._weigh(number, tree)
        return tree

    def whole_texts(self, leaves: Sequence[Leaf]) -> WholeTexts:
        """Return the texts of documents, without a tree of any."""
        texts = self._texts_of(leaves)
        read = Verbatim.of(texts)
        # Others may be in another encoding.
        are_own = zip(texts, read.are_verbatim.tolist(), strict=True)
        spelled = [text.decode() if is_own else None for text, is_own in are_own]
        for i in np.flatnonzero(read.are_escaped & read.are_verbatim).tolist():
            spelled[i] = encode_basestring(spelled[i] or "")[1:-1]
        sizes = np.array([*map(len, texts)], np.int64)
        return WholeTexts(spelled, sizes, sizes + ELEMENT_BYTES * read.elements)

    def _weigh(self, number: int, tree: DocumentTree) -> None:
        weight = tree.weight
        self._weight += weight - self._weights.get(number, 0)
        self._weights[number] = weight
        while self._weight > self._cost_max and len(self._trees) > 1:
            number, _ = self._trees.popitem(last=False)
            self._weight -= self._weights.pop(number)
