"""Rows of tables, and within a batch a version of a row for each match that wrote it.

Invariant: reads see what was written before their place, and nothing else, in whatever order
transactions and groups run, as long as the writers of one row run in their order.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from xscl.table import Table

__all__ = ["Cell", "Order", "Place", "Rank", "RowChange", "TableVersions", "Tables"]

Cell = str | float
"""What a cell has: a string or a number."""

Order = tuple[int, int]
"""The place of a transaction: the document number at which it was decided, and its end."""

Rank = tuple[int, str, str]
"""The place of a match in its transaction: newest document, query, match id."""

Place = tuple[int, int, Rank | tuple[()]]
"""Where tables are read or written: a transaction, and the rank of the match that acts in it.

What is asked before all matches of a transaction act has no rank.
"""

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
    place: Place
    row: _Row | None


_PLACE = attrgetter("place")


@dataclass(slots=True)
class _Held:
    """A table: its columns without the key, their defaults, its rows as of the last batch."""

    columns: tuple[str, ...]
    defaults: _Row
    rows: dict[str, _Row] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = {name: i for i, name in enumerate(self.columns)}

    def cells(self, row: _Row | None) -> dict[str, Cell] | None:
        """Return a row by its columns."""
        return None if row is None else dict(zip(self.columns, row, strict=True))


@dataclass(slots=True)
class _Written:
    """What matches have written in a table in a batch: versions of rows by key."""

    held: _Held
    versions: dict[str, list[_Version]] = field(default_factory=dict)

    def at(self, key: str, place: Place) -> _Row | None:
        """Return a row as it is at a place, with what the match of the place has written so far."""
        versions = self.versions.get(key)
        if versions is None:
            return self.held.rows.get(key)
        behind = bisect_right(versions, place, key=_PLACE)
        return versions[behind - 1].row if behind else self.held.rows.get(key)

    def write(self, key: str, place: Place, row: _Row | None) -> None:
        """Have a match leave a row."""
        versions = self.versions.setdefault(key, [])
        if versions and versions[-1].place == place:
            versions.pop()
        assert not versions or versions[-1].place < place, "writers of a row run in their order"
        versions.append(_Version(place, row))


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

    def rows(self, table: str) -> Iterator[RowChange]:
        """Yield the rows of a table, between two batches."""
        held = self._held[table]
        for key, row in held.rows.items():
            yield RowChange(table, key, held.cells(row))

    def begin_batch(self) -> TableVersions:
        """Return the tables as they are now, for the transactions of a batch."""
        return TableVersions({name: _Written(held) for name, held in self._held.items()})


class TableVersions:
    """Tables in one batch: as they were before it, and the versions that its matches write."""

    def __init__(self, written: Mapping[str, _Written]) -> None:
        self._written = written

    def cell(self, table: str, key: str, column: str, place: Place) -> Cell:
        """Return a cell as it is at a place; see `_Written.at`."""
        written = self._written[table]
        row = written.at(key, place)
        number = written.held.numbers.get(column)
        if number is None:
            return key
        return (written.held.defaults if row is None else row)[number]

    def has_row(self, table: str, key: str, place: Place) -> bool:
        """Return whether a row is there at a place."""
        return self._written[table].at(key, place) is not None

    def last_change(self, table: str, key: str, place: Place) -> RowChange | None:
        """Return a row as the batch has left it before a place, None where it had not yet."""
        written = self._written[table]
        versions = written.versions.get(key, [])
        behind = bisect_left(versions, place, key=_PLACE)
        if not behind:
            return None
        version = versions[behind - 1]
        return RowChange(table, key, written.held.cells(version.row), version.place[0])

    def set(self, table: str, key: str, column: str, value: Cell, place: Place) -> None:
        """Have a match set a cell, of a row that need not be there."""
        written = self._written[table]
        held = written.held
        cells = list(written.at(key, place) or held.defaults)
        cells[held.numbers[column]] = value
        written.write(key, place, tuple(cells))

    def delete(self, table: str, key: str, place: Place) -> None:
        """Have a match remove a row."""
        written = self._written[table]
        if written.at(key, place) is not None:
            written.write(key, place, None)

    def undo(self, tables: Collection[str]) -> None:
        """Forget what the batch has written in some tables."""
        for table in tables:
            self._written[table].versions.clear()

    def keep(self) -> list[RowChange]:
        """Have the tables keep the newest version of each row; return the rows that have changed.

        To be called once, at the end of the batch.
        """
        changes: list[RowChange] = []
        for name, written in self._written.items():
            rows = written.held.rows
            for key, versions in written.versions.items():
                (docid, *_), row = versions[-1]
                if row == rows.get(key):
                    continue
                if row is None:
                    del rows[key]
                else:
                    rows[key] = row
                changes.append(RowChange(name, key, written.held.cells(row), docid))
        return changes
