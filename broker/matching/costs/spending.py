"""The tallies of all queries in a batch, and what goes on behind it: the block begun."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from broker.matching.costs.begun import Begun, Key
from broker.matching.costs.blocks import block_of
from broker.matching.costs.budget import Budget, Spent, Tally
from broker.matching.costs.charges import Charges, Ledger
from broker.matching.costs.commoncounts import CommonCounts, Counted
from joins import UNBOUNDED

__all__ = ["Carried", "Spending"]


class Carried(NamedTuple):
    """What goes on behind a batch.

    `spent` are the counts in `begun` of the queries that have found something in the batch.
    """

    begun: Begun
    spent: Sequence[Spent]


class Spending:
    """The tallies of an engine's queries in one batch, in a block that may have `begun` before it.

    `revision_of` returns the revision of a query, `has_inner` whether it has inner operators.  A
    query has a tally when somebody asks for it, or when its charges might be over the budget
    (`charges`).
    """

    def __init__(
        self,
        budget: Budget,
        revision_of: Callable[[str], int],
        begun: Begun | None = None,
        has_inner: Callable[[str], bool] = lambda query: False,
    ) -> None:
        self.step = 0
        self._budget = budget
        self._revision_of = revision_of
        self._has_inner = has_inner
        # Batches are many: none is to leave a cycle, which would keep its queries for long.
        self._begun = Begun() if begun is None else begun
        self._tallies: dict[str, Tally] = {}
        self._common = CommonCounts()
        self._ledger = Ledger(budget, self._begun, revision_of)

    def of(self, query: str) -> Tally:
        """Return a query's tally in this batch."""
        tally = self._tallies.get(query)
        if tally is None:
            key = query, self._revision_of(query)
            begun, has_inner = self._begun.of(key), self._has_inner(query)
            tally = Tally(*key, self._budget, begun, has_inner=has_inner)
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

    def admits(self, charges: Sequence[Charges]) -> bool:
        """Return whether all charges together are surely within budgets."""
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

    def carried(self, last_docid: int) -> Carried:
        """Return what goes on behind the batch: the counts of the last document's block.

        What was begun before becomes that: most queries have found nothing new.
        """
        block, begun = block_of(last_docid), self._begun
        begun.keep(block)
        counted: dict[Key, None] = {}
        for tally in self._tallies.values():
            key = (tally.query, tally.revision)
            counted[key] = None
            spent = tally.spent_in(block)
            if spent or tally.is_over:
                counts = {one.newest_block: (one.matches, one.nbytes) for one in spent}
                begun.put(block, key, {} if tally.is_over else counts)
        for queries, columns in self._common.in_block(block):
            keys = self._ledger.keys(queries)
            have_some = np.any([counts.any(axis=1) for counts in columns.values()], axis=0)
            counted |= dict.fromkeys(compress(keys, have_some.tolist()))
            begun.add_to_each(block, keys, columns)
        for query, found in self._ledger.in_block(block).items():
            key = query, self._revision_of(query)
            counted[key] = None
            if found:
                begun.add(block, key, found)
        for keys, alike in self._ledger.shared.in_block(block):
            counted |= dict.fromkeys(keys)
            begun.add_to_all(block, keys, alike)
        return Carried(begun, begun.spent(block, counted))

    def __iter__(self) -> Iterator[Tally]:
        return iter(self._tallies.values())
