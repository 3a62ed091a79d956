"""Runs the transactions of a batch, group by group, as the strata are probed.

What a match costs is known when it is made, and may be too much for its query: then the query is
paused at that document, and must not have acted there.  So the group is run again from the rows of
its beginning, without that query from that document on; what came before is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from broker.matching.costs.accounts import Accounts
from broker.matching.queries.queryset import QuerySet
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.matches import BuiltMatches
from broker.matching.rendering.matchrows import MatchRows
from broker.matching.rules.candidate import RuleCandidate
from broker.matching.rules.candidates import AnyTurn, RuleCandidates, rows_of
from broker.matching.rules.judged import Judging
from broker.tables.groups import Group
from broker.tables.store import TableVersions
from broker.tables.transactions import Schedule, in_transactions, run

__all__ = ["Acting", "Trace"]

Trace = Callable[[RuleCandidate, Sequence[int], TableVersions], None]
"""Is told of a candidate whose guard was asked, of its documents, and of the tables.

They have the versions of the batch.
"""

Build = Callable[[MatchRows, dict[int, Leaf]], BuiltMatches]


class Acting:
    """What the queries of a set do to `tables` in one batch, in which they have `candidates`.

    `leaves_of` returns documents of the join by number.  `waves` is how many waves the transactions
    took so far.  `trace` is told of what is asked.
    """

    def __init__(
        self,
        tables: TableVersions,
        queries: QuerySet,
        accounts: Accounts,
        candidates: RuleCandidates,
        judging: Judging,
        leaves_of: Callable[[Iterable[int]], dict[int, Leaf]],
        schedule: Schedule | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.waves = 0
        self._tables = tables
        self._queries = queries
        self._accounts = accounts
        self._candidates = candidates
        self._judging = judging
        self._leaves_of = leaves_of
        self._schedule = schedule
        self._trace = trace

    def run(self, stratum: int, build: Build) -> Iterator[BuiltMatches]:
        """Run the groups behind a stratum; yield the matches of each group."""
        for group in self._queries.groups:
            if group.stratum == stratum:
                transactions = in_transactions(self._candidates.turns(group))
                if transactions:
                    leaves = self._rank(transactions)
                    yield self._run(group, transactions, leaves, build)

    def _run(
        self,
        group: Group,
        transactions: Sequence[Sequence[AnyTurn]],
        leaves: dict[int, Leaf],
        build: Build,
    ) -> BuiltMatches:
        asking = sorted({each.query for some in transactions for each in some if each.is_asked})
        giving = self._judging.giving
        turns = (each for some in transactions for each in some if each.is_asked)
        matched = (candidate.matched for each in turns for candidate in each.candidates)
        giving.read(each for each in matched if each is not None)
        while True:
            giving.begin_attempt()
            live = self._live(transactions)
            waves = run(live, self._tables, self._schedule)
            before = self._accounts.saved(asking)
            found = self._candidates.matches(each for some in live for each in some)
            rows = giving.built(rows_of(each for some in live for each in some))
            made = build(found, leaves)
            made.rows.extend(rows.rows)
            made.published.extend(rows.published)
            stopped = self._accounts.first_stopped(before)
            if stopped is None:
                self.waves += waves
                self._tell(live)
                return made
            self._accounts.put_back(before, stopped)
            giving.undo_attempt()
            self._judging.forget(asking)
            self._tables.undo(group.tables)

    def _tell(self, transactions: Sequence[Sequence[AnyTurn]]) -> None:
        if self._trace is not None:
            turns = (each for some in transactions for each in some if each.is_asked)
            asked = [candidate for each in turns for candidate in each.candidates]
            leaves = self._leaves_of({leaf for each in asked for leaf in each.nodes.leaves})
            for each in asked:
                self._trace(
                    each, [leaves[number].docid for number in each.nodes.leaves], self._tables
                )

    def _live(self, transactions: Sequence[Sequence[AnyTurn]]) -> list[Sequence[AnyTurn]]:
        """Return transactions without the queries that stop before them."""
        queries = {each.query for some in transactions for each in some}
        limits = {query: self._accounts.limit_of(query) for query in queries}
        if transactions[-1][0].order[0] < min(limits.values()):
            return [*transactions]
        live = (
            [each for each in some if each.order[0] < limits[each.query]] for some in transactions
        )
        return [some for some in live if some]

    def _rank(self, transactions: Sequence[Sequence[AnyTurn]]) -> dict[int, Leaf]:
        """Give candidates what orders their actions; return the documents of all that act.

        Their newest document may be a published one, which stands behind all that it is made of.
        Names are given where there are several in a transaction.
        """
        acting = [
            [candidate for turn in some if turn.is_acting for candidate in turn.candidates]
            for some in transactions
        ]
        leaves = self._leaves_of({n for some in acting for each in some for n in each.nodes.leaves})
        for some in acting:
            for each in some:
                each.newest = max(leaves[number].docid for number in each.nodes.leaves)
        together = (some for some in acting if len(some) > 1)
        self._candidates.give_names([each for some in together for each in some], leaves)
        return leaves
