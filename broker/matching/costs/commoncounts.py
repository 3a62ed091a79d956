"""Tuples of common streams, counted for each query that has them when somebody asks.

A query is told its counts where they can matter: when it counts anything else in the batch, or when
all that it has in the batch might be over a bound.  Of the others only the sums of the last block
are made, when the batch ends.  That is exact: what stops a query does not depend on the order in
which its tuples are counted, and a query whose sum is within a bound is within it at each document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import add
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.costs.blocks import BLOCK_DOCUMENTS, Account
from broker.matching.usegroups import GroupColumns

__all__ = ["CommonCounts", "Counted", "Had"]

_HITS, _HANDED_ON, _NBYTES = range(3)


@dataclass(frozen=True)
class Counted:
    """Tuples of a group: their bounds, positions, newest documents, and weights.

    The weights are 1 for each tuple of nodes, 1 for the first of what is handed on, and the bytes
    of the values.
    """

    stream: str
    uses: GroupColumns
    tuples: Ints
    docids: Ints
    newest: Ints
    weights: Ints

    def accounts(self, some: Flags) -> Iterator[tuple[Account, list[int]]]:
        """Yield the weights of some tuples in each account."""
        accounts, sums = self._by_account(some)
        for (docid, newest), weights in zip(accounts.tolist(), sums.tolist(), strict=True):
            yield Account(docid, newest), weights

    def peaks(self) -> list[int]:
        """Return the largest of each weight that an account has."""
        _, sums = self._by_account(np.ones(len(self.docids), np.bool_))
        peaks: list[int] = sums.max(axis=0).tolist()
        return peaks

    def _by_account(self, some: Flags) -> tuple[Ints, Ints]:
        where = np.stack([self.docids[some], self.newest[some]], axis=1)
        accounts, inverse = np.unique(where, axis=0, return_inverse=True)
        sums = np.zeros((len(accounts), self.weights.shape[1]), np.int64)
        np.add.at(sums, inverse.ravel(), self.weights[some])
        return accounts, sums


class Had(NamedTuple):
    """What a query has that it has not been told of, in all; peaks are of one document at most."""

    hits: int = 0
    handed_on: int = 0
    nbytes: int = 0
    peak_hits: int = 0
    peak_handed_on: int = 0
    peak_nbytes: int = 0


class CommonCounts:
    """The tuples that have been counted in the batch in hand, and what each query has of them."""

    def __init__(self) -> None:
        self._counted: list[Counted] = []
        self._of_query: dict[str, list[tuple[int, int]]] = {}
        self._had: dict[str, Had] = {}

    def add(self, counted: Counted) -> list[str]:
        """Count tuples; return the queries that have some."""
        sums = counted.uses.sums(counted.tuples, counted.weights)
        some = np.flatnonzero(sums[:, _HITS]).tolist()
        place, peaks = len(self._counted), counted.peaks()
        self._counted.append(counted)
        queries = [counted.uses.queries[i] for i in some]
        nothing = Had()
        for query, use, own in zip(queries, some, sums[some].tolist(), strict=True):
            self._of_query.setdefault(query, []).append((place, use))
            more = (*own, *map(min, own, peaks))
            self._had[query] = Had(*map(add, self._had.get(query, nothing), more))
        return queries

    def had(self, query: str) -> Had:
        """Return what a query has that it has not been told of."""
        return self._had[query]

    def take(self, query: str) -> list[tuple[str, Account, list[int]]]:
        """Return what a query has by operator and account, and forget it."""
        self._had.pop(query, None)
        found = []
        for place, use in self._of_query.pop(query, ()):
            counted = self._counted[place]
            held = counted.uses.has(use, counted.tuples)
            found += [(counted.stream, *each) for each in counted.accounts(held)]
        return found

    def in_block(self, block: int) -> Mapping[str, dict[int, tuple[int, int]]]:
        """Return what queries have in a block of positions: tuples handed on, and bytes.

        Tuples are by the block of their newest document, bytes in that of their positions.
        """
        of_place = {
            place: list(_sums_in_block(counted, block))
            for place, counted in enumerate(self._counted)
        }
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for query, uses in self._of_query.items():
            own: dict[int, tuple[int, int]] = {}
            for place, use in uses:
                for newest, sums in of_place[place]:
                    _, handed_on, nbytes = sums[use]
                    for each, count, size in ((newest, handed_on, 0), (block, 0, nbytes)):
                        if count or size:
                            before = own.get(each, (0, 0))
                            own[each] = before[0] + count, before[1] + size
            if own:
                found[query] = own
        return found


def _sums_in_block(counted: Counted, block: int) -> Iterator[tuple[int, list[list[int]]]]:
    """Yield the sums of each use in a block of positions, by the block of the newest document."""
    own = np.flatnonzero((counted.docids - 1) // BLOCK_DOCUMENTS == block)
    newest = (counted.newest[own] - 1) // BLOCK_DOCUMENTS
    for each in np.unique(newest).tolist():
        some = own[newest == each]
        sums = counted.uses.sums(counted.tuples[some], counted.weights[some])
        yield each, sums.tolist()
