"""The tables of a join in DuckDB; those of templates are kept up to date with the classes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from joins import schema
from joins.classes import ClassRegistry
from templates.template import Template

__all__ = ["TemplateTables", "connect", "insert", "run"]


def connect(*, threads: int) -> duckdb.DuckDBPyConnection:
    """Return a database in memory with the tables of `schema`.

    What does not fit into memory goes to files below the system's directory for such, not to the
    directory that a program happens to be started in.

    Statements are joined in the order in which they name their tables.  To look for a better one
    is most of what a small statement costs; and of a large one, not knowing how selective the
    equality of values is, the optimizer now and then began with all pairs of documents (1,500
    remembered ones and 1,421 classes: minutes instead of 0.1 s).
    """
    spilled = Path(tempfile.gettempdir()) / "xscl-duckdb"
    db = duckdb.connect(
        ":memory:", config={"temp_directory": str(spilled), "threads": str(threads)}
    )
    run(db, "SET disabled_optimizers = 'join_order'")
    for name, columns in schema.TABLES.items():
        run(db, f"CREATE TABLE {name} ({columns})")
    return db


def run(db: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
    """Run one statement to its end and return its rows."""
    return db.execute(sql).fetchall()


def insert(db: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Append rows to a table; columns go by position."""
    db.register("incoming", rows)
    try:
        run(db, f"INSERT INTO {table} SELECT * FROM incoming")
    finally:
        db.unregister("incoming")


class TemplateTables:
    """One table R_T for each template, and the variable pairs that are joined."""

    def __init__(self, db: duckdb.DuckDBPyConnection, registry: ClassRegistry) -> None:
        self._db = db
        self._registry = registry
        self.numbers: dict[Template, int] = {}
        self._version = -1

    def refresh(self) -> bool:
        """Write the tables that changed; return whether any did."""
        registry = self._registry
        if self._version == registry.version:
            return False
        self._version = registry.version
        rows: dict[Template, list[tuple[object, ...]]] = {t: [] for t in registry.dirty}
        for number, query_class in registry.by_number.items():
            if query_class.template in rows:
                variables, constants = query_class.row.variables, query_class.row.constants
                window = registry.window_us(number)
                tail = (window, query_class.is_symmetric, query_class.stratum)
                rows[query_class.template].append((number, *variables, *constants, *tail))
        for template in sorted(registry.dirty, key=repr):
            self._replace(self._table(template), rows[template])
        registry.dirty.clear()
        self._replace(schema.VALUE_PAIR, list(registry.value_pairs()))
        return True

    def _table(self, template: Template) -> str:
        if template not in self.numbers:
            self.numbers[template] = len(self.numbers) + 1
            name = schema.template_row(self.numbers[template])
            run(self._db, f"CREATE TABLE {name} ({schema.template_row_columns(template)})")
        return schema.template_row(self.numbers[template])

    def _replace(self, table: str, rows: list[Any]) -> None:
        run(self._db, f"TRUNCATE {table}")
        if rows:
            columns = [pa.array(column) for column in zip(*rows, strict=True)]
            names = [str(i) for i in range(len(columns))]
            insert(self._db, table, pa.table(columns, names))
