"""What stands before all repetitions of a join, and of it what one of them has no head for.

Two share it where they read the same streams before them, and look it up alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from operator import attrgetter

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.memory.instance import Instance
from joins.sequences.repeated.lefts import Left, Lefts, LeftsReader, Place
from joins.sequences.runconditions import RunConditions
from joins.sequences.runparts import Part
from templates.decision import TupleStream
from templates.rundecision import RunDecision, look_ups

__all__ = ["OwnLefts", "SharedLefts"]

_NUMBER = attrgetter("number")


class OwnLefts:
    """What stands before one repetition, by whether there is a head that begins with it."""

    def __init__(self, decision: RunDecision, lefts: Lefts) -> None:
        self.decision = decision
        self._lefts = lefts
        self._first = lefts.next
        self._told: dict[Left, None] = {}
        self._headed: dict[Part, None] = {}
        self._since_us = -UNBOUNDED

    def __len__(self) -> int:
        return len(self._headed)

    @property
    def over(self) -> int | None:
        """The first document of the batch of which more stand before runs than may."""
        return self._lefts.over

    def read(self, stream: TupleStream) -> None:
        """Have rows of a stream stand before the repetition."""
        self._lefts.read(stream)

    def tell(self, left: Left) -> None:
        """Take note of a tuple before an element that is there."""
        self._told[left] = None

    def enter(self, reader: LeftsReader, places: Iterable[Place], part: Part) -> None:
        """Have a reader be told of what comes before an element that has entered."""
        for place in places:
            self._lefts.note(reader, place, part.end_us)

    def leave(self, reader: LeftsReader) -> None:
        """Have a reader be told no more."""
        self._lefts.leave(reader)

    def count(self, docid: int) -> int:
        """Return how many of the batch have a newest document."""
        return self._lefts.counts[docid]

    def at_hand(self, latest_us: Mapping[Place, int]) -> list[Left]:
        """Return what came in the batch before an element that is there, and has no head.

        Elements at places where some came in the batch end at these times at the latest.
        """
        found, self._told = self._told, {}
        for place, end_us in latest_us.items():
            new = self._lefts.new_at(place)
            found |= dict.fromkeys([left for left in new if left.part.end_us < end_us])
        return sorted((left for left in found if left.part not in self._headed), key=_NUMBER)

    def before(self, places: Iterable[Place], part: Part) -> Iterator[Left]:
        """Yield what ends before an element, within the windows, and has no head."""
        for place in places:
            for left in self._lefts.before(place, part, self.decision):
                if (
                    left.part not in self._headed
                    and left.number >= self._first
                    and left.part.end_us >= self._since_us
                ):
                    yield left

    def is_new(self, left: Left) -> bool:
        """Return whether a tuple came in the batch."""
        return left.number >= self._lefts.first_new

    def note_head(self, part: Part) -> None:
        """Have a tuple have a head from now on."""
        self._headed[part] = None

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time."""
        self._headed = {part: None for part in self._headed if part.end_us >= before_us}
        self._since_us = max(self._since_us, before_us)


class SharedLefts:
    """What stands before all repetitions of a join that are found one by one."""

    def __init__(self, limits: RunLimits) -> None:
        self._limits = limits
        self._by_reading: dict[Hashable, Lefts] = {}
        self._came: dict[Lefts, None] = {}
        self._taken: dict[Lefts, None] = {}
        self.of_stream: dict[str, list[Lefts]] = {}

    def of(self, decision: RunDecision) -> Lefts:
        """Return what stands before a repetition: nothing does where it leads."""
        if decision.is_leading:
            return Lefts((), self._limits)
        is_single = len(decision.elements) == 1
        reading = tuple(
            (
                begin.left,
                begin.left_keys,
                begin.folds,
                tuple(left for left, _ in look_ups(begin.each)) if is_single else (),
            )
            for begin in decision.begins
        )
        found = self._by_reading.get(reading)
        if found is None:
            begins = [RunConditions(begin, decision) for begin in decision.begins]
            found = self._by_reading[reading] = Lefts(begins, self._limits)
        return found

    def follow(self) -> None:
        """Forget what stands before nothing any more, and find out who reads which stream."""
        self._by_reading = {key: own for key, own in self._by_reading.items() if own.readers}
        self.of_stream = {}
        for lefts in self._by_reading.values():
            for stream in lefts.streams:
                self.of_stream.setdefault(stream, []).append(lefts)

    def begin_batch(self) -> None:
        """Have nothing be new."""
        for lefts in self._taken:
            lefts.begin_batch()
        self._taken = {}

    def add(self, stream: str, row: Instance) -> None:
        """Take a row of a stream."""
        for lefts in self.of_stream.get(stream, ()):
            lefts.add(stream, row)
            self._came[lefts] = None

    def take_new(self) -> Iterator[LeftsReader]:
        """Take all that came; yield who has been told of some."""
        came, self._came = self._came, {}
        for lefts in came:
            self._taken[lefts] = None
            yield from lefts.take_new()

    def evict(self, horizon_us: int) -> None:
        """Forget what no reader can need, of what has grown in the batch."""
        for lefts in self._taken:
            lefts.evict(horizon_us)
