"""The tables of a join in DuckDB; template tables follow the classes."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from joins.classes import ClassRegistry
from joins.sql import schema
from templates.template import Template

if TYPE_CHECKING:
    import duckdb

__all__ = ["Database", "TemplateTables", "connect", "insert", "insert_numbers", "run"]

_FEW_ROWS = 10
"""Up to so many rows are written into the statement: registering a table takes 3 ms, a row 0.1."""

Database: TypeAlias = "duckdb.DuckDBPyConnection"


def connect(*, threads: int) -> Database:
    """Return a database in memory with the tables of `schema`.

    Rows that do not fit into memory go to files below the system's temporary directory, not to the
    directory in which a program happens to be started.

    Statements are joined in the order in which they name their tables.  Looking for a better order
    is most of the cost of a small statement.  And the optimizer does not know how selective the
    equality of values is: of a large statement it now and then began with all pairs of documents
    (1,500 remembered ones and 1,421 classes: minutes instead of 0.1 s).
    """
    import duckdb  # 14 MB: most brokers never ask it anything

    spilled = Path(tempfile.gettempdir()) / "xscl-duckdb"
    db = duckdb.connect(
        ":memory:", config={"temp_directory": str(spilled), "threads": str(threads)}
    )
    run(db, "SET disabled_optimizers = 'join_order'")
    for name, columns in schema.TABLES.items():
        run(db, f"CREATE TABLE {name} ({columns})")
    return db


def run(db: Database, sql: str) -> list[tuple[Any, ...]]:
    """Run one statement to its end and return its rows."""
    return db.execute(sql).fetchall()


def insert(db: Database, table: str, rows: pa.Table) -> None:
    """Append rows to a table; columns go by position."""
    db.register("incoming", rows)
    try:
        run(db, f"INSERT INTO {table} SELECT * FROM incoming")
    finally:
        db.unregister("incoming")


def insert_numbers(db: Database, table: str, rows: Sequence[tuple[int, ...]]) -> None:
    """Append rows of numbers, or of truth values, to a table; there is one at least."""
    if len(rows) > _FEW_ROWS:
        columns = [pa.array(column) for column in zip(*rows, strict=True)]
        insert(db, table, pa.table(columns, [str(i) for i in range(len(columns))]))
    else:
        values = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
        run(db, f"INSERT INTO {table} VALUES {values}")


class TemplateTables:
    """A table R_T for each template, with a row for each class; and pairs of joined variables.

    Only changed classes are written: a change costs the same however many classes there are.
    """

    def __init__(self, db: Database, registry: ClassRegistry) -> None:
        self._db = db
        self._registry = registry
        self._changes = registry.watch()
        self.numbers: dict[Template, int] = {}
        self._written: dict[Template, set[int]] = {}
        self._deleted: Counter[Template] = Counter()

    def refresh(self) -> bool:
        """Bring the tables of templates up to date; return whether anything has changed."""
        changed: dict[Template, list[int]] = {}
        for number, query_class in self._changes.take().items():
            changed.setdefault(query_class.template, []).append(number)
        for template in sorted(changed, key=repr):
            self._update(template, changed[template])
        return bool(changed)

    def write_value_pairs(self) -> None:
        """Write the pairs of joined variables."""
        run(self._db, f"TRUNCATE {schema.VALUE_PAIR}")
        self._insert(schema.VALUE_PAIR, self._registry.value_pairs())

    def _update(self, template: Template, changed: Sequence[int]) -> None:
        """Write the rows of some classes of a template anew."""
        table = self._table(template)
        written = self._written.setdefault(template, set())
        stale = written.intersection(changed)
        written.difference_update(stale)
        self._deleted[template] += len(stale)
        if self._deleted[template] > len(written):
            # Rows that DELETE removes would stay in memory.
            run(self._db, f"TRUNCATE {table}")
            self._deleted[template] = 0
            changed = sorted(written.union(changed))
        elif stale:
            numbers = ", ".join(map(str, sorted(stale)))
            run(self._db, f"DELETE FROM {table} WHERE class IN ({numbers})")
        present = [number for number in changed if number in self._registry.by_number]
        self._insert(table, [self._row(number) for number in present])
        written.update(present)

    def _row(self, number: int) -> tuple[int, ...]:
        query_class, window_us = self._registry.by_number[number], self._registry.window_us(number)
        tail = (window_us, query_class.is_symmetric, query_class.stratum)
        return (number, *query_class.row.variables, *tail)

    def _table(self, template: Template) -> str:
        if template not in self.numbers:
            self.numbers[template] = len(self.numbers) + 1
            name = schema.template_row(self.numbers[template])
            run(self._db, f"CREATE TABLE {name} ({schema.template_row_columns(template)})")
        return schema.template_row(self.numbers[template])

    def _insert(self, table: str, rows: Sequence[tuple[int, ...]]) -> None:
        if rows:
            insert_numbers(self._db, table, rows)
