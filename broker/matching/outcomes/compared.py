"""Aggregates that HAVING compares with numbers, for many windows at once.

A row that ends at a time reaches back to one of the matches that end no later: to which one is what
its window says.  So of each match it is known between what the aggregates of all from there on
lie, in columns, and where these bounds pass no number of a window that reaches back to it nobody
has a row.  What is left is asked exactly.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.outcomes.columns import AggregateBounds, Floats
from broker.matching.outcomes.series import Series
from xscl.functions import to_double

__all__ = ["COMPARISONS", "HOLDS", "ByLength", "ComparedAggregate", "may_hold", "number_of"]

BLOCK = 256
"""How many numbers are passed over at once, by the least and the greatest of them."""

LEAVES_MAX = 1 << 16
"""Of so many stretches of numbers the extremes are kept, of each power of two of them."""

FEW = 4
"""So many matches are asked one by one: a column would cost more."""

HOLDS: dict[str, Callable[[float, float], bool]] = {
    "=": operators.eq,
    # Of what is no number nothing holds.
    "!=": lambda a, b: a < b or a > b,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}
COMPARISONS = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class ComparedAggregate(NamedTuple):
    """A comparison of an aggregate with a number for each assignment."""

    aggregate: int
    operator: str
    numbers: Floats


class ByLength:
    """Topics with many windows, in the order of these, and what they compare."""

    def __init__(self, lengths_us: Ints, compared: Sequence[ComparedAggregate]) -> None:
        order = np.argsort(lengths_us, kind="stable")
        self._who = order
        self._lengths = lengths_us[order]
        self._compared = [
            (number, operator, float(np.fmin.reduce(numbers)), float(np.fmax.reduce(numbers)))
            for number, operator, numbers in compared
        ]
        by_length = [each._replace(numbers=each.numbers[order]) for each in compared]
        # What is the same for all is asked once of a stretch.
        self._alike = [each for each in by_length if _are_alike(each.numbers)]
        self._numbers = [_Numbers(each) for each in by_length if not _are_alike(each.numbers)]

    def candidates(self, series: Series, end_us: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield who may have a row that ends at a time, each with the place where it begins."""
        oldest = series.first_from(end_us - int(self._lengths[-1]))
        places, known = self._passing(series, oldest, last)
        if not len(places):
            return
        lows = self._ranks(series, end_us, places)
        highs = self._ranks(series, end_us, places - 1)
        are_open = lows < highs
        for numbers, bounds in zip(self._numbers, known, strict=True):
            if bounds is not None:
                some = np.flatnonzero(are_open)
                at = places[some] - oldest
                own = AggregateBounds(bounds.low[at], bounds.high[at])
                are_open[some] = numbers.are_passed(own, lows[some], highs[some])
        stretches = (each[are_open].tolist() for each in (places, lows, highs))
        for first, low, high in zip(*stretches, strict=True):
            yield from ((who, first) for who in self._holding(series, low, high, first, last))

    def _passing(
        self, series: Series, oldest: int, last: int
    ) -> tuple[Ints, Sequence[AggregateBounds | None]]:
        """Return from which places on aggregates may pass some number.

        With them come the bounds of the aggregates that are compared with different numbers.
        """
        if last - oldest <= FEW:
            return np.arange(oldest, last), [None for _ in self._numbers]
        if any(self._are_out(series, each, oldest, last) for each in self._compared):
            return np.zeros(0, np.int64), []
        passing = np.ones(last - oldest, np.bool_)
        for aggregate, operator, own in self._alike:
            bounds = series.bounds(aggregate, oldest, last)
            if bounds is not None:
                passing &= may_hold(bounds, operator, own[0], own[0])
        known: list[AggregateBounds | None] = []
        for numbers in self._numbers:
            # What passes nothing that all ask needs no bounds of what each asks.
            bounds = numbers.bounds(series, oldest, last) if passing.any() else None
            if bounds is not None:
                passing &= numbers.pass_any(bounds)
            known.append(bounds)
        return oldest + np.flatnonzero(passing), known

    def _are_out(
        self, series: Series, compared: tuple[int, str, float, float], oldest: int, last: int
    ) -> bool:
        """Return whether no stretch to the last match passes any of the numbers it is held to."""
        number, operator, least, most = compared
        found = series.extremes(number, oldest, last)
        if found is None:
            return False
        low, high = found
        if operator in ("<", "<="):
            return not HOLDS[operator](low, most)
        if operator in (">", ">="):
            return not HOLDS[operator](high, least)
        return operator == "=" and not (low <= most and high >= least)

    def _ranks(self, series: Series, end_us: int, places: Ints) -> Ints:
        """Return how many of the windows do not reach back to the matches at some places."""
        ranks = np.full(len(places), len(self._lengths))
        are_there = places >= 0
        distances = end_us - series.ends_at(places[are_there])
        ranks[are_there] = np.searchsorted(self._lengths, distances)
        return ranks

    def _holding(self, series: Series, low: int, high: int, first: int, last: int) -> list[int]:
        """Return of whom between two ranks HAVING may hold, of the matches `[first, last)`."""
        for aggregate, operator, numbers in self._alike:
            if not HOLDS[operator](number_of(series, aggregate, first, last), float(numbers[0])):
                return []
        if not self._numbers:
            everyone: list[int] = self._who[low:high].tolist()
            return everyone
        leading, *others = self._numbers
        some = leading.between(low, high, leading.value(series, first, last))
        for each in others if len(some) else ():
            some = some[each.hold(some, each.value(series, first, last))]
        found: list[int] = self._who[some].tolist()
        return found


class _Numbers:
    """Numbers that are compared with an aggregate, and the extremes of each block of them."""

    def __init__(self, compared: ComparedAggregate) -> None:
        self._aggregate, self._operator, self._all = compared
        starts = np.arange(0, len(self._all), BLOCK)
        self._least = np.fmin.reduceat(self._all, starts)
        self._most = np.fmax.reduceat(self._all, starts)
        self._extremes = np.fmin.reduce(self._all), np.fmax.reduce(self._all)
        self._low = _Extremes(self._all, np.fmin)
        self._high = _Extremes(self._all, np.fmax)

    def value(self, series: Series, first: int, last: int) -> float:
        """Return the aggregate of the matches `[first, last)`, NaN where it has no value."""
        return number_of(series, self._aggregate, first, last)

    def bounds(self, series: Series, first: int, last: int) -> AggregateBounds | None:
        """Return the bounds of the aggregate from each place in `[first, last)` to `last`."""
        return series.bounds(self._aggregate, first, last)

    def pass_any(self, bounds: AggregateBounds) -> Flags:
        """Return between which bounds an aggregate may pass one of all numbers."""
        return may_hold(bounds, self._operator, *self._extremes)

    def are_passed(self, bounds: AggregateBounds, lows: Ints, highs: Ints) -> Flags:
        """Return between which bounds an aggregate may pass a number of its ranks.

        The ranks `[low, high)` are not empty.
        """
        least, most = self._low.between(lows, highs), self._high.between(lows, highs)
        return may_hold(bounds, self._operator, least, most)

    def hold(self, some: Ints, value: float) -> Flags:
        """Return with which of some numbers a value compares so."""
        held: Flags = COMPARISONS[self._operator](value, self._all[some]) & (value == value)
        return held

    def between(self, low: int, high: int, value: float) -> Ints:
        """Return the places from `low` to `high` of the numbers with which a value compares so."""
        blocks = np.arange(low // BLOCK, (high - 1) // BLOCK + 1)
        least, most = self._least[blocks], self._most[blocks]
        if self._operator in ("<", "<="):
            blocks = blocks[COMPARISONS[self._operator](value, most)]
        elif self._operator in (">", ">="):
            blocks = blocks[COMPARISONS[self._operator](value, least)]
        elif self._operator == "=":
            blocks = blocks[(least <= value) & (value <= most)]
        places = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        places = places[(places >= low) & (places < high)]
        found: Ints = places[self.hold(places, value)]
        return found


class _Extremes:
    """The least or greatest of any stretch of numbers: of two that cover it, powers of two long.

    Of very many numbers it may be that of a longer stretch.
    """

    def __init__(self, numbers: Floats, choose: np.ufunc) -> None:
        self._choose = choose
        self._size = -(-len(numbers) // LEAVES_MAX)
        self._levels = [choose.reduceat(numbers, np.arange(0, len(numbers), self._size))]
        while len(self._levels[-1]) > 1 << (len(self._levels) - 1):
            half = 1 << (len(self._levels) - 1)
            own = self._levels[-1]
            own = np.append(choose(own[:-half], own[half:]), own[-half:])
            self._levels.append(own)
        self._all = np.stack(self._levels)

    def between(self, lows: Ints, highs: Ints) -> Floats:
        """Return the extreme of each stretch `[low, high)`, none of which is empty."""
        first, last = lows // self._size, (highs - 1) // self._size
        levels = np.frexp((last - first + 1).astype(np.float64))[1] - 1
        found: Floats = self._choose(
            self._all[levels, first], self._all[levels, last + 1 - (1 << levels)]
        )
        return found


def may_hold(
    bounds: AggregateBounds, operator: str, least: Floats | np.float64, most: Floats | np.float64
) -> Flags:
    """Return between which bounds something compares so with one of the numbers between others."""
    if operator in ("<", "<="):
        return COMPARISONS[operator](bounds.low, most)
    if operator in (">", ">="):
        return COMPARISONS[operator](bounds.high, least)
    if operator == "=":
        return (bounds.low <= most) & (bounds.high >= least)
    return (bounds.low < most) | (bounds.high > least)


def _are_alike(numbers: Floats) -> bool:
    return bool((numbers == numbers[0]).all())


def number_of(series: Series, aggregate: int, first: int, last: int) -> float:
    """Return an aggregate of the matches `[first, last)`, NaN where it has no value."""
    found = series.value(aggregate, first, last)
    return to_double(found[0]) if found else np.nan
