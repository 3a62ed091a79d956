"""Numbers that many ask for, such as durations, and the largest of them; no bound at all."""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

__all__ = ["CLOSED", "UNBOUNDED", "Durations", "Largest"]

N = TypeVar("N", int, float)

UNBOUNDED = 1 << 62
"""No bound: more than any number of pairs, documents or microseconds.  `-UNBOUNDED`, as a time, is
before all times; as a retention, it keeps nothing."""

CLOSED = -1
"""A window that holds nothing."""

_SPARE = 16


class Largest(Generic[N]):
    """How often each number is asked for.

    To add and to remove one costs the logarithm of how many different ones there are.
    """

    def __init__(self) -> None:
        self._counts: Counter[N] = Counter()
        self._heap: list[N] = []  # negated; of numbers that nobody asks for any more, too

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, number: object) -> bool:
        return number in self._counts

    @property
    def largest(self) -> N:
        """The largest number; there must be one."""
        return -self._heap[0]

    def add(self, number: N) -> None:
        """Ask for a number."""
        if number not in self._counts:
            heappush(self._heap, -number)
        self._counts[number] += 1

    def remove(self, number: N) -> None:
        """Undo one `add`."""
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

    @property
    def longest(self) -> int:
        """The longest duration; there must be one."""
        return self.largest
