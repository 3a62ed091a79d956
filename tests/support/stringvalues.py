"""String values of numbered nodes."""

from __future__ import annotations

from xscl.nodes import AttributeNode, Node, TextNode

__all__ = ["string_value"]


def string_value(node: Node) -> str:
    """Return XPath's string value of a node of a `NumberedTree`."""
    if isinstance(node, (AttributeNode, TextNode)):
        return node.value
    return "".join(node.itertext())
