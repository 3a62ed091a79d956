"""What queries are charged with, in columns: told to their tallies only where it can matter.

Tuples and matches are counted in tables, a charge for each row, whoever pays.  Of each query the
charges of a batch are added up: the largest that a document has of each kind, and what blocks have
in all.  While these stay within the bounds of the budget no document and no block can go over them,
so nobody has to look at a charge by itself.

Invariants: sums are never below what the tally would have counted, so a query that is not told is
within its budget; one that is told is told every charge, step by step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.costs.begun import Begun, columns_of
from broker.matching.costs.blocks import Account, blocks_of
from broker.matching.costs.budget import TUPLE_COST, Budget, Tally, bound_of
from broker.matching.costs.commoncounts import Counted, DueCount
from broker.matching.costs.payments import PaymentColumns, Payments
from broker.matching.costs.sharedcounts import SharedCounts

__all__ = [
    "Charges",
    "FoundCharges",
    "HandedOnCharges",
    "Ledger",
    "PaymentCharges",
]

_PEAKS = 4
"""How many of the sums are of one document: tuples, bytes, matches, tuples handed on."""

_MATCHES, _KEPT = _PEAKS, _PEAKS + 1


_NOBODY = np.zeros(0, np.int64)


class Amounts(NamedTuple):
    """What charges add to, a row for each: tuples, bytes, matches, handed on, bytes kept."""

    tuples: Ints
    nbytes: Ints
    matches: Ints
    handed_on: Ints
    kept: Ints


@dataclass(frozen=True)
class Charges(ABC):
    """Charges of `queries`: `which` of them each is of, where it stands, and its newest document.

    A tally is told those of its query in the order of their positions, and as they come.
    """

    queries: Sequence[str]
    which: Ints
    docids: Ints
    newest: Ints

    @property
    @abstractmethod
    def amounts(self) -> Amounts:
        """What each adds to sums, or more."""

    @abstractmethod
    def tell(self, tally: Tally, own: Ints) -> None:
        """Charge a tally with some."""


@dataclass(frozen=True)
class FoundCharges(Charges):
    """Tuples of nodes by account, their values' bytes, and the matches that they begin."""

    tuples: Ints
    nbytes: Ints
    matches: Ints

    @property
    def amounts(self) -> Amounts:
        """What each adds to sums."""
        spent = self.tuples * TUPLE_COST + self.nbytes
        nothing = np.zeros_like(spent)
        return Amounts(self.tuples, spent, self.matches, nothing, self.nbytes)

    def tell(self, tally: Tally, own: Ints) -> None:
        """Charge a tally with some."""
        columns = (self.docids, self.newest, self.tuples, self.nbytes, self.matches)
        tally.find_all(*(column[own] for column in columns))


@dataclass(frozen=True)
class HandedOnCharges(Charges):
    """Tuples of inner operators by account; `streams` are named by `of_stream`."""

    streams: Sequence[str]
    of_stream: Ints
    counts: Ints

    @property
    def amounts(self) -> Amounts:
        """What each adds to sums."""
        nothing = np.zeros_like(self.counts)
        return Amounts(nothing, nothing, nothing, self.counts, nothing)

    def tell(self, tally: Tally, own: Ints) -> None:
        """Charge a tally with some."""
        columns = (self.of_stream, self.docids, self.newest, self.counts)
        for stream, docid, newest, count in zip(
            *(column[own].tolist() for column in columns), strict=True
        ):
            tally.hand_on(self.streams[stream], Account(docid, newest), count)


@dataclass(frozen=True)
class PaymentCharges(Charges):
    """What the matches that have been made cost; each of `parts` begins at one of `starts`."""

    parts: Sequence[PaymentColumns]
    starts: Sequence[int]
    most: Ints
    kept: Ints

    @classmethod
    def of(cls, queries: Sequence[str], payments: Payments) -> PaymentCharges:
        """Return payments as charges, one for each that pays."""
        parts = payments.columns()
        nothing = (np.zeros(0, np.int64),)
        own = [np.concatenate(nothing + each) for each in [*zip(*parts, strict=True)][:-1]]
        starts = [0, *accumulate(len(part.which) for part in parts)]
        which, docids, newest, most, kept = own or 5 * nothing
        return cls(queries, which, docids, newest, parts, starts, most, kept)

    @property
    def amounts(self) -> Amounts:
        """What each adds to sums, or more: all read their documents first."""
        nothing = np.zeros_like(self.most)
        return Amounts(nothing, self.most, nothing, nothing, self.kept)

    def tell(self, tally: Tally, own: Ints) -> None:
        """Charge a tally with some."""
        columns = (own, self.docids[own], self.newest[own])
        for row, docid, newest in zip(*(column.tolist() for column in columns), strict=True):
            part = bisect_right(self.starts, row) - 1
            self.parts[part].price(row - self.starts[part]).tell(tally, docid, newest)


