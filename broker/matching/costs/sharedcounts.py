"""Tuples that some queries all have, counted once for all of them.

Statements that differ in what they ask of runs read the same streams, and cost the same there.  So
what a batch adds to them is one row of sums for all who have nothing else in it: beside the most
that one of them has from before, it says whether somebody may be over a bound.  Who is charged with
more in the batch has sums of its own (`charges.Ledger`), of which these become a part.

Invariant: no sum is below what the tally of a query would have counted.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.costs.begun import InBlock, Key
from broker.matching.costs.blocks import blocks_of
from broker.matching.costs.commoncounts import Counted, DueCount

__all__ = ["SharedCounts", "SharedTuples"]


class SharedTuples:
    """The tuples that some queries have in the batch.

    `sums` are those of each one that has no more, at most; `apart` are queries with sums of their
    own, and `told` has how many of `counted` the tallies of queries know.
    """

    def __init__(self, keys: list[Key]) -> None:
        self.keys = keys
        self.members = frozenset(query for query, _ in keys)
        self.counted: list[Counted] = []
        self.sums: Ints = np.zeros(6, np.int64)
        self.apart: list[str] = []
        self.told: dict[str, int] = {}

    def in_block(self, block: int) -> InBlock:
        """Return what each query has in a block of positions."""
        found: dict[int, tuple[int, int]] = {}
        for counted in self.counted:
            some = blocks_of(counted.docids) == block
            newest, weights = blocks_of(counted.newest[some]), counted.weights[some]
            for each in np.unique(newest).tolist():
                _, handed_on, nbytes = weights[newest == each].sum(axis=0).tolist()
                for at, count, size in ((each, handed_on, 0), (block, 0, nbytes)):
                    if count or size:
                        before = found.get(at, (0, 0))
                        found[at] = before[0] + count, before[1] + size
        return found


class SharedCounts:
    """The tuples of a batch that queries share, by the queries."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, ...], SharedTuples] = {}
        self._of_query: dict[str, list[SharedTuples]] = {}
        self._alone: dict[str, SharedTuples] = {}

    def __bool__(self) -> bool:
        return bool(self._alone)

    def of(self, queries: Sequence[str]) -> SharedTuples | None:
        """Return what some queries share, if they do already."""
        return self._all.get(tuple(queries))

    def begin(self, keys: list[Key], known: Container[str]) -> SharedTuples:
        """Have queries share tuples: `known` ones, and who shares with others too, are apart."""
        queries = tuple(query for query, _ in keys)
        shared = self._all[queries] = SharedTuples(keys)
        shared.apart = [each for each in queries if each in known or each in self._of_query]
        apart = set(shared.apart)
        for query in queries:
            if query not in apart:
                self._of_query[query], self._alone[query] = [shared], shared
            else:
                self._of_query.setdefault(query, []).append(shared)
        return shared

    def alone(self, shared: SharedTuples) -> Iterator[str]:
        """Yield the queries that have no sums of their own."""
        return (each for each, _ in shared.keys if self._alone.get(each) is shared)

    def leave(self, query: str) -> Iterable[Counted]:
        """Have a query have sums of its own; return what it shares so far, if it had none."""
        shared = self._alone.pop(query, None)
        if shared is None:
            return ()
        shared.apart.append(query)
        return shared.counted

    def due(self, query: str) -> Iterator[DueCount]:
        """Yield what a query is charged with, each once."""
        for shared in self._of_query.get(query, ()):
            first = shared.told.get(query, 0)
            shared.told[query] = len(shared.counted)
            for counted in shared.counted[first:]:
                yield counted.due(np.ones(len(counted.docids), np.bool_))

    def in_block(self, block: int) -> Iterator[tuple[Sequence[Key], InBlock]]:
        """Yield what queries that were not told have in a block of positions, if anything."""
        for shared in self._all.values():
            if found := shared.in_block(block):
                told = shared.told
                yield (
                    [key for key in shared.keys if key[0] not in told] if told else shared.keys,
                    found,
                )
