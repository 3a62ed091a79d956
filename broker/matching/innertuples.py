"""Tuples of inner operators as instances for the operators above, each once whoever found it.

They are gathered table by table, in columns.  What is equal is found exactly: a tuple by its shape,
leaves, nodes and values, which are numbers, a value by the number of its text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from broker.documents.sub_batches import in_sub_batches
from broker.matching.boxes.columns import Flags, Ints, distinct
from broker.matching.boxes.operands import CodedTexts
from broker.matching.hits import Hits
from broker.matching.instances import UNNUMBERED, TupleShapes
from broker.matching.usegroups import UseGroup, group_of
from joins import ranges

__all__ = ["InnerTuples"]

_NO_TEXT = -1
"""The number of the text of a node without a value."""

_QUERIES = 1 << 31
"""A tuple that a query has found is a number: that of the tuple times this, and the query's.

So it is with a group.
"""

_WHOLE = ("docid", "depth", "docid_min", "docid_max", "start_us", "end_us", "watermark_us", "shape")
"""The columns of whole numbers of `UNNUMBERED`."""


class InnerTuples:
    """The tuples of inner operators in a stratum, and the queries that have found each.

    Of groups it does not know the queries.  `shapes_of` gives their shapes as instances.
    """

    def __init__(self, shapes_of: TupleShapes) -> None:
        self._shapes_of = shapes_of
        self._numbers: dict[bytes, int] = {}
        self._parts: list[_TupleRows] = []
        self._texts: dict[str, int] = {}
        self._streams: Sequence[str] = ()
        self._queries: dict[str, int] = {}
        self._found: set[int] = set()
        self._of_groups: list[Ints] = []
        self._groups: dict[UseGroup, int] = {}
        self._in_groups: set[int] = set()
        self._found_by_words: set[int] = set()

    def add_to_groups(self, hits: Hits) -> tuple[Ints, Flags]:
        """Add hits of groups; return the numbers of tuples, and which are new to their group."""
        if not len(hits):
            return np.zeros(0, np.int64), np.zeros(0, np.bool_)
        known, numbers = len(self._numbers), self._number(hits)
        distinct, first = np.unique(numbers, return_index=True)
        are_new = np.zeros(len(hits), np.bool_)
        are_new[first[distinct >= known]] = True
        self._of_groups.append(distinct)
        some = hits.have_words.nonzero()[0]
        if len(some):
            # Of one text several groups ask for words, and each has the tuple.
            groups = [self._groups.setdefault(group_of(u), len(self._groups)) for u in hits.uses]
            found = numbers[some] * _QUERIES + np.array(groups, np.int64)[hits.which[some]]
            are_new[some] = _are_first(found, self._in_groups)
        return numbers, are_new

    def are_first(self, numbers: Ints, queries: Sequence[str]) -> Flags:
        """Return which pairs of a tuple of groups and a query are there for the first time."""
        own = [self._queries.setdefault(query, len(self._queries)) for query in queries]
        return _are_first(numbers * _QUERIES + np.array(own, np.int64), self._found_by_words)

    def add(self, hits: Hits) -> Flags:
        """Add hits of inner operators; return which of them no earlier one has for its query."""
        queries = [
            self._queries.setdefault(use.topic.query.id, len(self._queries)) for use in hits.uses
        ]
        found = self._number(hits) * _QUERIES + np.array(queries, np.int64)[hits.which]
        return _are_first(found, self._found)

    def _number(self, hits: Hits) -> Ints:
        """Return the number of the tuple of each hit; what is new gets a row."""
        # Many uses may have found one tuple; clauses with one stream read it alike, where they are
        # handed on by data those with the same.
        found_by, data = hits.found_by
        of_data = hits.streams * len(data) + found_by
        read_alike = hits.rows * (len(hits.table.streams) * len(data)) + of_data
        made, count = hits.texts_made
        read_alike = read_alike * count + made
        _, first, inverse = np.unique(read_alike, return_index=True, return_inverse=True)
        rows = self._read(hits.take(first))
        self._streams = hits.table.streams
        known, before = self._numbers, len(self._numbers)
        numbers = np.array([known.setdefault(key, len(known)) for key in rows.contents()], np.int64)
        found, own = np.unique(numbers, return_index=True)
        self._parts.append(rows.take(own[found >= before]))
        return numbers[inverse]

    def _read(self, hits: Hits) -> _TupleRows:
        points, operands = hits.points, hits.points.operands
        newest = points.newest(hits.rows)
        depths, watermarks, were_decided = points.standing(hits.rows)
        match_ids = self._spelled(operands.match_ids(newest))
        match_ids[were_decided] = self._texts.setdefault("", len(self._texts))
        starts, ends = points.intervals(hits.rows)
        whole = [
            points.docids[hits.rows],
            depths,
            points.docids_min[hits.rows],
            hits.docids_max,
            starts,
            ends,
            watermarks,
            self._shapes(hits),
        ]
        leaves, leaf_counts = hits.leaves
        is_leaf = np.arange(leaves.shape[1]) < leaf_counts[:, None]
        behind = _Lists(leaves[is_leaf], leaf_counts)
        return _TupleRows(hits.streams, match_ids, np.stack(whole), behind, *self._carried(hits))

    def _shapes(self, hits: Hits) -> Ints:
        """Return the shape of each tuple, which is that of its stream."""
        table = hits.table
        streams, _, which = distinct(hits.streams)
        names = [table.streams[stream] for stream in streams.tolist()]
        variables = [table.variables[stream] for stream in streams.tolist()]
        return np.array(self._shapes_of(names, variables), np.int64)[which]

    def _carried(self, hits: Hits) -> tuple[_Lists, _Lists]:
        """Return the nodes and values that each tuple carries, those of its root first."""
        own, terms, are_valued = hits.carried()
        counts = np.bincount(own, minlength=len(hits))
        more, tested = hits.tested()
        sizes = 1 + counts + more
        starts = sizes.cumsum() - sizes
        # What is only tested is no node: equal values of several nodes are one.
        nodes = np.zeros(int(sizes.sum()), np.int64)
        texts = np.full(len(nodes), _NO_TEXT)
        at = ranges(starts + 1, counts)
        nodes[at] = hits.nodes[own, terms]
        texts[at] = np.where(are_valued, self._spelled(hits.coded(own, terms)), _NO_TEXT)
        texts[ranges(starts + 1 + counts, more)] = self._spelled(tested)
        return _Lists(nodes, sizes), _Lists(texts, sizes)

    def _spelled(self, texts: CodedTexts) -> Ints:
        """Return the numbers of texts."""
        known = self._texts
        numbers = [known.setdefault(text, len(known)) for text in texts.texts]
        return np.array([*numbers, _NO_TEXT], np.int64)[texts.codes]

    def tables(self, limit_of: Callable[[str], int], characters_max: int) -> Iterator[pa.Table]:
        """Yield the tuples below the limit of a query that has found them, as `UNNUMBERED`.

        Those of groups are all there.  A table has so many characters: a column must hold
        them.
        """
        if not self._parts:
            return
        rows = _TupleRows.concat(self._parts)
        numbers, queries = np.divmod(np.array([*self._found], np.int64), _QUERIES)
        limits = np.array([limit_of(query) for query in self._queries], np.int64)
        is_below = np.zeros(len(rows), np.bool_)
        is_below[numbers[rows.whole[0, numbers] < limits[queries]]] = True
        for some in self._of_groups:
            is_below[some] = True
        rows = rows.take(is_below.nonzero()[0])
        texts = [*self._texts]
        sizes = rows.values.sums(np.array([*map(len, texts), 0], np.int64))
        if sizes.sum() <= characters_max:
            if len(rows):
                yield rows.table(texts, self._streams)
            return
        for part in in_sub_batches(range(len(rows)), sizes.__getitem__, characters_max):
            yield rows.take(np.array(part)).table(texts, self._streams)


def _are_first(found: Ints, known: set[int]) -> Flags:
    """Return where each number stands first that is not known yet, and know it."""
    distinct, first = np.unique(found, return_index=True)
    is_first = [each not in known for each in distinct.tolist()]
    known.update(distinct.tolist())
    are_first = np.zeros(len(found), np.bool_)
    are_first[first[np.array(is_first, np.bool_)]] = True
    return are_first


class _Lists(NamedTuple):
    """Lists of numbers: all behind one another, and how many each has."""

    flat: Ints
    counts: Ints

    @classmethod
    def concat(cls, parts: list[_Lists]) -> _Lists:
        """Return the lists of all parts."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def take(self, some: Ints) -> _Lists:
        """Return some of the lists."""
        starts = self.counts.cumsum() - self.counts
        return _Lists(self.flat[ranges(starts[some], self.counts[some])], self.counts[some])

    def sums(self, sizes: Ints) -> Ints:
        """Return the sum of the sizes of what is in each list."""
        total = np.concatenate([np.zeros(1, np.int64), sizes[self.flat].cumsum()])
        ends = self.counts.cumsum()
        found: Ints = total[ends] - total[ends - self.counts]
        return found

    def array(self, flat: pa.Array) -> pa.ListArray:
        """Return the lists with other values."""
        offsets = np.concatenate([np.zeros(1, np.int64), self.counts.cumsum()])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat)


