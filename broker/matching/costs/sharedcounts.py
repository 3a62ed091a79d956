"""Tuples that some queries all have, counted once for all of them.

Statements that differ in what they ask of runs read the same streams, and cost the same there.  So
what a batch adds to them is one row of sums for all who have nothing else in it: beside the most
that one of them has from before, it says whether somebody may be over a bound.  Who is charged with
more in the batch has sums of its own (`charges.Ledger`), of which these become a part.

Invariant: no sum is below what the tally of a query would have counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from functools import cached_property

import numpy as np

from broker.matching.boxes.columns import Flags, GrowingColumn, Ints
from broker.matching.costs.begun import columns_of
from broker.matching.costs.blocks import blocks_of
from broker.matching.costs.commoncounts import Counted, DueCount

__all__ = ["SharedCounts", "SharedTuples"]


class SharedTuples:
    """The tuples that some queries have in the batch.

    Queries are `alone` with them that have no more.  `sums` are those of each of these, at most;
    `told` has how many of `counted` the tallies of queries know.
    """

    def __init__(self, queries: Sequence[str], numbers: Ints, alone: int) -> None:
        self.queries = queries
        self.numbers = numbers
        self.alone = alone
        self.counted: list[Counted] = []
        self.sums: Ints = np.zeros(6, np.int64)
        self.told: dict[str, int] = {}

    @cached_property
    def members(self) -> Set[str]:
        """The queries, to be looked for."""
        return frozenset(self.queries)

    def in_block(self, block: int) -> Iterator[Ints]:
        """Yield in columns what queries that were not told have in a block of positions."""
        numbers, told = self.numbers, self.told
        if told:
            numbers = numbers[[query not in told for query in self.queries]]
        found: dict[int, tuple[int, int]] = {}
        for counted in self.counted:
            some = blocks_of(counted.docids) == block
            newest, weights = blocks_of(counted.newest[some]), counted.weights[some]
            for each in np.unique(newest).tolist():
                _, handed_on, nbytes = weights[newest == each].sum(axis=0).tolist()
                for at, count, size in ((each, handed_on, 0), (block, 0, nbytes)):
                    before = found.get(at, (0, 0))
                    found[at] = before[0] + count, before[1] + size
        for at, counts in found.items():
            if any(counts):
                yield columns_of(numbers, at, *counts)


class SharedCounts:
    """The tuples of a batch that queries share, by the queries.

    Of each query that is alone with some `_alone` has their number, from 1 on.
    """

    def __init__(self) -> None:
        self._all: dict[tuple[str, ...], SharedTuples] = {}
        self._alone = GrowingColumn(np.int64)

    def of(self, queries: Sequence[str]) -> SharedTuples | None:
        """Return what some queries share, if they do already."""
        return self._all.get(tuple(queries))

    def begin(self, queries: Sequence[str], numbers: Ints, have_sums: Flags) -> SharedTuples:
        """Have queries share tuples; who has sums, or shares with others too, is not alone."""
        shared = SharedTuples(queries, numbers, len(self._all) + 1)
        self._all[tuple(queries)] = shared
        self._alone.write(numbers[~have_sums & (self._alone[numbers] == 0)], shared.alone)
        return shared

    def are_alone(self, shared: SharedTuples) -> Flags:
        """Return which of the queries that share tuples have no sums of their own."""
        are_alone: Flags = self._alone[shared.numbers] == shared.alone
        return are_alone

    def leave(self, numbers: Ints) -> Iterator[tuple[Ints, Sequence[Counted]]]:
        """Have no query be alone; yield those that were, with what they share."""
        alone, shared = self._alone[numbers], [*self._all.values()]
        self._alone.write(numbers, 0)
        for each in np.unique(alone[alone != 0]).tolist():
            yield numbers[alone == each], shared[each - 1].counted

    def due(self, query: str) -> Iterator[DueCount]:
        """Yield what a query is charged with, each once."""
        for shared in self._all.values():
            if query in shared.members:
                first = shared.told.get(query, 0)
                shared.told[query] = len(shared.counted)
                for counted in shared.counted[first:]:
                    yield counted.due(np.ones(len(counted.docids), np.bool_))

    def in_block(self, block: int) -> Iterator[Ints]:
        """Yield in columns what queries that were not told have in a block of positions."""
        for shared in self._all.values():
            yield from shared.in_block(block)
