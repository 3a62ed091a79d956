"""Who asks for the rows of a source: their windows, and what HAVING says of a row.

Where these are many and HAVING compares aggregates with numbers, those are looked up whose number
lets a row pass.  Windows that differ are looked up too: they reach back to one of few matches, and
all that reach back to the same match ask for one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.outcomes.aside import least_values
from broker.matching.outcomes.columns import AggregateBounds
from broker.matching.outcomes.compared import (
    COMPARISONS,
    HOLDS,
    ByLength,
    ComparedAggregate,
    may_hold,
    number_of,
)
from broker.matching.outcomes.countedpieces import CountedPiece
from broker.matching.outcomes.series import Series
from broker.matching.uses import Topic, length_under
from templates.runtotals import summed
from xscl.evaluation import Condition, Reading, compile_conjunction
from xscl.path import Literal, Parameter
from xscl.query import INFINITE_US, Rows
from xscl.rowvalues import numbered_aggregate, of_row

__all__ = ["Asking"]

MANY = 8
"""From so many assignments on, the ones are looked up whose window, or number, lets a row pass."""

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


class _Threshold(NamedTuple):
    """Topics with one window, in the order of the numbers that they compare first."""

    length_us: int
    who: Ints
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]]


class Asking:
    """The assignments that ask for rows of one source: their windows, and what HAVING says.

    A row of any of them needs `least_values` of what HAVING counts.
    """

    def __init__(self, topics: Sequence[Topic]) -> None:
        self.topics = topics
        query = topics[0].query
        assert query.rows is not None
        self.rows: Rows = query.rows
        lengths = [length_under(self.rows.length, each.parameters) for each in topics]
        self.lengths_us = np.minimum(np.array(lengths, np.int64), INFINITE_US)
        self._lengths: list[int] = self.lengths_us.tolist()
        self.longest_us = int(self.lengths_us.max())
        self.least_values = least_values(self.rows, topics)
        having = self.rows.having
        self._conditions: list[Condition] | None = None
        if having is not None:
            self._conditions = [compile_conjunction(of_row(each, self.rows)) for each in having]
        self._compared = self._in_columns()
        is_looked_up = len(topics) >= MANY and bool(self._compared)
        self._steps = self._in_steps() if is_looked_up else []
        self._by_length: ByLength | None = None
        if is_looked_up and not self._steps:
            self._by_length = ByLength(self.lengths_us, self._compared or [])

    def holds(self, reading: Reading) -> bool:
        """Return whether HAVING holds of a row."""
        return self._conditions is None or any(each(reading) for each in self._conditions)

    def _in_columns(self) -> list[ComparedAggregate] | None:
        """Return HAVING as comparisons of aggregates with numbers, None where it is not that."""
        having = self.rows.having
        if having is None or len(having) != 1:
            return None
        (asked,) = having
        if asked.value_joins or asked.similarity_joins or asked.tests:
            return None
        found: list[ComparedAggregate] = []
        for each in asked.residuals:
            for one, other, operator in (
                (each.left, each.right, each.operator),
                (each.right, each.left, _TURNED[each.operator]),
            ):
                number = numbered_aggregate(one, self.rows)
                values = self._numbers(other)
                if number is not None and values is not None and self._isnumber_of(number):
                    found.append(ComparedAggregate(number, operator, values))
                    break
            else:
                return None
        return found

    def _isnumber_of(self, aggregate: int) -> bool:
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
        if len(self.topics) == 1:
            # Mostly nobody else asks.
            at = series.first_from(end_us - self._lengths[0])
            return [(0, at)] if self.may_hold(series, 0, at, last) else []
        if len(self.topics) < MANY:
            places = [series.first_from(end_us - each) for each in self._lengths]
            return [(i, at) for i, at in enumerate(places) if self.may_hold(series, i, at, last)]
        if self._steps:
            return sorted(self._looked_up(series, end_us, last))
        if self._by_length is not None:
            return sorted(self._by_length.candidates(series, end_us, last))
        all_places = series.all_from(end_us - self.lengths_us)
        return list(enumerate(all_places.tolist()))

    def candidates_at(
        self, series: Series, piece: CountedPiece, before: int
    ) -> Iterator[tuple[int, int, int]]:
        """Yield which ends of a piece have a row together, from one up to another, and for whom.

        They stand in a series behind so many matches, and windows reach back to no other.
        """
        compared, cuts = self._compared or (), piece.cuts()
        counts = AggregateBounds(*summed(piece.totals.bounds, cuts[:-1].tolist()))
        are_open = np.ones(len(cuts) - 1, np.bool_)
        for aggregate, operator, numbers in compared:
            if self._counts_all(aggregate):
                extremes = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
                are_open &= may_hold(counts, operator, *extremes)
        stretches = [(int(cuts[at]), int(cuts[at + 1])) for at in np.flatnonzero(are_open).tolist()]
        # Those that are left are asked exactly, and all at once.
        piece.totals.exact([at for first, last in stretches for at in range(first, last)])
        if len(self.topics) == 1 and all(self._counts_all(each.aggregate) for each in compared):
            yield from ((first, last, 0) for first, last in stretches)
            return
        for first, last in stretches:
            end_us = int(piece.places[first, 5])
            for who, _ in self.candidates(series, end_us, before + last):
                yield first, last, who

    def _counts_all(self, aggregate: int) -> bool:
        call = self.rows.aggregates[aggregate]
        return call.function == "count" and not call.arguments

    def late_candidates(
        self, series: Series, end_us: int, last: int, before_us: int
    ) -> Iterator[tuple[int, int, bool]]:
        """Yield who may have a row that ends before a time, the place where it begins, and more.

        Of what ends before that time by more than the window not all must be remembered: the last
        says that no such match is in the row.  Of a row with one it is not asked what it is of.
        """
        if len(self.topics) < MANY:
            for who, length_us in enumerate(self._lengths):
                if end_us >= before_us - length_us:
                    first = series.first_from(end_us - length_us)
                    is_whole = series.ends[first] >= before_us - length_us
                    if not is_whole or self.may_hold(series, who, first, last):
                        yield who, first, is_whole
            return
        places = series.all_from(end_us - self.lengths_us)
        are_whole = series.ends_at(places) >= before_us - self.lengths_us
        found = [(*each, True) for each in self.candidates(series, end_us, last)]
        # A window that begins so late has no row.
        others = np.flatnonzero(~are_whole & (end_us >= before_us - self.lengths_us)).tolist()
        whole: list[bool] = are_whole.tolist()
        yield from sorted(
            [each for each in found if whole[each[0]]]
            + [(who, int(places[who]), False) for who in others]
        )

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
            value = number_of(series, leading, first, last)
            some = who[_between(numbers, operator, value)]
            for aggregate, compared, own in others if len(some) else ():
                value = number_of(series, aggregate, first, last)
                some = some[COMPARISONS[compared](value, own[some]) & (value == value)]
            yield from ((each, first) for each in some.tolist())

    def may_hold(self, series: Series, who: int, first: int, last: int) -> bool:
        """Return whether comparisons with numbers hold of matches `[first, last)`."""
        for aggregate, operator, numbers in self._compared or ():
            if not HOLDS[operator](number_of(series, aggregate, first, last), numbers[who]):
                return False
        return True


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
