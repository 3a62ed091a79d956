"""Elements of documents that are kept as texts in a list: what conditions and values ask of them.

All documents of one structure share the elements; `KeptTree.move` says whose texts they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from lxml import etree

from xpath_eval.parsing import parse_elements
from xpath_eval.structure import NodeTree, Structure

__all__ = ["KeptTree", "Place"]

Place = tuple[int, str | bool]
"""Where a text stands: at an element, as its attribute of a name, its tail (True) or its text."""


class KeptTree(NodeTree):
    """One document after another of a structure.

    `texts` has those of all documents, `places` where each of a document's stands; `xml` returns
    the document by its place in the list, for what is asked of libxml2 alone.
    """

    def __init__(
        self,
        structure: Structure,
        places: Mapping[Place, int],
        texts: Sequence[str],
        xml: Callable[[int], bytes],
    ) -> None:
        self._structure = structure
        self._places = places
        self._texts = texts
        self._xml = xml
        self._document = 0
        self._parsed: list[etree._Element] | None = None
        kept = [_KeptElement(self, each) for each in range(structure.element_count)]
        super().__init__(cast("list[etree._Element]", kept))

    def move(self, document: int, revision: int) -> KeptTree:
        """Turn to another document."""
        self._document = document
        self.revision = revision
        self._parsed = None
        return self

    def parsed(self, element: int) -> etree._Element:
        """Return an element of the document, which is parsed for it."""
        if self._parsed is None:
            self._parsed = parse_elements(self._xml(self._document))
        return self._parsed[element]

    def text(self, place: Place) -> str | None:
        """Return the text at a place, None where there is none."""
        at = self._places.get(place)
        return None if at is None else self._texts[self._document * len(self._places) + at]

    def size(self, element: int) -> int:
        """Return how many children an element has."""
        return self._structure.counts[element]

    def within(self, element: int) -> Iterator[str]:
        """Yield the texts in an element, in the document's order."""
        end = self._structure.ends[element]
        for owner, is_tail in self._structure.texts:
            if element <= owner < end and not (is_tail and owner == element):
                yield self.text((owner, is_tail)) or ""


class _KeptElement:
    """An element as far as it is asked about while evaluating: its texts."""

    __slots__ = ("_number", "_tree")

    def __init__(self, tree: KeptTree, number: int) -> None:
        self._tree = tree
        self._number = number

    def __len__(self) -> int:
        return self._tree.size(self._number)

    def __bool__(self) -> bool:
        return True

    @property
    def text(self) -> str | None:
        return self._tree.text((self._number, False))

    @property
    def tail(self) -> str | None:
        return self._tree.text((self._number, True))

    @property
    def attrib(self) -> _KeptElement:
        return self

    def __getitem__(self, name: str) -> str | None:
        return self._tree.text((self._number, name))

    def itertext(self) -> Iterator[str]:
        return self._tree.within(self._number)
