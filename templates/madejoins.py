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
from xscl.query import Derived, Disjunct, Operator, Query, ValueJoin, VariableValue
from xscl.textjoins import text_join

__all__ = ["texts_made", "with_made_joins"]


def texts_made(disjuncts: Iterable[Disjunct], side: int) -> tuple[Made, ...]:
    """Return the texts of one side that conjunctions join by, and that stage 1 does not make."""
    found: dict[Made, None] = {}
    for disjunct in disjuncts:
        for join in disjunct.value_joins:
            joined = join.right if side else join.left
            if type(joined) is not VariableValue and as_derived(joined) is None:  # as hardly ever
                found[Made(joined)] = None
    return tuple(found)


def with_made_joins(query: Query, node: PlainNode) -> Any:
    """Return a node of a plain query whose operators join by texts that are made of their operands.

    That is where nothing else pairs tuples; where there is no such operator it is the node itself.
    """

    def within(each: PlainNode) -> Any:
        return each if isinstance(each, int) else with_made_joins(query, each)

    match node:
        case Operator(left=left, right=right, disjuncts=disjuncts):
            sides = within(left), within(right)
            asked = disjuncts
            if not all(map(_has_pairs, disjuncts)):
                asked = tuple([_joined(query, node, each) for each in disjuncts])
            if asked is disjuncts and sides[0] is left and sides[1] is right:
                return node
            return replace(node, left=sides[0], right=sides[1], disjuncts=asked)
        case Ordered(operands=operands):
            return replace(node, operands=tuple(map(within, operands)))
        case Kept(node=inner):
            return replace(node, node=within(inner))
        case Repeated(operand=operand) if operand is not None:
            return replace(node, operand=within(operand))
    return node


def _has_pairs(asked: Disjunct) -> bool:
    """Return whether pairs are looked up, or nothing is asked by which they could be."""
    return bool(asked.value_joins or asked.similarity_joins) or not (asked.residuals or asked.tests)


def _joined(query: Query, node: Operator, asked: Disjunct) -> Disjunct:
    """Return a conjunction of an operator that joins by texts that are made, if by nothing else."""
    if _has_pairs(asked):
        return asked
    block_of = {variable.name: variable.block for variable in query.variables}
    sides = {*blocks_of(node.left)}, {*blocks_of(node.right)}

    def joined(comparison: Comparison) -> Comparison:
        texts = text_join(comparison, block_of, sides)
        return comparison if texts is None else ValueJoin(*cast("tuple[Derived, Derived]", texts))

    return conjunction([*map(joined, comparisons_of(asked))])
