"""Numbers of runs, each known between two doubles, and made where somebody asks for it.

HAVING compares most numbers of runs and gives no row of them.  Bounds decide that, and an exact
number, which may have hundreds of digits, is made of those alone that they leave open, or that a
row shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

__all__ = ["EXACT", "Bounds", "Floats", "RunTotals", "double_of", "summed"]

Floats = npt.NDArray[np.float64]
Bounds = tuple[Floats, Floats]
"""Of each number a double that is not above its double, and one that is not below it."""

EXACT = 2.0**53
"""Doubles up to here are exact integers, and so are their sums."""

_STEP = 2.0**-52


class RunTotals:
    """Numbers of runs by row; `count` returns those at some places among all that were found."""

    __slots__ = ("_bounds", "_count", "_numbers", "_places")

    def __init__(
        self,
        numbers: list[int | None],
        places: Sequence[int],
        bounds: Bounds | None = None,
        count: Callable[[list[int]], Sequence[int]] | None = None,
    ) -> None:
        self._numbers, self._places = numbers, places
        self._bounds, self._count = bounds, count

    @classmethod
    def of(cls, numbers: Sequence[int]) -> RunTotals:
        """Return numbers that are known."""
        return cls([*numbers], range(len(numbers)))

    @classmethod
    def single(cls, count: int) -> RunTotals:
        """Return so many numbers that are 1."""
        ones = np.ones(count)
        return cls([1] * count, range(count), (ones, ones))

    @classmethod
    def between(cls, bounds: Bounds, count: Callable[[list[int]], Sequence[int]]) -> RunTotals:
        """Return numbers of which bounds are known."""
        return cls([None] * len(bounds[0]), range(len(bounds[0])), bounds, count)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, row: int) -> int:
        return self.exact([row])[0]

    def take(self, rows: Sequence[int]) -> RunTotals:
        """Return the numbers of some rows, which ascend."""
        if len(rows) == len(self):
            return self
        places = [self._places[row] for row in rows]
        return RunTotals(self._numbers, places, self._bounds, self._count)

    @property
    def bounds(self) -> Bounds:
        """Between which doubles the double of each is."""
        if self._bounds is None:
            known = np.array([*map(double_of, self.exact(range(len(self))))], np.float64)
            return known, known
        low, high = self._bounds
        if len(self) == len(low):
            return low, high
        places = np.array(self._places, np.int64)
        return low[places], high[places]

    def some(self) -> list[int]:
        """Return the rows of numbers that are not 0."""
        if self._bounds is None:
            return [row for row, number in enumerate(self.exact(range(len(self)))) if number]
        low, high = self.bounds
        # What has no bound from below but may be something is counted.
        are_some, are_open = low > 0, np.flatnonzero((low == 0) & (high > 0)).tolist()
        are_some[are_open] = [number > 0 for number in self.exact(are_open)]
        rows: list[int] = np.flatnonzero(are_some).tolist()
        return rows

    def exceeds(self, row: int, bits: int) -> bool:
        """Return whether the number of a row has more than so many bits."""
        place = self._places[row]
        if self._bounds is not None and self._bounds[1][place] < 2.0 ** min(bits, 1000):
            return False
        return self[row].bit_length() > bits

    def exact(self, rows: Sequence[int]) -> list[int]:
        """Return the numbers of some rows."""
        if self._count is None and rows == self._places:
            return cast("list[int]", self._numbers)
        numbers, places = self._numbers, [self._places[row] for row in rows]
        unknown = [place for place in dict.fromkeys(places) if numbers[place] is None]
        if unknown:
            assert self._count is not None
            for place, counted in zip(unknown, self._count(unknown), strict=True):
                numbers[place] = counted
        return [number for place in places if (number := numbers[place]) is not None]


def summed(bounds: Bounds, starts: Sequence[int]) -> Bounds:
    """Return the bounds of the sums of stretches of numbers, each up to the next `starts`."""
    low, high = bounds
    if len(starts) == len(low):
        return low, high
    longest = float(np.diff([*starts, len(low)]).max())
    low, high = (np.add.reduceat(each, starts) for each in bounds)
    # So many additions, each of which may be off by half a step.
    rounded = (high > EXACT) * longest * _STEP
    return low * (1 - rounded), high * (1 + rounded)


def double_of(count: int) -> float:
    """Return a count as a double, infinite where it is beyond all of them."""
    try:
        return float(count)
    except OverflowError:
        return math.inf