@dataclass(frozen=True)
class _Sorted:
    """Charges by query: their rows in `order`, those of each from one of `bounds` to the next.

    `own` are the queries that have some, by their number among those of the charges; `sums` has a
    row for each: the largest amounts of a document, then what all add to blocks.
    """

    order: Ints
    own: Ints
    bounds: Ints
    sums: Ints

    @classmethod
    def of(cls, charges: Charges) -> _Sorted:
        """Return charges by query."""
        which, docids, amounts = charges.which, charges.docids, np.stack(charges.amounts)
        order = np.arange(len(which))
        before = (which[1:] < which[:-1]) | ((which[1:] == which[:-1]) & (docids[1:] < docids[:-1]))
        if before.any():
            order = np.lexsort((docids, which))
            which, docids, amounts = which[order], docids[order], amounts[:, order]
        begins = _changes(which)
        of_document = begins | _changes(docids)
        by_document, starts = of_document.nonzero()[0], begins.nonzero()[0]
        first = starts
        if len(by_document) < len(which):
            amounts = np.add.reduceat(amounts, by_document, axis=1)
            first = np.searchsorted(by_document, starts)
        sums = np.empty((len(starts), _PEAKS + 2), np.int64)
        sums[:, :_PEAKS] = np.maximum.reduceat(amounts[:_PEAKS], first, axis=1).T
        in_blocks = np.stack([amounts[2] + amounts[3], amounts[4]])
        sums[:, _MATCHES:] = np.add.reduceat(in_blocks, first, axis=1).T
        return cls(order, which[starts], np.append(starts, len(order)), sums)

    def rows(self, k: int) -> Ints:
        """Return the rows of one of the queries that have some."""
        return self.order[self.bounds[k] : self.bounds[k + 1]]


@dataclass(frozen=True)
class _Entered:
    """Charges as they have come in a `step`, and the numbers of their queries, -1 of who was told.

    They stand as the queries do in `by_query`.
    """

    charges: Charges
    by_query: _Sorted
    numbers: Ints
    step: int

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {number: k for k, number in enumerate(self.numbers.tolist())}

    def due(self, number: int) -> Iterator[DueCount]:
        """Yield what the tally of a query that has a number is charged with."""
        if (k := self._places.get(number)) is not None:
            rows = self.by_query.rows(k)
            yield DueCount(self.step, lambda tally: self.charges.tell(tally, rows))

    def in_block(self, block: int, are_told: Flags) -> Iterator[Ints]:
        """Yield in columns what queries that were not told have in a block of positions."""
        by_query, amounts = self.by_query, self.charges.amounts
        own, newest = blocks_of(self.charges.docids), blocks_of(self.charges.newest)
        if (own == block).all() and (newest == block).all():
            some = ~are_told[self.numbers]
            yield columns_of(self.numbers[some], block, *by_query.sums[some, _MATCHES:].T)
            return
        numbers = np.empty_like(own)
        numbers[by_query.order] = np.repeat(self.numbers, np.diff(by_query.bounds))
        some = (own == block) & ~are_told[numbers]
        matches, kept = amounts.matches + amounts.handed_on, amounts.kept
        yield columns_of(numbers[some], newest[some], matches[some], 0)
        yield columns_of(numbers[some], block, 0, kept[some])


