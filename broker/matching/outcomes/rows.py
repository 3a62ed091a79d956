"""WINDOW: for each value of the keys and each time at which it has a match, one row.

A row stands where the first match of its value that ends at its time is decided, and is of the
matches that are there then.  So matches are taken position by position: all that stand at one are
added to the series of their keys, then the rows that begin there are read off the series.

Assignments that ask for rows of one source share the series.  Where these are many and HAVING
compares aggregates with numbers, those are looked up whose number lets a row pass; where they have
many windows as well, it is asked for all of them at once, in columns.

A match that comes later than `T + A` behind its end is in no row and has none: what it would stand
with need not be remembered (semantics, section 1.1).
"""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, product
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.outcomes.gathered import Matched
from broker.matching.outcomes.series import Series
from broker.matching.uses import Topic, length_under
from xscl.evaluation import Condition, Reading, Values, compile_conjunction
from xscl.functions import spell, to_double
from xscl.path import Literal, Parameter
from xscl.query import INFINITE_US, Rows
from xscl.rowvalues import LazyValues, RowReading, numbered_aggregate, of_row
from xscl.runvalues import RunAtHand

__all__ = ["Asking", "BesideRows", "FoundWindow", "RowSource"]

HELD_MIN = 1_000
"""Of fewer matches none is forgotten: to look through them costs more than they do."""

MANY = 8
"""From so many assignments on, HAVING is asked in columns."""

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
BesideRows = Callable[[RowReading], Reading]
"""Returns a row as conditions read it beside tables."""

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


class FoundWindow(NamedTuple):
    """A row: who has it, where it stands, its keys, its matches in order, and its values."""

    topic: Topic
    docid: int
    depth: int
    watermark_us: int
    end_us: int
    newest: int
    keys: tuple[str, ...]
    matches: Sequence[Matched]
    values: Sequence[Values]

    @property
    def reading(self) -> RowReading:
        """The row, as actions read it."""
        values = {str(number): own for number, own in enumerate(self.values)}
        run = RunAtHand((), None, values)
        return RowReading(self.end_us, self.end_us, self.topic.parameters, run)


class _ComparedAggregate(NamedTuple):
    """A comparison of an aggregate with a number for each assignment."""

    aggregate: int
    operator: str
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]]


class _Threshold(NamedTuple):
    """Those who have one window, in the order of the numbers that they compare first."""

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
        self._steps = self._in_steps() if len(topics) >= MANY else []

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
            return [(i, at) for i, at in enumerate(places) if self._may_hold(series, i, at, last)]
        if self._steps:
            return sorted(self._looked_up(series, end_us, last))
        all_places = series.all_from(end_us - self.lengths_us)
        who = self._holding(series, all_places, last)
        return list(zip(who.tolist(), all_places[who].tolist(), strict=True))

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
        """Yield what `candidates` returns, of each window those whose number is looked up."""
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

    def _may_hold(self, series: Series, who: int, first: int, last: int) -> bool:
        """Return whether comparisons with numbers hold of matches `[first, last)`."""
        for aggregate, operator, numbers in self._compared or ():
            if not _SCALAR[operator](_number(series, aggregate, first, last), numbers[who]):
                return False
        return True

    def _holding(self, series: Series, places: Ints, last: int) -> Ints:
        """Return of whom comparisons with numbers hold, each from their own place on."""
        if self._compared is None:
            return np.arange(len(self.topics))
        held: Flags = np.ones(len(self.topics), np.bool_)
        for aggregate, operator, numbers in self._compared:
            distinct, inverse = np.unique(places, return_inverse=True)
            found = [_number(series, aggregate, first, last) for first in distinct.tolist()]
            values = np.array(found)[inverse]
            held &= _COMPARISONS[operator](values, numbers) & ~np.isnan(values)
        return np.flatnonzero(held)


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


