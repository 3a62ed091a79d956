"""The tallies of all queries, from batch to batch: what each has spent in the block begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from broker.matching.costs.blocks import block_of
from broker.matching.costs.budget import TUPLE_COST, Budget, Spent, Tally, bound_of
from broker.matching.costs.commoncounts import CommonCounts, Counted

__all__ = ["Spending"]


class Spending:
    """The tallies of an engine's queries; remembers from batch to batch the block begun."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._tallies: dict[str, Tally] = {}
        self._begun: dict[tuple[str, int], list[Spent]] = {}
        self._common = CommonCounts()
        self._counted: list[tuple[str, int]] = []

    def begin_batch(self) -> None:
        """Forget tallies; the block begun goes on."""
        self._tallies = {}
        self._common = CommonCounts()
        self._counted = []

    def of(self, query: str, revision: int) -> Tally:
        """Return a query's tally in this batch."""
        tally = self._tallies.get(query)
        if tally is None:
            begun = self._begun.get((query, revision), ())
            tally = self._tallies[query] = Tally(query, revision, self.budget, begun)
        for stream, account, (hits, handed_on, nbytes) in self._common.take(query):
            tally.find(account, hits, nbytes, 0)
            tally.hand_on(stream, account, handed_on)
        return tally

    def hand_on(self, counted: Counted, revision_of: Callable[[str], int]) -> None:
        """Count tuples of a common stream for the queries that have them."""
        budget = self.budget
        for query in self._common.add(counted):
            revision, had = revision_of(query), self._common.had(query)
            begun = self._begun.get((query, revision), ())
            spent = had.peak_nbytes + TUPLE_COST * had.peak_hits
            is_near = (
                had.peak_hits > budget.pairs_max
                or had.peak_handed_on > bound_of(budget.matches_per_document)
                or spent > bound_of(budget.bytes_per_document)
                or had.handed_on + sum(one.matches for one in begun)
                > bound_of(budget.matches_per_1000_documents)
                or had.nbytes + sum(one.nbytes for one in begun)
                > bound_of(budget.output_bytes_per_1000_documents)
            )
            if is_near or query in self._tallies:
                self.of(query, revision)

    def put_back(self, tally: Tally) -> None:
        """Take a tally in the place of the query's present one."""
        self._tallies[tally.query] = tally

    def end_batch(self, last_docid: int, revision_of: Callable[[str], int]) -> list[Tally]:
        """Keep the counts of the last document's block; return the queries over the budget."""
        block = block_of(last_docid)
        begun = {key: held for key, held in self._begun.items() if held[0].block == block}
        for tally in self._tallies.values():
            key = (tally.query, tally.revision)
            if tally.is_over:
                begun.pop(key, None)
            elif spent := tally.spent_in(block):
                begun[key] = spent
        for query, found in self._common.in_block(block).items():
            key = query, revision_of(query)
            self._counted.append(key)
            before = {one.newest_block: one for one in begun.get(key, ())}
            for newest in found.keys() - before.keys():
                before[newest] = Spent(*key, block, newest, 0, 0)
            for newest, (handed_on, nbytes) in found.items():
                one = before[newest]
                before[newest] = one._replace(
                    matches=one.matches + handed_on, nbytes=one.nbytes + nbytes
                )
            begun[key] = [one for _, one in sorted(before.items())]
        self._begun = begun
        return [tally for tally in self._tallies.values() if tally.is_over]

    def spent(self) -> list[Spent]:
        """Return the counts in the block begun of the queries with matches in this batch."""
        keys = dict.fromkeys((tally.query, tally.revision) for tally in self)
        keys |= dict.fromkeys(self._counted)
        return [spent for key in keys for spent in self._begun.get(key, ())]

    def resume(self, spent: Iterable[Spent]) -> None:
        """Take over the counts of an earlier process; counts made since are dropped."""
        self._begun = {}
        for one in spent:
            self._begun.setdefault((one.query, one.revision), []).append(one)

    def __iter__(self) -> Iterator[Tally]:
        return iter(self._tallies.values())
