"""Tuples of common streams, counted for each query that has them when somebody asks.

A query is told its counts where they can matter: when it counts anything else in the batch, or when
all that it has in the batch might be over a bound.  Of the others only the sums of the last block
are made, when the batch ends.  That is exact: what stops a query does not depend on the order in
which its tuples are counted, and a query whose sum is within a bound is within it at each document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.costs.begun import columns_of
from broker.matching.costs.blocks import Account, blocks_of
from broker.matching.costs.budget import TUPLE_COST, Tally
from broker.matching.usegroups import GroupColumns

__all__ = ["CommonCounts", "Counted", "DueCount"]

_HITS, _HANDED_ON, _NBYTES = range(3)


class DueCount(NamedTuple):
    """What a tally has not been told yet, and the step in which it was counted."""

    step: int
    tell: Callable[[Tally], None]


@dataclass(frozen=True)
class Counted:
    """Tuples of a group: their bounds, positions, newest documents, weights, and their step.

    The weights are 1 for each tuple of nodes, 1 for the first of what is handed on, and the bytes
    of the values.
    """

    stream: str
    uses: GroupColumns
    tuples: Ints
    docids: Ints
    newest: Ints
    weights: Ints
    step: int = 0

    def due(self, some: Flags) -> DueCount:
        """Return what a tally is charged with for some tuples."""
        return DueCount(self.step, lambda tally: self.tell(tally, some))

    def tell(self, tally: Tally, some: Flags) -> None:
        """Charge a tally with some tuples, account by account."""
        accounts, sums = self._by_account(some)
        if not len(accounts):
            return
        if not sums[:, _HANDED_ON].any():
            hits, nothing, nbytes = sums.T
            tally.find_all(accounts[:, 0], accounts[:, 1], hits, nbytes, nothing)
            return
        for where, (hits, handed_on, nbytes) in zip(accounts.tolist(), sums.tolist(), strict=True):
            account = Account(*where)
            tally.find(account, hits, nbytes, 0)
            if handed_on:
                tally.hand_on(self.stream, account, handed_on)

    @cached_property
    def whole_sums(self) -> Ints:
        """What all tuples add to the sums of a query (`Ledger.note`)."""
        hits, handed_on, nbytes = self.peaks().tolist()
        _, all_handed_on, all_nbytes = self.weights.sum(axis=0).tolist()
        spent = hits * TUPLE_COST + nbytes
        return np.array([hits, spent, 0, handed_on, all_handed_on, all_nbytes], np.int64)

    def peaks(self) -> Ints:
        """Return the largest of each weight that an account has."""
        _, sums = self._by_account(np.ones(len(self.docids), np.bool_))
        peaks: Ints = sums.max(axis=0)
        return peaks

    def _by_account(self, some: Flags) -> tuple[Ints, Ints]:
        where = np.stack([self.docids[some], self.newest[some]], axis=1)
        weights = self.weights[some]
        if (np.diff(where[:, 0]) > 0).all():
            return where, weights
        order = np.lexsort((where[:, 1], where[:, 0]))
        where, weights = where[order], weights[order]
        is_first = np.ones(len(where), np.bool_)
        is_first[1:] = (np.diff(where, axis=0) != 0).any(axis=1)
        first = np.flatnonzero(is_first)
        return where[first], np.add.reduceat(weights, first, axis=0)


class CommonCounts:
    """The tuples that have been counted in the batch in hand, and what each query has of them."""

    def __init__(self) -> None:
        # Of what has been counted, which uses' queries have not been told.
        self._counted: list[tuple[Counted, Flags]] = []

    def add(self, counted: Counted) -> tuple[Sequence[str], Ints]:
        """Count tuples; return whose they may be, and what each has of them (`Ledger.note`)."""
        own = counted.uses.sums(counted.tuples, counted.weights)
        self._counted.append((counted, np.ones(len(own), np.bool_)))
        peaks = np.minimum(own, counted.peaks())
        hits, handed_on, nbytes = peaks.T
        spent = hits * TUPLE_COST + nbytes
        columns = (hits, spent, np.zeros_like(hits), handed_on, own[:, _HANDED_ON], own[:, _NBYTES])
        return counted.uses.queries, np.stack(columns, axis=1)

    def due(self, query: str) -> Iterator[DueCount]:
        """Yield all that a query is charged with, and forget it."""
        for counted, are_untold in self._counted:
            for use in counted.uses.of_query.get(query, ()):
                if are_untold[use]:
                    are_untold[use] = False
                    yield counted.due(counted.uses.has(use, counted.tuples))

    def in_block(self, block: int, numbers_of: Callable[[Sequence[str]], Ints]) -> Iterator[Ints]:
        """Yield in columns what queries that were not told have in a block of positions.

        Tuples handed on are by the block of their newest document, bytes in that of their
        positions.
        """
        for counted, are_untold in self._counted:
            if are_untold.any():
                numbers = numbers_of(counted.uses.queries)
                for newest, sums in _sums_in_block(counted, block):
                    own = np.flatnonzero(are_untold & (sums[:, _HANDED_ON:] != 0).any(axis=1))
                    yield columns_of(numbers[own], newest, sums[own, _HANDED_ON], 0)
                    yield columns_of(numbers[own], block, 0, sums[own, _NBYTES])


def _sums_in_block(counted: Counted, block: int) -> Iterator[tuple[int, Ints]]:
    """Yield the sums of each use in a block of positions, by the block of the newest document."""
    own = np.flatnonzero(blocks_of(counted.docids) == block)
    newest = blocks_of(counted.newest[own])
    for each in np.unique(newest).tolist():
        some = own[newest == each]
        yield each, counted.uses.sums(counted.tuples[some], counted.weights[some])
