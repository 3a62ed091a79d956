"""Candidates: matches but for what they ask tables, gathered over the strata of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.hits import Hits, TupleReading
from broker.matching.rendering.form import Form
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import Behind, MatchLines
from broker.matching.rendering.matchrows import MatchRows
from broker.matching.uses import Subscriber
from broker.tables.actions import Actions, Beside, row_locks
from broker.tables.groups import Group
from broker.tables.locks import Locks
from broker.tables.store import Order, Tables
from templates.clause import Clause

__all__ = ["Candidate", "Candidates", "Turn"]


class Found(NamedTuple):
    """A tuple that asks tables, or writes them: a hit of a piece, as conditions read it."""

    clause: Clause
    reading: TupleReading
    piece: int
    hit: int


@dataclass(eq=False, slots=True)
class Candidate:
    """Tuples of one assignment of visible nodes; `matching` are those of which the guard holds.

    `leaves` are its documents, `visible` the numbers of the visible nodes.
    """

    subscriber: Subscriber
    order: Order
    form: Form
    leaves: tuple[int, ...]
    visible: tuple[int, ...]
    actions: Actions
    tuples: list[Found] = field(default_factory=list)
    matching: list[Found] = field(default_factory=list)
    rank: tuple[int, str, str] = (0, "", "")

    def add(self, found: Found) -> None:
        """Add a tuple."""
        self.tuples.append(found)
        if not self.subscriber.query.guards:
            self.matching.append(found)

    def readings(self, tuples: Sequence[Found]) -> list[TupleReading]:
        """Return tuples as conditions read them."""
        return [each.reading for each in tuples]


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

    def _holds(self, found: Found, tables: Tables) -> bool:
        guard = found.clause.guard
        if guard is None:
            return True
        return guard.condition(Beside(found.reading, tables, self.order))

    def act(self, tables: Tables) -> None:
        """Do its actions."""
        if self.is_acting:
            actions, candidate = self.candidate.actions, self.candidate
            choices = actions.choices(candidate.readings(candidate.matching))
            actions.act(choices, tables, self.order)


class Candidates:
    """The candidates of one batch; `long` is as in `MatchRows`."""

    def __init__(self, long: int) -> None:
        self._long = long
        self._by_query: dict[str, dict[tuple[Any, ...], Candidate]] = {}
        self._actions: dict[Clause, Actions] = {}
        self._pieces: list[Hits] = []

    def add(self, hits: Hits) -> Ints:
        """Add tuples; return the tuples that begin a candidate."""
        begun = []
        piece = len(self._pieces)
        self._pieces.append(hits)
        visible = hits.numbers([terms.visible for terms in hits.clauses]).tolist()
        leaves, lengths = (each.tolist() for each in hits.leaves)
        docids, which = hits.docids.tolist(), hits.which.tolist()
        for hit, terms, reading in hits.readings(np.arange(len(hits))):
            subscriber = hits.uses[which[hit]].subscriber
            assert terms.form is not None
            behind = tuple(leaves[hit][: lengths[hit]])
            numbers = tuple(visible[hit][: len(terms.visible)])
            own = self._by_query.setdefault(subscriber.query.id, {})
            place = (id(subscriber), behind, numbers, terms.form.branches)
            candidate = own.get(place)
            if candidate is None:
                order = (docids[hit], reading.end_us)
                actions = self._actions_of(terms.clause)
                candidate = Candidate(subscriber, order, terms.form, behind, numbers, actions)
                own[place] = candidate
                begun.append(hit)
            candidate.add(Found(terms.clause, reading, piece, hit))
        return np.array(begun, np.int64)

    def _actions_of(self, clause: Clause) -> Actions:
        actions = self._actions.get(clause)
        if actions is None:
            actions = self._actions[clause] = Actions(clause.actions)
        return actions

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

    def name(self, candidate: Candidate, behind: Sequence[Leaf]) -> str:
        """Return the id of the match that a candidate would be, over its documents in order."""
        lines = MatchLines(candidate.subscriber.parameters, candidate.form)
        return lines.id(Behind.of(behind, candidate.form), candidate.visible)

    def matches(self, turns: Sequence[Turn]) -> MatchRows:
        """Return the matches of guarded candidates."""
        found = MatchRows(self._long)
        by_piece: dict[int, list[int]] = {}
        for turn in turns:
            if turn.is_asked:
                for each in turn.candidate.matching:
                    by_piece.setdefault(each.piece, []).append(each.hit)
        for piece, hits in by_piece.items():
            found.add(self._pieces[piece].alone(np.array(hits)))
        return found
