"""The tallies of all queries in a batch, and what goes on behind it: the block begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import attrgetter

from broker.matching.costs.begun import Begun
from broker.matching.costs.blocks import block_of
from broker.matching.costs.budget import Budget, Spent, Tally
from broker.matching.costs.charges import Charges, Ledger
from broker.matching.costs.commoncounts import CommonCounts, Counted
from joins import UNBOUNDED

__all__ = ["Spending"]


class Spending:
    """The tallies of an engine's queries in one batch, in a block that may have `begun` before it.

    `revision_of` returns the revision of a query, `has_inner` whether it has inner operators, and
    `asks_each` whether some of them are handed on by data.  A query has a tally when somebody asks
    for it, or when its charges might be over the budget (`charges`).
    """

    def __init__(
        self,
        budget: Budget,
        revision_of: Callable[[str], int],
        begun: Begun,
        has_inner: Callable[[str], bool] = lambda query: False,
        asks_each: Callable[[str], bool] = lambda query: False,
    ) -> None:
        self.step = 0
        self._budget = budget
        self._revision_of = revision_of
        self._has_inner = has_inner
        self._asks_each = asks_each
        # Batches are many: none is to leave a cycle, which would keep its queries for long.
        self._begun = begun
        self._tallies: dict[str, Tally] = {}
        self._common = CommonCounts()
        self._ledger = Ledger(budget, self._begun, revision_of)

    def of(self, query: str) -> Tally:
        """Return a query's tally in this batch."""
        tally = self._tallies.get(query)
        if tally is None:
            key = query, self._revision_of(query)
            has_inner, asks_each = self._has_inner(query), self._asks_each(query)
            begun = self._begun.of(key)
            tally = Tally(*key, self._budget, begun, has_inner=has_inner, asks_each=asks_each)
            tally.step = self.step
            self._tallies[query] = tally
        counts = self._ledger, self._common, self._ledger.shared
        due = [*chain.from_iterable(each.due(query) for each in counts)]
        for each in sorted(due, key=attrgetter("step")):
            tally.step = each.step
            each.tell(tally)
        tally.step = self.step
        return tally

    def begin(self, step: int) -> None:
        """Have what comes counted in a step, which is behind those before it."""
        self.step = step
        for tally in self._tallies.values():
            tally.step = step

    def opened(self, query: str) -> Tally | None:
        """Return a query's tally if it has one already."""
        return self._tallies.get(query)

    def limit_of(self, query: str) -> int:
        """Return the first document over the budget of a query so far."""
        tally = self._tallies.get(query)
        return UNBOUNDED if tally is None else tally.limit

    def charge(self, charges: Charges) -> None:
        """Charge queries with what they have found, or with matches made of it."""
        for query in self._ledger.enter(charges, self._tallies, self.step):
            self.of(query)

    def admits(self, charges: Charges) -> bool:
        """Return whether all charges are surely within budgets."""
        return self._ledger.admits(charges, self._tallies)

    def hand_on(self, counted: Counted) -> None:
        """Count tuples of a common stream for the queries that have them."""
        if not counted.uses.have_bounds:
            self._share(counted)
            return
        queries, sums = self._common.add(counted)
        near = self._ledger.note(queries, sums)
        told = [query for query in self._tallies if query in counted.uses.of_query]
        for query in dict.fromkeys((*told, *near)):
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
        tally.step = self.step
        self._tallies[tally.query] = tally

    def over(self) -> list[Tally]:
        """Return the tallies of the queries that are over the budget."""
        over = (tally for tally in self._tallies.values() if tally.is_over)
        return sorted(over, key=lambda tally: tally.query)

    def carry_on(self, last_docid: int) -> Sequence[Spent]:
        """Have the counts of the last document's block go on behind the batch.

        Return what the queries that have found something in the batch have spent there.
        """
        block, begun, ledger = block_of(last_docid), self._begun, self._ledger
        tallies = self._tallies.values()
        told = begun.numbers((tally.query, tally.revision) for tally in tallies)
        of_tallies = [tally.spent_in(block) for tally in tallies if not tally.is_over]
        found = (
            [begun.columns([*chain.from_iterable(of_tallies)])],
            self._common.in_block(block, ledger.numbers),
            ledger.in_block(block),
            ledger.shared.in_block(block),
        )
        return begun.go_on(block, told, chain.from_iterable(found))

    def __iter__(self) -> Iterator[Tally]:
        return iter(self._tallies.values())
