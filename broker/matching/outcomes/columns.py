"""Aggregates over any stretch of a sequence of matches, kept up to date as matches are appended.

`sum` and `count` are differences of prefix sums: a stretch costs two look-ups, whatever its length.
Sums are exact, in integers, and are rounded once: they do not depend on where the sequence began.
`min` and `max` are those of the matches that no later one undercuts (a monotone stack, which is the
deque of the sliding minimum for all lengths at once): a stretch that ends with the newest match
costs one search.  `count distinct` adds up which matches are the last to have a value.  What is
left (`first`, `collect`, ...) looks at the stretch.

All stretches that end at one place are bounded in one step each: by doubles, and by how far these
may be from what is exact.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from xscl.evaluation import Values
from xscl.functions import Atom, spell, to_double

__all__ = ["AggregateBounds", "AggregateColumn", "aggregated", "column_of", "extremes_of"]

COLLECTED_MAX = 100
"""The most values that `collect` gives (semantics, section 18)."""

EXACT = 1 << 52
"""Doubles of smaller integers, and of their differences, are exact."""

ERROR = 2.0**-49
"""More than the relative error of a difference of two sums in doubles, and of its rounding."""

_SMALLEST = 1e-300

Asked = tuple[Values, ...]

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


class AggregateBounds(NamedTuple):
    """Between what an aggregate of some stretches lies; NaN where it has no value, or is none."""

    low: Floats
    high: Floats


class AggregateColumn(Protocol):
    """An aggregate of a sequence of matches."""

    def append(self, asked: Asked) -> None:
        """Take the values of one more match."""

    def between(self, first: int, last: int) -> Values | None:
        """Return the aggregate of matches `[first, last)`, None where it has to be looked at."""

    def bounds(self, first: int, last: int) -> AggregateBounds | None:
        """Return the bounds of the stretches from each place in `[first, last)` to `last`.

        None says that nothing is known.
        """


def column_of(function: str, count: int) -> AggregateColumn | None:
    """Return an empty column for an aggregate of so many arguments, None where there is none."""
    if function == "count":
        return _Count() if count else None
    if function == "count distinct":
        return _Distinct()
    if function in ("sum", "avg"):
        return _Sum(function == "avg")
    if function in ("min", "max"):
        return _Extreme(1 if function == "min" else -1)
    return None


class _Count:
    def __init__(self) -> None:
        self._prefix = array("q", [0])

    def append(self, asked: Asked) -> None:
        self._prefix.append(self._prefix[-1] + len(asked[0]))

    def between(self, first: int, last: int) -> Values:
        return (float(self._prefix[last] - self._prefix[first]),)

    def bounds(self, first: int, last: int) -> AggregateBounds:
        prefix = np.frombuffer(self._prefix, np.int64)
        counts = (prefix[last] - prefix[first:last]).astype(np.float64)
        return AggregateBounds(counts, counts)


class _Distinct:
    """How many values each match is the last to have: stretches that end with the newest match."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._counts = array("q")

    def append(self, asked: Asked) -> None:
        at = len(self._counts)
        values = _distinct(asked[0])
        self._counts.append(len(values))
        for value in values:
            before = self._last.get(value)
            if before is not None:
                self._counts[before] -= 1
            self._last[value] = at

    def between(self, first: int, last: int) -> Values | None:
        if last != len(self._counts):
            return None
        return (float(np.frombuffer(self._counts, np.int64)[first:].sum()),)

    def bounds(self, first: int, last: int) -> AggregateBounds | None:
        if last != len(self._counts):
            return None
        newest_first = np.frombuffer(self._counts, np.int64)[first:][::-1]
        counts = newest_first.cumsum()[::-1].astype(np.float64)
        return AggregateBounds(counts, counts)


