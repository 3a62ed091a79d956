"""Statements with rows or limits in transactions: what they make of the matches of each.

A transaction asks the candidates of such a statement together.  What WHERE asks of tables says
which of them are matches; of these LIMIT and DISJOINT keep some, or WINDOW makes rows, of which
HAVING asks tables in turn.  All of it reads what transactions before have left, and what is given
acts with the other matches of the transaction.

What is given depends on what was given before, so the transactions of one statement wait for each
other (`JudgedTurn.locks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from broker.matching.match import parameters_key
from broker.matching.outcomes.giving import Giving
from broker.matching.outcomes.matched import Matched
from broker.matching.outcomes.outcome import outcome_id
from broker.matching.outcomes.rowlines import place_of
from broker.matching.outcomes.rows import FoundWindow
from broker.matching.rules.candidate import RuleCandidate
from broker.matching.uses import Topic
from broker.tables.actions import Actions, Beside
from broker.tables.locks import Lock, Locks
from broker.tables.store import Order, Rank, TableVersions
from broker.tables.transactions import Acts
from xscl.query import Query
from xscl.rowvalues import action_of_row

__all__ = ["ActingRow", "JudgedTurn", "Judging"]


@dataclass(eq=False)
class ActingRow:
    """A row that was given, and what it does."""

    row: FoundWindow
    order: Order
    actions: Actions

    @property
    def query(self) -> str:
        """The id of its query."""
        return self.row.topic.query.id

    @cached_property
    def rank(self) -> Rank:
        """Its place in its transaction."""
        row = self.row
        newest = max(leaf.docid for match in row.matches for leaf in match.behind)
        return newest, self.query, outcome_id(place_of(row), "row", row.keys)

    def act(self, tables: TableVersions) -> None:
        """Do its actions."""
        self.actions.act([self.row.reading], tables, (*self.order, self.rank))


class Judging:
    """What the statements of a set make of their matches in the transactions of one batch.

    `given` is by topic and transaction: actions may be done in a later group.
    """

    def __init__(self, giving: Giving) -> None:
        self.giving = giving
        self.given: dict[tuple[int, Order], Sequence[RuleCandidate | ActingRow]] = {}
        self._actions: dict[str, Actions] = {}

    def actions_of(self, query: Query) -> Actions:
        """Return what the rows of a query do."""
        actions = self._actions.get(query.id)
        if actions is None:
            assert query.rows is not None
            own = [action_of_row(each, query.rows) for each in query.actions]
            actions = self._actions[query.id] = Actions(own)
        return actions

    def forget(self, queries: Sequence[str]) -> None:
        """Forget what some queries have given: their transactions are run again."""
        self.given = {
            place: own
            for place, own in self.given.items()
            if not own or own[0].query not in queries
        }

    def judge(
        self,
        topic: Topic,
        order: Order,
        candidates: Sequence[RuleCandidate],
        tables: TableVersions,
    ) -> Sequence[RuleCandidate | ActingRow]:
        """Return what is given of candidates that hold, all of one transaction."""
        candidate_of: dict[Matched, RuleCandidate] = {}
        for candidate in candidates:
            matched = candidate.matched
            assert matched is not None
            matched.read([each.reading for each in candidate.matching])
            candidate_of[matched] = candidate
        if topic.query.rows is None:
            kept = self.giving.kept(candidate_of)
            return [candidate_of[each] for each in kept]
        place = (*order, ())
        rows = self.giving.rows(topic, [*candidate_of], lambda row: Beside(row, tables, place))
        return [ActingRow(row, order, self.actions_of(topic.query)) for row in rows]


@dataclass(eq=False, slots=True)
class JudgedTurn:
    """All candidates of a statement under one assignment in one transaction; see `Turn`."""

    judging: Judging
    topic: Topic
    order: Order
    candidates: Sequence[RuleCandidate]
    is_asked: bool
    is_acting: bool

    @property
    def query(self) -> str:
        """The id of its query."""
        return self.topic.query.id

    @property
    def given(self) -> Sequence[RuleCandidate | ActingRow]:
        """What is given, once that is known."""
        return self.judging.given.get((id(self.topic), self.order), ())

    def locks(self) -> Locks:
        """Return what it reads and may write, and that it follows others of its statement.

        Which rows there are is not known before: the tables that they use are locked as wholes.
        """
        reads: list[Lock] = []
        writes: list[Lock] = []
        if self.is_asked:
            writes.append(Lock(f" {self.query}", parameters_key(self.topic.parameters)))
            for each in self.candidates:
                reads += each.guard_locks()
            if self.topic.query.rows is not None:
                reads += [Lock(table, None) for table in sorted(self.topic.query.guards)]
        if self.is_acting:
            for locks in self._action_locks():
                reads += locks.reads
                writes += locks.writes
        return Locks(reads, writes)

    def _action_locks(self) -> Iterator[Locks]:
        query = self.topic.query
        if query.rows is None:
            yield from (each.action_locks() for each in self.candidates)
        elif self.is_asked:
            written = {use.table for use in query.tables if use.is_written}
            yield Locks(
                [Lock(table, None) for table in sorted(query.table_names)],
                [Lock(table, None) for table in sorted(written)],
            )
        else:
            actions = self.judging.actions_of(query)
            for each in self.given:
                assert isinstance(each, ActingRow)
                reading = each.row.reading
                yield Locks(actions.reads.locks(reading), actions.writes.locks(reading))

    def ask(self, tables: TableVersions) -> Sequence[Acts]:
        """Return what is given of it, if that acts."""
        if self.is_asked:
            held = [each for each in self.candidates if each.ask(tables)]
            judging = self.judging
            found = judging.judge(self.topic, self.order, held, tables) if held else ()
            judging.given[id(self.topic), self.order] = found
        return self.given if self.is_acting else ()
