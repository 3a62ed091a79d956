"""A window of compared elements in columns, for the loops that count the ways over it.

Numbers stand by their order among those of the window: `places` of what is asked of elements,
`bounds` of what they give, from which on an element may stand behind them.  Both move by one as
elements come and go.  Numbers that are compared by `<` are turned round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from joins.memory.slots import Ints
from joins.sequences.counting.compilation import LOOPS
from joins.sequences.counting.spread import PlainElement, PlainShape
from templates.runtotals import EXACT, Floats

__all__ = ["LaneWindow"]

FEWEST = 64
"""With fewer elements the loop gains nothing."""

ROOM = 1 << 21
"""There is room for so many digits of four ends; with more Python's own integers are as quick."""

TOGETHER_MIN = 32
"""At least so many ends are counted together."""

LARGE = 2.0**1000
"""What is infinite in doubles is more than this."""

_SPARE = 2
"""So many digits more than the last numbers needed are taken for the next ones."""

_NONE = -1


class LaneWindow:
    """The ways to each element, where runs are bounded as a whole and neighbours compared.

    `changes` says how often elements have been added.
    """

    def __init__(self, shape: PlainShape, elements: Sequence[PlainElement]) -> None:
        self._within_us = shape.within_us
        self._sign = 1.0 if shape.operator in (">", ">=") else -1.0
        # What is equal to what is given is below the bound, or from it on.
        self._side: Literal["left", "right"] = "right" if shape.operator in (">", "<") else "left"
        self.changes = 0
        self._digits = 1
        self._first = self._behind = 0
        self._ends_us, self._places, self._bounds = (np.zeros(0, np.int64) for _ in range(3))
        self._leads, self._begins = (np.zeros(0, np.bool_) for _ in range(2))
        self._asked, self._given = (np.zeros(0, np.float64) for _ in range(2))
        self._are_same = bool(shape.are_same)
        self._append(elements)
        self._order()

    def __len__(self) -> int:
        return self._behind - self._first

    @staticmethod
    def suits(shape: PlainShape, elements: int) -> bool:
        """Return whether the ways of a lane with so many elements are counted so by now."""
        return (
            elements >= FEWEST
            and shape.is_bounded
            and shape.compares is not None
            and shape.gap_us >= shape.within_us
            and LOOPS.are_ready()
        )

    # -- what is there -------------------------------------------------------------------------

    def _append(self, elements: Sequence[PlainElement]) -> None:
        """Add elements, by end, whose places are not known."""
        self._make_room(len(elements))
        new = slice(self._behind, self._behind + len(elements))
        self._ends_us[new] = [each.end_us for each in elements]
        self._leads[new] = [each.leads for each in elements]
        self._begins[new] = [each.begins for each in elements]
        self._given[new] = self._sign * np.array([each.given for each in elements], np.float64)
        self._asked[new] = self._sign * np.array([each.asked for each in elements], np.float64)
        self._are_same = self._are_same and all(
            each.asked == each.given or each.asked != each.asked for each in elements
        )
        self._behind += len(elements)

    def _order(self) -> None:
        """Find the places of all elements, from the first one of the window on."""
        known = slice(self._first, self._behind)
        asked, given = self._asked[known], self._given[known]
        numbers = np.flatnonzero(asked == asked)
        order = numbers[np.argsort(asked[numbers], kind="stable")]
        self._sorted = asked[order]
        self._places[known] = _NONE
        self._places[self._first + order] = np.arange(len(order))
        self._bounds[known] = np.searchsorted(self._sorted, given, self._side)
        self._bounds[known][given != given] = _NONE

    def _make_room(self, count: int) -> None:
        """Make room for more, moving what is there to the front of columns twice as long."""
        if self._behind + count <= len(self._ends_us):
            return
        known = slice(self._first, self._behind)
        size = self._behind - self._first
        self._ends_us, self._places, self._bounds = (
            _longer(each[known], count) for each in (self._ends_us, self._places, self._bounds)
        )
        self._leads, self._begins = (
            _longer(each[known], count) for each in (self._leads, self._begins)
        )
        self._asked, self._given = (
            _longer(each[known], count) for each in (self._asked, self._given)
        )
        self._first, self._behind = 0, size

    # -- one element ---------------------------------------------------------------------------

    def add(self, own: PlainElement) -> None:
        """Add an element that ends last."""
        self.changes += 1
        known = self._ends_us[self._first : self._behind]
        gone = int(np.searchsorted(known, own.end_us - self._within_us))
        if gone > FEWEST:
            self._first += gone
            self._order()
        else:
            for _ in range(gone):
                self._drop()
        self._append([own])
        at = self._behind - 1
        asked, given = self._asked[at], self._given[at]
        before = slice(self._first, at)
        place = _NONE
        if asked == asked:
            place = int(np.searchsorted(self._sorted, asked, "right"))
            self._sorted = np.insert(self._sorted, place, asked)
            self._places[before] += self._places[before] >= place
            is_below = self._given[before] >= asked
            if self._side == "left":
                is_below = self._given[before] > asked
            self._bounds[before] += is_below
        self._places[at] = place
        bound = np.searchsorted(self._sorted, given, self._side) if given == given else _NONE
        self._bounds[at] = bound

    def _drop(self) -> None:
        """Leave out the first element."""
        place = self._places[self._first]
        self._first += 1
        if place != _NONE:
            known = slice(self._first, self._behind)
            self._sorted = np.delete(self._sorted, place)
            self._places[known] -= self._places[known] > place
            self._bounds[known] -= self._bounds[known] > place

    def ways_to(self, _: PlainElement) -> int | None:
        """Return the ways to the element that was added last; None where they are too many."""
        [ways] = self.counted(1, [0])
        return ways

    # -- several -------------------------------------------------------------------------------

    def extend(self, elements: Sequence[PlainElement]) -> None:
        """Add elements that end last, in order."""
        self.changes += 1
        known = self._ends_us[self._first : self._behind]
        self._first += int(np.searchsorted(known, elements[0].end_us - self._within_us))
        self._append(elements)
        self._order()

    def counted(self, last: int, some: Sequence[int]) -> list[int | None]:
        """Return the ways to some of so many elements that were added `last`, by their places.

        It is None where they are too many.
        """
        asked_for = self._behind - last + np.array(some, np.int64)
        found: list[int | None] = []
        while len(found) < len(asked_for):
            first, before, count = self._together(int(asked_for[len(found)]))
            own = asked_for[len(found) :]
            own = own[own < first + count]
            found += self._counted_together(slice(before, int(own[-1]) + 1), own - before)
        return found

    def bounds(self, last: int) -> tuple[Floats, Floats]:
        """Return between which doubles the ways to each of so many that were added last are.

        What begins in the window of an element is among what begins since an earlier pivot, and
        has all that begins since a later one.
        """
        from joins.sequences.counting.kernels import PIVOTS, ways_since

        low, high = np.zeros(last), np.zeros(last)
        at = self._behind - last
        while at < self._behind:
            first, before, count = self._together(at)
            known = slice(before, first + count)
            ends_us = self._ends_us[known]
            starts = np.searchsorted(ends_us, ends_us[-count:] - self._within_us)
            pivots = starts[np.linspace(0, count - 1, PIVOTS).astype(np.int64)]
            ways = ways_since(
                ends_us,
                self._places[known],
                self._bounds[known],
                self._leads[known],
                self._begins[known],
                pivots,
                len(self._sorted),
                count,
            )
            own, rows = slice(at - self._behind + last, None), np.arange(count)
            low[own][:count] = ways[rows, np.searchsorted(pivots, starts)]
            high[own][:count] = ways[rows, np.searchsorted(pivots, starts, "right") - 1]
            at += count
        # A path is added up in some 20 steps an element at most; integers up to `EXACT` exactly.
        rounded = (len(self) + 1) * 2.0**-47
        low = np.where(low < EXACT, low, np.minimum(low, LARGE) * (1 - rounded))
        return low, np.where(high < EXACT, high, high * (1 + rounded))

    def _together(self, first: int) -> tuple[int, int, int]:
        """Return an element, what may be before it, and how many are counted together with it.

        What is counted together goes over what any of it may have before it.
        """
        ends_us = self._ends_us[self._first : first + 1]
        before = self._first + int(np.searchsorted(ends_us, ends_us[-1] - self._within_us))
        return first, before, min(self._behind - first, max(TOGETHER_MIN, (first - before) // 4))

    def _counted_together(self, known: slice, rows: Ints) -> list[int | None]:
        """Return the ways to some rows of elements that are there."""
        from joins.sequences.counting.kernels import ways_back

        size = known.stop - known.start
        places = self._places[known]
        order = np.argsort(places[rows], kind="stable")
        found: list[int | None] = [None] * len(rows)
        bits = 62 - size.bit_length()
        most = max(1, ROOM // (size + len(self._sorted)))
        self._digits = min(self._digits, most)
        while len(order) and self._digits <= most:
            digits, enough = ways_back(
                self._ends_us[known],
                places,
                self._bounds[known],
                self._leads[known],
                self._begins[known],
                rows[order],
                self._within_us,
                len(self._sorted),
                self._are_same,
                self._digits,
                bits,
            )
            used = int(np.flatnonzero(digits.any(axis=0)).max(initial=0)) + 1
            weights = np.array([1 << (bits * digit) for digit in range(used)], object)
            numbers = digits[:, :used].astype(object) @ weights
            for at in np.flatnonzero(enough).tolist():
                found[int(order[at])] = numbers[at]
            order = order[~enough]
            if len(order):
                self._digits += 1 + self._digits // 4
            else:
                self._digits = min(self._digits, used + _SPARE)
        self._digits = min(self._digits, most)
        return found


def _longer(column: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """Return a column with room for more, and for as many as it has again."""
    longer = np.zeros(2 * len(column) + count, column.dtype)
    longer[: len(column)] = column
    return longer
