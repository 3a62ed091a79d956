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
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.costs.begun import Begun, Key
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
        order = np.lexsort((charges.docids, charges.which))
        which, docids = charges.which[order], charges.docids[order]
        begins = _changes(which)
        of_document = begins | _changes(docids)
        by_document, starts = np.flatnonzero(of_document), np.flatnonzero(begins)
        amounts = np.stack(charges.amounts, axis=1)[order]
        totals = np.add.reduceat(amounts, by_document, axis=0)
        first = np.searchsorted(by_document, starts)
        sums = np.empty((len(starts), _PEAKS + 2), np.int64)
        sums[:, :_PEAKS] = np.maximum.reduceat(totals[:, :_PEAKS], first, axis=0)
        in_all = np.add.reduceat(totals, first, axis=0)
        sums[:, _MATCHES], sums[:, _KEPT] = in_all[:, 2] + in_all[:, 3], in_all[:, 4]
        return cls(order, which[starts], np.append(starts, len(order)), sums)

    def rows(self, k: int) -> Ints:
        """Return the rows of one of the queries that have some."""
        return self.order[self.bounds[k] : self.bounds[k + 1]]


@dataclass(frozen=True)
class _Entered:
    """Charges as they have come, and the number of the query of each, -1 where it was told.

    `numbers` are those of the queries in `by_query`, as they stand there, and in `order`; `step` is
    that in which they have come.
    """

    charges: Charges
    by_query: _Sorted
    of_row: Ints
    numbers: Ints
    order: Ints
    step: int

    @classmethod
    def of(cls, charges: Charges, by_query: _Sorted, numbers: Ints, step: int) -> _Entered:
        """Return charges of queries that have numbers."""
        of_row = np.empty(len(charges.which), np.int64)
        of_row[by_query.order] = np.repeat(numbers, np.diff(by_query.bounds))
        return cls(charges, by_query, of_row, numbers, np.argsort(numbers), step)

    def due(self, number: int) -> Iterator[DueCount]:
        """Yield what the tally of a query that has a number is charged with."""
        place = int(np.searchsorted(self.numbers, number, sorter=self.order))
        if place < len(self.order) and self.numbers[k := int(self.order[place])] == number:
            rows = self.by_query.rows(k)
            yield DueCount(self.step, lambda tally: self.charges.tell(tally, rows))


@dataclass
class _Untold:
    """The charges of a batch that tallies have not been told, but those of the queries `told`."""

    numbers: dict[str, int] = field(default_factory=dict)
    sums: Ints = field(default_factory=lambda: np.zeros((0, _PEAKS + 2), np.int64))
    charges: list[_Entered] = field(default_factory=list)
    told: set[int] = field(default_factory=set)

    def queries(self) -> Ints:
        """Return the numbers of the queries that have some."""
        parts = [each.numbers[each.numbers >= 0] for each in self.charges]
        own = np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))
        return own[~np.isin(own, list(self.told))]


