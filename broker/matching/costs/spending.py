"""The tallies of all queries in a batch, and what goes on behind it: the block begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.costs.blocks import block_of
from broker.matching.costs.budget import Budget, Spent, Tally
from broker.matching.costs.charges import Charges, Ledger
from broker.matching.costs.commoncounts import CommonCounts, Counted
from broker.matching.costs.sharedcounts import InBlock
from joins import UNBOUNDED

__all__ = ["Begun", "Carried", "Spending"]


Begun = dict[int, dict[tuple[str, int], InBlock]]
"""What queries have spent in the block begun, by the block and by their ids and revisions."""

_NOTHING: InBlock = {}


class Carried(NamedTuple):
    """What goes on behind a batch.

    `spent` are the counts in `begun` of the queries that have found something in the batch.
    """

    begun: Begun
    spent: Sequence[Spent]


class Spending:
    """The tallies of an engine's queries in one batch, in a block that may have `begun` before it.

    `revision_of` returns the revision of a query.  A query has a tally when somebody asks for it,
    or when its charges might be over the budget (`charges`).
    """

    def __init__(
        self, budget: Budget, revision_of: Callable[[str], int], begun: Begun | None = None
    ) -> None:
        self._budget = budget
        self._revision_of = revision_of
        # Batches are many: none is to leave a cycle, which would keep its queries for long.
        self._begun = {} if begun is None else begun
        self._begun_of = partial(_begun_of, self._begun, revision_of)
        self._tallies: dict[str, Tally] = {}
        self._common = CommonCounts()
        most_begun = partial(_most_begun, self._begun, revision_of)
        sums_begun = partial(_sums_begun, self._begun, revision_of)
        self._ledger = Ledger(budget, sums_begun, most_begun)

    def of(self, query: str) -> Tally:
        """Return a query's tally in this batch."""
        tally = self._tallies.get(query)
        if tally is None:
            revision = self._revision_of(query)
            tally = Tally(query, revision, self._budget, self._begun_of(query))
            self._tallies[query] = tally
        self._ledger.tell(query, tally)
        self._common.tell(query, tally)
        self._ledger.shared.tell(query, tally)
        return tally

    def opened(self, query: str) -> Tally | None:
        """Return a query's tally if it has one already."""
        return self._tallies.get(query)

    def limit_of(self, query: str) -> int:
        """Return the first document over the budget of a query so far."""
        tally = self._tallies.get(query)
        return UNBOUNDED if tally is None else tally.limit

    def charge(self, charges: Charges) -> None:
        """Charge queries with what they have found, or with matches made of it."""
        for query in self._ledger.enter(charges, self._tallies):
            self.of(query)

    def admits(self, charges: Sequence[Charges]) -> bool:
        """Return whether all charges together are surely within budgets."""
        return self._ledger.admits(charges, self._tallies)

    def hand_on(self, counted: Counted) -> None:
        """Count tuples of a common stream for the queries that have them."""
        if not counted.uses.have_bounds:
            self._share(counted)
            return
        queries, sums = self._common.add(counted)
        near = {*self._ledger.note(queries, sums)} if queries else set()
        for query in queries:
            if query in near or query in self._tallies:
                self.of(query)

    def _share(self, counted: Counted) -> None:
        """Count tuples for queries that all have them."""
        near = self._ledger.share(counted)
        shared = self._ledger.shared.of(counted.uses.queries)
        assert shared is not None
        told = [query for query in self._tallies if query in shared.members]
        for query in dict.fromkeys((*told, *near)):
            self.of(query)

    def put_back(self, tally: Tally) -> None:
        """Take a tally in the place of the query's present one."""
        self._tallies[tally.query] = tally

    def over(self) -> list[Tally]:
        """Return the tallies of the queries that are over the budget."""
        over = (tally for tally in self._tallies.values() if tally.is_over)
        return sorted(over, key=lambda tally: tally.query)

    def carried(self, last_docid: int) -> Carried:
        """Return what goes on behind the batch: the counts of the last document's block.

        What was begun before becomes that: most queries have found nothing new.
        """
        block = block_of(last_docid)
        begun = self._begun.get(block, {})
        counted: dict[tuple[str, int], None] = {}
        for tally in self._tallies.values():
            key = (tally.query, tally.revision)
            counted[key] = None
            if tally.is_over:
                begun.pop(key, None)
            elif spent := tally.spent_in(block):
                begun[key] = {one.newest_block: (one.matches, one.nbytes) for one in spent}
        for untold in (self._common.in_block(block), self._ledger.in_block(block)):
            for query, found in untold.items():
                key = query, self._revision_of(query)
                counted[key] = None
                if found:
                    begun[key] = _with(begun.get(key, _NOTHING), found)
        for queries, alike in self._ledger.shared.in_block(block):
            keys = [(query, self._revision_of(query)) for query in queries]
            counted |= dict.fromkeys(keys)
            _add_to_all(begun, keys, alike)
        spent = [
            Spent(*key, block, newest, *counts)
            for key in counted
            for newest, counts in begun.get(key, _NOTHING).items()
        ]
        return Carried({block: begun}, spent)

    def __iter__(self) -> Iterator[Tally]:
        return iter(self._tallies.values())


