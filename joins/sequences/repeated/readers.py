"""Who reads what is kept once for several repetitions, and where something stands.

What stands before repetitions and their elements are two sides, and a repetition reads one object
of each.  What comes on one side asks where the other has something, and nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from joins.memory.durations import UNBOUNDED
from joins.sequences.runconditions import Key
from templates.rundecision import RunDecision

__all__ = ["Place", "RunReader", "SideReaders", "Standing"]

Place = tuple[int, Key]
"""A way to begin, and the values under which an element is looked up."""


class RunReader(Protocol):
    """A repetition, which reads both sides."""

    decision: RunDecision
    retention_us: int

    @property
    def longest_us(self) -> int:
        """How far behind what it begins with an element may end."""


R = TypeVar("R", bound=RunReader)


S = TypeVar("S")


class SideReaders(Generic[R]):
    """The readers of one side, by what they read of the other."""

    def __init__(self) -> None:
        self.all: dict[R, object] = {}
        self.by_other: dict[object, dict[R, None]] = {}

    def __len__(self) -> int:
        return len(self.all)

    def add(self, reader: R, other: object) -> None:
        """Add a reader."""
        self.all[reader] = other
        self.by_other.setdefault(other, {})[reader] = None

    def leave(self, reader: R) -> None:
        """Forget a reader."""
        other = self.all.pop(reader, None)
        if other is not None:
            del self.by_other[other][reader]
            if not self.by_other[other]:
                del self.by_other[other]

    @property
    def retention_us(self) -> int:
        """For how long the one that needs them longest needs tuples."""
        return max((each.retention_us for each in self.all), default=0)


class Standing(Generic[S]):
    """Who has something at a place, and when the last of it ends."""

    def __init__(self, swept: int, retention_us: Callable[[S], int]) -> None:
        self._ends_us: dict[Place, dict[S, int]] = {}
        self._retention_us = retention_us
        self._size = 0
        self._swept = self._swept_min = swept

    def note(self, place: Place, one: S, end_us: int) -> None:
        """Take note that one has something at a place which ends then."""
        known = self._ends_us.setdefault(place, {})
        before_us = known.get(one)
        if before_us is None:
            self._size += 1
            known[one] = end_us
        elif end_us > before_us:
            known[one] = end_us

    def leave(self, place: Place, one: S) -> None:
        """Forget what one has at a place."""
        known = self._ends_us.get(place, {})
        if known.pop(one, None) is not None:
            self._size -= 1
            if not known:
                del self._ends_us[place]

    def at(self, place: Place, some: Mapping[Any, object]) -> Iterator[tuple[S, int]]:
        """Yield those of some that have something at a place, with its last end."""
        known = self._ends_us.get(place)
        if not known:
            return
        for one in some if len(some) < len(known) else list(known):
            if one in known and one in some:
                yield one, known[one]

    def evict(self, horizon_us: int) -> None:
        """Forget, once there is enough, what ends before anyone can need it."""
        if self._size <= self._swept:
            return
        of_use: dict[S, int] = {}
        for place, known in list(self._ends_us.items()):
            for one, end_us in list(known.items()):
                if one not in of_use:
                    retention_us = self._retention_us(one)
                    is_open = retention_us >= UNBOUNDED
                    of_use[one] = -UNBOUNDED if is_open else horizon_us - retention_us
                if end_us < of_use[one]:
                    self.leave(place, one)
        self._swept = max(self._swept_min, 2 * self._size)
