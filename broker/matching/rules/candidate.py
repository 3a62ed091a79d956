"""A candidate: tuples that are a match, if what they ask tables holds of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.matching.hits import TupleReading
from broker.matching.outcomes.matched import Matched
from broker.matching.rendering.matchnodes import MatchNodes
from broker.matching.uses import Topic
from broker.tables.actions import Actions, Beside, LockReader
from broker.tables.locks import Lock, Locks
from broker.tables.store import Order, Rank, TableVersions
from templates.clause import Guard

__all__ = ["FoundTuple", "Reads", "RuleCandidate"]


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

    `newest`, its newest document, and `name` order actions; candidates that act are given them.
    `matched` is the match that rows and limits are made of, where its statement has these.
    """

    topic: Topic
    order: Order
    nodes: MatchNodes
    actions: Actions
    newest: int = 0
    tuples: list[FoundTuple] = field(default_factory=list)
    matching: list[FoundTuple] = field(default_factory=list)
    name: str = ""
    matched: Matched | None = None

    @property
    def query(self) -> str:
        """The id of its query."""
        return self.topic.query.id

    @property
    def rank(self) -> Rank:
        """Its place in its transaction."""
        return self.newest, self.query, self.name

    def guard_locks(self) -> list[Lock]:
        """Return what its guard reads."""
        return [lock for each in self.tuples for lock in each.reads.locks.locks(each.reading)]

    def action_locks(self, tuples: Sequence[FoundTuple] | None = None) -> Locks:
        """Return what its actions read and write for some tuples, else for all."""
        readings = [each.reading for each in (self.tuples if tuples is None else tuples)]
        return Locks(
            [lock for each in readings for lock in self.actions.reads.locks(each)],
            [lock for each in readings for lock in self.actions.writes.locks(each)],
        )

    def ask(self, tables: TableVersions) -> bool:
        """Return whether its guard holds of some tuple, before its transaction."""
        self.matching = [each for each in self.tuples if self._holds(each, tables)]
        return bool(self.matching)

    def _holds(self, found: FoundTuple, tables: TableVersions) -> bool:
        guard = found.reads.guard
        return guard is None or guard.condition(Beside(found.reading, tables, (*self.order, ())))

    def act(self, tables: TableVersions) -> None:
        """Do its actions for the tuples that hold."""
        choices = self.actions.choices([each.reading for each in self.matching])
        self.actions.act(choices, tables, (*self.order, self.rank))
