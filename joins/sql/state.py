"""The state of a reference engine: instances, their shapes, and the values that are joined.

Eviction has two halves.  The SQL of a join decides which instances it may still see, by the rule of
section 1.1, whatever is stored.  Memory is freed lazily: once half of the stored instances is of no
use to any class (`retention`), the tables are written anew without these.  (Rows removed by DELETE
stay in DuckDB's memory, so nothing is ever deleted.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from joins.memory.instance import INSTANCE_SCHEMA, Instance
from joins.memory.shapes import Shapes
from joins.sql import rows, schema
from joins.sql.limits import DEFAULT_SQL_LIMITS, SqlLimits

__all__ = ["JoinState"]


class JoinState:
    """The tables of one join, in one DuckDB database in memory."""

    def __init__(self, shapes: Shapes, limits: SqlLimits = DEFAULT_SQL_LIMITS) -> None:
        self._streamed_rows = limits.streamed_rows
        self.db = rows.connect(threads=2)
        self._shapes = shapes
        self._unwritten = 0
        self.next_instance = 1
        self.instance_count = 0

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement to its end and return its rows."""
        return rows.run(self.db, sql)

    def stream(self, sql: str) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a statement some at a time; other statements may be run meanwhile."""
        with self.db.cursor() as cursor:
            found = cursor.execute(sql)
            while some := found.fetchmany(self._streamed_rows):
                yield some

    def _write_shapes(self) -> None:
        """Write the shapes learnt since the last time."""
        edges: list[tuple[int, ...]] = []
        bindings: list[tuple[int, ...]] = []
        for number in self._shapes.since(self._unwritten):
            shape = self._shapes[number]
            edges += [(number, *edge) for edge in shape.edges]
            ends = {(v, node) for node, variables in shape.binding.items() for v in variables}
            bindings += [(number, *end) for end in sorted(ends)]
        self._insert(schema.SHAPE_EDGE, ("shape", "var1", "var2", "node1", "node2"), edges)
        self._insert(schema.SHAPE_BINDING, ("shape", "variable", "node"), bindings)
        self._unwritten = self._shapes.next_number

    def _insert(self, table: str, names: Sequence[str], found: Sequence[tuple[int, ...]]) -> None:
        if found:
            columns = zip(*found, strict=True)
            arrow = pa.table(
                {n: pa.array(c, pa.int32()) for n, c in zip(names, columns, strict=True)}
            )
            self.insert(table, arrow)

    def insert(self, table: str, arrow: pa.Table) -> None:
        """Append rows to a table; columns go by position."""
        rows.insert(self.db, table, arrow)

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        self._write_shapes()
        first = self.next_instance
        self.next_instance += len(instances)
        numbers = pa.array(range(first, self.next_instance), pa.int64())
        instances = instances.add_column(0, INSTANCE_SCHEMA.field("instance"), numbers)
        self.instance_count += len(instances)
        self.insert(schema.REMEMBERED, instances.select(INSTANCE_SCHEMA.names))
        self.run(
            f"""INSERT INTO {schema.BINDING}
SELECT instance, variable, node, value FROM (
    SELECT d.instance, s.variable, s.node, d.vals[s.node + 1] AS value
    FROM {schema.REMEMBERED} AS d, {schema.SHAPE_BINDING} AS s, {schema.JOINED_VARIABLE} AS j
    WHERE d.instance >= {first} AND s.shape = d.shape AND j.variable = s.variable)
WHERE value <> ''"""
        )

    def set_joined_variables(self, variables: Iterable[int]) -> None:
        """Say which variables' values are kept for value joins, from the next instance on."""
        self.run(f"DELETE FROM {schema.JOINED_VARIABLE}")
        self._insert(schema.JOINED_VARIABLE, ("variable",), [(v,) for v in sorted(variables)])

    def of_use(self, needed_from: Mapping[int, int]) -> dict[int, int]:
        """Return how many instances of each shape do not end before the shape's time."""
        with self._by_shape(needed_from):
            return dict(
                self.run(
                    f"""SELECT shape, count(*) FROM {schema.REMEMBERED} JOIN needed USING (shape)
WHERE end_us >= needed_from GROUP BY shape"""
                )
            )

    def evict(self, needed_from: Mapping[int, int]) -> int:
        """Free instances that end before their shapes' times, once they are half of all."""
        dead = self.instance_count - sum(self.of_use(needed_from).values())
        if not dead or 2 * dead < self.instance_count:
            return 0
        kept = f"""instance IN (SELECT instance FROM {schema.REMEMBERED} JOIN needed USING (shape)
    WHERE end_us >= needed_from)"""
        with self._by_shape(needed_from):
            self.rewrite(schema.BINDING, kept)
            self.rewrite(schema.REMEMBERED, kept)
        self.instance_count -= dead
        return dead

    @contextmanager
    def _by_shape(self, needed_from: Mapping[int, int]) -> Iterator[None]:
        columns = [
            pa.array(list(needed_from), pa.int32()),
            pa.array(list(needed_from.values()), pa.int64()),
        ]
        self.db.register("needed", pa.table(columns, ["shape", "needed_from"]))
        try:
            yield
        finally:
            self.db.unregister("needed")

    def figures(self) -> dict[str, int]:
        """Return how much is remembered."""
        return {"documents": self.instance_count, "shapes": len(self._shapes)}

    def rewrite(self, table: str, condition: str) -> None:
        """Write a table anew with the rows that hold a condition: DELETE would free no memory."""
        self.run(f"CREATE TABLE kept AS SELECT * FROM {table} WHERE {condition}")
        self.run(f"DROP TABLE {table}")
        self.run(f"ALTER TABLE kept RENAME TO {table}")

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        wanted = sorted(set(numbers))
        if not wanted:
            return {}
        self.db.register("wanted", pa.table({"instance": pa.array(wanted, pa.int64())}))
        try:
            found = self.run(
                f"""SELECT instance, stream, key, docid, depth, match_id, docid_min, docid_max,
    start_us, end_us, watermark_us, leaves, nodes, vals
FROM {schema.REMEMBERED} SEMI JOIN wanted USING (instance)"""
            )
        finally:
            self.db.unregister("wanted")
        return {row[0]: Instance(*row[:11], *map(tuple, row[11:])) for row in found}
