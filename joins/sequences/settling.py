"""Elements one by one that wait until their end is settled: from then on they count."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

import numpy as np

from joins.sequences.clock import WatermarkSteps
from joins.sequences.runparts import Part

__all__ = ["SettlingParts"]


class SettlingParts:
    """Elements by end, each of a step, that have not entered; they are settled for one grace."""

    def __init__(self, grace_us: int) -> None:
        self._grace_us = grace_us
        self._waiting: list[tuple[int, int, int, Part]] = []
        self._serial = count()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, step: int, part: Part) -> None:
        """Have an element wait."""
        heappush(self._waiting, (part.end_us, next(self._serial), step, part))

    def entering(self, clock: WatermarkSteps) -> list[tuple[int, Part]]:
        """Return what counts from documents of the batch on, each with its step; by end."""
        newest_us = clock.newest_us - self._grace_us
        found: list[tuple[int, Part]] = []
        while self._waiting and self._waiting[0][0] < newest_us:
            found.append(heappop(self._waiting)[2:])
        ends_us = np.array([part.end_us for _, part in found], np.int64)
        settling = clock.settling(ends_us + self._grace_us).tolist()
        for (_, part), settled in zip(found, settling, strict=True):
            # Of a late one it is not known which document settled its end, nor needed.
            part.settled = settled if settled >= part.docid else 0
            part.entered = max(settled, part.docid)
        return found
