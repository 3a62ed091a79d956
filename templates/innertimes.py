"""Intervals of inner tuples in conditions with parameters, as times of their documents.

Nobody above an operator knows when its tuples began and ended.  What is left to the root, since it
has data, reads the times of documents, which are handed on: those of the first and of the last one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from templates.computed import stands_alone
from templates.ordered import PlainNode
from xscl.comparison import FIRST_TIME, LAST_TIME, TIME_BETWEEN, operands_below
from xscl.query import (
    Call,
    Conditional,
    Disjunct,
    Operand,
    Operator,
    OperatorKind,
    Query,
    Residual,
    VariableValue,
)

__all__ = ["with_times"]


def with_times(query: Query) -> Query:
    """Return a plain query whose inner operators ask for times of documents beside data."""
    root = query.root
    if not query.parameters or not isinstance(root, Operator):
        return query
    times = _Times(query)
    sides = (times.within(cast(PlainNode, each)) for each in (root.left, root.right))
    left, right = cast("tuple[Operator, Operator]", tuple(sides))
    return replace(query, root=replace(root, left=left, right=right))


class _Times:
    """What is said of the times of a query's documents."""

    def __init__(self, query: Query) -> None:
        self._roots = [block.root for block in query.blocks]
        self._texts = query.text_parameters

    def within(self, node: PlainNode) -> PlainNode:
        """Return a node whose operators ask for times of documents."""
        if not isinstance(node, Operator):
            return node
        left, right = self.within(node.left), self.within(node.right)
        disjuncts = tuple(self._asked(each, node) for each in node.disjuncts)
        return replace(node, left=left, right=right, disjuncts=disjuncts)  # type: ignore[arg-type]

    def _asked(self, disjunct: Disjunct, node: Operator) -> Disjunct:
        asked = [each for each in disjunct.operands() if _reads_interval(each)]
        if not asked:  # as mostly
            return disjunct
        return replace(
            disjunct,
            residuals=tuple(
                each if stands_alone(each, self._texts) else self._residual(each, node)
                for each in disjunct.residuals
            ),
            tests=tuple(cast(Call, self._of(each, node)) for each in disjunct.tests),
        )

    def _residual(self, residual: Residual, node: Operator) -> Residual:
        left, right = self._of(residual.left, node), self._of(residual.right, node)
        return Residual(left, residual.operator, right)

    def _of(self, operand: Operand, node: Operator) -> Operand:
        """Return an operand of the tuples of a node that asks for times of documents."""
        match operand:
            case Call("start" | "end" as function, ()):
                return self._interval(node)[function == "end"]
            case Call("dur", ()):
                start, end = self._interval(node)
                return Call(TIME_BETWEEN, (start, end))
            case Call(function, arguments):
                return Call(function, tuple(self._of(each, node) for each in arguments))
            case Conditional(condition, then, otherwise):
                asked = tuple(self._all_of(each, node) for each in condition)
                return Conditional(asked, self._of(then, node), self._of(otherwise, node))
        return operand

    def _all_of(self, disjunct: Disjunct, node: Operator) -> Disjunct:
        """Return a condition of a choice that asks for times of documents."""
        return replace(
            disjunct,
            residuals=tuple(self._residual(each, node) for each in disjunct.residuals),
            tests=tuple(cast(Call, self._of(each, node)) for each in disjunct.tests),
        )

    def _interval(self, node: Operator) -> tuple[Operand, Operand]:
        """Return the start and the end of a node's tuples."""
        starts, ends = (
            tuple([self._time(function, block) for block in self._at_end(node, is_end=is_end)])
            for is_end, function in ((False, "start"), (True, "time"))
        )
        return Call(FIRST_TIME, starts), Call(LAST_TIME, ends)

    def _time(self, function: str, block: int) -> Operand:
        return Call(function, (VariableValue(self._roots[block]),))

    def _at_end(self, node: PlainNode, *, is_end: bool) -> tuple[int, ...]:
        """Return the blocks of which one is the first of a node's tuples, or the last."""
        if isinstance(node, int):
            return (node,)
        assert isinstance(node, Operator)
        left, right = (self._at_end(each, is_end=is_end) for each in (node.left, node.right))
        if node.kind is OperatorKind.JOIN:
            return (*left, *right)
        return right if is_end else left


def _reads_interval(operand: Operand) -> bool:
    """Return whether an operand reads the interval of a tuple."""
    return any(
        isinstance(each, Call) and each.function in ("start", "end", "dur") and not each.arguments
        for each in operands_below(operand)
    )
