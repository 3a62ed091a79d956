"""Groups of a common stream that have few uses or tuples: who has which tuple, for all at once.

Where most statements differ, most groups have a use or two and a tuple or two in a batch.  To count
the tuples of each by itself (`commoncounts`) would cost by groups, so those of small groups are
listed: each tuple with every use that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod

import numpy as np

from broker.matching.boxes.columns import Flags, Ints, distinct
from broker.matching.boxes.exclusions import differ
from broker.matching.costs.accounting import Accounting
from broker.matching.costs.begun import NumberedQueries
from broker.matching.costs.charges import FoundCharges, HandedOnCharges
from broker.matching.hits import Hits
from broker.matching.usegroups import SEVERAL, FoundUses, GroupColumns, UseGroup, group_of
from joins import UNBOUNDED, ranges

__all__ = ["HeldPairs", "distinct_rows"]

_NOBODY = np.zeros(0, np.int64)

_NO_ROW = -1
"""The row of a use that is alone in its group."""

_NUMBERS = 1 << 62
"""Rows that can be told apart by one number."""


@dataclass(frozen=True)
class HeldPairs:
    """Hits of small groups, each with every use that has it and is not stopped before.

    Pair `i` is of the hit `hits[i]`, and the query `queries[which[i]]`; it `may_repeat` where the
    query may have the tuple by another group, too.  `others` are the groups that are not listed,
    each with its hits.
    """

    hits: Ints
    queries: Sequence[str]
    which: Ints
    may_repeat: Flags
    others: Sequence[tuple[Ints, UseGroup]]

    @classmethod
    def of(cls, hits: Hits, accounts: Accounting, held_pairs: int) -> HeldPairs:
        """Return who has hits.

        Listed are groups of one use, whose box has said already that it has them, those with at
        most so many `held_pairs`, and those whose pairs may repeat.
        """
        uses = hits.uses
        are_listed, may_repeat = _listed(hits, held_pairs)
        others = list(_apart(hits, uses, ~are_listed))
        several = (are_listed & (hits.owners == SEVERAL)).nonzero()[0]
        # Most groups are one use, whose owner says enough.
        columns = [group_of(uses[i]).columns for i in several.tolist()]
        sizes = are_listed.astype(np.int64)
        sizes[several] = [len(each.holders) for each in columns]
        starts, of_listed = sizes.cumsum() - sizes, np.arange(len(uses)).repeat(sizes)
        rows = ranges(starts[several], sizes[several])
        holders = hits.owners[of_listed]
        holders[rows] = np.concatenate([_NOBODY, *(each.holders for each in columns)])
        counts = sizes[hits.which]
        own, listed = np.arange(len(hits)).repeat(counts), ranges(starts[hits.which], counts)
        if any(each.have_bounds for each in columns):
            row_of = np.full(len(holders), _NO_ROW)
            row_of[rows] = np.arange(len(rows))
            are_held = _are_held(hits, own, columns, row_of[listed])
            own, listed = own[are_held], listed[are_held]
        numbers, first, of_query = distinct(holders)

        def name(number: int) -> str:
            at = first[number]
            use = int(of_listed[at])
            if hits.owners[use] != SEVERAL:
                return uses[use].topic.query.id
            return group_of(uses[use]).columns.queries[int(at - starts[use])]

        queries = NumberedQueries(numbers, name)
        pairs = cls(own, queries, of_query[listed], may_repeat[hits.which[own]], others)
        return pairs._below(hits.docids, accounts)

    def _below(self, docids: Ints, accounts: Accounting) -> HeldPairs:
        """Return the pairs of tuples that stand where their queries are not stopped yet."""
        if not (stopped := accounts.stopped()):
            return self
        limits = np.array([stopped.get(name, UNBOUNDED) for name in self.queries], np.int64)
        return self._take(docids[self.hits] <= limits[self.which])

    def _take(self, some: Flags) -> HeldPairs:
        own = self.hits[some], self.queries, self.which[some], self.may_repeat[some]
        return HeldPairs(*own, self.others)

    def among(self, kept: Flags) -> HeldPairs:
        """Return the pairs of some of the hits, which are counted anew."""
        found = self._take(kept[self.hits])
        places = kept.cumsum() - 1
        return replace(found, hits=places[found.hits])

    def charge(self, hits: Hits, are_first: Flags, accounts: Accounting) -> None:
        """Charge queries with tuples of nodes, and with what is handed on: pairs that are first."""
        docids, newest = hits.docids[self.hits], hits.docids_max[self.hits]
        own = [self.which, docids, newest]
        (which, *where), inverse = distinct_rows(own)
        tuples, nbytes = np.bincount(inverse), np.bincount(inverse, hits.nbytes[self.hits])
        amounts = (tuples, nbytes.astype(np.int64), np.zeros_like(tuples))
        accounts.charge(FoundCharges(self.queries, which, where[0], where[1], *amounts))
        own.append(hits.streams[self.hits])
        (which, *where), inverse = distinct_rows([column[are_first] for column in own])
        given = (self.queries, which, where[0], where[1], hits.table.streams, where[2])
        accounts.charge(HandedOnCharges(*given, np.bincount(inverse)))


def _listed(hits: Hits, held_pairs: int) -> tuple[Flags, Flags]:
    """Return which groups are listed (`HeldPairs.of`), and of which the pairs may repeat."""
    uses, tuples = hits.uses, np.bincount(hits.which, minlength=len(hits.uses))
    are_listed, may_repeat = np.ones(len(uses), np.bool_), np.zeros(len(uses), np.bool_)
    for i in (hits.owners == SEVERAL).nonzero()[0].tolist():
        are_listed[i] = len(group_of(uses[i])) * tuples[i] <= held_pairs
    if hits.have_words.any():
        may_repeat |= [group_of(use).may_repeat for use in uses]
    return are_listed | may_repeat, may_repeat


def _are_held(hits: Hits, own: Ints, columns: Sequence[GroupColumns], row_of: Ints) -> Flags:
    """Return which hits are within the bounds of the uses that they are paired with.

    A use is given by its row in all columns; one without a row has no bounds.
    """
    are_held, some = np.ones(len(own), np.bool_), np.flatnonzero(row_of != _NO_ROW)
    row = row_of[some]
    most = _stacked([each.bounds for each in columns], np.iinfo(np.int64).max)
    are_held[some] = np.all(hits.bounds[own[some], : most.shape[1]] <= most[row], axis=1)
    # Of what a use does not exclude the hashes are 1: no text has these.
    excluded = _stacked([each.excluded for each in columns], 1)
    width = excluded.shape[1]
    are_held[some] &= differ(hits.excluded[own[some], :width], excluded[row])
    return are_held


def _apart(hits: Hits, uses: FoundUses, are_apart: Flags) -> Iterator[tuple[Ints, UseGroup]]:
    """Yield the groups of some of the uses, each with its hits."""
    some = are_apart[hits.which].nonzero()[0]
    order = some[hits.which[some].argsort(kind="stable")]
    for rows in np.split(order, np.diff(hits.which[order]).nonzero()[0] + 1):
        if len(rows):
            yield rows, group_of(uses[int(hits.which[rows[0]])])


def _stacked(parts: Sequence[Ints], behind: int) -> Ints:
    """Return matrices below one another, with another number behind the last of narrower ones."""
    stacked = np.full((sum(map(len, parts)), max(part.shape[1] for part in parts)), behind)
    starts = accumulate(map(len, parts), initial=0)
    for start, part in zip(starts, parts, strict=False):
        stacked[start : start + len(part), : part.shape[1]] = part
    return stacked


def distinct_rows(columns: Sequence[Ints]) -> tuple[list[Ints], Ints]:
    """Return the different rows of some columns, and which of them each row is."""
    if not len(columns[0]):
        nothing = np.zeros(0, np.int64)
        return [column[nothing] for column in columns], nothing
    if (numbers := _as_numbers(columns)) is not None:
        _, first, inverse = distinct(numbers)
        return [column[first] for column in columns], inverse
    inverse = first = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, codes = np.unique(column, return_inverse=True)
        # There are at most as many rows as hits, so the product of two counts fits.
        _, first, inverse = np.unique(
            inverse * max(1, len(values)) + codes, return_index=True, return_inverse=True
        )
    return [column[first] for column in columns], inverse


def _as_numbers(columns: Sequence[Ints]) -> Ints | None:
    """Return rows as numbers that are equal where rows are, in their order; None if none fits."""
    least = [int(column.min()) for column in columns]
    sizes = [int(column.max()) - low + 1 for column, low in zip(columns, least, strict=True)]
    if prod(sizes) > _NUMBERS:
        return None
    numbers = np.zeros(len(columns[0]), np.int64)
    for column, low, size in zip(columns, least, sizes, strict=True):
        numbers = numbers * size + (column - low)
    return numbers
