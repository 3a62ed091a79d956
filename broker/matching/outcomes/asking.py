"""Who asks for the rows of a source: their windows, and what HAVING says of a row.

Where these are many and HAVING compares aggregates with numbers, those are looked up whose number
lets a row pass.  Windows that differ are looked up too: they reach back to one of few matches, and
all that reach back to the same match ask for one row.
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.outcomes.series import Series
from broker.matching.uses import Topic, length_under
from xscl.evaluation import Condition, Reading, compile_conjunction
from xscl.functions import to_double
from xscl.path import Literal, Parameter
from xscl.query import INFINITE_US, Rows
from xscl.rowvalues import numbered_aggregate, of_row

__all__ = ["Asking"]

MANY = 8
"""From so many assignments on, the ones are looked up whose window, or number, lets a row pass."""

BLOCK = 256
"""How many numbers are passed over at once, by the least and the greatest of them."""

_SCALAR: dict[str, Callable[[float, float], bool]] = {
    "=": operators.eq,
    # Of what is no number nothing holds.
    "!=": lambda a, b: a < b or a > b,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}
_COMPARISONS = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


class _ComparedAggregate(NamedTuple):
    """A comparison of an aggregate with a number for each assignment."""

    aggregate: int
    operator: str
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]]


class _Threshold(NamedTuple):
    """Topics with one window, in the order of the numbers that they compare first."""

    length_us: int
    who: Ints
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]]


class Asking:
    """The assignments that ask for rows of one source: their windows, and what HAVING says."""

    def __init__(self, topics: Sequence[Topic]) -> None:
        self.topics = topics
        query = topics[0].query
        assert query.rows is not None
        self.rows: Rows = query.rows
        lengths = [length_under(self.rows.length, each.parameters) for each in topics]
        self.lengths_us = np.minimum(np.array(lengths, np.int64), INFINITE_US)
        self._lengths: list[int] = self.lengths_us.tolist()
        self.longest_us = int(self.lengths_us.max())
        having = self.rows.having
        self._conditions: list[Condition] | None = None
        if having is not None:
            self._conditions = [compile_conjunction(of_row(each, self.rows)) for each in having]
        self._compared = self._in_columns()
        is_looked_up = len(topics) >= MANY and bool(self._compared)
        self._steps = self._in_steps() if is_looked_up else []
        self._by_length: _ByLength | None = None
        if is_looked_up and not self._steps:
            self._by_length = _ByLength(self.lengths_us, self._compared or [])

    def holds(self, reading: Reading) -> bool:
        """Return whether HAVING holds of a row."""
        return self._conditions is None or any(each(reading) for each in self._conditions)

    def _in_columns(self) -> list[_ComparedAggregate] | None:
        """Return HAVING as comparisons of aggregates with numbers, None where it is not that."""
        having = self.rows.having
        if having is None or len(having) != 1:
            return None
        (asked,) = having
        if asked.value_joins or asked.similarity_joins or asked.tests:
            return None
        found: list[_ComparedAggregate] = []
        for each in asked.residuals:
            for one, other, operator in (
                (each.left, each.right, each.operator),
                (each.right, each.left, _TURNED[each.operator]),
            ):
                number = numbered_aggregate(one, self.rows)
                values = self._numbers(other)
                if number is not None and values is not None and self._is_number(number):
                    found.append(_ComparedAggregate(number, operator, values))
                    break
            else:
                return None
        return found

    def _is_number(self, aggregate: int) -> bool:
        numeric = ("count", "count distinct", "sum", "avg", "min", "max")
        return self.rows.aggregates[aggregate].function in numeric

    def _numbers(self, operand: object) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
        match operand:
            case Literal(float() as value):
                given = [value for _ in self.topics]
            case Parameter(name):
                given = [each.parameters[name] for each in self.topics]
                if any(isinstance(each, str) for each in given):
                    return None
            case _:
                return None
        return np.array(given, np.float64)

    def candidates(self, series: Series, end_us: int, last: int) -> list[tuple[int, int]]:
        """Return who may have a row that ends at a time, each with the place where it begins."""
        if len(self.topics) < MANY:
            places = [series.first_from(end_us - each) for each in self._lengths]
            return [(i, at) for i, at in enumerate(places) if self.may_hold(series, i, at, last)]
        if self._steps:
            return sorted(self._looked_up(series, end_us, last))
        if self._by_length is not None:
            return sorted(self._by_length.candidates(series, end_us, last))
        all_places = series.all_from(end_us - self.lengths_us)
        return list(enumerate(all_places.tolist()))

    def _in_steps(self) -> list[_Threshold]:
        """Return who has each window, by what they compare first; nothing if that is no order."""
        lengths = np.unique(self.lengths_us)
        if not self._compared or self._compared[0].operator == "!=" or len(lengths) > MANY:
            return []
        numbers = self._compared[0].numbers
        order = np.argsort(numbers, kind="stable")
        order = order[~np.isnan(numbers[order])]
        of_lengths = [order[self.lengths_us[order] == each] for each in lengths]
        return [
            _Threshold(length_us, who, numbers[who])
            for length_us, who in zip(lengths.tolist(), of_lengths, strict=True)
        ]

    def _looked_up(self, series: Series, end_us: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield what `candidates` returns, of each window the ones whose number is looked up."""
        assert self._compared is not None
        (leading, operator, _), *others = self._compared
        for length_us, who, numbers in self._steps:
            first = series.first_from(end_us - length_us)
            value = _number(series, leading, first, last)
            some = who[_between(numbers, operator, value)]
            for aggregate, compared, own in others if len(some) else ():
                value = _number(series, aggregate, first, last)
                some = some[_COMPARISONS[compared](value, own[some]) & (value == value)]
            yield from ((each, first) for each in some.tolist())

    def may_hold(self, series: Series, who: int, first: int, last: int) -> bool:
        """Return whether comparisons with numbers hold of matches `[first, last)`."""
        for aggregate, operator, numbers in self._compared or ():
            if not _SCALAR[operator](_number(series, aggregate, first, last), numbers[who]):
                return False
        return True