class RowSource:
    """The matches of one source by their keys."""

    def __init__(self, lateness_us: int) -> None:
        self._lateness_us = lateness_us
        self._series: dict[tuple[str, ...], Series] = {}
        self._held = 0
        self._held_max = HELD_MIN

    def take(
        self,
        matches: Sequence[Matched],
        asking: Asking,
        *,
        is_known: bool,
        beside: BesideRows | None = None,
    ) -> Iterator[FoundWindow]:
        """Add decided matches; yield the rows that begin with them, unless these are known.

        Conditions read rows `beside` tables, where some are given.
        """
        for docid, standing in groupby(sorted(matches, key=attrgetter("docid")), _docid):
            begun: dict[tuple[int, tuple[str, ...]], list[Matched]] = {}
            for match in standing:
                if match.end_us < self._oldest_us(match.watermark_us, asking.longest_us):
                    continue
                for keys in _keys(match, asking.rows):
                    series = self._series.get(keys)
                    if series is None:
                        series = self._series[keys] = Series(asking.rows.aggregates, len(keys))
                    place = match.end_us, keys
                    if place in begun or not series.has_end(match.end_us):
                        begun.setdefault(place, []).append(match)
                    series.add(match)
                    self._held += 1
            if not is_known:
                for (end_us, keys), first in sorted(begun.items(), key=_place):
                    yield from self._rows(docid, end_us, keys, first, asking, beside)

    def undo(self, matches: Iterable[Matched], rows: Rows) -> None:
        """Undo what `take` did with some matches, of which it took them all."""
        for match in matches:
            for keys in _keys(match, rows):
                series = self._series.get(keys)
                if series is not None and series.remove(match):
                    self._held -= 1
                    if not len(series):
                        del self._series[keys]

    def all_matches(self) -> list[Matched]:
        """Return the matches that are held, each once."""
        found = {id(each): each for series in self._series.values() for each in series.matches}
        return [*found.values()]

    def _oldest_us(self, watermark_us: int, length_us: int) -> int:
        return watermark_us - self._lateness_us - length_us

    def _rows(
        self,
        docid: int,
        end_us: int,
        keys: tuple[str, ...],
        first: Sequence[Matched],
        asking: Asking,
        beside: BesideRows | None,
    ) -> Iterator[FoundWindow]:
        """Yield the rows of one value at one time, whose first matches are given."""
        series = self._series[keys]
        watermark_us = max(match.watermark_us for match in first)
        last = series.first_behind(end_us)
        if watermark_us - self._lateness_us > end_us:
            yield from self._late(docid, end_us, watermark_us, keys, asking, beside)
            return
        for who, own in asking.candidates(series, end_us, last):
            place = docid, end_us, watermark_us
            found = _row(asking, who, place, keys, series, own, last, beside)
            if found is not None:
                yield found

    def _late(
        self,
        docid: int,
        end_us: int,
        watermark_us: int,
        keys: tuple[str, ...],
        asking: Asking,
        beside: BesideRows | None,
    ) -> Iterator[FoundWindow]:
        """Yield rows that begin so late that not all their matches must be remembered."""
        series = self._series[keys]
        for who, length_us in enumerate(asking.lengths_us.tolist()):
            oldest_us = self._oldest_us(watermark_us, length_us)
            if end_us < oldest_us:
                continue
            some = Series(asking.rows.aggregates, len(keys))
            stretch = slice(series.first_from(end_us - length_us), series.first_behind(end_us))
            for match in series.matches[stretch]:
                if match.docid == docid or match.end_us >= oldest_us:
                    some.add(match)
            place = docid, end_us, watermark_us
            found = _row(asking, who, place, keys, some, 0, len(some), beside)
            if found is not None:
                yield found

    def forget(self, watermark_us: int, longest_us: int) -> None:
        """Forget what no row can have any more, once there is twice as much as was left."""
        if self._held < self._held_max:
            return
        before_us = self._oldest_us(watermark_us, longest_us)
        for keys, series in list(self._series.items()):
            if series.ends[0] < before_us:
                series.forget(before_us)
                if not len(series):
                    del self._series[keys]
        self._held = sum(map(len, self._series.values()))
        self._held_max = max(HELD_MIN, 2 * self._held)


def _keys(match: Matched, rows: Rows) -> list[tuple[str, ...]]:
    """Return the keys of a match: each choice of a value for each of them."""
    asked = [match.asked(number) for number in range(len(rows.keys))]
    # A key that another alternative binds has no value here.
    return list(product(*[dict.fromkeys(map(spell, each[0])) if each else () for each in asked]))


def _row(
    asking: Asking,
    who: int,
    place: tuple[int, int, int],
    keys: tuple[str, ...],
    series: Series,
    first: int,
    last: int,
    beside: BesideRows | None,
) -> FoundWindow | None:
    """Return the row of the matches `[first, last)` if HAVING holds of it."""
    docid, end_us, watermark_us = place
    topic = asking.topics[who]
    count = len(keys) + len(asking.rows.aggregates)
    values = LazyValues(keys, count, lambda number: series.value(number, first, last))
    run = RunAtHand((), None, values)
    reading = RowReading(end_us, end_us, topic.parameters, run)
    if not asking.holds(reading if beside is None else beside(reading)):
        return None
    matches = series.matches[first:last]
    return FoundWindow(
        topic,
        docid,
        1 + max(match.depth for match in matches),
        max(watermark_us, *(match.watermark_us for match in matches)),
        end_us,
        max(match.newest for match in matches),
        keys,
        matches,
        [values[name] for name in values],
    )


_docid = attrgetter("docid")


def _place(begun: tuple[tuple[int, tuple[str, ...]], list[Matched]]) -> tuple[int, tuple[str, ...]]:
    return begun[0]
