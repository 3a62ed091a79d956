"""Conditions on rows of WINDOW, in which keys and aggregates are values of the row.

A row is read as a run that has values of FOLD and no elements (`xscl.runvalues`): the values are
named by their numbers, those of keys first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xscl.comparison import (
    Call,
    Cell,
    Conditional,
    Disjunct,
    Elements,
    Operand,
    Residual,
    Row,
)
from xscl.functions import Atom
from xscl.path import Literal
from xscl.query import Rows
from xscl.runvalues import RunAtHand
from xscl.table import Action, DeleteRow, SetCell

__all__ = [
    "LazyValues",
    "RowReading",
    "action_of_row",
    "numbered_aggregate",
    "of_row",
    "operand_of_row",
]


def of_row(disjunct: Disjunct, rows: Rows) -> Disjunct:
    """Return a conjunction that reads keys and aggregates of a row."""

    def of(operand: Operand) -> Operand:
        return operand_of_row(operand, rows)

    # The sides of a value join need not be told apart: nothing is joined.
    joins = [Call("joins", (of(join.left), of(join.right))) for join in disjunct.value_joins]
    similar = [join.residual for join in disjunct.similarity_joins]
    residuals = tuple(
        Residual(of(each.left), each.operator, of(each.right))
        for each in (*disjunct.residuals, *similar)
    )
    tests = [replace(test, arguments=tuple(map(of, test.arguments))) for test in disjunct.tests]
    return Disjunct(residuals=residuals, tests=(*joins, *tests))


def operand_of_row(operand: Operand, rows: Rows) -> Operand:
    """Return an operand that reads keys and aggregates of a row."""
    values = (*rows.keys, *rows.aggregates)
    if operand in values:
        return Elements(None, "fold", Literal(str(values.index(operand))))
    match operand:
        case Call(function, arguments):
            return Call(function, tuple(operand_of_row(each, rows) for each in arguments))
        case Row(table, key):
            return Row(table, operand_of_row(key, rows))
        case Cell(row, column):
            return Cell(Row(row.table, operand_of_row(row.key, rows)), column)
        case Conditional(condition, then, otherwise):
            return Conditional(
                tuple(of_row(each, rows) for each in condition),
                operand_of_row(then, rows),
                operand_of_row(otherwise, rows),
            )
    return operand


def action_of_row(action: Action, rows: Rows) -> Action:
    """Return an action that reads keys and aggregates of a row."""
    if isinstance(action, DeleteRow):
        return DeleteRow(Row(action.row.table, operand_of_row(action.row.key, rows)))
    target = action.cell.row
    row = Row(target.table, operand_of_row(target.key, rows))
    return SetCell(Cell(row, action.cell.column), operand_of_row(action.value, rows))


def numbered_aggregate(operand: Operand, rows: Rows) -> int | None:
    """Return which of the aggregates an operand is, None where it is none."""
    found = operand_of_row(operand, rows)
    if isinstance(found, Elements) and isinstance(found.operand, Literal):
        number = int(str(found.operand.value)) - len(rows.keys)
        return number if number >= 0 else None
    return None


class LazyValues(Mapping[str, Sequence[Atom]]):
    """The values of a row by their numbers; an aggregate is made when it is read."""

    def __init__(
        self, keys: Sequence[str], count: int, aggregate: Callable[[int], Sequence[Atom]]
    ) -> None:
        self._known: dict[str, Sequence[Atom]] = {str(i): (key,) for i, key in enumerate(keys)}
        self._keys = len(keys)
        self._count = count
        self._aggregate = aggregate

    def __getitem__(self, name: str) -> Sequence[Atom]:
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._aggregate(int(name) - self._keys)
        return found

    def __iter__(self) -> Iterator[str]:
        return map(str, range(self._count))

    def __len__(self) -> int:
        return self._count


@dataclass(frozen=True, slots=True)
class RowReading:
    """A row under one assignment, as conditions read it."""

    start_us: int
    end_us: int
    parameters: Mapping[str, str | float | int]
    run: RunAtHand

    def value(self, name: str) -> str:
        """Return nothing: a row has no terms of its own."""
        raise AssertionError(name)