class Ledger:
    """The charges of the batch in hand that tallies have not been told.

    `begun` is what queries had in the block begun before it; `revision_of` returns the revision of
    a query.
    """

    def __init__(self, budget: Budget, begun: Begun, revision_of: Callable[[str], int]) -> None:
        self._begun = begun
        self._revision_of = revision_of
        self.shared = SharedCounts()
        self._untold = _Untold()
        # By the list, which is kept so that no other one is taken for it.
        self._keys: dict[int, tuple[Sequence[str], Sequence[Key]]] = {}
        bounds = (
            budget.pairs_max,
            bound_of(budget.bytes_per_document),
            bound_of(budget.matches_per_document),
            bound_of(budget.matches_per_document),
            bound_of(budget.matches_per_1000_documents),
            bound_of(budget.output_bytes_per_1000_documents),
        )
        self._bounds = np.array(bounds, np.int64)

    def enter(self, charges: Charges, tallies: Mapping[str, Tally], step: int) -> list[str]:
        """Take charges of a step; return the queries whose tallies have to be told.

        A query that is in `tallies` has its tally told at once.
        """
        if not len(charges.which):
            return []
        by_query = _Sorted.of(charges)
        names = [charges.queries[i] for i in by_query.own.tolist()]
        if tallies and not tallies.keys().isdisjoint(names):
            numbers = np.full(len(names), -1, np.int64)
            own = [k for k, name in enumerate(names) if name not in tallies]
            numbers[own] = self._numbers([names[k] for k in own])
            for k in np.flatnonzero(numbers < 0).tolist():
                charges.tell(tallies[names[k]], by_query.rows(k))
        else:
            numbers = self._numbers(names)
        self._untold.charges.append(_Entered.of(charges, by_query, numbers, step))
        are_untold = np.flatnonzero(numbers >= 0)
        near = self._add(numbers[are_untold], by_query.sums[are_untold])
        return [names[k] for k in are_untold[near].tolist()]

    def admits(self, some: Sequence[Charges], tallies: Mapping[str, Tally]) -> bool:
        """Return whether no tally has to be told, now or later, if these are entered."""
        sums = self._untold.sums.copy()
        for charges in some:
            by_query = _Sorted.of(charges)
            names = [charges.queries[i] for i in by_query.own.tolist()]
            if not tallies.keys().isdisjoint(names):
                return False
            numbers = self._numbers(names)
            sums = np.concatenate([sums, self._untold.sums[len(sums) :]])
            sums[numbers] += by_query.sums
        return bool((sums <= self._bounds).all())

    def share(self, counted: Counted) -> list[str]:
        """Add tuples that all of some queries have; return those whose tallies have to be told."""
        queries = counted.uses.queries
        shared = self.shared.of(queries)
        if shared is None:
            shared = self.shared.begin([*self.keys(queries)], self._untold.numbers)
            shared.sums[_MATCHES:] = self._begun.most(shared.keys)
            self._numbers(shared.apart)
        shared.counted.append(counted)
        shared.sums += counted.whole_sums
        near = self.note(shared.apart, counted.whole_sums) if shared.apart else []
        if (shared.sums > self._bounds).any():
            near += self.shared.alone(shared)
        return near

    def note(self, names: Sequence[str], sums: Ints) -> list[str]:
        """Add to the sums of queries, a row to each; return those whose tallies have to be told.

        A row has the most tuples, bytes, matches and tuples handed on of a document, and the
        matches, those handed on included, and bytes kept of all.
        """
        numbers = self._numbers(names)
        return [names[k] for k in self._add(numbers, sums).tolist()]

    def _add(self, numbers: Ints, sums: Ints) -> Ints:
        """Add to the sums of queries; return the places of those that may be over a bound."""
        self._untold.sums[numbers] += sums
        return np.flatnonzero((self._untold.sums[numbers] > self._bounds).any(axis=1))

    def _numbers(self, names: Sequence[str]) -> Ints:
        """Return the numbers of queries; those without one begin with what they had before."""
        untold = self._untold
        known, before = untold.numbers, len(untold.numbers)
        numbers = np.array([known.setdefault(name, len(known)) for name in names], np.int64)
        if before < len(known):
            new = [*islice(reversed(known), len(known) - before)][::-1]
            self._begin(names if len(new) == len(names) else new, before)
        return numbers

    def keys(self, names: Sequence[str]) -> Sequence[Key]:
        """Return the keys of queries; of one list of them, which stays as it is, the same list."""
        known = self._keys.get(id(names))
        if known is None:
            known = names, [(name, self._revision_of(name)) for name in names]
            self._keys[id(names)] = known
        return known[1]

    def _begin(self, names: Sequence[str], first: int) -> None:
        """Have sums for queries that are numbered from `first` on."""
        untold, last = self._untold, first + len(names)
        if last > len(untold.sums):
            more = np.zeros((max(64, last), _PEAKS + 2), np.int64)
            untold.sums = np.concatenate([untold.sums, more])
        begun = self._begun.sums(self.keys(names))
        if begun is not None:
            untold.sums[first:last, _MATCHES:] = begun
        for number, name in enumerate(names, first) if self.shared else ():
            for counted in self.shared.leave(name):
                untold.sums[number] += counted.whole_sums

    def due(self, name: str) -> Iterator[DueCount]:
        """Yield all charges of a query, and forget them."""
        untold = self._untold
        number = untold.numbers.get(name)
        if number is not None and number not in untold.told:
            untold.told.add(number)
            for entered in untold.charges:
                yield from entered.due(number)

    def in_block(self, block: int) -> Mapping[str, dict[int, tuple[int, int]]]:
        """Return what queries that have not been told have in a block of positions.

        It is matches, tuples handed on included, by the block of their newest document, and bytes
        by that of their positions.
        """
        untold = self._untold
        names, own = list(untold.numbers), untold.queries()
        is_told = np.ones(len(names) + 1, np.bool_)
        is_told[own] = False
        parts: list[tuple[Ints, Ints, Ints, Ints]] = []
        for entered in untold.charges:
            charges, of_row = entered.charges, entered.of_row
            some = np.flatnonzero((blocks_of(charges.docids) == block) & ~is_told[of_row])
            amounts, newest = charges.amounts, blocks_of(charges.newest[some])
            matches = (amounts.matches + amounts.handed_on)[some]
            nothing = np.zeros_like(matches)
            parts.append((of_row[some], newest, matches, nothing))
            at = np.full_like(newest, block)
            parts.append((of_row[some], at, nothing, amounts.kept[some]))
        found: dict[str, dict[int, tuple[int, int]]] = {names[i]: {} for i in own.tolist()}
        for number, each, *counts in _totals(parts):
            found[names[number]][each] = counts[0], counts[1]
        return found

    def queries(self) -> list[str]:
        """Return the queries that have not been told what they are charged with."""
        names = list(self._untold.numbers)
        return [names[number] for number in self._untold.queries().tolist()]


def _changes(column: Ints) -> Flags:
    """Return where a column is another than in the row before, the first row included."""
    changes = np.ones(len(column), np.bool_)
    changes[1:] = column[1:] != column[:-1]
    return changes


def _totals(parts: Sequence[Sequence[Ints]]) -> Iterator[tuple[int, ...]]:
    """Yield the sums of counts by number and block that are not all zero.

    A part has the columns of numbers, blocks and counts.
    """
    if not parts:
        return
    numbers, at, *counts = map(np.concatenate, zip(*parts, strict=True))
    some = np.flatnonzero(np.any(counts, axis=0))
    if not len(some):
        return
    numbers, at, *counts = (column[some] for column in (numbers, at, *counts))
    order = np.lexsort((at, numbers))
    starts = np.flatnonzero(_changes(numbers[order]) | _changes(at[order]))
    sums = [np.add.reduceat(column[order], starts).tolist() for column in counts]
    first = order[starts]
    yield from zip(numbers[first].tolist(), at[first].tolist(), *sums, strict=True)