class _Sum:
    """Prefix sums in units of `2 ** -scale`; stretches with what is not finite are looked at."""

    def __init__(self, is_average: bool) -> None:
        self._is_average = is_average
        self._scale = 0
        self._prefix = [0]
        self._counts = array("q", [0])
        self._strange: list[int] = []
        self._doubles = array("d")
        self._largest = 0
        self._least, self._most = _Stack(1), _Stack(-1)

    def append(self, asked: Asked) -> None:
        total = self._prefix[-1]
        numbers = list(map(to_double, asked[0]))
        if not all(map(math.isfinite, numbers)):
            self._strange.append(len(self._prefix) - 1)
            numbers = []
        for number in numbers:
            numerator, denominator = number.as_integer_ratio()
            bits = denominator.bit_length() - 1
            if bits > self._scale:
                more = bits - self._scale
                self._prefix = [each << more for each in self._prefix]
                self._least, self._most = _Stack(1), _Stack(-1)
                self._largest <<= more
                total <<= more
                self._scale = bits
            total += numerator << (self._scale - bits)
        self._prefix.append(total)
        self._counts.append(self._counts[-1] + len(numbers))

    def between(self, first: int, last: int) -> Values | None:
        at = bisect_left(self._strange, first)
        if at < len(self._strange) and self._strange[at] < last:
            return None
        total = _rounded(self._prefix[last] - self._prefix[first], 1 << self._scale)
        if not self._is_average:
            return (total,)
        count = self._counts[last] - self._counts[first]
        return (total / count,) if count else ()

    def bounds(self, first: int, last: int) -> AggregateBounds | None:
        for total in self._prefix[len(self._doubles) :]:
            self._doubles.append(_rounded(total, 1 << self._scale))
            self._largest = max(self._largest, abs(total))
        largest = _rounded(self._largest, 1 << self._scale)
        if math.isinf(largest):
            return None
        totals = np.frombuffer(self._doubles)
        low = high = totals[last] - totals[first:last]
        if self._largest >= EXACT:
            error = largest * ERROR + _SMALLEST
            low, high = low - error, high + error
        if self._is_average:
            prefix = np.frombuffer(self._counts, np.int64)
            counts = prefix[last] - prefix[first:last]
            with np.errstate(divide="ignore", invalid="ignore"):
                low, high = (np.where(counts, each / counts, np.nan) for each in (low, high))
        return self._but_strange(AggregateBounds(low, high), first, last)

    def extremes(self, first: int, last: int) -> tuple[float, float] | None:
        """Return the least and the greatest sum of stretches from `first` or later to the newest.

        It is None where that is not known.
        """
        if self._is_average or last + 1 != len(self._prefix):
            return None
        if self._strange and self._strange[-1] >= first:
            return None
        least, most = (each.first_from(first, self._prefix) for each in (self._least, self._most))
        own, unit = self._prefix[last], 1 << self._scale
        return _rounded(own - most, unit), _rounded(own - least, unit)

    def _but_strange(self, bounds: AggregateBounds, first: int, last: int) -> AggregateBounds:
        """Return bounds that say nothing of the stretches with what is not finite."""
        at = bisect_left(self._strange, last)
        count = self._strange[at - 1] + 1 - first if at else 0
        if count <= 0:
            return bounds
        low, high = bounds.low.copy(), bounds.high.copy()
        low[:count], high[:count] = -np.inf, np.inf
        return AggregateBounds(low, high)


class _Extreme:
    """The least values of stretches that end with the newest match; `sign` turns the order."""

    def __init__(self, sign: int) -> None:
        self._sign = sign
        self._length = 0
        self._places = array("q")
        self._values = array("d")
        self._strange = -1

    def append(self, asked: Asked) -> None:
        numbers = list(map(to_double, asked[0]))
        if any(map(math.isnan, numbers)):
            self._strange = self._length
        elif numbers:
            value = min(self._sign * number for number in numbers)
            while self._values and self._values[-1] > value:
                self._values.pop()
                self._places.pop()
            self._values.append(value)
            self._places.append(self._length)
        self._length += 1

    def between(self, first: int, last: int) -> Values | None:
        if last != self._length:
            return None
        if self._strange >= first:
            return (math.nan,)
        at = bisect_left(self._places, first)
        return (self._sign * self._values[at],) if at < len(self._places) else ()

    def bounds(self, first: int, last: int) -> AggregateBounds | None:
        if last != self._length:
            return None
        at = bisect_left(self._places, first)
        places = np.frombuffer(self._places, np.int64)[at:]
        counts = np.diff(places, prepend=first - 1)
        values = np.full(last - first, np.nan)
        known = np.repeat(np.frombuffer(self._values)[at:], counts)
        values[: len(known)] = self._sign * known
        values[: max(0, self._strange + 1 - first)] = np.nan
        return AggregateBounds(values, values)


