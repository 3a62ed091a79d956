"""What the queries of an engine spend in a batch, and which of them are stopped and paused.

A query is stopped at the first document with which it is over its budget, as soon as this is known:
the tuples that it finds from that document on are dropped, and the join finds no more of them where
it can.  When the batch is done the query is paused, and taken out of the set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from broker.matching.costs.balances import Balances
from broker.matching.costs.budget import Broken, Spent, Tally, bound_of
from broker.matching.costs.charges import Charges
from broker.matching.costs.commoncounts import Counted
from broker.matching.costs.spending import Spending
from broker.matching.uses import Use
from joins import Overrun, UseKind

__all__ = ["Accounts"]


class Accounts:
    """The tallies of the queries in a set, for one batch; `balances` are what goes on behind it.

    Where the matches of the batch are known, only tuples of inner operators cost.
    """

    def __init__(self, balances: Balances, *, is_known: bool) -> None:
        self.is_known = is_known
        self._balances = balances
        self._budget = balances.budget
        self._queries = balances.queries
        self._processor = balances.processor
        queries = balances.queries
        self._spending = Spending(
            balances.budget,
            queries.revision,
            balances.begun,
            queries.has_inner,
            queries.asks_each,
        )
        self._overruns = 0
        self._closed: Mapping[str, int] = {}

    @property
    def step(self) -> int:
        """The step that has begun."""
        return self._spending.step

    def begin_tuples(self, stratum: int) -> None:
        """Have tuples of a stratum counted from now on."""
        self._spending.begin(2 * stratum)
        self.close()

    def begin_matches(self, stratum: int) -> None:
        """Have the matches that are made of a stratum's tuples counted from now on."""
        self._spending.begin(2 * stratum + 1)

    def of(self, query: str) -> Tally:
        """Return a query's tally in this batch."""
        return self._spending.of(query)

    def opened(self, query: str) -> Tally | None:
        """Return a query's tally if it has one already: its charges are counted one by one."""
        return self._spending.opened(query)

    def limit_of(self, query: str) -> int:
        """Return the first document of which nothing counts for a query."""
        return self._spending.limit_of(query)

    @property
    def bytes_max(self) -> int:
        """The bytes that the matches of one document may read and write."""
        return bound_of(self._budget.bytes_per_document)

    def charge(self, charges: Charges) -> None:
        """Charge queries with what they have found, or with matches made of it."""
        self._spending.charge(charges)

    def admits(self, charges: Charges) -> bool:
        """Return whether all charges are surely within budgets, and of queries not stopped."""
        return self._spending.admits(charges)

    def hand_on(self, counted: Counted) -> None:
        """Count tuples of a common stream for the queries that have them."""
        self._spending.hand_on(counted)

    def stopped(self) -> Mapping[str, int]:
        """Return the limits of the queries that are over their budget."""
        return {tally.query: tally.limit for tally in self._spending if tally.is_over}

    def stop_overrun(self) -> None:
        """Stop the queries whose classes have gone over their budget."""
        overruns = self._processor.overruns()
        by_class: dict[int, dict[UseKind, Overrun]] = {}
        for overrun in overruns[self._overruns :]:
            by_kind = by_class.setdefault(overrun.query_class, {})
            first = by_kind.get(overrun.kind, overrun)
            by_kind[overrun.kind] = min(first, overrun, key=lambda each: each.docid)
        for query_class, by_kind in by_class.items():
            for use in self._queries.fan_out.uses_of(query_class):
                query, found = use.topic.query.id, by_kind.get(use.kind)
                if found and (not self.is_known or self._queries.hands_on(query)):
                    bound = Broken.SKEW if found.is_skewed else Broken.PAIRS
                    self.of(query).stop(found.docid, self._why_overrun(found, use), bound)
        self._overruns = len(overruns)

    def _why_overrun(self, overrun: Overrun, use: Use) -> str:
        if overrun.of_runs is not None:
            limits = overrun.of_runs
            if overrun.of_steps:
                return (
                    f"document {overrun.docid} decides graphs of more than {limits.steps:,} steps,"
                    f" or runs of more than {limits.elements:,} elements, or more than"
                    f" 2^{limits.bits:,} runs; bound the repetition with a shorter window, or ask"
                    " more of its elements"
                )
            return (
                f"document {overrun.docid} makes more than {limits.runs:,} runs, or one of more"
                f" than {limits.elements:,} elements; bound the repetition with a window, ask more"
                " of its elements, or write NEXT where every choice of them is a run"
            )
        most = f"{self._budget.pairs_per_document:,} (budget.pairs_per_document)"
        if overrun.is_skewed:
            terms = sorted(f"`{a} = {b}`" for a, b in map(use.clause.terms_of, overrun.value_joins))
            return (
                f"document {overrun.docid} and one other have the same values so often that their"
                f" equal nodes by {' and '.join(terms)} combine in more than {most} ways; join on"
                " something that a document has once, or a few times"
            )
        met = f"document {overrun.docid} makes {overrun.pairs:,} pairs, more than {most},"
        if not overrun.value_joins:
            return f"{met} because there is no value join: add an equality, or shorten the window"
        # Their order in the class depends on other queries, their names in this one do not.
        left, right = min(map(use.clause.terms_of, overrun.value_joins))
        return (
            f"{met} by `{left} = {right}`, its most selective value join; join on something rarer"
            " as well, or shorten the window"
        )

    def saved(self, queries: Iterable[str]) -> dict[str, Tally]:
        """Return copies of the tallies of some queries, to be put back."""
        return {query: self.of(query).copy() for query in queries}

    def first_stopped(self, before: Mapping[str, Tally]) -> str | None:
        """Return the query that was stopped first since tallies were saved, None if none was."""
        stopped = [(self.of(q).limit, q) for q, tally in before.items()]
        lower = [each for each in stopped if each[0] < before[each[1]].limit]
        return min(lower)[1] if lower else None

    def put_back(self, before: Mapping[str, Tally], stopped: str) -> None:
        """Put tallies back, with one query stopped where it was stopped since."""
        limit, reason = self.of(stopped).limit, self.of(stopped).reason()
        for tally in before.values():
            self._spending.put_back(tally)
        self.of(stopped).stop(limit, reason)

    def close(self) -> None:
        """Limit the classes that only stopped queries use to the documents that count for these."""
        stopped = {tally.query: tally.closed_from for tally in self._spending if tally.is_over}
        if stopped == self._closed:
            return
        self._closed = stopped
        numbers = {n for query in stopped for n in self._queries.classes_of(query)}
        for number in numbers:
            users = {use.topic.query.id for use in self._queries.fan_out.uses_of(number)}
            if users <= stopped.keys():
                self._processor.limit(number, max(stopped[user] for user in users))

    def settle(self, last_docid: int, horizon_us: int) -> Sequence[Spent]:
        """Pause the queries that are over the budget; windows reach back from `horizon_us`.

        Return what the queries that found something have spent in the block begun.
        """
        over, spent = self._spending.over(), self._spending.carry_on(last_docid)
        for tally in over:
            self._balances.pause(tally.query, tally.limit, tally.reason())
        self._balances.pause_farthest(last_docid, horizon_us)
        return spent
