"""Builds a match's output from its documents: what the SELECT clause asks for.

`SELECT *` and lists copy nodes.  A constructor is evaluated with elementpath, XPath 2.0; where
that fails on these documents, the output is that of `SELECT *`, and the error is told beside it.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from lxml import etree

from xscl.nodes import AttributeNode, Node, TextNode, copy_of, number_nodes
from xscl.query import Constructor, Query, SelectNodes

__all__ = ["build", "expression_error", "without_comments"]


def build(
    query: Query,
    trees: Sequence[Any],
    nodes: Mapping[str, tuple[int, int]],
    start_us: int,
    end_us: int,
    parameters: Mapping[str, str | float | int] | None = None,
) -> tuple[str, str | None]:
    """Return the output of a match, and why its constructor failed, or `None`.

    `trees` has the document of each block as lxml parsed it; `nodes` has the block and the node
    number of each visible variable.  Nothing that is given is changed.
    """
    documents = _Documents(trees)
    select = query.select
    if isinstance(select, Constructor):
        from xscl.construct import ConstructionError, construct

        # Of two documents, the nodes of the earlier block come first in a sorted sequence.
        by_block = sorted(select.variables, key=lambda name: nodes[name][0])
        bound = {name: documents.node(*nodes[name]) for name in by_block}
        try:
            return construct(select, bound, start_us, end_us, parameters or {}), None
        except ConstructionError as error:
            return _copies(_roots(query, documents, nodes)), str(error)
    if isinstance(select, SelectNodes):
        return _copies([documents.node(*nodes[name]) for name in select.variables]), None
    return _copies(_roots(query, documents, nodes)), None


class _Documents:
    """The nodes of each document by number; numbered at first use."""

    def __init__(self, trees: Sequence[Any]) -> None:
        self.roots = [tree.getroot() if hasattr(tree, "getroot") else tree for tree in trees]
        self.clean: dict[int, Any] = {}
        self.numbered: dict[int, list[Node]] = {}

    def node(self, block: int, number: int) -> Node:
        if block not in self.clean:
            self.clean[block] = without_comments(self.roots[block])
        if number == 0:
            return self.clean[block]
        if block not in self.numbered:
            self.numbered[block] = number_nodes(self.clean[block])
        return self.numbered[block][number]


def _roots(query: Query, documents: _Documents, nodes: Mapping[str, tuple[int, int]]) -> list[Node]:
    return [documents.node(*nodes[block.root]) for block in query.blocks]


def without_comments(root: Any) -> Any:
    """Return a tree without comments and processing instructions, itself if it has none."""
    if next(root.iter(etree.Comment, etree.ProcessingInstruction), None) is None:
        return root
    stripped = copy.deepcopy(root)
    etree.strip_tags(stripped, etree.Comment, etree.ProcessingInstruction)
    return stripped


def _copies(nodes: Sequence[Node]) -> str:
    """Return `<match>` with copies of the nodes, written without building a tree."""
    return "<match>" + "".join(map(_serialised, nodes)) + "</match>"


def _serialised(node: Node) -> str:
    if isinstance(node, TextNode):
        return escape(node.value)
    element = copy_of(node) if isinstance(node, AttributeNode) else node
    return etree.tostring(element, encoding="unicode", with_tail=False)


@functools.lru_cache(maxsize=1024)
def expression_error(text: str, namespaces: tuple[tuple[str, str], ...]) -> str | None:
    """Return what is wrong with an XPath 2.0 expression, or `None`."""
    from xscl.construct import ConstructionError, compiled_expression

    try:
        compiled_expression(text, namespaces)
    except ConstructionError as error:
        return str(error)
    return None
