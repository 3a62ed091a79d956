"""A document as its evaluator sees it: a parsed tree, and its structure as plain numbers.

Nodes are numbered as the semantics say (section 1): elements in document order from 0; then
attributes, by owner and within an owner by (namespace, name); then text nodes in document order.
Comments and processing instructions do not exist: the parser drops them, and text on both sides
of one is one text node.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from operator import attrgetter
from typing import Any

from lxml import etree

from xpath_eval.parsing import XmlError, parse_elements

__all__ = [
    "Detail",
    "NodeTree",
    "Structure",
    "StructureKey",
    "XmlError",
    "parse_xml",
    "structure_key",
]

_tag = attrgetter("tag")

StructureKey = tuple[Any, ...]
"""For each element its name, child count, and more according to the detail."""


class Detail(IntEnum):
    """How much of a structure the patterns can tell apart; each has all of those before it."""

    NAMES = 0
    ATTRIBUTES = 1
    TEXTS = 2


def parse_xml(xml: bytes) -> NodeTree:
    """Parse one document; raise `XmlError` where it is not well-formed or over a limit."""
    return NodeTree(parse_elements(xml))


def structure_key(elements: Sequence[etree._Element], detail: Detail) -> StructureKey:
    """Return what determines the structure: equal keys, equal `Structure`.

    Names and child counts in document order give the tree.  The names of attributes, and where
    text stands, count only where some pattern asks for them.  This runs for every document: it
    makes no object of lxml's beside the elements.
    """
    if detail is Detail.NAMES:
        return (*map(_tag, elements), *map(len, elements))
    if detail is Detail.ATTRIBUTES:
        return tuple([(e.tag, len(e), *e.keys()) for e in elements])
    return tuple([(e.tag, len(e), bool(e.text), bool(e.tail), *e.keys()) for e in elements])


class NodeTree:
    """One parsed document: its elements in document order, and the values of its nodes.

    `revision` says how many documents it revises.
    """

    __slots__ = ("elements", "revision")

    def __init__(self, elements: list[etree._Element], revision: int = 0) -> None:
        self.elements = elements
        self.revision = revision

    def texts(self, leaves: Sequence[int]) -> list[str]:
        """Return the texts of elements without children."""
        elements = self.elements
        return [elements[leaf].text or "" for leaf in leaves]

    def values(self, leaves: Sequence[int]) -> list[str | None]:
        """Return the texts of elements without children, None in the places of -1."""
        elements = self.elements
        return [elements[leaf].text or "" if leaf >= 0 else None for leaf in leaves]

    def parsed(self, element: int) -> etree._Element:
        """Return an element as libxml2 has it, to ask it an XPath expression."""
        return self.elements[element]

    @property
    def root(self) -> etree._Element:
        """The root element."""
        return self.elements[0]

    def structure(self) -> Structure:
        """Return the document's structure, text nodes included."""
        return Structure(structure_key(self.elements, Detail.TEXTS), Detail.TEXTS)

    def value(self, structure: Structure, node: int) -> str:
        """Return the string value of a node, as XPath has it."""
        if node < structure.element_count:
            element = self.elements[node]
            if not len(element):
                return element.text or ""
            return "".join(map(str, element.itertext()))
        if node < structure.text_base:
            owner, name = structure.attributes[node - structure.element_count]
            return str(self.elements[owner].attrib[name])
        owner, is_tail = structure.texts[node - structure.text_base]
        return (self.elements[owner].tail if is_tail else self.elements[owner].text) or ""


