"""Candidates: matches but for what they ask tables, gathered over the strata of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from broker.matching.fanout import FoundTuple, Subscriber, TupleReading
from broker.matching.matches import MatchBuilder
from broker.tables.actions import Actions, Beside, row_locks
from broker.tables.groups import Group
from broker.tables.locks import Locks
from broker.tables.store import Order, Tables
from templates.clause import Clause

__all__ = ["Candidate", "Candidates", "Turn"]


@dataclass(eq=False, slots=True)
class Candidate:
    """Tuples of one assignment of visible nodes; `matching` are those of which the guard holds.

    `leaves` are its documents.
    """

    subscriber: Subscriber
    order: Order
    key: tuple[Any, ...]
    tuples: list[FoundTuple]
    matching: list[FoundTuple]
    actions: Actions
    rank: tuple[int, str, str] = (0, "", "")

    @property
    def leaves(self) -> tuple[int, ...]:
        """The numbers of its documents."""
        leaves: tuple[int, ...] = self.key[0]
        return leaves

    def readings(self, tuples: Sequence[FoundTuple]) -> list[TupleReading]:
        """Return tuples as conditions read them."""
        return [TupleReading(each, self.subscriber.parameters) for each in tuples]


@dataclass(eq=False, slots=True)
class Turn:
    """A candidate in one group: its guard is asked there, or its actions are done, or both.

    See `broker.tables.transactions.Candidate`.
    """

    candidate: Candidate
    is_asked: bool
    is_acting: bool

    @property
    def order(self) -> Order:
        """The place of its transaction."""
        return self.candidate.order

    @property
    def rank(self) -> tuple[int, str, str]:
        """Its place in its transaction."""
        return self.candidate.rank

    def locks(self) -> Locks:
        """Return what it reads and may write."""
        candidate = self.candidate
        reads, writes = set(), set()
        if self.is_asked:
            for each in candidate.tuples:
                if each.clause.guard is not None:
                    reads |= row_locks(each.clause.guard.rows, candidate.readings([each]))
        if self.is_acting:
            tuples = candidate.readings(candidate.tuples if self.is_asked else candidate.matching)
            writes = candidate.actions.writes(tuples)
            reads |= candidate.actions.reads(tuples)
        return Locks(frozenset(reads), frozenset(writes))

    def ask(self, tables: Tables) -> bool:
        """Return whether its guard holds of some tuple."""
        candidate = self.candidate
        if self.is_asked:
            candidate.matching = [each for each in candidate.tuples if self._holds(each, tables)]
        return bool(candidate.matching)

    def _holds(self, found: FoundTuple, tables: Tables) -> bool:
        guard = found.clause.guard
        if guard is None:
            return True
        [reading] = self.candidate.readings([found])
        return guard.condition(Beside(reading, tables, self.order))

    def act(self, tables: Tables) -> None:
        """Do its actions."""
        if self.is_acting:
            actions, candidate = self.candidate.actions, self.candidate
            choices = actions.choices(candidate.readings(candidate.matching))
            actions.act(choices, tables, self.order)


class Candidates:
    """The candidates of one batch; `long` is as in `MatchBuilder`."""

    def __init__(self, long: int) -> None:
        self._long = long
        self._by_query: dict[str, dict[tuple[Any, ...], Candidate]] = {}
        self._builders: dict[Subscriber, MatchBuilder] = {}
        self._actions: dict[Clause, Actions] = {}

    def add(self, found: FoundTuple, subscriber: Subscriber) -> bool:
        """Add a tuple; return whether it begins a candidate."""
        builder = self._builders.get(subscriber)
        if builder is None:
            builder = self._builders[subscriber] = MatchBuilder(subscriber, self._long)
        own = self._by_query.setdefault(subscriber.query.id, {})
        key = builder.key(found)
        place = (id(subscriber), *key)
        candidate = own.get(place)
        if candidate is None:
            actions = self._actions.get(found.clause)
            if actions is None:
                actions = self._actions[found.clause] = Actions(found.clause.actions)
            order = (found.position.docid, found.end_us)
            candidate = own[place] = Candidate(subscriber, order, key, [], [], actions)
            candidate.tuples.append(found)
            self._match(candidate, found)
            return True
        candidate.tuples.append(found)
        self._match(candidate, found)
        return False

    def _match(self, candidate: Candidate, found: FoundTuple) -> None:
        if not candidate.subscriber.query.guards:
            candidate.matching.append(found)

    def of(self, query: str) -> Iterator[Candidate]:
        """Yield the candidates of a query."""
        yield from self._by_query.get(query, {}).values()

    def turns(self, group: Group, rank_all: Callable[[list[Candidate]], None]) -> list[Turn]:
        """Return the turns of a group; `rank_all` gives candidates their ranks."""
        turns = [
            Turn(candidate, query in group.guards, query in group.actors)
            for query in sorted(group.guards | group.actors)
            for candidate in self.of(query)
        ]
        rank_all([each.candidate for each in turns if each.is_acting])
        return turns

    def name(self, candidate: Candidate, behind: Sequence[Any]) -> str:
        """Return the id of the match that a candidate would be, over its documents in order."""
        builder = self._builders[candidate.subscriber]
        return builder.name(candidate.tuples[0], candidate.key, behind)

    def builders(self, turns: Sequence[Turn]) -> list[MatchBuilder]:
        """Return builders of the matches of guarded candidates."""
        builders: dict[Subscriber, MatchBuilder] = {}
        for turn in turns:
            if not turn.is_asked:
                continue
            subscriber = turn.candidate.subscriber
            builder = builders.setdefault(subscriber, MatchBuilder(subscriber, self._long))
            for found in turn.candidate.matching:
                builder.add(found)
        return list(builders.values())
