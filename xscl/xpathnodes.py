"""Documents as the nodes that elementpath works on.

elementpath's own trees put the text behind an element before the text within it, so that the
string value of `<c><b>h</b></c>y` would be `yh`; and each of them counts its nodes from 1, so that
a union over two documents would mix them.  Here text stands in document order, and of two
documents all nodes of the one are before all nodes of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import elementpath
from elementpath.datatypes import UntypedAtomic
from elementpath.xpath_nodes import EtreeElementNode
from lxml import etree

from xscl.nodes import AttributeNode, Node, TextNode

__all__ = ["XPathTrees"]


class XPathTrees:
    """The trees of some documents, each made when a node of it is first asked for."""

    def __init__(self) -> None:
        self._elements: dict[Any, Any] = {}
        self._position = 1

    def node(self, node: Node) -> Any:
        """Return elementpath's node for one of ours."""
        if isinstance(node, AttributeNode):
            owner = self._element(node.owner)
            return next(each for each in owner.attributes if each.name == node.name)
        if isinstance(node, TextNode):
            children = self._element(node.parent).children
            texts = [each for each in children if isinstance(each, elementpath.TextNode)]
            return texts[node.index]
        return self._element(node)

    def _element(self, element: Any) -> Any:
        root = element.getroottree().getroot()
        if root not in self._elements:
            self._elements[root] = self._tree(root)
        return self._elements[root].tree.elements[element]

    def _tree(self, root: Any) -> Any:
        """Return the root of a document's tree, its nodes counted behind those of earlier ones."""
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
        element: Any = self.value
        return "".join(element.itertext())

    @property
    def compat_string_value(self) -> str:
        return self.string_value

    @property
    def iter_typed_values(self) -> Iterator[UntypedAtomic]:
        yield UntypedAtomic(self.string_value)
