"""The elements of repetitions, once for all of them that read the same and look it up alike.

    lines    the elements under the values by which heads look them up, by end
    new      those of the batch, with their places; behind NEXT they enter once they are settled
    waiting  where heads wait
    woken    who has something before an element that enters: a tuple that stands before, or a head

> **Who is not woken takes no element.** A run takes one behind what it begins with, under the same
> values, and within its windows from there.

Elements are numbered as they enter: under ANY those with larger numbers come later.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.memory.instance import Instance
from joins.sequences.clock import WatermarkSteps
from joins.sequences.repeated.readers import Place, RunReader, SideReaders, Standing
from joins.sequences.runconditions import RunConditions
from joins.sequences.runparts import Part, Parts, Roles
from joins.sequences.waiting import SettlingParts
from templates.rundecision import RunDecision

__all__ = ["UnitElements"]

_END = attrgetter("end_us")


def _retention_us(reader: RunReader) -> int:
    return reader.retention_us


class UnitElements:
    """The elements of repetitions that read them as `decision` does, whose `begins` are compiled.

    `standing` says where elements stand, `lefts` where what stands before repetitions does.
    `latest_us` are the ends of the last elements at the places of those of the batch.
    """

    def __init__(
        self,
        decision: RunDecision,
        begins: Sequence[RunConditions],
        limits: RunLimits,
        standing: Standing[Any],
        lefts: Standing[Any],
    ) -> None:
        self._decision = decision
        self._known = decision.known
        self._begins = begins
        self._standing = standing
        self._lefts = lefts
        self.parts = Parts()
        self._roles = Roles()
        self._settling = SettlingParts(decision.grace_us)
        self._lines: dict[Place, list[Part]] = {}
        self._size = 0
        self._swept = self._swept_min = limits.swept_parts
        self.new: list[tuple[Part, list[Place]]] = []
        self.latest_us: dict[Place, int] = {}
        self.first_new = self.next = 0
        self.readers: SideReaders[RunReader] = SideReaders()
        self.waiting: Standing[RunReader] = Standing(limits.swept_parts, _retention_us)
        for each in decision.elements:
            self._roles.give(each.stream, self.parts)

    def __len__(self) -> int:
        return self._size

    @property
    def streams(self) -> set[str]:
        """The names of the streams of which rows are elements."""
        return self._roles.streams

    @property
    def has_begun(self) -> bool:
        """Whether some have come."""
        return self.next > 0 or self.parts.has_new or len(self._settling) > 0

    @property
    def settling(self) -> int:
        """How many elements wait until they are settled."""
        return len(self._settling)

    @property
    def due_us(self) -> int | None:
        """The first time that must be settled before an element enters, if any waits."""
        return min(self._settling.due_us, default=None)

    def add(self, stream: str, row: Instance) -> None:
        """Take a row of a stream."""
        self._roles.add(stream, row)

    # -- a batch -------------------------------------------------------------------------------

    def begin_batch(self) -> None:
        """Have nothing be new."""
        self.first_new = self.next
        self.new, self.latest_us = [], {}

    def entering(self, clock: WatermarkSteps) -> list[Part]:
        """Return the elements that count from documents of the batch on."""
        for part in self.parts.take_new():
            self._settling.add(0, part)
        return [part for _, part in self._settling.entering(clock)]

    def take_new(self, clock: WatermarkSteps) -> Iterator[RunReader]:
        """Take the elements that came, or were settled, in the batch; yield whom they wake."""
        for part in self.entering(clock) if self._decision.is_next else self.parts.take_new():
            places = self.enter(part)
            self.new.append((part, places))
            for place in places:
                self.latest_us[place] = self._lines[place][-1].end_us
                self._standing.note(place, self, part.end_us)
            yield from self._woken(part, places)

    def _woken(self, part: Part, places: Sequence[Place]) -> Iterator[RunReader]:
        """Yield who has something before an element."""
        if self._decision.is_leading:
            yield from self.readers.all
            return
        for place in places:
            for lefts, end_us in self._lefts.at(place, self.readers.by_other):
                for reader in self.readers.by_other[lefts]:
                    if part.end_us - end_us <= reader.longest_us:
                        yield reader
            for reader, end_us in self.waiting.at(place, self.readers.all):
                if part.end_us - end_us <= reader.longest_us:
                    yield reader

    # -- lines ---------------------------------------------------------------------------------

    def enter(self, part: Part) -> list[Place]:
        """Add an element; return the places where it is looked up."""
        part.serial, self.next = self.next, self.next + 1
        found = self._places_of(part)
        for place in found:
            insort(self._lines.setdefault(place, []), part, key=_END)
            self._size += 1
        return found

    def _places_of(self, part: Part) -> list[Place]:
        found: list[Place] = []
        for number, conditions in enumerate(self._begins):
            same = conditions.same_of(part)
            if all(same):
                keys = conditions.keys_of_element(part)
                found += [(number, (*same, *part.data, *key)) for key in keys]
                if self._decision.is_leading:
                    found.append((number, ()))
                elif self._known < len(part.data):
                    # What stands before does not say all of it.
                    known = part.data[: self._known]
                    found += [(number, (*same, *known, *key)) for key in keys]
        return list(dict.fromkeys(found))

    def at(self, place: Place) -> Sequence[Part]:
        """Return the elements at a place, by end."""
        return self._lines.get(place, ())

    def between(self, place: Place, after_us: int, until_us: int) -> Sequence[Part]:
        """Return the elements at a place that end behind a time, and until another, by end."""
        line = self._lines.get(place, [])
        first = bisect_right(line, after_us, key=_END)
        return line[first : bisect_right(line, until_us, key=_END)]

    # -- what is kept --------------------------------------------------------------------------

    def evict(self, horizon_us: int) -> None:
        """Forget, once there are enough, what no reader can need."""
        self.waiting.evict(horizon_us)
        if self._size <= self._swept:
            return
        retention_us = self.readers.retention_us
        if retention_us < UNBOUNDED:
            self.forget(horizon_us - retention_us)
        self._swept = max(self._swept_min, 2 * self._size)

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time."""
        for place, line in list(self._lines.items()):
            del line[: bisect_left(line, before_us, key=_END)]
            if not line:
                del self._lines[place]
        self._size = sum(map(len, self._lines.values()))
