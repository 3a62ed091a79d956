"""Numbers that many ask for, such as durations, and the largest of them; no bound at all."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any, Generic, TypeVar

__all__ = ["CLOSED", "UNBOUNDED", "Durations", "Largest"]

N = TypeVar("N", int, float)

UNBOUNDED = 1 << 62
"""No bound: more than any number of pairs, documents or microseconds.  `-UNBOUNDED`, as a time, is
before all times; as a retention, it keeps nothing."""

CLOSED = -1
"""A window that holds nothing."""

_SPARE = 16

_NOTHING: list[Any] = []


class Largest(Generic[N]):
    """How often each number is asked for.

    To add and to remove one costs the logarithm of how many different ones there are.  There are
    several of these for each query, and mostly one number is asked for: then it stands alone.
    """

    __slots__ = ("_counts", "_heap", "_only", "_times")

    def __init__(self) -> None:
        self._only: N | None = None
        self._times = 0
        self._counts: dict[N, int] | None = None
        self._heap: list[N] = _NOTHING  # negated; of numbers that nobody asks for any more, too

    def __len__(self) -> int:
        return int(self._times > 0) if self._counts is None else len(self._counts)

    def __contains__(self, number: object) -> bool:
        if self._counts is None:
            return self._times > 0 and number == self._only
        return number in self._counts

    @property
    def largest(self) -> N:
        """The largest number; there must be one."""
        if self._counts is None:
            assert self._only is not None
            return self._only
        return -self._heap[0]

    def add(self, number: N) -> None:
        """Ask for a number."""
        if self._counts is None:
            if not self._times or number == self._only:
                self._only, self._times = number, self._times + 1
                return
            assert self._only is not None
            self._counts, self._heap = {self._only: self._times}, [-self._only]
        if number not in self._counts:
            heappush(self._heap, -number)
            self._counts[number] = 0
        self._counts[number] += 1

    def remove(self, number: N) -> None:
        """Undo one `add`."""
        if self._counts is None:
            self._times -= 1
            return
        self._counts[number] -= 1
        if self._counts[number]:
            return
        del self._counts[number]
        while self._heap and -self._heap[0] not in self._counts:
            heappop(self._heap)
        if len(self._heap) > 2 * len(self._counts) + _SPARE:
            self._heap = [-each for each in self._counts]
            heapify(self._heap)


class Durations(Largest[int]):
    """How often each duration is asked for, in microseconds."""

    __slots__ = ()

    @property
    def longest(self) -> int:
        """The longest duration; there must be one."""
        return self.largest
