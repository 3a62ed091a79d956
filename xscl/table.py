"""Tables, and what a match does to them."""

from __future__ import annotations

from dataclasses import dataclass, field

from xscl.comparison import Cell, Operand, Row
from xscl.path import Literal, Span

__all__ = ["Action", "DeleteRow", "SetCell", "Table", "TableColumn", "TableUse"]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column and what it has in a row that is not there; the key has no default."""

    name: str
    default: Literal | None


@dataclass(frozen=True, slots=True)
class Table:
    """`CREATE TABLE`: the first of `columns` is the key."""

    name: str
    columns: tuple[TableColumn, ...]
    text: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class SetCell:
    """`SET t[key].column = value`."""

    cell: Cell
    value: Operand


@dataclass(frozen=True, slots=True)
class DeleteRow:
    """`DELETE t[key]`."""

    row: Row


Action = SetCell | DeleteRow
"""What ON MATCH does for each match."""


@dataclass(frozen=True, slots=True)
class TableUse:
    """A table, and a column perhaps, that a query reads or writes."""

    table: str
    column: str | None
    is_written: bool
    span: Span = field(compare=False)
