"""Documents as the nodes that elementpath works on.

elementpath's own trees put the text behind an element before the text within it, so that the
string value of `<c><b>h</b></c>y` would be `yh`; and each of them counts its nodes from 1, so that
a union over two documents would mix them.  Here text stands in document order, and the nodes of an
earlier block's document are before all nodes of a later one's.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import elementpath
from elementpath.datatypes import UntypedAtomic
from elementpath.xpath_nodes import EtreeElementNode
from lxml import etree

from xscl.nodes import AttributeNode, Node, NumberedTree, TextNode, text_within

__all__ = ["xpath_node"]

_POSITIONS = 1 << 40
"""Positions that the nodes of one block's document may have, more than any document has nodes."""


def xpath_node(tree: NumberedTree, block: int, node: Node) -> Any:
    """Return elementpath's node for one of ours, in the document of a block.

    elementpath's tree is kept beside ours, for each block that the document has stood in.
    """
    if block not in tree.xpath:
        tree.xpath[block] = _NodeBuilder(block * _POSITIONS + 1).tree(tree.root)
    elements = tree.xpath[block].tree.elements
    if isinstance(node, AttributeNode):
        return next(each for each in elements[node.owner].attributes if each.name == node.name)
    if isinstance(node, TextNode):
        children = elements[node.parent].children
        texts = (each for each in children if isinstance(each, elementpath.TextNode))
        return next(islice(texts, node.index, None))
    return elements[node]


class _NodeBuilder:
    """Makes a tree of elementpath's nodes, counted from a position on."""

    def __init__(self, position: int) -> None:
        self._position = position

    def tree(self, root: Any) -> Any:
        """Return the root of a document's tree."""
        above: list[Any] = [None]
        for event, element in etree.iterwalk(root, events=("start", "end")):
            if event == "start":
                # The namespaces and attributes of an element stand between it and its content.
                room = len(element.nsmap) + len(element.attrib) + 2
                node = _ElementNode(element, above[-1], self._next(room))
                above.append(node)
                self._add_text(element.text, node)
            else:
                node = above.pop()
                if above[-1] is not None:
                    self._add_text(element.tail, above[-1])
        return node

    def _add_text(self, text: str | None, parent: Any) -> None:
        if text:
            elementpath.TextNode(text, parent, self._next(1))

    def _next(self, room: int) -> int:
        position = self._position
        self._position += room
        return position


class _ElementNode(EtreeElementNode):
    """An element whose text stands in document order."""

    __slots__ = ()

    @property
    def string_value(self) -> str:
        return text_within(self.value)

    @property
    def compat_string_value(self) -> str:
        return self.string_value

    @property
    def iter_typed_values(self) -> Iterator[UntypedAtomic]:
        yield UntypedAtomic(self.string_value)
