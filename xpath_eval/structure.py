"""A document as its evaluator sees it: a parsed tree, and its structure as plain numbers.

Nodes are numbered as the semantics say (section 1): elements in document order from 0; then
attributes, by owner and within an owner by (namespace, name); then text nodes in document order.
Comments and processing instructions do not exist: the parser drops them, and text on both sides
of one is one text node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from lxml import etree

from xpath_eval.parsing import XmlError, check_attributes, parse_elements

__all__ = ["Structure", "StructureKey", "Tree", "XmlError", "parse_xml", "structure_key"]

StructureKey = tuple[tuple[Any, ...], ...]
"""For each element its name, child count, with text positions two booleans, attribute names."""


def parse_xml(xml: bytes) -> Tree:
    """Parse one document; raise `XmlError` where it is not well-formed or over a limit."""
    return Tree(parse_elements(xml))


def structure_key(elements: Sequence[etree._Element], *, with_text: bool) -> StructureKey:
    """Return what determines the structure: equal keys, equal `Structure`.

    Names and child counts in document order give the tree.  Text positions count only where some
    pattern asks for text nodes.  This runs for every document: it makes one tuple for each
    element, and no object of lxml's beside the elements.
    """
    if with_text:
        return tuple([(e.tag, len(e), bool(e.text), bool(e.tail), *e.keys()) for e in elements])
    return tuple([(e.tag, len(e), *e.keys()) for e in elements])


class Tree:
    """One parsed document: its elements in document order, and the values of its nodes."""

    def __init__(self, elements: list[etree._Element]) -> None:
        self.elements = elements

    @property
    def root(self) -> etree._Element:
        """The root element."""
        return self.elements[0]

    def structure_key(self, *, with_text: bool) -> StructureKey:
        """Return what determines the structure: equal keys, equal `Structure`."""
        return structure_key(self.elements, with_text=with_text)

    def structure(self) -> Structure:
        """Return the document's structure, text nodes included."""
        return Structure(self.structure_key(with_text=True), with_text=True)

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

    Made of a structure key; without text positions in the key there are no text nodes.  Raises
    `XmlError` where an element has too many attributes.
    """

    def __init__(self, key: StructureKey, *, with_text: bool) -> None:
        self._key = key
        self._with_text = with_text
        self._first_attribute = 4 if with_text else 2
        check_attributes(max(map(len, key)) - self._first_attribute)
        self.names: list[str] = [row[0] for row in key]
        self.parents, self.ends = _tree([row[1] for row in key])
        self.children: list[list[int]] = [[] for _ in key]
        for element, parent in enumerate(self.parents):
            if parent >= 0:
                self.children[parent].append(element)

    @cached_property
    def attributes(self) -> list[tuple[int, str]]:
        """The attributes in the order of their numbers: (owner, name)."""
        first = self._first_attribute
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
        if not self._with_text:
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


def _tree(counts: list[int]) -> tuple[list[int], list[int]]:
    """Return parents and ends from the child counts in document order."""
    parents: list[int] = []
    ends = [0] * len(counts)
    open_: list[list[int]] = []
    for i, count in enumerate(counts):
        parents.append(open_[-1][0] if open_ else -1)
        if open_:
            open_[-1][1] -= 1
        open_.append([i, count])
        while open_ and open_[-1][1] == 0:
            ends[open_.pop()[0]] = i + 1
    return parents, ends
