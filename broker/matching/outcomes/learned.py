"""DELAY learned: the delays of matches that lack nothing say how sure the others are.

Matches are judged in the order in which they are decided.  One that lacks a unit whose delay is
learned is held against the last matches that lack nothing and stand at smaller positions: so what
stands at one position has one distribution, and batches are of no consequence.  Delays are notes,
committed with their batch: documents that they are of may be forgotten.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from broker.matching.outcomes.kept import Note, NoteOwner
from joins import UNBOUNDED
from templates.learnedunits import LearnedUnit
from xscl.delays import LEARNED_LEAST, LEARNED_MOST, Sample

__all__ = ["DEFAULT_LEARNING", "LEARNED", "Learned", "Learning"]

LEARNED = "LEARNED"
"""The clause of a note that has the delays of a match."""


class Learning(NamedTuple):
    """How many matches delays are learned from: not before `least`, and from the last `most`."""

    least: int = LEARNED_LEAST
    most: int = LEARNED_MOST


DEFAULT_LEARNING = Learning()


class _At(NamedTuple):
    """The delays of a match, one for each unit, and where it was decided."""

    docid: int
    delays: tuple[int, ...]


class _Delays:
    """The delays of one statement under one assignment.

    `held` are those of matches as they were decided.  Of them those in [`first`, `through`) are in
    `ordered`: the last at smaller positions than the one that was asked last.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.held: list[_At] = []
        self._first = self._through = 0
        self._ordered: list[list[int]] = []

    def between(self, point: int, docid: int) -> Sequence[Sequence[int]]:
        """Return the last delays behind a registration point and before a position, in order.

        They are of each unit.  It is not asked for a smaller point or position later.
        """
        if self.held and self.held[0].docid <= point:
            self.held = [each for each in self.held if each.docid > point]
            self._first, self._through, self._ordered = 0, 0, []
        while self._through < len(self.held) and self.held[self._through].docid < docid:
            self._take(self.held[self._through].delays)
            self._through += 1
            if self._through - self._first > self._most:
                self._drop(self.held[self._first].delays)
                self._first += 1
        return self._ordered

    def _take(self, delays: Sequence[int]) -> None:
        if not self._ordered:
            self._ordered = [[] for _ in delays]
        for ordered, delay in zip(self._ordered, delays, strict=True):
            insort(ordered, delay)

    def _drop(self, delays: Sequence[int]) -> None:
        for ordered, delay in zip(self._ordered, delays, strict=True):
            del ordered[bisect_left(ordered, delay)]

    def forget_from(self, limit: int) -> None:
        """Forget what stands at a position or behind it, and what is too old by now."""
        kept = [each for each in self.held if each.docid < limit]
        if len(kept) < self._through:
            # What is forgotten was in the window: it is found anew.
            self.held = kept[-self._most :]
            self._through, self._ordered = 0, []
        else:
            self.held = kept[self._first :]
            self._through -= self._first
        self._first = 0


class Learned:
    """The delays of all statements that learn them."""

    def __init__(self, learning: Learning) -> None:
        self._learning = learning
        self._of: dict[NoteOwner, _Delays] = {}

    def samples(
        self, owner: NoteOwner, units: Sequence[LearnedUnit], docid: int, point: int
    ) -> Mapping[int, Sample] | None:
        """Return the delays of units, by their blocks, as known at a position since a point.

        None where there are too few.  Positions of one statement are asked in order.
        """
        delays = self._of.get(owner)
        ordered = delays.between(point, docid) if delays is not None else ()
        if not ordered or len(ordered[0]) < self._learning.least:
            return None
        return {unit.block: Sample(own) for unit, own in zip(units, ordered, strict=True)}

    def add(
        self, owner: NoteOwner, docid: int, interval: tuple[int, int], delays: Sequence[int]
    ) -> Note:
        """Note the delays of a match that lacks nothing; return the note."""
        self._hold(owner, _At(docid, tuple(delays)))
        text = json.dumps(list(delays))
        return Note(*owner, text, docid, *interval, UNBOUNDED)

    def restore(self, notes: Iterable[Note]) -> None:
        """Take notes as they were committed, in their order, between two batches."""
        self._of.clear()
        for note in notes:
            if note.clause == LEARNED:
                self._hold(note.owner, _At(note.docid, tuple(json.loads(note.key))))

    def _hold(self, owner: NoteOwner, one: _At) -> None:
        self._of.setdefault(owner, _Delays(self._learning.most)).held.append(one)

    def keep(self, added: Collection[Note], limit_of: Callable[[str], int]) -> list[Note]:
        """Return what was noted in a batch, as far as budgets went; the rest is forgotten.

        `limit_of` returns the first document of a query that does not count.
        """
        noted = [note for note in added if note.docid < limit_of(note.query)]
        for owner in {note.owner for note in added}:
            self._of[owner].forget_from(limit_of(owner.query))
        return noted

    def forget(self, is_stated: Callable[[str, int], bool]) -> None:
        """Forget what statements have learned that are gone."""
        for owner in [each for each in self._of if not is_stated(each.query, each.stated_at)]:
            del self._of[owner]
