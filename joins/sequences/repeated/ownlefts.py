"""What stands before one repetition, and of it what the repetition has no head for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from joins.memory.durations import UNBOUNDED
from joins.sequences.repeated.lefts import Left, Lefts, LeftsReader
from joins.sequences.repeated.readers import Place
from joins.sequences.runconditions import Key
from joins.sequences.runparts import Head, Part
from templates.decision import TupleStream
from templates.rundecision import RunDecision

__all__ = ["OwnLefts"]

_NUMBER = attrgetter("number")


class OwnLefts:
    """What stands before one repetition, by whether there is a head that begins with it."""

    def __init__(self, decision: RunDecision, lefts: Lefts) -> None:
        self.decision = decision
        self._lefts = lefts
        self._first = lefts.next
        self._told: dict[Left, None] = {}
        self._headed: dict[tuple[Part, Key], None] = {}
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

    def leave(self, reader: LeftsReader) -> None:
        """Have a reader be told no more."""
        self._lefts.readers.leave(reader)

    def count(self, head: Head) -> int:
        """Return how many of the batch have the newest document of a run, and say its data."""
        assert head.left is not None
        return self._lefts.counts[head.docid, head.left.data]

    def at_hand(self, latest_us: Mapping[Place, int]) -> list[Left]:
        """Return what came in the batch before an element that is there.

        Elements at places where some came in the batch end at these times at the latest.
        """
        found, self._told = self._told, {}
        for place, end_us in latest_us.items():
            new = self._lefts.new_at(place)
            found |= dict.fromkeys([left for left in new if left.part.end_us < end_us])
        return sorted(found, key=_NUMBER)

    def before(self, places: Iterable[Place], part: Part) -> Iterator[Left]:
        """Yield what ends before an element, within the windows, and has no head for its data."""
        for place in places:
            for left in self._lefts.before(place, part, self.decision):
                if (
                    not self.has_head(left.part, part.data)
                    and left.number >= self._first
                    and left.part.end_us >= self._since_us
                ):
                    yield left

    def is_new(self, left: Left) -> bool:
        """Return whether a tuple came in the batch."""
        return left.number >= self._lefts.first_new

    def has_head(self, part: Part, data: Key) -> bool:
        """Return whether a tuple has a head that waits for elements which say some data."""
        return (part, data) in self._headed

    def note_head(self, part: Part, data: Key) -> None:
        """Have a tuple have a head for some data from now on."""
        self._headed[part, data] = None

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time."""
        self._headed = {each: None for each in self._headed if each[0].end_us >= before_us}
        self._since_us = max(self._since_us, before_us)
