"""Durations of time that many ask for, and the longest of them; no bound at all."""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush

__all__ = ["CLOSED", "UNBOUNDED", "Durations"]

UNBOUNDED = 1 << 62
"""No bound: more than any number of pairs, documents or microseconds.  `-UNBOUNDED`, as a time, is
before all times; as a retention, it keeps nothing."""

CLOSED = -1
"""A window that holds nothing."""

_SPARE = 16


class Durations:
    """How often each duration is asked for, in microseconds.

    To add and to remove one costs the logarithm of how many different ones there are.
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._heap: list[int] = []  # negated; of lengths that nobody asks for any more, too

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, duration_us: object) -> bool:
        return duration_us in self._counts

    @property
    def longest(self) -> int:
        """The longest duration; there must be one."""
        return -self._heap[0]

    def add(self, duration_us: int) -> None:
        """Ask for a duration."""
        if duration_us not in self._counts:
            heappush(self._heap, -duration_us)
        self._counts[duration_us] += 1

    def remove(self, duration_us: int) -> None:
        """Undo one `add`."""
        self._counts[duration_us] -= 1
        if self._counts[duration_us]:
            return
        del self._counts[duration_us]
        while self._heap and -self._heap[0] not in self._counts:
            heappop(self._heap)
        if len(self._heap) > 2 * len(self._counts) + _SPARE:
            self._heap = [-duration for duration in self._counts]
            heapify(self._heap)
