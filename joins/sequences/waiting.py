"""What waits until a time is settled."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count

import numpy as np
import numpy.typing as npt

from joins.memory.ordering import order_by
from joins.memory.slots import Ints
from joins.sequences.clock import WatermarkSteps
from joins.sequences.runparts import Part

__all__ = ["SettlingParts", "Waiting"]

Rows = npt.NDArray[np.int32]
"""Rows while they wait: there are fewer than 2^31 of them."""


class Waiting:
    """Rows by the time for which they wait: runs in order, from the front of which rows are taken.

    Runs of like size are merged, so that a row is moved as often as the logarithm of their number.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Ints, Rows]] = []

    def __len__(self) -> int:
        return sum(len(times) for times, _ in self._runs)

    def add(self, times_us: Ints, rows: Ints) -> None:
        """Have rows wait."""
        if not len(rows):
            return
        self._runs.append(_sorted(times_us, rows.astype(np.int32)))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            merged = (np.concatenate(each) for each in zip(*self._runs[-2:], strict=True))
            self._runs[-2:] = [_sorted(*merged)]

    def take(self, before_us: int) -> tuple[Ints, Ints]:
        """Return the times before some time, with the rows that have waited for them."""
        taken = [(np.zeros(0, np.int64), np.zeros(0, np.int32))]
        for i, (times, rows) in enumerate(self._runs):
            count = int(np.searchsorted(times, before_us, "left"))
            if count:
                taken.append((times[:count], rows[:count]))
                self._runs[i] = times[count:], rows[count:]
        self._runs = [run for run in self._runs if len(run[0])]
        found, waited = (np.concatenate(each) for each in zip(*taken, strict=True))
        return found, waited.astype(np.int64)

    def rows(self) -> Ints:
        """Return all rows that wait."""
        return np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in self._runs)])

    def renumber(self, numbers: Ints) -> None:
        """Give all rows other numbers; rows that are left out have negative ones."""
        runs = [(times, numbers[rows].astype(np.int32)) for times, rows in self._runs]
        self._runs = [(times[rows >= 0], rows[rows >= 0]) for times, rows in runs]


def _sorted(times_us: Ints, rows: Rows) -> tuple[Ints, Rows]:
    order = order_by(times_us)
    return times_us[order], rows[order]


class SettlingParts:
    """Elements by end, each of a step, that have not entered; they are settled for one grace."""

    def __init__(self, grace_us: int) -> None:
        self._grace_us = grace_us
        self._waiting: list[tuple[int, int, int, Part]] = []
        self._serial = count()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def due_us(self) -> Sequence[int]:
        """The first time that must be settled before an element enters, if any waits."""
        return [each[0] + self._grace_us for each in self._waiting[:1]]

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