class Ledger:
    """The charges of the batch in hand that tallies have not been told.

    Queries are known by their numbers in `begun`, which is what they had in the block begun before
    it; `revision_of` returns the revision of a query.
    """

    def __init__(self, budget: Budget, begun: Begun, revision_of: Callable[[str], int]) -> None:
        self._begun = begun
        self._revision_of = revision_of
        self.shared = SharedCounts()
        self._entered: list[_Entered] = []
        self._told: dict[str, int] = {}
        self._sums = np.zeros((0, _PEAKS + 2), np.int64)
        self._have_sums = np.zeros(0, np.bool_)
        bounds = (
            budget.pairs_max,
            bound_of(budget.bytes_per_document),
            bound_of(budget.matches_per_document),
            bound_of(budget.matches_per_document),
            bound_of(budget.matches_per_1000_documents),
            bound_of(budget.output_bytes_per_1000_documents),
        )
        self._bounds = np.array(bounds, np.int64)

    def numbers(self, names: Sequence[str]) -> Ints:
        """Return the numbers of queries in a list, which stays as it is."""
        numbers = self._begun.numbers_of(names, self._revision_of)
        if len(self._begun) > len(self._sums):
            self._sums = _grown(self._sums, 2 * len(self._begun))
            self._have_sums = _grown(self._have_sums, 2 * len(self._begun))
        return numbers

    def enter(self, charges: Charges, tallies: Mapping[str, Tally], step: int) -> list[str]:
        """Take charges of a step; return the queries whose tallies have to be told.

        A query that is in `tallies` has its tally told at once.
        """
        if not len(charges.which):
            return []
        by_query, names = _Sorted.of(charges), charges.queries
        numbers = self.numbers(names)[by_query.own]
        for k, i in enumerate(by_query.own.tolist()) if tallies else ():
            if (tally := tallies.get(names[i])) is not None:
                charges.tell(tally, by_query.rows(k))
                numbers[k] = -1
        self._entered.append(_Entered(charges, by_query, numbers, step))
        are_untold = numbers >= 0
        near = self._add(numbers[are_untold], by_query.sums[are_untold])
        return [names[i] for i in by_query.own[are_untold][near].tolist()]

    def admits(self, charges: Charges, tallies: Mapping[str, Tally]) -> bool:
        """Return whether no tally has to be told, now or later, if these are entered."""
        by_query, names = _Sorted.of(charges), charges.queries
        if any(names[i] in tallies for i in by_query.own.tolist()):
            return False
        numbers = self.numbers(names)[by_query.own]
        self._begin(numbers)
        return bool((self._sums[numbers] + by_query.sums <= self._bounds).all())

    def share(self, counted: Counted) -> list[str]:
        """Add tuples that all of some queries have; return those whose tallies have to be told."""
        queries = counted.uses.queries
        shared = self.shared.of(queries)
        if shared is None:
            numbers = self.numbers(queries)
            shared = self.shared.begin(queries, numbers, self._have_sums[numbers])
            shared.sums[_MATCHES:] = self._begun.sums(numbers).max(axis=0)
            self._begin(numbers[~self.shared.are_alone(shared)])
        shared.counted.append(counted)
        shared.sums += counted.whole_sums
        are_alone = self.shared.are_alone(shared)
        apart = np.flatnonzero(~are_alone)
        near = apart[self._add(shared.numbers[apart], counted.whole_sums)]
        if (shared.sums > self._bounds).any():
            near = np.concatenate([near, np.flatnonzero(are_alone)])
        return [queries[i] for i in near.tolist()]

    def note(self, names: Sequence[str], sums: Ints) -> list[str]:
        """Add to the sums of queries, a row to each; return those whose tallies have to be told.

        A row has the most tuples, bytes, matches and tuples handed on of a document, and the
        matches, those handed on included, and bytes kept of all.
        """
        return [names[i] for i in self._add(self.numbers(names), sums).tolist()]

    def _add(self, numbers: Ints, sums: Ints) -> Ints:
        """Add to the sums of queries; return the places of those that may be over a bound."""
        self._begin(numbers)
        self._sums[numbers] = sums = self._sums[numbers] + sums
        are_over = sums > self._bounds
        return np.flatnonzero(are_over.any(axis=1)) if are_over.any() else _NOBODY

    def _begin(self, numbers: Ints) -> None:
        """Have sums for queries, which begin with what they had before, and what they share."""
        new = numbers[~self._have_sums[numbers]]
        if len(new):
            self._have_sums[new] = True
            self._sums[new, _MATCHES:] = self._begun.sums(new)
            for own, counted in self.shared.leave(new):
                self._sums[own] += sum(each.whole_sums for each in counted)

    def due(self, name: str) -> Iterator[DueCount]:
        """Yield all charges of a query, and forget them."""
        if name not in self._told:
            [number] = self._begun.numbers([(name, self._revision_of(name))]).tolist()
            self._told[name] = number
            for entered in self._entered:
                yield from entered.due(number)

    def in_block(self, block: int) -> Iterator[Ints]:
        """Yield in columns what queries that have not been told have in a block of positions.

        It is matches, tuples handed on included, by the block of their newest document, and bytes
        by that of their positions.
        """
        are_told = np.zeros(len(self._begun) + 1, np.bool_)
        are_told[[*self._told.values(), -1]] = True
        for entered in self._entered:
            yield from entered.in_block(block, are_told)


def _changes(column: Ints) -> Flags:
    """Return where a column is another than in the row before, the first row included."""
    changes = np.ones(len(column), np.bool_)
    changes[1:] = column[1:] != column[:-1]
    return changes


def _grown(column: Any, size: int) -> Any:
    """Return a column with more rows of nothing."""
    grown = np.zeros((size, *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown
