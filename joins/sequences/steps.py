"""Steps: what a right of NEXT serves where thresholds, or windows, are data.

Of a left, thresholds ask for the first right above them.  For `p > $x` the first right serves all
that are below its `p`, the first one with a higher `p` those from there up to its own, and so on,
as on a staircase (`docs/decided.md`).  So a pair has a **height**, and is given out if that is
above the **bar**: the largest height of the pairs of its left that were decided before.  With
`p < $x` what is smaller is higher; with a window `$T` it is the pair that needs a shorter one.
Where nothing is data all heights are alike, and the first pairs are the only ones.

What is absent has heights too, where it is held against data: a row raises the bars of the tuples
that it would take away (`absence`).

Heights are of int64, in the order of what they stand for: doubles, or microseconds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.contenders import Contenders
from joins.sequences.planning.ascents import Ascent
from joins.sequences.planning.plan import Plan

__all__ = ["LOWEST", "Doubles", "PairHeights", "bars_before", "heights_of"]

Doubles = npt.NDArray[np.float64]

LOWEST = np.iinfo(np.int64).min
"""The bar where nothing came before, and the height of what is no number: it is above no bar."""

_BELOW_ZERO = np.iinfo(np.int64).max
_SIGNS = {Ascent.RISING: 1.0, Ascent.FALLING: -1.0}


class PairHeights:
    """The heights of pairs, and the bars of decided tuples, as boxes hold them against data."""

    def __init__(self, plan: Plan, contenders: Contenders) -> None:
        self._plan = plan
        self._contenders = contenders

    def ascents(self, rows: Ints) -> Ints:
        """Return how the decisions of some rows ascend."""
        decisions = self._plan.seats["decision"][self._contenders["seat"][rows]]
        ascents: Ints = self._plan.decisions["ascent"][decisions]
        return ascents

    def of_rights(self, rights: Ints) -> Ints:
        """Return the heights that rights have with every left."""
        heights = np.zeros(len(rights), np.int64)
        ascents = self.ascents(rights)
        for ascent in _SIGNS:
            own = np.flatnonzero(ascents == ascent)
            if len(own):
                heights[own] = self.of_values(rights[own], ascent)
        return heights

    def of_values(self, rows: Ints, ascent: Ascent) -> Ints:
        """Return the heights that rows have by their values."""
        return heights_of(_SIGNS[ascent] * self._values(rows))

    def of_pairs(self, lefts: Ints, rights: Ints) -> Ints:
        """Return the heights of pairs of rows."""
        heights = self.of_rights(rights)
        own = np.flatnonzero(self.ascents(rights) == Ascent.NEARING)
        if len(own):
            decisions = self._plan.seats["decision"][self._contenders["seat"][lefts[own]]]
            are_whole = self._plan.decisions["is_whole"][decisions]
            needed_us = self._contenders.needed_us(lefts[own], rights[own], are_whole)
            heights[own] = -needed_us
        return heights

    def slots(self, rows: Ints) -> Ints:
        """Return the slots of the values of rows that are held against data."""
        place = self._plan.seats["threshold"][self._contenders["seat"][rows]]
        slots: Ints = self._contenders["slot"][rows] + place
        return slots

    def _values(self, rows: Ints) -> Doubles:
        return self._contenders.numbers(self.slots(rows))

    def need_windows(self, decisions: Ints) -> Flags:
        """Return of which decisions pairs need a window, which is data."""
        need: Flags = self._plan.decisions["ascent"][decisions] == Ascent.NEARING
        return need

    def spans_us(self, decisions: Ints, heights: Ints) -> Ints:
        """Return the windows that decided tuples need, or were decided for."""
        spans_us: Ints = self._plan.decisions["span_us"][decisions]
        return np.where(self.need_windows(decisions), -heights, spans_us)

    def bars(self, decisions: Ints, bars: Ints) -> Doubles | None:
        """Return bars as boxes hold them against data; None where no data is held against any."""
        ascents = self._plan.decisions["bars"][decisions]
        if not ascents.any():
            return None
        values = _doubles(bars)
        values[bars == LOWEST] = -np.inf
        values = np.where(ascents == Ascent.FALLING, -values, values)
        nearing_us = np.where(bars == LOWEST, np.inf, -bars.astype(np.float64))
        return np.where(ascents == Ascent.NEARING, nearing_us, values)


def heights_of(values: Doubles) -> Ints:
    """Return whole numbers in the order of doubles; what is no number is lowest."""
    bits = (values + 0.0).view(np.int64)
    ordered = np.where(bits < 0, bits ^ _BELOW_ZERO, bits)
    return np.where(np.isnan(values), LOWEST, ordered)


def _doubles(heights: Ints) -> Doubles:
    """Return the doubles of which these are the heights."""
    bits = np.where(heights < 0, heights ^ _BELOW_ZERO, heights)
    values: Doubles = bits.view(np.float64).copy()
    return values


def bars_before(lefts: Ints, steps: Ints, heights: Ints, bars: Ints) -> Ints:
    """Return the bars of pairs in order: those of a left, step by step, in each all at once.

    `lefts` and `steps` number the lefts and steps in ascending order; `bars` are those at first.
    """
    starts = np.flatnonzero(np.diff(steps, prepend=-1))
    of_step, lefts = np.maximum.reduceat(heights, starts), lefts[starts]
    distinct, ranks = np.unique(of_step, return_inverse=True)
    # The ranks of a later left are above all of those before it, so one running maximum does.
    highest = np.maximum.accumulate(lefts * len(distinct) + ranks) - lefts * len(distinct)
    before = bars[starts]
    follows = np.flatnonzero(np.diff(lefts) == 0) + 1
    before[follows] = np.maximum(before[follows], distinct[highest[follows - 1]])
    return np.repeat(before, np.diff(starts, append=len(steps)))