def _with(before: InBlock, found: InBlock) -> InBlock:
    """Return what a query has in a block, with further matches and bytes by newest block."""
    if not before:
        return dict(sorted(found.items())) if len(found) > 1 else found
    if len(found) == len(before) == 1:
        [(newest, more)], [(held, had)] = found.items(), before.items()
        if newest == held:
            return {newest: (had[0] + more[0], had[1] + more[1])}
    both = dict(before)
    for newest, (matches, nbytes) in found.items():
        known = both.get(newest, (0, 0))
        both[newest] = known[0] + matches, known[1] + nbytes
    return dict(sorted(both.items()))


def _add_to_all(
    begun: dict[tuple[str, int], InBlock], keys: Iterable[tuple[str, int]], found: InBlock
) -> None:
    """Add the same to what some queries have: those that had the same have one object again."""
    known: dict[int, tuple[InBlock, InBlock]] = {}
    for key in keys:
        before = begun.get(key, _NOTHING)
        both = known.get(id(before))
        if both is None:
            # What was there is held as long as it is asked for by its id.
            both = known[id(before)] = before, _with(before, found)
        begun[key] = both[1]


def _begun_of(begun: Begun, revision_of: Callable[[str], int], query: str) -> Sequence[Spent]:
    """Return what a query had in the block begun before a batch."""
    key = query, revision_of(query)
    return [
        Spent(*key, block, newest, *counts)
        for block, held in begun.items()
        for newest, counts in held.get(key, _NOTHING).items()
    ]


def _sums_begun(
    begun: Begun, revision_of: Callable[[str], int], queries: Sequence[str]
) -> Ints | None:
    """Return the matches and bytes that each of some queries had before; None where none had."""
    sums: Ints | None = None
    for held in begun.values():
        if not held:
            continue
        found = [held.get((query, revision_of(query)), _NOTHING) for query in queries]
        rows = [
            next(iter(each.values()))
            if len(each) == 1
            else tuple(map(sum, zip((0, 0), *each.values(), strict=True)))
            for each in found
        ]
        own = np.array(rows, np.int64).reshape(-1, 2)
        sums = own if sums is None else sums + own
    return sums


def _most_begun(
    begun: Begun, revision_of: Callable[[str], int], queries: Iterable[str]
) -> tuple[int, int]:
    """Return the most matches, and the most bytes, that one of some queries had before."""
    if not any(begun.values()):
        return 0, 0
    keys = [(query, revision_of(query)) for query in queries]
    most_matches = most_bytes = 0
    for held in begun.values():
        # Many have one object, so few are looked at.
        distinct = {id(each): each.values() for key in keys if (each := held.get(key))}
        sums = [tuple(map(sum, zip(*each, strict=True))) for each in distinct.values()]
        most_matches += max((matches for matches, _ in sums), default=0)
        most_bytes += max((nbytes for _, nbytes in sums), default=0)
    return most_matches, most_bytes
