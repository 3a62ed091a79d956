"""Lengths of time that many ask for, and the longest of them."""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush

__all__ = ["Lengths"]

_SPARE = 16


class Lengths:
    """How often each length is asked for, in microseconds.

    To add and to remove one costs the logarithm of how many different ones there are.
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._heap: list[int] = []  # negated; of lengths that nobody asks for any more, too

    def __len__(self) -> int:
        return len(self._counts)

    def __contains__(self, length_us: object) -> bool:
        return length_us in self._counts

    @property
    def longest(self) -> int:
        """The longest length; there must be one."""
        return -self._heap[0]

    def add(self, length_us: int) -> None:
        """Ask for a length."""
        if length_us not in self._counts:
            heappush(self._heap, -length_us)
        self._counts[length_us] += 1

    def remove(self, length_us: int) -> None:
        """Undo one `add`."""
        self._counts[length_us] -= 1
        if self._counts[length_us]:
            return
        del self._counts[length_us]
        while self._heap and -self._heap[0] not in self._counts:
            heappop(self._heap)
        if len(self._heap) > 2 * len(self._counts) + _SPARE:
            self._heap = [-length for length in self._counts]
            heapify(self._heap)