class Structure:
    """The nodes of a document without their values, each part made when it is first asked for.

    Made of a structure key; what its detail leaves out is not there.  `names` and `counts` are the
    name and the number of child elements of each element.
    """

    def __init__(self, key: StructureKey, detail: Detail) -> None:
        self._key = key
        self._detail = detail
        if detail is Detail.NAMES:
            half = len(key) // 2
            self.names: Sequence[str] = key[:half]
            self.counts: Sequence[int] = key[half:]
        else:
            self.names = [row[0] for row in key]
            self.counts = [row[1] for row in key]

    @cached_property
    def parents(self) -> list[int]:
        """The parent of each element, -1 for the root."""
        return _parents(self.counts)

    @cached_property
    def children(self) -> list[list[int]]:
        """The child elements of each element."""
        found: list[list[int]] = [[] for _ in self.names]
        for element, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(element)
        return found

    @cached_property
    def ends(self) -> list[int]:
        """One past the last descendant of each element."""
        ends = [0] * len(self.counts)
        sizes: list[int] = []
        for element in range(len(ends) - 1, -1, -1):
            size = 1
            if count := self.counts[element]:
                size += sum(sizes[-count:])
                del sizes[-count:]
            sizes.append(size)
            ends[element] = element + size
        return ends

    @cached_property
    def attributes(self) -> list[tuple[int, str]]:
        """The attributes in the order of their numbers: (owner, name)."""
        if self._detail is Detail.NAMES:
            return []
        first = 2 if self._detail is Detail.ATTRIBUTES else 4
        return [
            (owner, name)
            for owner, row in enumerate(self._key)
            if len(row) > first
            for name in sorted(row[first:], key=_attribute_order)
        ]

    @cached_property
    def attributes_of(self) -> list[list[int]]:
        """The attributes of each element."""
        found: list[list[int]] = [[] for _ in self.names]
        for number, (owner, _) in enumerate(self.attributes, self.element_count):
            found[owner].append(number)
        return found

    @cached_property
    def texts(self) -> list[tuple[int, bool]]:
        """The text nodes in the order of their numbers: (element, whether it is its tail).

        An element's first text stands right after its start; its tail, after its last descendant.
        """
        if self._detail is not Detail.TEXTS:
            return []
        # (elements passed before it, depth order of equal places, element, is_tail)
        places: list[tuple[int, int, int, bool]] = []
        for element, row in enumerate(self._key):
            if row[2]:
                places.append((element + 1, -element - 1, element, False))
            if element and row[3]:
                places.append((self.ends[element], -element, element, True))
        return [(element, is_tail) for _, _, element, is_tail in sorted(places)]

    @cached_property
    def texts_of(self) -> list[list[int]]:
        """The text children of each element."""
        found: list[list[int]] = [[] for _ in self.names]
        for number, (element, is_tail) in enumerate(self.texts, self.text_base):
            found[self.parents[element] if is_tail else element].append(number)
        return found

    @property
    def element_count(self) -> int:
        """How many elements there are: the number of the first attribute."""
        return len(self.names)

    @property
    def text_base(self) -> int:
        """The number of the first text node."""
        return len(self.names) + len(self.attributes)

    def parent(self, node: int) -> int:
        """Return the parent element of any node, or -1 for the root element."""
        if node < self.element_count:
            return self.parents[node]
        if node < self.text_base:
            return self.attributes[node - self.element_count][0]
        element, is_tail = self.texts[node - self.text_base]
        return self.parents[element] if is_tail else element

    def attribute_name(self, node: int) -> str:
        """Return the expanded name of an attribute node."""
        return self.attributes[node - self.element_count][1]

    def is_element(self, node: int) -> bool:
        """Return whether a node is an element."""
        return node < self.element_count

    def is_text(self, node: int) -> bool:
        """Return whether a node is a text node."""
        return node >= self.text_base


def _attribute_order(name: str) -> tuple[str, str]:
    namespace, _, local = name.rpartition("}")
    return namespace[1:], local


def _parents(counts: Sequence[int]) -> list[int]:
    """Return the parent of each element from the child counts in document order."""
    parents: list[int] = []
    waiting: list[tuple[int, int]] = []
    parent, left = -1, 1
    for element, count in enumerate(counts):
        parents.append(parent)
        left -= 1
        if count:
            waiting.append((parent, left))
            parent, left = element, count
        while not left and waiting:
            parent, left = waiting.pop()
    return parents
