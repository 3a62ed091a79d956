"""Numbers the nodes of a document: elements in document order, then attributes, then texts.

Attributes are numbered by owner in document order and within an owner by (namespace, name);
comments and processing instructions do not exist, and the text around one is one text node.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

__all__ = [
    "AttributeNode",
    "Node",
    "TextNode",
    "copy_of",
    "node_at",
    "number_nodes",
    "string_value",
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


def number_nodes(root: Any) -> list[Node]:
    """Return the nodes of a tree, given as its root element or whole, by their number."""
    root = _root_element(root)
    elements = list(root.iter("*"))
    nodes: list[Node] = list(elements)
    for element in elements:
        if element.attrib:
            nodes.extend(_attributes(element))
    nodes.extend(_texts(root))
    return nodes


def node_at(root: Any, number: int) -> Node:
    """Return the node with this number; raise `IndexError` where there is none.

    >>> node_at(etree.XML("<a>one<b/>two</a>"), 3).value
    'two'
    """
    if number < 0:
        raise IndexError(number)
    if number == 0:
        return _root_element(root)
    return number_nodes(root)[number]


def string_value(node: Node) -> str:
    """Return XPath's string value of a node."""
    if isinstance(node, (AttributeNode, TextNode)):
        return node.value
    return "".join(text.value for text in _texts(node))


def _root_element(root: Any) -> Any:
    return root.getroot() if hasattr(root, "getroot") else root


def _attributes(element: Any) -> Iterator[AttributeNode]:
    for _, name in sorted((_expanded(name), name) for name in element.attrib):
        yield AttributeNode(element, name, element.attrib[name])


def _expanded(name: str) -> tuple[str, str]:
    uri, brace, local = name.rpartition("}")
    return (uri[1:], local) if brace else ("", name)


def _texts(root: Any) -> Iterator[TextNode]:
    """Yield the text nodes in document order: an element's start or end closes the one before."""
    counts: dict[Any, int] = {}
    run: list[str] = []
    parent = root

    def closed() -> Iterator[TextNode]:
        value = "".join(run)
        run.clear()
        if value:
            index = counts[parent] = counts.get(parent, -1) + 1
            yield TextNode(parent, index, value)

    for event, node in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event == "start":
            yield from closed()
            parent = node
            run.append(node.text or "")
        elif event == "end":
            yield from closed()
            if node is not root:
                parent = node.getparent()
                run.append(node.tail or "")
        elif node.getparent() is not None and node is not root:
            run.append(node.tail or "")


def copy_of(node: Node) -> Any:
    """Return a copy of an element without its tail; of an attribute, an element of its name."""
    if isinstance(node, AttributeNode):
        element = etree.Element(node.name)
        element.text = node.value
        return element
    element = copy.deepcopy(node)
    element.tail = None
    return element
