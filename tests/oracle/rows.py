"""Rows of tables, as conditions and actions read and write them: section 19."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from oracle.conditions import Facts, can_have_a_value, values_of
from oracle.decided import operands_of
from oracle.values import Atom, string
from xscl.path import Literal
from xscl.query import Call, Conditional, Operand, PathFrom, Query, VariableValue
from xscl.query import Cell as CellOperand
from xscl.query import Row as RowOperand
from xscl.table import Action, DeleteRow, SetCell, Table

__all__ = ["Rows", "act"]


class Rows:
    """The rows of all tables: what is not there has defaults."""

    def __init__(self, tables: Iterable[Table]) -> None:
        tables = list(tables)
        self._defaults = {
            table.name: {
                column.name: column.default.value
                for column in table.columns
                if isinstance(column.default, Literal)
            }
            for table in tables
        }
        self._keys = {table.name: table.columns[0].name for table in tables}
        self.rows: dict[tuple[str, str], dict[str, Atom]] = {}

    def cell(self, table: str, key: str, column: str) -> Atom:
        """Return a cell."""
        if column == self._keys[table]:
            return key
        return self.rows.get((table, key), self._defaults[table])[column]

    def has(self, table: str, key: str) -> bool:
        """Return whether a row is there."""
        return (table, key) in self.rows

    def set(self, table: str, key: str, column: str, value: Atom) -> None:
        """Set a cell."""
        row = self.rows.setdefault((table, key), dict(self._defaults[table]))
        row[column] = value

    def delete(self, table: str, key: str) -> None:
        """Remove a row."""
        self.rows.pop((table, key), None)

    def copy(self) -> Rows:
        """Return the rows as they are now."""
        other = Rows([])
        other._defaults, other._keys = self._defaults, self._keys
        other.rows = {place: dict(row) for place, row in self.rows.items()}
        return other


def act(query: Query, facts: Iterable[Facts], rows: Rows) -> None:
    """Do a query's actions for one match, whose tuples have these facts."""
    known = list(facts)
    bound = {**known[0].owners, **known[0].elements, **known[0].folds}
    actions = [each for each in query.actions if _applies(each, bound)]
    operands = operands_of(actions)
    mentioned = list(dict.fromkeys(m for operand in operands for m in _mentioned(operand)))
    choices: dict[tuple[tuple[str, ...], ...], Facts] = {}
    for each in known:
        choices.setdefault(tuple(_strings(m, each) for m in mentioned), each)
    for action in actions:
        for _, choice in sorted(choices.items(), key=lambda item: item[0]):
            now = replace(choice, rows=rows)
            for key in _keys(action, now):
                if isinstance(action, DeleteRow):
                    rows.delete(action.row.table, key)
                    continue
                row, column = action.cell.row, action.cell.column
                values = values_of(action.value, replace(now, setting=(row, key)))
                if values and values[0] == values[0]:  # not NaN, which nothing is equal to
                    rows.set(row.table, key, column, values[0])


def _applies(action: Action, bound: Mapping[str, object]) -> bool:
    return all(can_have_a_value(operand, bound) for operand in operands_of([action]))


def _keys(action: Action, facts: Facts) -> list[str]:
    row = action.cell.row if isinstance(action, SetCell) else action.row
    values = values_of(row.key, facts) or []
    return list(dict.fromkeys(map(string, values)))


def _strings(operand: Operand, facts: Facts) -> tuple[str, ...]:
    return tuple(map(str, values_of(operand, facts) or ()))


def _mentioned(operand: Operand) -> Iterator[Operand]:
    """Yield what an operand reads of a tuple, in the order of the text."""
    match operand:
        case VariableValue() | PathFrom() | Call("time" | "revision"):
            yield operand
        case Call(_, arguments):
            for each in arguments:
                yield from _mentioned(each)
        case RowOperand(_, key):
            yield from _mentioned(key)
        case CellOperand(row, _):
            yield from _mentioned(row)
        case Conditional(condition, then, otherwise):
            for disjunct in condition:
                for each in disjunct.operands():
                    yield from _mentioned(each)
            yield from _mentioned(then)
            yield from _mentioned(otherwise)
