"""Numbers that many ask for, such as durations, and the largest of them; no bound at all."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

__all__ = ["CLOSED", "UNBOUNDED", "Durations", "Largest"]

N = TypeVar("N", int, float)

UNBOUNDED = 1 << 62
"""No bound: more than any number of pairs, documents or microseconds.  `-UNBOUNDED`, as a time, is
before all times."""

CLOSED = -1
"""A window that holds nothing."""

_SPARE = 16


class Largest(Generic[N]):
    """How often each number is asked for.

    To add one costs the same however many there are, to remove one the logarithm of how many
    different ones there are: in a heap, which is made when the largest goes for the first time.
    There are several of these for each query, and mostly one number is asked for: then it stands
    alone.  `any_largest` is the largest number, None where there is none.
    """

    __slots__ = ("_counts", "_heap", "_times", "any_largest")

    def __init__(self, first: N | None = None) -> None:
        """Have a first number asked for once, if there is one."""
        self.any_largest: N | None = first
        self._times = 0 if first is None else 1
        self._counts: dict[N, int] | None = None
        self._heap: list[N] | None = None  # negated; of numbers nobody asks for any more, too

    def __len__(self) -> int:
        return int(self._times > 0) if self._counts is None else len(self._counts)

    def __contains__(self, number: object) -> bool:
        if self._counts is None:
            return self._times > 0 and number == self.any_largest
        return number in self._counts

    @property
    def largest(self) -> N:
        """The largest number; there must be one."""
        assert self.any_largest is not None
        return self.any_largest

    def add(self, number: N, times: int = 1) -> None:
        """Ask for a number, so many times."""
        counts = self._counts
        if counts is None:
            if not self._times or number == self.any_largest:
                self.any_largest, self._times = number, self._times + times
                return
            assert self.any_largest is not None
            counts = self._counts = {self.any_largest: self._times}
        before = counts.get(number, 0)
        counts[number] = before + times
        if before:
            return
        if self._heap is not None:
            heappush(self._heap, -number)
        if self.any_largest is None or number > self.any_largest:
            self.any_largest = number

    def remove(self, number: N, times: int = 1) -> None:
        """Undo so many of what `add` did."""
        counts = self._counts
        if counts is None:
            self._times -= times
            if not self._times:
                self.any_largest = None
            return
        counts[number] -= times
        if counts[number]:
            return
        del counts[number]
        heap = self._heap
        if number == self.any_largest:
            if heap is None:
                heap = self._heap = _heap_of(counts)
            while heap and -heap[0] not in counts:
                heappop(heap)
            self.any_largest = -heap[0] if heap else None
        if heap is not None and len(heap) > 2 * len(counts) + _SPARE:
            self._heap = _heap_of(counts)


def _heap_of(numbers: Iterable[N]) -> list[N]:
    heap = [-number for number in numbers]
    heapify(heap)
    return heap


class Durations(Largest[int]):
    """How often each duration is asked for, in microseconds."""

    __slots__ = ()

    @property
    def longest(self) -> int:
        """The longest duration; there must be one."""
        return self.largest
