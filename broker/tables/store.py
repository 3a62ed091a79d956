"""Rows of tables, and within a batch a version of a row for each transaction that wrote it.

Invariant: reads never see a transaction behind the one that reads, in whatever order they run, as
long as the writers of one row run in their order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from xscl.table import Table

__all__ = ["Cell", "Order", "RowChange", "Tables"]

Cell = str | float
"""What a cell has: a string or a number."""

Order = tuple[int, int]
"""The place of a transaction: the document number at which it was decided, and its end."""

_Row = tuple[Cell, ...]


class RowChange(NamedTuple):
    """A row as it is now, by columns without the key; None where it is not there any more.

    `docid` is the position of the transaction that left it so.
    """

    table: str
    key: str
    cells: Mapping[str, Cell] | None
    docid: int = 0


class _Version(NamedTuple):
    order: Order
    row: _Row | None


@dataclass(slots=True)
class _Held:
    """A table: its columns without the key, their defaults, its rows as of the last batch."""

    columns: tuple[str, ...]
    defaults: _Row
    rows: dict[str, _Row] = field(default_factory=dict)
    versions: dict[str, list[_Version]] = field(default_factory=dict)
    places: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.places = {name: i for i, name in enumerate(self.columns)}

    def before(self, key: str, order: Order, *, is_own: bool) -> _Row | None:
        """Return a row as the transactions before one left it, or with `is_own` itself so far."""
        for version in reversed(self.versions.get(key, ())):
            if version.order < order or (is_own and version.order == order):
                return version.row
        return self.rows.get(key)

    def write(self, key: str, order: Order, row: _Row | None) -> None:
        """Have a transaction leave a row."""
        versions = self.versions.setdefault(key, [])
        if versions and versions[-1].order == order:
            versions.pop()
        assert not versions or versions[-1].order < order, "writers of a row run in their order"
        versions.append(_Version(order, row))


class Tables:
    """The tables of one engine."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    def define(self, table: Table) -> None:
        """Have a table, or other columns of one; rows that are there keep what they have.

        A table that was removed keeps its rows, so nothing is undone.
        """
        _, *columns = table.columns
        names = tuple(column.name for column in columns)
        defaults = tuple(column.default.value for column in columns if column.default is not None)
        held = self._held.get(table.name)
        if held is None:
            self._held[table.name] = _Held(names, defaults)
        elif (held.columns, held.defaults) != (names, defaults):
            rows = {
                key: dict(zip(held.columns, row, strict=True)) for key, row in held.rows.items()
            }
            self._held[table.name] = _Held(names, defaults)
            self._fill(table.name, rows.items())

    def restore(self, rows: Iterable[RowChange]) -> None:
        """Take rows as they were committed, between two batches."""
        for table, key, cells, _ in rows:
            assert cells is not None
            if table not in self._held:  # it was removed: it may be there again
                self._held[table] = _Held(tuple(cells), tuple(cells.values()))
            self._fill(table, [(key, cells)])

    def _fill(self, table: str, rows: Iterable[tuple[str, Mapping[str, Cell]]]) -> None:
        held = self._held[table]
        filled = tuple(zip(held.columns, held.defaults, strict=True))
        for key, cells in rows:
            held.rows[key] = tuple([cells.get(name, default) for name, default in filled])

    # -- within a batch ------------------------------------------------------------------------

    def cell(self, table: str, key: str, column: str, order: Order, *, is_own: bool) -> Cell:
        """Return a cell as the transactions before one left it; see `_Held.before`."""
        held = self._held[table]
        row = held.before(key, order, is_own=is_own)
        place = held.places.get(column)
        if place is None:
            return key
        return (held.defaults if row is None else row)[place]

    def has_row(self, table: str, key: str, order: Order, *, is_own: bool) -> bool:
        """Return whether a row is there, for a transaction."""
        return self._held[table].before(key, order, is_own=is_own) is not None

    def last_change(self, table: str, key: str, order: Order) -> RowChange | None:
        """Return a row as the batch has left it before a transaction, None where it had not yet."""
        held = self._held[table]
        for version in reversed(held.versions.get(key, ())):
            if version.order < order:
                return RowChange(table, key, _cells(held, version.row), version.order[0])
        return None

    def set(self, table: str, key: str, column: str, value: Cell, order: Order) -> None:
        """Have a transaction set a cell, of a row that need not be there."""
        held = self._held[table]
        cells = list(held.before(key, order, is_own=True) or held.defaults)
        cells[held.places[column]] = value
        held.write(key, order, tuple(cells))

    def delete(self, table: str, key: str, order: Order) -> None:
        """Have a transaction remove a row."""
        held = self._held[table]
        if held.before(key, order, is_own=True) is not None:
            held.write(key, order, None)

    def undo(self, tables: Collection[str]) -> None:
        """Forget what the batch has written in some tables."""
        for table in tables:
            self._held[table].versions.clear()

    def end_batch(self) -> list[RowChange]:
        """Keep the newest version of each row; return the rows that the batch has changed."""
        changes: list[RowChange] = []
        for name, held in self._held.items():
            for key, versions in held.versions.items():
                (docid, _), row = versions[-1]
                if row == held.rows.get(key):
                    continue
                if row is None:
                    del held.rows[key]
                else:
                    held.rows[key] = row
                changes.append(RowChange(name, key, _cells(held, row), docid))
            held.versions.clear()
        return changes

    def rows(self, table: str) -> Iterator[RowChange]:
        """Yield the rows of a table, between two batches."""
        held = self._held[table]
        for key, row in held.rows.items():
            yield RowChange(table, key, _cells(held, row))


def _cells(held: _Held, row: _Row | None) -> dict[str, Cell] | None:
    return None if row is None else dict(zip(held.columns, row, strict=True))
