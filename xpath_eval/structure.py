"""A document as its evaluator sees it: a parsed tree, and its structure as plain numbers.

Nodes are numbered as the semantics say (section 1): elements in document order from 0; then
attributes, by owner and within an owner by (namespace, name); then text nodes in document order.
Comments and processing instructions do not exist: the parser drops them, and text on both sides
of one is one text node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lxml import etree

__all__ = ["Structure", "Tree", "XmlError", "parse_xml"]

ATTRIBUTES_MAX = 10_000
"""Attributes of one element.  libxml2 has no limit of its own; a list of them is sorted."""

StructureKey = tuple[object, ...]


class XmlError(ValueError):
    """Bytes that are not a document that can be read.  The publisher can act on the message."""


def parse_xml(xml: bytes) -> Tree:
    """Parse one document; raise `XmlError` where it is not well-formed or over a limit.

    Entities are never expanded and nothing is loaded from outside: a document that declares
    entities is refused.  libxml2's own limits hold: depth 256, 10 MB of text in one node.
    """
    # A parser keeps the names of all documents that it has read; a new one each time is cheap.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )
    try:
        root = etree.fromstring(xml, parser)
    except etree.XMLSyntaxError as error:
        raise XmlError(str(error.msg or error)) from error
    except ValueError as error:
        raise XmlError(str(error)) from error
    declarations: Any = root.getroottree().docinfo.internalDTD
    if declarations is not None and any(True for _ in declarations.iterentities()):
        raise XmlError("the document declares entities, which are not expanded here")
    return Tree(root)


class Tree:
    """One parsed document: its elements, their values, and the key of its structure."""

    def __init__(self, root: etree._Element) -> None:
        self.root = root
        self.elements: list[etree._Element] = list(root.iter("*"))

    def structure_key(self, *, with_text: bool) -> StructureKey:
        """Return what determines the structure: equal keys, equal `Structure`.

        Names and child counts in document order give the tree.  Text positions count only where
        some pattern asks for text nodes.
        """
        elements = self.elements
        key = (
            tuple([e.tag for e in elements]),
            tuple([len(e) for e in elements]),
            tuple([(i, *sorted(e.attrib)) for i, e in enumerate(elements) if e.attrib]),
        )
        if with_text:
            return (*key, tuple([(bool(e.text), bool(e.tail)) for e in elements]))
        return key

    def structure(self) -> Structure:
        """Return the document's structure, text nodes included."""
        return _read_structure(self.elements)

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


@dataclass(frozen=True, slots=True)
class Structure:
    """The nodes of a document without their values.

    `ends[i]` is one past the last descendant of element `i`.  `attributes` and `texts` list those
    nodes in the order of their numbers: (owner, name), and (element, whether it is the text after
    the element's end rather than its first).  `texts_of[i]` are the text children of element `i`.
    """

    names: Sequence[str]
    parents: Sequence[int]
    children: Sequence[Sequence[int]]
    ends: Sequence[int]
    attributes: Sequence[tuple[int, str]]
    attributes_of: Sequence[Sequence[int]]
    texts: Sequence[tuple[int, bool]]
    texts_of: Sequence[Sequence[int]]

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


def _read_structure(elements: list[etree._Element]) -> Structure:
    names = [str(e.tag) for e in elements]
    counts = [len(e) for e in elements]
    parents, ends = _tree(counts)
    children: list[list[int]] = [[] for _ in names]
    for i, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(i)
    attributes: list[tuple[int, str]] = []
    attributes_of: list[list[int]] = [[] for _ in names]
    for i, element in enumerate(elements):
        for name in sorted(map(str, element.attrib), key=_attribute_order):
            attributes_of[i].append(len(names) + len(attributes))
            attributes.append((i, name))
    texts, texts_of = _read_texts(elements, parents, ends, len(names) + len(attributes))
    return Structure(names, parents, children, ends, attributes, attributes_of, texts, texts_of)


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


def _read_texts(
    elements: list[etree._Element], parents: list[int], ends: list[int], base: int
) -> tuple[list[tuple[int, bool]], list[list[int]]]:
    """Return the text nodes in document order, and those of each element.

    An element's first text stands right after its start; its tail, after its last descendant.
    """
    # (elements passed before it, depth order of equal places, element, is_tail)
    places: list[tuple[int, int, int, bool]] = []
    for i, element in enumerate(elements):
        if element.text:
            places.append((i + 1, -i - 1, i, False))
        if i and element.tail:
            places.append((ends[i], -i, i, True))
    texts: list[tuple[int, bool]] = []
    texts_of: list[list[int]] = [[] for _ in elements]
    for _, _, i, is_tail in sorted(places):
        texts_of[parents[i] if is_tail else i].append(base + len(texts))
        texts.append((i, is_tail))
    return texts, texts_of
