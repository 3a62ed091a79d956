"""The tallies of all queries in a batch, and what goes on behind it: the block begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from broker.matching.costs.blocks import block_of
from broker.matching.costs.budget import Budget, Spent, Tally
from broker.matching.costs.charges import Charges, Ledger
from broker.matching.costs.commoncounts import CommonCounts, Counted
from joins import UNBOUNDED

__all__ = ["Begun", "Carried", "Spending"]


Begun = dict[int, dict[tuple[str, int], Sequence[Spent]]]
"""What queries have spent in the block begun, by the block and by their ids and revisions."""


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
        self._ledger = Ledger(budget, self._begun_of)

    def of(self, query: str) -> Tally:
        """Return a query's tally in this batch."""
        tally = self._tallies.get(query)
        if tally is None:
            revision = self._revision_of(query)
            tally = Tally(query, revision, self._budget, self._begun_of(query))
            self._tallies[query] = tally
        self._ledger.tell(query, tally)
        for stream, account, (hits, handed_on, nbytes) in self._common.take(query):
            tally.find(account, hits, nbytes, 0)
            if handed_on:
                tally.hand_on(stream, account, handed_on)
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
        queries, sums = self._common.add(counted)
        near = {*self._ledger.note(queries, sums)} if queries else set()
        for query in queries:
            if query in near or query in self._tallies:
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
                begun[key] = spent
        for untold in (self._common.in_block(block), self._ledger.in_block(block)):
            for query, found in untold.items():
                key = query, self._revision_of(query)
                counted[key] = None
                if found:
                    begun[key] = _with(begun.get(key, ()), key, block, found)
        return Carried({block: begun}, [spent for key in counted for spent in begun.get(key, ())])

    def __iter__(self) -> Iterator[Tally]:
        return iter(self._tallies.values())


def _with(
    begun: Iterable[Spent],
    key: tuple[str, int],
    block: int,
    found: Mapping[int, tuple[int, int]],
) -> list[Spent]:
    """Return what a query has in a block, with further matches and bytes by newest block."""
    spent = {one.newest_block: one for one in begun}
    for newest, (matches, nbytes) in found.items():
        one = spent.get(newest) or Spent(*key, block, newest, 0, 0)
        spent[newest] = one._replace(matches=one.matches + matches, nbytes=one.nbytes + nbytes)
    return [one for _, one in sorted(spent.items())]


def _begun_of(begun: Begun, revision_of: Callable[[str], int], query: str) -> Sequence[Spent]:
    """Return what a query had in the block begun before a batch."""
    key = query, revision_of(query)
    return [one for held in begun.values() for one in held.get(key, ())]
