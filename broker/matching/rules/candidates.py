"""Candidates: matches but for what they ask tables, gathered over the strata of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.hits import Hits, TupleReading
from broker.matching.rendering.form import MatchForm
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import Behind, MatchLines
from broker.matching.rendering.matchrows import MatchRows
from broker.matching.uses import Topic
from broker.tables.actions import Actions, Beside, LockReader
from broker.tables.groups import Group
from broker.tables.locks import Lock, Locks
from broker.tables.store import Order, Rank, TableVersions
from templates.clause import Clause, Guard

__all__ = ["RuleCandidate", "RuleCandidates", "Turn"]


class Reads(NamedTuple):
    """What a clause asks of tables: whether its guard holds, and the locks that this takes."""

    guard: Guard | None
    locks: LockReader


class FoundTuple(NamedTuple):
    """A tuple that asks tables, or writes them: a hit of a piece, as conditions read it."""

    reads: Reads
    reading: TupleReading
    piece: int
    hit: int


@dataclass(eq=False, slots=True)
class RuleCandidate:
    """Tuples of one assignment of visible nodes; `matching` are those of which the guard holds.

    `leaves` are its documents, `visible` the numbers of the visible nodes.  `newest`, its newest
    document, and `name` order actions; candidates that act are given them.
    """

    topic: Topic
    order: Order
    form: MatchForm
    leaves: tuple[int, ...]
    visible: tuple[int, ...]
    actions: Actions
    newest: int = 0
    tuples: list[FoundTuple] = field(default_factory=list)
    matching: list[FoundTuple] = field(default_factory=list)
    name: str = ""


@dataclass(eq=False, slots=True)
class Turn:
    """A candidate in one group: its guard is asked there, or its actions are done, or both.

    See `broker.tables.transactions.Candidate`.
    """

    candidate: RuleCandidate
    order: Order
    is_asked: bool
    is_acting: bool

    @property
    def query(self) -> str:
        """The id of its query."""
        return self.candidate.topic.query.id

    @property
    def rank(self) -> Rank:
        """Its place in its transaction."""
        return self.candidate.newest, self.query, self.candidate.name

    def locks(self) -> Locks:
        """Return what it reads and may write."""
        candidate = self.candidate
        reads: list[Lock] = []
        writes: list[Lock] = []
        if self.is_asked:
            for each in candidate.tuples:
                reads += each.reads.locks.locks(each.reading)
        if self.is_acting:
            actions = candidate.actions
            for each in candidate.tuples if self.is_asked else candidate.matching:
                reads += actions.reads.locks(each.reading)
                writes += actions.writes.locks(each.reading)
        return Locks(reads, writes)

    def ask(self, tables: TableVersions) -> bool:
        """Return whether its guard holds of some tuple."""
        candidate = self.candidate
        if self.is_asked:
            candidate.matching = [each for each in candidate.tuples if self._holds(each, tables)]
        return bool(candidate.matching)

    def _holds(self, found: FoundTuple, tables: TableVersions) -> bool:
        guard = found.reads.guard
        return guard is None or guard.condition(Beside(found.reading, tables, (*self.order, ())))

    def act(self, tables: TableVersions) -> None:
        """Do its actions."""
        if self.is_acting:
            actions = self.candidate.actions
            choices = actions.choices([each.reading for each in self.candidate.matching])
            actions.act(choices, tables, (*self.order, self.rank))


class RuleCandidates:
    """The candidates of one batch; `long` is as in `MatchRows`."""

    def __init__(self, long: int) -> None:
        self._long = long
        self._by_query: dict[str, dict[tuple[Any, ...], RuleCandidate]] = {}
        self._compiled: dict[Clause, tuple[Reads, Actions]] = {}
        self._pieces: list[Hits] = []

    def add(self, hits: Hits) -> Ints:
        """Add tuples; return the tuples that begin a candidate."""
        begun = []
        piece = len(self._pieces)
        self._pieces.append(hits)
        visible = hits.numbers([terms.visible for terms in hits.clauses]).tolist()
        leaves, lengths = (each.tolist() for each in hits.leaves)
        docids, which = hits.docids.tolist(), hits.which.tolist()
        topics = [use.topic for use in hits.uses]
        owns = [self._by_query.setdefault(each.query.id, {}) for each in topics]
        are_guarded = [bool(each.query.guards) for each in topics]
        for hit, terms, reading in hits.readings(np.arange(len(hits))):
            use, form = which[hit], terms.form
            assert form is not None
            topic, own = topics[use], owns[use]
            behind = tuple(leaves[hit][: lengths[hit]])
            numbers = tuple(visible[hit][: len(terms.visible)])
            place = (id(topic), behind, numbers, form.branches)
            candidate = own.get(place)
            if candidate is None:
                order = (docids[hit], reading.end_us)
                _, actions = self._compiled_of(terms.clause)
                candidate = own[place] = RuleCandidate(topic, order, form, behind, numbers, actions)
                begun.append(hit)
            found = FoundTuple(self._compiled_of(terms.clause)[0], reading, piece, hit)
            candidate.tuples.append(found)
            if not are_guarded[use]:
                candidate.matching.append(found)
        return np.array(begun, np.int64)

    def _compiled_of(self, clause: Clause) -> tuple[Reads, Actions]:
        """Return what a clause asks of tables, and what it does to them."""
        compiled = self._compiled.get(clause)
        if compiled is None:
            rows = clause.guard.rows if clause.guard is not None else ()
            compiled = Reads(clause.guard, LockReader(rows)), Actions(clause.actions)
            self._compiled[clause] = compiled
        return compiled

    def of(self, query: str) -> Iterator[RuleCandidate]:
        """Yield the candidates of a query."""
        yield from self._by_query.get(query, {}).values()

    def turns(self, group: Group) -> Iterator[Turn]:
        """Yield the turns of a group."""
        for query in sorted(group.guards | group.actors):
            is_asked, is_acting = query in group.guards, query in group.actors
            for candidate in self.of(query):
                yield Turn(candidate, candidate.order, is_asked, is_acting)

    def give_names(self, candidates: Sequence[RuleCandidate], leaves: Mapping[int, Leaf]) -> None:
        """Give candidates the ids of the matches that they would be."""
        lines: dict[tuple[int, int], MatchLines] = {}
        for each in candidates:
            asked = id(each.topic), id(each.form)
            if asked not in lines:
                lines[asked] = MatchLines(each.topic.parameters, each.form)
            behind = Behind.of([leaves[number] for number in each.leaves], each.form)
            each.name = lines[asked].id(MatchLines.identity(behind, each.visible))

    def matches(self, turns: Iterable[Turn]) -> MatchRows:
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
