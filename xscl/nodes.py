"""Numbers the nodes of a document: elements in document order, then attributes, then texts.

Attributes are numbered by owner in document order and within an owner by (namespace, name);
comments and processing instructions do not exist, and the text around one is one text node.

Numbering goes through the whole document, and many matches may be made of it, so a `NumberedTree`
keeps what it has counted for as long as the tree itself is there.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lxml import etree

__all__ = [
    "AttributeNode",
    "Node",
    "NumberedTree",
    "TextNode",
    "attributes_of",
    "copy_of",
    "text_within",
    "texts_of",
]


@dataclass(frozen=True, slots=True)
class AttributeNode:
    """An attribute; `name` is its expanded name as lxml writes it, `{uri}local`."""

    owner: Any
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class TextNode:
    """A text node; `index` is its place among the text nodes of its parent."""

    parent: Any
    index: int
    value: str


Node = Any
"""An lxml element, an `AttributeNode` or a `TextNode`."""


class NumberedTree:
    """A document's tree with its nodes by number; each kind is counted once, when it is asked for.

    The tree is given as its root element or whole, and changed neither then nor later.

    >>> NumberedTree(etree.XML("<a>one<b/>two</a>")).node(3).value
    'two'
    """

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self.xpath: dict[int, Any] = {}
        """The same tree as elementpath has it, by block, once it has been asked for."""

    @cached_property
    def root(self) -> Any:
        """The root, without comments and processing instructions."""
        return _without_comments(_root_element(self._tree))

    @cached_property
    def text(self) -> str:
        """The root as XML: many matches copy it whole."""
        text: str = etree.tostring(self.root, encoding="unicode", with_tail=False)
        return text

    @cached_property
    def elements(self) -> list[Any]:
        """The elements in document order."""
        return list(self.root.iter("*"))

    @cached_property
    def attributes(self) -> list[AttributeNode]:
        """The attributes in the order of their numbers."""
        return [each for owner in self.elements if owner.attrib for each in attributes_of(owner)]

    @cached_property
    def texts(self) -> list[TextNode]:
        """The text nodes in document order."""
        return list(_texts(self.root))

    def node(self, number: int) -> Node:
        """Return the node with this number; raise `IndexError` where there is none."""
        if number == 0:
            return self.root
        if number < 0:
            raise IndexError(number)
        if number < len(self.elements):
            return self.elements[number]
        number -= len(self.elements)
        if number < len(self.attributes):
            return self.attributes[number]
        return self.texts[number - len(self.attributes)]


def _root_element(tree: Any) -> Any:
    return tree.getroot() if hasattr(tree, "getroot") else tree


def _without_comments(root: Any) -> Any:
    """Return a tree without comments and processing instructions, itself if it has none."""
    if next(root.iter(etree.Comment, etree.ProcessingInstruction), None) is None:
        return root
    stripped = copy.deepcopy(root)
    etree.strip_tags(stripped, etree.Comment, etree.ProcessingInstruction)
    return stripped


def attributes_of(element: Any) -> Iterator[AttributeNode]:
    """Yield the attributes of an element in the order of their numbers."""
    for _, name in sorted((_expanded(name), name) for name in element.attrib):
        yield AttributeNode(element, name, element.attrib[name])


def _expanded(name: str) -> tuple[str, str]:
    uri, brace, local = name.rpartition("}")
    return (uri[1:], local) if brace else ("", name)


def _texts(root: Any) -> Iterator[TextNode]:
    """Yield the text nodes in document order: one behind each start and each end of an element."""
    counts: dict[Any, int] = {}
    for event, node in etree.iterwalk(root, events=("start", "end")):
        if event == "start":
            parent, value = node, node.text
        elif node is not root:
            parent, value = node.getparent(), node.tail
        else:
            return
        if value:
            index = counts[parent] = counts.get(parent, -1) + 1
            yield TextNode(parent, index, value)


def texts_of(element: Any) -> Iterator[TextNode]:
    """Yield the text nodes that are children of an element."""
    texts = filter(None, (element.text, *(child.tail for child in element)))
    return (TextNode(element, index, text) for index, text in enumerate(texts))


def copy_of(node: Node) -> Any:
    """Return a copy of an element without its tail; of an attribute, an element of its name."""
    if isinstance(node, AttributeNode):
        element = etree.Element(node.name)
        element.text = node.value
        return element
    element = copy.deepcopy(node)
    element.tail = None
    return element


def text_within(element: Any) -> str:
    """Return the string value of an element: the text in it, in document order."""
    return "".join(element.itertext())
