"""Numbers of tuples that boxes hold against bounds, and that are no values of nodes.

Arithmetic is that of `xscl.evaluation`, on columns of doubles: one number for each tuple.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from broker.matching.boxes.columns import Doubles, Flags, Ints
from broker.matching.boxes.operands import Operands
from broker.matching.boxes.points import Points
from broker.matching.boxes.solutions import are_moderate, solve
from templates.box import BAR, DURATION, Computed, Instant, Measured, Number, Place, Solution, Terms
from templates.elementnumbers import calculate
from xscl.query import Call, Operand, term

__all__ = ["are_solved", "ends_at", "ends_of", "is_made", "numbers_of"]


def is_made(place: Place | Number) -> bool:
    """Return whether what is at a place is a number that is made of the tuple."""
    return not isinstance(place, Place) or place in (BAR, DURATION)


def numbers_of(points: Points, place: Place | Number, rows: Ints) -> Doubles:
    """Return the numbers of some tuples; NaN where one is none."""
    match place:
        case Measured():
            return points.measured(place, rows)
        case Computed(operand, terms):
            return _NumberColumns.of(points, terms, rows).values(operand)
        case Solution():
            return ends_of(points, place, rows)[not place.is_least]
    if place == BAR:
        return points.bars[rows]
    assert place == DURATION
    starts, ends = points.intervals(rows)
    return (ends - starts).astype(np.float64)


def ends_of(points: Points, solution: Solution, rows: Ints) -> tuple[Doubles, Doubles]:
    """Return between which numbers data must be for some tuples to pass a comparison."""
    return _solved(solution, _NumberColumns.of(points, solution.terms, rows))


def _solved(solution: Solution, columns: _NumberColumns) -> tuple[Doubles, Doubles]:
    operands = [columns.values(step.operand) for step in solution.steps]
    return solve(solution.steps, operands, solution.operator, columns.values(solution.other))


def ends_at(
    operands: Operands, positions: Mapping[str, int], solution: Solution
) -> tuple[Doubles, Doubles]:
    """Return `ends_of` of tuples that are instances, with the positions of their terms."""
    columns = {
        name: operands.doubles(operands.starts + positions[name]) for name, _ in solution.terms
    }
    intervals = operands.column("start_us"), operands.column("end_us")
    return _solved(solution, _NumberColumns(columns, intervals))


def are_solved(points: Points, solution: Solution, rows: Ints) -> Flags:
    """Return for which tuples the ends of a solution decide its comparison."""
    columns = _NumberColumns.of(points, solution.terms, rows)
    return are_moderate(solution.steps, [columns.values(step.operand) for step in solution.steps])


class _NumberColumns:
    """The values of terms in some tuples, as columns of doubles."""

    def __init__(self, columns: Mapping[str, Doubles], intervals: tuple[Ints, Ints]) -> None:
        self._columns = columns
        self._starts, self._ends = (each.astype(np.float64) for each in intervals)
        self._lengths = (intervals[1] - intervals[0]).astype(np.float64)

    @classmethod
    def of(cls, points: Points, terms: Terms, rows: Ints) -> _NumberColumns:
        """Return what terms are in some tuples."""
        columns = {name: _read(points, place, rows) for name, place in terms}
        return cls(columns, points.intervals(rows))

    def values(self, operand: Operand) -> Doubles:
        """Return the numbers that an operand comes to."""
        found = calculate(operand, self._read)
        return np.broadcast_to(np.asarray(found, np.float64), self._starts.shape)

    def _read(self, operand: Operand) -> Doubles:
        match operand:
            case Call("start", ()):
                return self._starts
            case Call("end", ()):
                return self._ends
            case Call("dur", ()):
                return self._lengths
        return self._columns[term(operand)]


def _read(points: Points, place: Place | Instant, rows: Ints) -> Doubles:
    """Return what is at a place in some tuples, as doubles."""
    if isinstance(place, Instant):
        operands = (points.right if place.side else points.left)[rows]
        return points.operands.column("end_us" if place.is_end else "start_us")[operands].astype(
            np.float64
        )
    return points.operands.doubles(points.values_at(rows, *np.array([place]).T))
