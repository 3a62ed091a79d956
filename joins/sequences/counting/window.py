"""A window of compared elements in columns, for the loop that counts the ways back over it.

Numbers stand by their order among those of the window: `places` of what is asked of elements,
`bounds` of what they give, from which on an element may stand behind them.  Both move by one as
elements come and go.  Numbers that are compared by `<` are turned round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from joins.sequences.counting.compilation import LOOPS
from joins.sequences.counting.spread import PlainElement, PlainShape

__all__ = ["LaneWindow"]

FEWEST = 64
"""With fewer elements the loop gains nothing."""

WORDS_MAX = 256
"""With numbers of more words Python's own are as quick."""

_NONE = -1


class LaneWindow:
    """The ways to each element, where runs are bounded as a whole and neighbours compared."""

    def __init__(self, shape: PlainShape, elements: Sequence[PlainElement]) -> None:
        self._within_us = shape.within_us
        self._sign = 1.0 if shape.operator in (">", ">=") else -1.0
        # What is equal to what is given is below the bound, or from it on.
        self._side: Literal["left", "right"] = "right" if shape.operator in (">", "<") else "left"
        self._words = 1
        self._first, self._behind = 0, len(elements)
        self._ends_us = np.array([each.end_us for each in elements], np.int64)
        self._leads = np.array([each.leads for each in elements], np.bool_)
        self._begins = np.array([each.begins for each in elements], np.bool_)
        self._given = self._sign * np.array([each.given for each in elements], np.float64)
        asked = self._sign * np.array([each.asked for each in elements], np.float64)
        self._are_same = bool(shape.are_same)
        numbers = np.flatnonzero(asked == asked)
        order = numbers[np.argsort(asked[numbers], kind="stable")]
        self._sorted = asked[order]
        self._places = np.full(len(elements), _NONE)
        self._places[order] = np.arange(len(order))
        self._bounds = np.searchsorted(self._sorted, self._given, self._side)
        self._bounds[self._given != self._given] = _NONE

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

    def add(self, own: PlainElement) -> None:
        """Add an element that ends last."""
        from_us = own.end_us - self._within_us
        while self._first < self._behind and self._ends_us[self._first] < from_us:
            self._drop()
        self._make_room()
        at, asked, given = self._behind, self._sign * own.asked, self._sign * own.given
        known = slice(self._first, at)
        self._are_same = self._are_same and (own.asked == own.given or own.asked != own.asked)
        place = _NONE
        if asked == asked:
            place = int(np.searchsorted(self._sorted, asked, "right"))
            self._sorted = np.insert(self._sorted, place, asked)
            self._places[known] += self._places[known] >= place
            is_below = self._given[known] >= asked
            if self._side == "left":
                is_below = self._given[known] > asked
            self._bounds[known] += is_below
        self._ends_us[at], self._places[at], self._given[at] = own.end_us, place, given
        self._leads[at], self._begins[at] = own.leads, own.begins
        bound = np.searchsorted(self._sorted, given, self._side) if given == given else _NONE
        self._bounds[at] = bound
        self._behind += 1

    def _drop(self) -> None:
        """Leave out the first element."""
        place = self._places[self._first]
        self._first += 1
        if place != _NONE:
            known = slice(self._first, self._behind)
            self._sorted = np.delete(self._sorted, place)
            self._places[known] -= self._places[known] > place
            self._bounds[known] -= self._bounds[known] > place

    def _make_room(self) -> None:
        """Make room for one more, moving what is there to the front of columns twice as long."""
        if self._behind < len(self._ends_us):
            return
        known = slice(self._first, self._behind)
        size = self._behind - self._first
        self._ends_us, self._places, self._bounds = (
            _longer(each[known]) for each in (self._ends_us, self._places, self._bounds)
        )
        self._leads, self._begins = (_longer(each[known]) for each in (self._leads, self._begins))
        self._given = _longer(self._given[known])
        self._first, self._behind = 0, size

    def ways_to(self, own: PlainElement) -> int | None:
        """Return the ways to the element that was added last; None where they are too many."""
        from joins.sequences.counting.kernels import ways_back

        before = int(np.searchsorted(self._ends_us[self._first : self._behind], own.end_us))
        known = slice(self._first, self._first + before)
        while True:
            words, rough = ways_back(
                self._ends_us[known],
                self._places[known],
                self._bounds[known],
                self._leads[known],
                self._begins[known],
                int(self._places[self._behind - 1]),
                len(self._sorted),
                self._are_same,
                self._words,
            )
            if not math.isfinite(rough):
                return None
            bits = math.frexp(rough)[1] + 2
            if bits <= 64 * self._words:
                return own.begins + int.from_bytes(words.astype("<u8").tobytes(), "little")
            self._words = 1 + bits // 64
            if self._words > WORDS_MAX:
                self._words = 1
                return None


def _longer(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a column with as much room again, and some."""
    longer = np.zeros(2 * len(column) + 1, column.dtype)
    longer[: len(column)] = column
    return longer
