"""Documents as the oracle sees them: plain nodes, numbered as the semantics number them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

__all__ = ["Node", "is_well_formed", "parse_tree"]


@dataclass(eq=False, slots=True)
class Node:
    """A node of kind `document`, `element`, `attribute` or `text`.

    Two nodes are equal only if they are the same one.  The document node has number -1.
    `element` is lxml's element: the node itself, or the owner of an attribute or a text.
    """

    kind: str
    parent: Node | None
    element: Any
    namespace: str | None = None
    name: str = ""
    text: str = ""
    number: int = -1
    attributes: list[Node] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)

    @property
    def value(self) -> str:
        """The string value: of an element, the texts below it, one after the other."""
        if self.kind in ("attribute", "text"):
            return self.text
        return "".join(child.value for child in self.children)

    def descendants_or_self(self) -> Iterator[Node]:
        """Yield this node, then its elements and texts in document order, without attributes."""
        yield self
        for child in self.children:
            yield from child.descendants_or_self()


def parse_tree(xml: bytes) -> Node:
    """Return the document node.  Comments and processing instructions do not exist in it."""
    parser = etree.XMLParser(remove_comments=True, remove_pis=True, no_network=True)
    document = Node("document", None, None)
    document.children.append(_element(etree.fromstring(xml, parser), document))
    _number(document)
    return document


def is_well_formed(xml: bytes) -> bool:
    """Return whether the bytes are an XML document."""
    try:
        parse_tree(xml)
    except etree.XMLSyntaxError:
        return False
    return True


def _element(source: Any, parent: Node) -> Node:
    namespace, name = _expanded_name(source.tag)
    node = Node("element", parent, source, namespace, name)
    for tag, value in source.attrib.items():
        node.attributes.append(Node("attribute", node, source, *_expanded_name(tag), value))
    node.attributes.sort(key=lambda attribute: (attribute.namespace or "", attribute.name))
    _put_in_order(source)
    _add_text(node, source.text)
    for child in source:
        node.children.append(_element(child, node))
        _add_text(node, child.tail)
    return node


def _put_in_order(source: Any) -> None:
    """Have lxml count attributes in the order of the semantics as well."""
    attributes = [(etree.QName(tag), value) for tag, value in source.attrib.items()]
    in_order = sorted(attributes, key=lambda a: (a[0].namespace or "", a[0].localname))
    if attributes == in_order:  # else lxml may choose another prefix
        return
    source.attrib.clear()
    for tag, value in in_order:
        source.set(tag, value)


def _add_text(owner: Node, text: str | None) -> None:
    if text:
        owner.children.append(Node("text", owner, owner.element, text=text))


def _expanded_name(tag: str) -> tuple[str | None, str]:
    name = etree.QName(tag)
    return name.namespace, name.localname


def _number(document: Node) -> None:
    """Number elements from 0, then attributes, then texts: section 1."""
    nodes = list(document.descendants_or_self())
    elements = [node for node in nodes if node.kind == "element"]
    attributes = [attribute for element in elements for attribute in element.attributes]
    texts = [node for node in nodes if node.kind == "text"]
    for number, node in enumerate([*elements, *attributes, *texts]):
        node.number = number
