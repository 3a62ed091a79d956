"""The view from pair signatures to the tuples of query classes.

An **entry** stands for one signature: two layouts and the pairs of slots with equal values.  What
it maps to is found by the templates' conjunctive queries, over the entry's own equal pairs, for
all entries of a batch that are not known yet in one statement a template.  Windows, residuals,
constants and registration points are no part of it: they differ from pair to pair.

An entry names the last class that it is complete for; when it is met again after classes were
added, only those are asked.  Classes that were removed are skipped by whoever reads the entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa

from joins import schema
from joins.classes import ClassRegistry
from joins.rows import TemplateTables, insert, run
from joins.slots import Ints, Layout, Layouts
from joins.sql import signature_sql, signature_value_join_sql
from templates.conjunctive import view_query

__all__ = ["Entry", "SignatureView"]

ENTRIES_MAX = 200_000
"""Kept entries; then all are dropped and found again.  6,636 real pairs that share a category had
1,417 signatures."""


@dataclass(slots=True)
class Entry:
    """One signature and what it maps to.

    `right` is None for a single instance.  `codes` are the equal pairs of slots in order, left
    slot times 65,536 plus right slot.  `classes[i]` found the nodes `nodes[i]`.
    """

    left: Layout
    right: Layout | None
    codes: Ints
    complete_for: int = 0
    classes: list[int] = field(default_factory=list)
    nodes: list[tuple[int, ...]] = field(default_factory=list)

    def equal_nodes(self) -> list[tuple[int, int]]:
        """Return the pairs of shape nodes with equal values."""
        if self.right is None:
            return []
        pairs = zip((self.codes >> 16).tolist(), (self.codes & 0xFFFF).tolist(), strict=True)
        return [(self.left.nodes[i], self.right.nodes[j]) for i, j in pairs]


class SignatureView:
    """Evaluates entries; the database holds nothing but shapes, template rows and entries."""

    def __init__(self, registry: ClassRegistry, layouts: Layouts) -> None:
        self.db = duckdb.connect(":memory:")
        run(self.db, "SET threads = 2")
        for name, columns in schema.TABLES.items():
            run(self.db, f"CREATE TABLE {name} ({columns})")
        self._registry = registry
        self._layouts = layouts
        self._tables = TemplateTables(self.db, registry)
        self.misses = 0

    def add_shape(self, shape: int, edges: Sequence[tuple[int, int, int, int]]) -> None:
        """Learn a shape by its edges."""
        ends = {(v, n) for v1, v2, n1, n2 in edges for v, n in ((v1, n1), (v2, n2))}
        self._insert(schema.SHAPE_EDGE, [(shape, *edge) for edge in edges])
        self._insert(schema.SHAPE_BINDING, [(shape, *end) for end in sorted(ends)])

    def _insert(self, table: str, rows: Sequence[tuple[int, ...]]) -> None:
        if rows:
            columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
            insert(self.db, table, pa.table(columns, [str(i) for i in range(len(columns))]))

    def complete(self, entries: Sequence[Entry]) -> None:
        """Bring entries up to date with the classes."""
        self._tables.refresh()
        last = self._registry.last_number
        by_age: dict[int, list[Entry]] = {}
        for entry in entries:
            if entry.complete_for < last:
                by_age.setdefault(entry.complete_for, []).append(entry)
        for since, stale in by_age.items():
            self._evaluate(stale, since)
            for entry in stale:
                entry.complete_for = last

    def _evaluate(self, entries: list[Entry], since: int) -> None:
        self.misses += len(entries)
        tables = (
            schema.SIGNATURE_LEFT,
            schema.SIGNATURE_RIGHT,
            schema.EQUAL_NODES,
            schema.VALUE_JOIN,
        )
        for table in tables:
            run(self.db, f"TRUNCATE {table}")
        two = [(i, entry) for i, entry in enumerate(entries) if entry.right is not None]
        self._insert(schema.SIGNATURE_LEFT, [(i, e.left.shape) for i, e in enumerate(entries)])
        self._insert(
            schema.SIGNATURE_RIGHT, [(i, e.right.shape) for i, e in two if e.right is not None]
        )
        self._insert(schema.EQUAL_NODES, [(i, *p) for i, e in two for p in e.equal_nodes()])
        run(self.db, signature_value_join_sql())
        for template, number in self._tables.numbers.items():
            sql = signature_sql(view_query(template), template, number, since)
            for query_class, i, *nodes in run(self.db, sql):
                # A class of one block is looked up by single instances, one of two by pairs.
                if (entries[i].right is not None) == template.has_right:
                    entries[i].classes.append(query_class)
                    entries[i].nodes.append(tuple(nodes))


def codes_of(left_slots: Ints, right_slots: Ints) -> Ints:
    """Return the codes of pairs of slots."""
    return (left_slots << 16) | right_slots


def empty_codes() -> Ints:
    """Return the codes of no pairs."""
    return np.zeros(0, np.int64)