class _ByLength:
    """Topics with many windows, in the order of these, and what they compare."""

    def __init__(self, lengths_us: Ints, compared: Sequence[_ComparedAggregate]) -> None:
        order = np.argsort(lengths_us, kind="stable")
        self._who = order
        self._lengths = lengths_us[order]
        by_length = [each._replace(numbers=each.numbers[order]) for each in compared]
        # What is the same for all is asked once of a stretch.
        self._alike = [each for each in by_length if _are_alike(each.numbers)]
        self._numbers = [_Numbers(each) for each in by_length if not _are_alike(each.numbers)]

    def candidates(self, series: Series, end_us: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield who may have a row that ends at a time, each with the place where it begins."""
        oldest = series.first_from(end_us - int(self._lengths[-1]))
        distances = end_us - np.array(series.ends[oldest:last], np.int64)
        own = np.flatnonzero(np.diff(distances, prepend=-1))
        lows = np.searchsorted(self._lengths, distances[own])
        highs = np.append(len(self._lengths), lows[:-1])
        for at, low, high in zip(own.tolist(), lows.tolist(), highs.tolist(), strict=True):
            if low < high:
                first = oldest + at
                yield from ((who, first) for who in self._holding(series, low, high, first, last))

    def _holding(self, series: Series, low: int, high: int, first: int, last: int) -> list[int]:
        """Return of whom between two ranks HAVING may hold, of the matches `[first, last)`."""
        for aggregate, operator, numbers in self._alike:
            if not _SCALAR[operator](_number(series, aggregate, first, last), float(numbers[0])):
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

    def __init__(self, compared: _ComparedAggregate) -> None:
        self._aggregate, self._operator, self._all = compared
        starts = np.arange(0, len(self._all), BLOCK)
        self._least = np.fmin.reduceat(self._all, starts)
        self._most = np.fmax.reduceat(self._all, starts)

    def value(self, series: Series, first: int, last: int) -> float:
        """Return the aggregate of the matches `[first, last)`, NaN where it has no value."""
        return _number(series, self._aggregate, first, last)

    def hold(self, some: Ints, value: float) -> Flags:
        """Return with which of some numbers a value compares so."""
        held: Flags = _COMPARISONS[self._operator](value, self._all[some]) & (value == value)
        return held

    def between(self, low: int, high: int, value: float) -> Ints:
        """Return the places from `low` to `high` of the numbers with which a value compares so."""
        blocks = np.arange(low // BLOCK, (high - 1) // BLOCK + 1)
        least, most = self._least[blocks], self._most[blocks]
        if self._operator in ("<", "<="):
            blocks = blocks[_COMPARISONS[self._operator](value, most)]
        elif self._operator in (">", ">="):
            blocks = blocks[_COMPARISONS[self._operator](value, least)]
        elif self._operator == "=":
            blocks = blocks[(least <= value) & (value <= most)]
        places = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
        places = places[(places >= low) & (places < high)]
        found: Ints = places[self.hold(places, value)]
        return found


def _are_alike(numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
    return bool((numbers == numbers[0]).all())


def _number(series: Series, aggregate: int, first: int, last: int) -> float:
    """Return an aggregate of the matches `[first, last)`, NaN where it has no value."""
    found = series.value(aggregate, first, last)
    return to_double(found[0]) if found else np.nan


def _between(
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]], operator: str, value: float
) -> slice:
    """Return where a value is so compared with ascending numbers; NaN is nowhere."""
    if np.isnan(value):
        return slice(0)
    low, high = (int(np.searchsorted(numbers, value, side)) for side in ("left", "right"))
    return {
        "=": slice(low, high),
        ">": slice(0, low),
        ">=": slice(0, high),
        "<": slice(high, None),
        "<=": slice(low, None),
    }[operator]
