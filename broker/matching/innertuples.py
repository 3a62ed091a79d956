"""Tuples of inner operators as instances for the operators above, each once whoever found it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from broker.documents.sub_batches import in_sub_batches
from broker.matching.boxes.columns import Flags, Ints
from broker.matching.hits import Hits
from broker.matching.instances import UNNUMBERED
from joins import ranges
from templates.clause import Clause

__all__ = ["InnerTuples"]


class InnerTuples:
    """The tuples of inner operators in a stratum, and the queries that have found each.

    `shape_of` gives the shape of a clause's tuples as instances.
    """

    def __init__(self, shape_of: Callable[[Clause], int]) -> None:
        self._shape_of = shape_of
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._finders: list[set[str]] = []

    def add(self, hits: Hits) -> Flags:
        """Add hits of inner operators; return which of them no earlier one has for its query."""
        numbers = self._number(hits)
        queries = [use.subscriber.query.id for use in hits.uses]
        are_new = np.zeros(len(hits), np.bool_)
        found = zip(numbers.tolist(), hits.which.tolist(), strict=True)
        for hit, (number, use) in enumerate(found):
            finders, query = self._finders[number], queries[use]
            if query not in finders:
                finders.add(query)
                are_new[hit] = True
        return are_new

    def _number(self, hits: Hits) -> Ints:
        """Return the number of the tuple of each hit; what is new gets a row."""
        # Many uses may have found one tuple, of clauses that read it alike.
        clauses = [terms.clause for terms in hits.clauses]
        keys = np.stack([hits.rows, hits.by_clause(range(len(clauses)))], axis=1)
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        some = hits.take(first)
        numbers = []
        for row in self._read(some):
            # One node may carry several values: a function of it may have more than one.
            shape, leaves, nodes, values = row[-4:]
            key = (shape, *leaves, *nodes, *values)
            number = self._numbers.setdefault(key, len(self._rows))
            if number == len(self._rows):
                self._rows.append(row)
                self._finders.append(set())
            numbers.append(number)
        return np.array(numbers, np.int64)[inverse.ravel()]

    def _read(self, hits: Hits) -> Iterator[tuple[Any, ...]]:
        """Yield tuples as rows of `UNNUMBERED`."""
        points, operands = hits.points, hits.points.operands
        newest = points.newest(hits.rows)
        docids = points.docids[hits.rows]
        depths, watermarks = (operands.column(n)[newest] for n in ("depth", "watermark_us"))
        match_ids = operands.rows.column("match_id").take(pa.array(newest)).to_pylist()
        if points.tuples.decided is not None:
            decided = points.tuples.decided[hits.rows]
            was_decided = decided[:, 0] > 0
            depths = np.where(was_decided, decided[:, 1], depths)
            watermarks = np.where(was_decided, decided[:, 2], watermarks)
            for row in np.flatnonzero(was_decided).tolist():
                match_ids[row] = ""
        starts, ends = points.intervals(hits.rows)
        shapes = {terms: self._shape_of(terms.clause) for terms in hits.clauses}
        streams = [(terms.clause.stream, shapes[terms]) for terms in hits.terms]
        oldest, latest = points.docids_min[hits.rows], hits.docids_max
        columns = (docids, depths, oldest, latest, starts, ends, watermarks)
        given = zip(*(column.tolist() for column in columns), strict=True)
        which, (leaves, lengths) = hits.which.tolist(), hits.leaves
        behind_each = [row[:n] for row, n in zip(leaves.tolist(), lengths.tolist(), strict=True)]
        values = zip(which, match_ids, given, behind_each, *self._carried(hits), strict=True)
        for use, match_id, numbers, behind, nodes, texts in values:
            stream, shape = streams[use]
            docid, depth, *others = numbers
            yield (stream, "", docid, depth, match_id, *others, shape, behind, nodes, texts)

    def _carried(self, hits: Hits) -> tuple[list[list[int]], list[list[str | None]]]:
        """Return the nodes and values that each tuple carries, those of its root first."""
        carried = [terms.carried for terms in hits.clauses]
        counts = hits.by_clause(map(len, carried))
        first = np.cumsum([0, *map(len, carried)])[:-1]
        flat = np.array([term for each in carried for term in each], np.int64)
        terms = flat[ranges(hits.by_clause(first), counts)]
        own = np.repeat(np.arange(len(hits)), counts)
        numbers, texts = hits.nodes[own, terms].tolist(), hits.texts(own, terms)
        ends = np.cumsum(counts).tolist()
        nodes: list[list[int]] = []
        values: list[list[str | None]] = []
        start = 0
        for stop, more in zip(ends, hits.tested(), strict=True):
            # What is only tested is no node: equal values of several nodes are one.
            nodes.append([0, *numbers[start:stop], *[0] * len(more)])
            values.append([None, *texts[start:stop], *more])
            start = stop
        return nodes, values

    def tables(self, limit_of: Callable[[str], int], characters_max: int) -> Iterator[pa.Table]:
        """Yield the tuples below the limit of a query that has found them, as `UNNUMBERED`.

        A table has so many characters: a column must hold them.
        """
        limits = {query: limit_of(query) for query in set().union(*self._finders)}
        docid = UNNUMBERED.get_field_index("docid")
        rows = [
            row
            for row, finders in zip(self._rows, self._finders, strict=True)
            if any(row[docid] < limits[query] for query in finders)
        ]
        for part in in_sub_batches(rows, _characters, characters_max):
            yield pa.table([*map(list, zip(*part, strict=True))], schema=UNNUMBERED)


def _characters(row: tuple[Any, ...]) -> int:
    return sum(map(len, filter(None, row[-1])))
