"""What stands before repetitions, once for all of them that read the same and look it up alike.

A tuple that stands before might begin a run of each of them, and most have no element for it.  So a
repetition has no head of it before there is an element that it may take:

    lines   the tuples under the values that their next element must have, by end
    before  a repetition that an element wakes looks up what stands before it
    told    who has an element that ends behind a tuple that comes is told of the tuple

> **No head is missed.** The first element that a run may take comes behind the tuple, and looks it
> up; or before, and its repetition is told.

What comes is numbered, and who reads from a number on does not see what came before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.memory.instance import Instance
from joins.sequences.repeated.readers import Place, RunReader, SideReaders, Standing
from joins.sequences.runconditions import Key, RunConditions
from joins.sequences.runparts import Head, Part, Parts, Roles
from templates.decision import TupleStream
from templates.rundecision import RunDecision

__all__ = ["Left", "Lefts", "LeftsReader"]


@dataclass(slots=True, eq=False)
class Left:
    """A tuple that stands before: the way in which runs begin with it, and its places."""

    number: int
    begin: int
    part: Part
    places: Sequence[Place]


class LeftsReader(RunReader, Protocol):
    """A repetition behind some tuples; it is told of one before an element that it has."""

    def tell(self, left: Left) -> None:
        """Take note of a tuple before an element that is there."""


def _end_us(left: Left) -> int:
    return left.part.end_us


class Lefts:
    """The tuples that stand before some repetitions, as long as one of these may need them.

    `standing` says where tuples stand before, `elements` where the elements of repetitions do.
    `counts` says how many of the batch have each newest document and say some data, `over` which
    was the first document of which there were more than may be.
    """

    def __init__(
        self,
        begins: Sequence[RunConditions],
        limits: RunLimits,
        standing: Standing[Lefts],
        elements: Standing[Any],
    ) -> None:
        self._begins = begins
        self._limits = limits
        self._parts = Parts()
        self._roles = Roles()
        self._lines: dict[Place, list[Left]] = {}
        self._new: dict[Place, list[Left]] = {}
        self._standing = standing
        self._elements = elements
        self._size = 0
        self._swept = limits.swept_parts
        self.first_new = self.next = 0
        self.counts: Counter[tuple[int, Key]] = Counter()
        self.over: int | None = None
        self.readers: SideReaders[LeftsReader] = SideReaders()
        for begin in begins:
            assert begin.begin.left is not None
            self.read(begin.begin.left)

    @property
    def streams(self) -> set[str]:
        """The names of the streams that are read."""
        return self._roles.streams

    def read(self, stream: TupleStream) -> None:
        """Have rows of a stream be rows of the tuples."""
        self._roles.give(stream, self._parts)

    def add(self, stream: str, row: Instance) -> None:
        """Take a row of a stream."""
        self._roles.add(stream, row)

    # -- a batch -------------------------------------------------------------------------------

    def begin_batch(self) -> None:
        """Have nothing be new."""
        self.first_new = self.next
        self._new, self.counts, self.over = {}, Counter(), None

    def take_new(self) -> Iterable[LeftsReader]:
        """Take the tuples that came; return who has been told of some."""
        told: dict[LeftsReader, None] = {}
        for part in self._parts.take_new():
            left = self._left(part)
            if left is None:
                continue
            self.counts[part.docid, part.data] += 1
            for place in left.places:
                insort(self._lines.setdefault(place, []), left, key=_end_us)
                self._new.setdefault(place, []).append(left)
                self._size += 1
                self._standing.note(place, self, part.end_us)
                for elements, end_us in self._elements.at(place, self.readers.by_other):
                    if part.end_us < end_us:
                        for reader in self.readers.by_other[elements]:
                            reader.tell(left)
                            told[reader] = None
        most = self._limits.heads
        self.over = min((at for (at, _), own in self.counts.items() if own > most), default=None)
        return told if self.over is None else self.readers.all

    def _left(self, part: Part) -> Left | None:
        """Return a tuple with its places; None where no run begins with it."""
        for begin, conditions in enumerate(self._begins):
            if conditions.rows(part):
                # Other ways to begin ask the same of each element.
                folds = conditions.first_folds(part)
                known = conditions.known_of(part)
                keys = conditions.look_up_keys(Head(begin, part, (), folds, part.docid, known))
                self.next += 1
                return Left(self.next - 1, begin, part, [(begin, key) for key in keys])
        return None

    # -- what is asked -------------------------------------------------------------------------

    def new_at(self, place: Place) -> Sequence[Left]:
        """Return the tuples of the batch at a place."""
        return self._new.get(place, ())

    def before(self, place: Place, part: Part, decision: RunDecision) -> Iterator[Left]:
        """Yield the tuples at a place that end before an element, within the windows."""
        line = self._lines.get(place, [])
        longest_us = min(decision.window_us, decision.within_us, UNBOUNDED)
        first = bisect_left(line, part.end_us - longest_us, key=_end_us)
        last = bisect_left(line, part.start_us, key=_end_us)
        # A list of its own: what is taken of them may look again.
        yield from line[first:last]

    # -- what is kept --------------------------------------------------------------------------

    def evict(self, horizon_us: int) -> None:
        """Forget, once there are enough, what no reader can need."""
        if self._size <= self._swept:
            return
        retention_us = self.readers.retention_us
        if retention_us < UNBOUNDED:
            before_us = horizon_us - retention_us
            for place, line in list(self._lines.items()):
                del line[: bisect_left(line, before_us, key=_end_us)]
                if not line:
                    del self._lines[place]
        self._size = sum(map(len, self._lines.values()))
        self._swept = max(self._limits.swept_parts, 2 * self._size)