def extremes_of(
    column: AggregateColumn | None, first: int, last: int
) -> tuple[float, float] | None:
    """Return between what an aggregate of all stretches from a place on to the last match lies.

    It is None where that is not known.
    """
    return column.extremes(first, last) if isinstance(column, _Sum) else None


class _Stack:
    """The least of integers from any place on, but for the last one; `sign` turns the order."""

    def __init__(self, sign: int) -> None:
        self._sign = sign
        self._length = 0
        self._places: list[int] = []
        self._values: list[int] = []

    def first_from(self, first: int, numbers: Sequence[int]) -> int:
        """Return the least of some numbers from a place on, of which earlier ones are known."""
        values, places, sign = self._values, self._places, self._sign
        for at in range(self._length, len(numbers) - 1):
            value = sign * numbers[at]
            while values and values[-1] >= value:
                values.pop()
                places.pop()
            values.append(value)
            places.append(at)
        self._length = len(numbers) - 1
        return sign * values[bisect_left(places, first)]


def _rounded(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def aggregated(function: str, matches: Sequence[Asked]) -> Values:
    """Return an aggregate of some matches, given by its arguments' values in each, in order."""
    if function == "count" and matches and not matches[0]:
        return (float(len(matches)),)
    if function in ("argmax", "argmin"):
        return _argument_of_extreme(1 if function == "argmin" else -1, matches)
    values = chain.from_iterable(asked[0] for asked in matches if asked)
    return _AGGREGATES[function](values)


def _sum(values: Iterable[Atom]) -> Values:
    numbers = list(map(to_double, values))
    try:
        return (math.fsum(numbers),)
    except (OverflowError, ValueError):  # beyond all doubles, or of both infinities
        column = _Sum(is_average=False)
        column.append((numbers,))
        found = column.between(0, 1)
        return (math.nan,) if found is None else found


def _avg(values: Iterable[Atom]) -> Values:
    known = list(values)
    (total,) = _sum(known)
    return (to_double(total) / len(known),) if known else ()


def _extreme(choose: Callable[[list[float]], float]) -> Callable[[Iterable[Atom]], Values]:
    def extreme(values: Iterable[Atom]) -> Values:
        numbers = list(map(to_double, values))
        if any(map(math.isnan, numbers)):
            return (math.nan,)
        return (choose(numbers),) if numbers else ()

    return extreme


def _last(values: Iterable[Atom]) -> Values:
    return list(values)[-1:]


def _distinct(values: Iterable[Atom]) -> list[str]:
    return list(dict.fromkeys(map(spell, values)))


_AGGREGATES: dict[str, Callable[[Iterable[Atom]], Values]] = {
    "count": lambda values: (float(len(list(values))),),
    "count distinct": lambda values: (float(len(_distinct(values))),),
    "sum": _sum,
    "avg": _avg,
    "min": _extreme(min),
    "max": _extreme(max),
    "first": lambda values: list(islice(values, 1)),
    "last": _last,
    "collect": lambda values: list(islice(values, COLLECTED_MAX)),
    "collect distinct": lambda values: _distinct(values)[:COLLECTED_MAX],
}


def _argument_of_extreme(sign: int, matches: Sequence[Asked]) -> Values:
    """Return what goes with the least number, or the largest; of equal ones with the first."""
    best: Any = None
    chosen: Values = ()
    for values, keys in (asked for asked in matches if asked):
        numbers = [sign * to_double(key) for key in keys]
        if not values or not numbers or any(map(math.isnan, numbers)):
            continue
        if best is None or min(numbers) < best:
            best, chosen = min(numbers), values
    return chosen
