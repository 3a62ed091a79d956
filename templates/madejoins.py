"""Equalities of functions of several values, or of data, as joins of values that tuples are given.

`concat(a/first, ' ', a/last) = b/author` compares a text that no node has: stage 1 makes texts of
one value, and knows no data.  Where nothing else pairs the tuples of an operator, its operand is
handed on with the text, as with a value of one of its nodes (`templates.box.Made`), so that pairs
are looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from templates.box import Made
from templates.comparisons import Comparison, comparisons_of, conjunction
from templates.derived import as_derived
from templates.ordered import Kept, Ordered, PlainNode, Repeated, blocks_of
from xscl.query import Derived, Disjunct, Operator, Query, ValueJoin
from xscl.textjoins import text_join

__all__ = ["texts_made", "with_made_joins"]


def texts_made(disjuncts: Iterable[Disjunct], side: int) -> tuple[Made, ...]:
    """Return the texts of one side that conjunctions join by, and that stage 1 does not make."""
    joins = (join for each in disjuncts for join in each.value_joins)
    joined = ((join.left, join.right)[side] for join in joins)
    return tuple(dict.fromkeys(Made(each) for each in joined if as_derived(each) is None))


def with_made_joins(query: Query, node: PlainNode) -> Any:
    """Return a node of a plain query whose operators join by texts that are made of their operands.

    That is where nothing else pairs tuples; where there is no such operator it is the node itself.
    """

    def within(each: PlainNode) -> Any:
        return with_made_joins(query, each)

    match node:
        case Operator():
            sides = within(node.left), within(node.right)
            asked = tuple([_joined(query, node, each) for each in node.disjuncts])
            if sides == (node.left, node.right) and asked == node.disjuncts:
                return node
            return replace(node, left=sides[0], right=sides[1], disjuncts=asked)
        case Ordered(operands=operands):
            return replace(node, operands=tuple(map(within, operands)))
        case Kept(node=inner):
            return replace(node, node=within(inner))
        case Repeated(operand=operand) if operand is not None:
            return replace(node, operand=within(operand))
    return node


def _joined(query: Query, node: Operator, asked: Disjunct) -> Disjunct:
    """Return a conjunction of an operator that joins by texts that are made, if by nothing else."""
    may_join = asked.residuals or asked.tests
    if asked.value_joins or asked.similarity_joins or not may_join:  # as mostly
        return asked
    block_of = {variable.name: variable.block for variable in query.variables}
    sides = {*blocks_of(node.left)}, {*blocks_of(node.right)}

    def joined(comparison: Comparison) -> Comparison:
        texts = text_join(comparison, block_of, sides)
        return comparison if texts is None else ValueJoin(*cast("tuple[Derived, Derived]", texts))

    return conjunction([*map(joined, comparisons_of(asked))])
