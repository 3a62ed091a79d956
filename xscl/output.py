"""Builds a match's output from its documents: what the SELECT clause asks for.

`SELECT *` and lists copy nodes.  A constructor is evaluated with elementpath, XPath 2.0; where
that fails on these documents, the output is that of `SELECT *`, and the error is told beside it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, SupportsFloat
from xml.sax.saxutils import escape

from lxml import etree

from xscl.enclosed import xpath_variable
from xscl.meter import Meter, size
from xscl.nodes import AttributeNode, Node, NumberedTree, TextNode, copy_of
from xscl.query import ROW_VALUE, Constructor, Query, Select, SelectNodes

__all__ = ["Place", "build", "build_row", "expression_error"]

Place = tuple[int, int]
"""The place of a document among those of a match, and the number of a node there."""


def build(
    query: Query,
    trees: Sequence[NumberedTree],
    nodes: Mapping[str, Sequence[Place]],
    start_us: int,
    end_us: int,
    parameters: Mapping[str, str | float | int] | None = None,
    meter: Meter | None = None,
    confidence: SupportsFloat = 1.0,
    folds: Mapping[str, Any] | None = None,
) -> tuple[str, str | None]:
    """Return the output of a match, and why its constructor failed, or `None`.

    `trees` are the documents; `nodes` has for each visible variable where its nodes are: one, of a
    variable that is repeated one for each element, of a variable of an alternative that is not
    there none.  `folds` are values of FOLD, as a line shows them.
    Nothing that is given is changed.  Raises `ExhaustedError` where the output costs more than
    the `meter` has: its bytes, and what a constructor goes through.
    """
    meter = meter or Meter()

    def all_copied() -> str:
        roots = {place for block in query.blocks for place in nodes.get(block.root, ())}
        return _copies(trees, sorted(roots), meter)

    select = query.select
    if isinstance(select, Constructor):
        from xscl.construct import ConstructionError, construct

        # Of two documents, the nodes of the one that stands first come first in a sorted sequence.
        bound = {
            name: [
                (place, trees[place], trees[place].node(number)) for place, number in nodes[name]
            ]
            for name in select.variables
            if name in nodes
        }
        try:
            own = {xpath_variable(name): value for name, value in (folds or {}).items()}
            own["xscl.confidence"] = float(confidence)
            made = construct(select, bound, start_us, end_us, parameters or {}, meter, own)
            return made, None
        except ConstructionError as error:
            return all_copied(), str(error)
    if isinstance(select, SelectNodes):
        shown = [place for name in select.variables for place in nodes.get(name, ())]
        return _copies(trees, shown, meter), None
    return all_copied(), None


def build_row(
    select: Select,
    values: Sequence[Any],
    end_us: int,
    parameters: Mapping[str, str | float | int],
    trees: Callable[[], Sequence[NumberedTree]],
    meter: Meter,
) -> tuple[str, str | None]:
    """Return the output of a row of WINDOW, and why its constructor failed, or `None`.

    `values` are its keys and aggregates; `trees` gives the documents that `SELECT *` copies.
    Raises `ExhaustedError` as `build` does.
    """
    error = None
    if isinstance(select, Constructor):
        from xscl.construct import ConstructionError, construct

        row = {f"{ROW_VALUE}{number}": value for number, value in enumerate(values)}
        try:
            return construct(select, {}, end_us, end_us, parameters, meter, row), None
        except ConstructionError as failed:
            error = str(failed)
    own = trees()
    return _copies(own, [(place, 0) for place in range(len(own))], meter), error


def _copies(trees: Sequence[NumberedTree], nodes: Iterable[Place], meter: Meter) -> str:
    """Return `<match>` with copies of the nodes, written without building a tree."""
    pieces = ["<match>"]
    for place, number in nodes:
        tree = trees[place]
        pieces.append(_serialised(tree.node(number)) if number else tree.text)
        meter.spend(size(pieces[-1]))
    return "".join([*pieces, "</match>"])


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
