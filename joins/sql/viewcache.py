"""The view cache: slices of R_L by string value (Hong 2009, section 6.5, Algorithms 4 and 5).

A slice R_L,s holds every remembered binding of the string value `s`.  (The paper's also has the
edges of R_bin; here these are stored once for each witness shape, not for each document, and joined
later.)  Before a stratum is probed, `fill` makes sure that all values of the batch have their
slices: the batch's bindings are added to slices in the cache, and missing slices are computed from
the state.  So the state is scanned once for all values that are not in the cache, whatever the
number of templates, and not at all where none is missing.

Bound: slices are dropped, least recently used first, once they have more than `rows_max` rows. The
values of the batch in hand are never dropped, so one batch can exceed it.
"""

from __future__ import annotations

from collections import OrderedDict

import pyarrow as pa

from joins.sql import rows, schema
from joins.sql.limits import DEFAULT_SQL_LIMITS
from joins.sql.state import JoinState

__all__ = ["ViewCache"]

_BINDING = "value, instance, variable, node"


class ViewCache:
    """The slices of one join.  `hits`, `misses` and `evictions` count values."""

    def __init__(self, state: JoinState, rows_max: int = DEFAULT_SQL_LIMITS.slice_rows) -> None:
        self._state = state
        self.rows_max = rows_max
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._row_count = 0
        self._through = 0
        self.hits = 0
        self.misses = 0
        self.evictions = 0

    def fill(self, first: int) -> None:
        """Have slices of all values that are bound in instances of the batch (Algorithm 4).

        They are those from number `first` on.
        """
        if self._through < first - 1:
            self.clear()  # documents were absorbed without being probed
            self._through = first - 1
        since = f"instance > {self._through}"
        found = self._state.run(f"SELECT DISTINCT value FROM {schema.BINDING} WHERE {since}")
        values = [value for (value,) in found]
        hits = [value for value in values if value in self._sizes]
        misses = [value for value in values if value not in self._sizes]
        self.hits += len(hits)
        self.misses += len(misses)
        self._add(hits, f"WHERE {since}")
        self._add(misses, "")
        self._through = self._state.next_instance - 1

    def _add(self, values: list[str], condition: str) -> None:
        """Add the bindings of some values to their slices (Algorithm 5 where they are there)."""
        if not values:
            return
        db = self._state.db
        db.register("wanted", pa.table({"value": pa.array(values, pa.string())}))
        try:
            rows.run(
                db,
                f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT {_BINDING} FROM"
                f" (SELECT * FROM {schema.BINDING} {condition}) SEMI JOIN wanted USING (value)",
            )
        finally:
            db.unregister("wanted")
        rows.run(db, f"INSERT INTO {schema.SLICE} SELECT * FROM fresh")
        for value, size in rows.run(db, "SELECT value, count(*) FROM fresh GROUP BY value"):
            self._sizes[value] = self._sizes.pop(value, 0) + size
            self._row_count += size

    def trim(self) -> None:
        """Drop slices beyond the bound; to be called between two batches."""
        if self._row_count <= self.rows_max:
            return
        while self._sizes and 2 * self._row_count > self.rows_max:
            _, size = self._sizes.popitem(last=False)
            self._row_count -= size
            self.evictions += 1
        db = self._state.db
        db.register("kept_values", pa.table({"value": pa.array(list(self._sizes), pa.string())}))
        try:
            self._state.rewrite(schema.SLICE, "value IN (SELECT value FROM kept_values)")
        finally:
            db.unregister("kept_values")

    def clear(self) -> None:
        """Drop all slices."""
        self.evictions += len(self._sizes)
        self._sizes.clear()
        self._row_count = 0
        self._state.run(f"TRUNCATE {schema.SLICE}")