class _TupleRows(NamedTuple):
    """Tuples as rows: of whole numbers there is a column for each of `_WHOLE`.

    Texts are given by their numbers.
    """

    streams: Ints
    match_ids: Ints
    whole: Ints
    leaves: _Lists
    nodes: _Lists
    values: _Lists

    def __len__(self) -> int:
        return len(self.streams)

    @classmethod
    def concat(cls, parts: list[_TupleRows]) -> _TupleRows:
        """Return the rows of all parts."""
        return cls(
            np.concatenate([part.streams for part in parts]),
            np.concatenate([part.match_ids for part in parts]),
            np.concatenate([part.whole for part in parts], axis=1),
            _Lists.concat([part.leaves for part in parts]),
            _Lists.concat([part.nodes for part in parts]),
            _Lists.concat([part.values for part in parts]),
        )

    def contents(self) -> list[bytes]:
        """Return for each row what it is equal to others by; of a shape all have as many nodes."""
        shapes = self.whole[-1]
        keys: list[Any] = [b""] * len(self)
        layouts = self.leaves.counts << 32 | self.nodes.counts
        for layout in np.unique(layouts).tolist():
            own = (layouts == layout).nonzero()[0]
            lists = [
                each.take(own).flat.reshape(len(own), -1)
                for each in (self.leaves, self.nodes, self.values)
            ]
            rows = np.concatenate([shapes[own, None], *lists], axis=1)
            # One node may carry several values: a function of it may have more than one.
            found = np.ascontiguousarray(rows).view(f"V{8 * rows.shape[1]}").ravel().tolist()
            for row, key in zip(own.tolist(), found, strict=True):
                keys[row] = key
        return keys

    def take(self, some: Ints) -> _TupleRows:
        """Return some of the rows, each at most once and in order."""
        if len(some) == len(self):
            return self
        return _TupleRows(
            self.streams[some],
            self.match_ids[some],
            self.whole[:, some],
            self.leaves.take(some),
            self.nodes.take(some),
            self.values.take(some),
        )

    def table(self, texts: list[str], streams: Sequence[str]) -> pa.Table:
        """Return the rows as `UNNUMBERED`; `texts` and `streams` are all by their numbers."""
        known = pa.array([*texts, None], pa.string())
        match_ids, values = (
            known.take(pa.array(numbers % len(known)))
            for numbers in (self.match_ids, self.values.flat)
        )
        distinct, which = np.unique(self.streams, return_inverse=True)
        named = pa.array([streams[number] for number in distinct.tolist()], pa.string())
        columns = {
            **dict(zip(_WHOLE, self.whole, strict=True)),
            "stream": named.take(pa.array(which)),
            "key": pa.repeat("", len(self)),
            "match_id": match_ids,
            "leaves": self.leaves.array(pa.array(self.leaves.flat, pa.int64())),
            "nodes": self.nodes.array(pa.array(self.nodes.flat.astype(np.int32))),
            "vals": self.values.array(values),
        }
        return pa.table(
            [pa.array(columns[field.name], field.type) for field in UNNUMBERED], UNNUMBERED
        )
