"""The rows of all streams of a chain that came in one batch, and which are of which stream."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.memory.slots import Ints
from templates.decision import TupleStream

__all__ = ["BatchRows"]

Made = TypeVar("Made")

_STRETCHES = 16


class BatchRows:
    """Rows of a batch, each of one document.

    Tables of runs that read the same streams have them in common: what is made of rows for one of
    them is there for the others.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table.combine_chunks()
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what has been made of the rows under a key, or is made now."""
        if key not in self._made:
            self._made[key] = make()
        return cast("Made", self._made[key])

    @cached_property
    def documents(self) -> Ints:
        """The document of each row."""
        found: Ints = self.table.column("leaves").combine_chunks().flatten().to_numpy()
        return found

    def ints(self, name: str) -> Ints:
        """Return a column of whole numbers."""

        def make() -> Ints:
            found: Ints = self.table.column(name).to_numpy().astype(np.int64, copy=False)
            return found

        return self.once(name, make)

    @cached_property
    def _streams(self) -> tuple[list[str], Ints]:
        streams = self.table.column("stream").combine_chunks().dictionary_encode()
        return streams.dictionary.to_pylist(), streams.indices.to_numpy()

    @cached_property
    def _order(self) -> Ints:
        """The rows by stream."""
        return np.argsort(self._streams[1], kind="stable")

    @cached_property
    def _at(self) -> dict[str, tuple[int, int]]:
        """Where the rows of each stream begin and stop in that order."""
        names, of_row = self._streams
        at = np.cumsum([0, *np.bincount(of_row, minlength=len(names)).tolist()]).tolist()
        return dict(zip(names, pairwise(at), strict=True))

    @cached_property
    def _with_several(self) -> frozenset[str]:
        """The streams of which some documents have several rows, or stand in no order."""
        names, of_row = self._streams
        of_row, documents = of_row[self._order], self.documents[self._order]
        is_again = (np.diff(of_row) == 0) & (np.diff(documents) <= 0)
        return frozenset(names[i] for i in np.unique(of_row[1:][is_again]).tolist())

    @cached_property
    def _lists(self) -> tuple[pa.Array, Ints]:
        """The values of all rows, and where those of each begin."""
        lists = self.table.column("vals").combine_chunks()
        return lists.values, lists.offsets.to_numpy()

    @cached_property
    def _nodes(self) -> tuple[Ints, Ints]:
        """The nodes of all rows, and where those of each begin."""
        lists = self.table.column("nodes").combine_chunks()
        return lists.values.to_numpy(), lists.offsets.to_numpy()

    @property
    def streams(self) -> Set[str]:
        """The streams of which there are rows."""
        return self._at.keys()

    def of(self, stream: str) -> Ints:
        """Return the places of the rows of a stream, in order."""
        first, stop = self._at.get(stream, (0, 0))
        return self._order[first:stop]

    def are_apart(self, stream: str) -> bool:
        """Return whether a stream surely has one row of a document at most."""
        return stream not in self._with_several

    def values(self, stream: TupleStream, rows: Ints, term: str) -> pa.Array:
        """Return the values of a term in some rows of a stream."""
        values, starts = self._lists
        return values.take(pa.array(starts[rows] + 1 + stream.place(term)))

    def nodes(self, stream: TupleStream, rows: Ints, term: str) -> Ints:
        """Return the nodes of a term in some rows of a stream."""
        nodes, starts = self._nodes
        found: Ints = nodes[starts[rows] + 1 + stream.terms.index(term)]
        return found

    def first_rows(self, stream: TupleStream) -> Ints:
        """Return the first row of each tuple of a stream: of each choice of nodes of a document.

        Tuples differ in what they say of data as well.
        """
        return self.once(("tuples", *stream.told_apart), partial(self._first_rows, stream))

    def _first_rows(self, stream: TupleStream) -> Ints:
        own = self.of(stream.name)
        if self.are_apart(stream.name):
            return own
        nodes = self.table.column("nodes").take(pa.array(own)).combine_chunks()
        chosen = [
            pc.list_element(nodes, 1 + stream.terms.index(term)).to_numpy(zero_copy_only=False)
            for term in stream.chosen
        ]
        chosen += [
            self.values(stream, own, term).dictionary_encode().indices.to_numpy()
            for term in stream.keys
        ]
        parts = np.stack([self.documents[own], *chosen], axis=1)
        _, first = np.unique(parts, axis=0, return_index=True)
        return own[np.sort(first)]

    def first_values(self, stream: TupleStream, term: str) -> pa.Array:
        """Return the values of a term in the first rows of the tuples of a stream."""
        key = "values", *stream.told_apart, term
        return self.once(key, lambda: self.values(stream, self.first_rows(stream), term))

    def only(self, streams: Set[str]) -> tuple[pa.Table, Ints]:
        """Return the rows of some streams, and the places where these stand, in order."""
        own = streams & self._at.keys()
        return self.once(("only", frozenset(own)), partial(self._only, own))

    def _only(self, streams: Set[str]) -> tuple[pa.Table, Ints]:
        none = np.zeros(0, np.int64)
        kept = np.sort(np.concatenate([none, *(self.of(name) for name in sorted(streams))]))
        if len(kept) == self.table.num_rows:
            return self.table, kept
        # A stream's rows mostly stand together: to copy stretches is cheaper than row by row.
        cuts = (np.flatnonzero(np.diff(kept) != 1) + 1).tolist()
        if not len(kept) or len(cuts) > _STRETCHES:
            return self.table.take(pa.array(kept)), kept
        parts = [
            self.table.slice(kept[first], stop - first)
            for first, stop in pairwise([0, *cuts, len(kept)])
        ]
        # With an empty one they are copied even if they are one: a slice would keep all rows.
        return pa.concat_tables([*parts, self.table.slice(0, 0)]).combine_chunks(), kept
