"""The matches of one key, in the order of their ends, and aggregates over stretches of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.outcomes.columns import (
    AggregateBounds,
    AggregateColumn,
    aggregated,
    column_of,
    extremes_of,
)
from broker.matching.outcomes.countedpieces import CountedPiece
from broker.matching.outcomes.matched import Matched
from templates.runtotals import double_of
from xscl.comparison import Call
from xscl.evaluation import Values

__all__ = ["Series"]

LOOKED_AT = 16
"""A stretch of so many matches is looked at: a column would cost more."""


class Series:
    """Matches by end, then start and documents; `first` is the place of the first aggregate.

    Some may be ends of counted runs in columns, which become matches when one is asked for.
    """

    __slots__ = ("_aggregates", "_columns", "_counts", "_entries", "_first", "ends")

    def __init__(self, aggregates: Sequence[Call], first: int) -> None:
        self._aggregates = aggregates
        self._first = first
        self._entries: list[Matched | tuple[CountedPiece, int]] = []
        self.ends = array("q")
        self._columns: dict[int, AggregateColumn] = {}
        self._counts: list[int] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def has_end(self, end_us: int) -> bool:
        """Return whether a match ends at a time."""
        at = bisect_left(self.ends, end_us)
        return at < len(self.ends) and self.ends[at] == end_us

    def add(self, match: Matched) -> None:
        """Add a match in its place."""
        if not self.ends or self.ends[-1] < match.end_us:
            at = len(self.ends)
        else:
            first, last = self.first_from(match.end_us), self.first_behind(match.end_us)
            at = first + _place_among(self.between(first, last), match)
        self._entries.insert(at, match)
        self.ends.insert(at, match.end_us)
        if self._counts is None and match.counted is not None:
            self._counts = [0]
        if at < len(self.ends) - 1:
            self._columns.clear()
            if self._counts is not None:
                del self._counts[1 + at :]
        for number, column in self._columns.items():
            column.append(match.asked(self._first + number))

    def extend(self, piece: CountedPiece) -> None:
        """Add ends of counted runs that end behind all matches, one behind the other."""
        if self._counts is None:
            self._counts = [0]
        self._entries += [(piece, at) for at in range(len(piece))]
        self.ends.extend(piece.places[:, -1].tolist())

    def between(self, first: int, last: int) -> list[Matched]:
        """Return the matches `[first, last)`."""
        entries = self._entries
        for at in range(first, last):
            entry = entries[at]
            if isinstance(entry, tuple):
                piece, row = entry
                entries[at] = piece.match(row)
        return [entry for entry in entries[first:last] if isinstance(entry, Matched)]

    def remove(self, match: Matched) -> bool:
        """Undo one `add`; return whether there was one."""
        for at in range(self.first_from(match.end_us), self.first_behind(match.end_us)):
            if self._entries[at] is match:
                del self._entries[at], self.ends[at]
                self._columns.clear()
                self._counts = None if self._counts is None else [0]
                return True
        return False

    def first_from(self, time_us: int) -> int:
        """Return the place of the first match that ends at a time or behind it."""
        return bisect_left(self.ends, time_us)

    def first_behind(self, time_us: int) -> int:
        """Return the place of the first match that ends behind a time."""
        return bisect_right(self.ends, time_us)

    def ends_at(self, places: Ints) -> Ints:
        """Return when the matches at some places end."""
        return np.frombuffer(self.ends, np.int64)[places]

    def all_from(self, times_us: Ints) -> Ints:
        """Return the place of the first match from each of some times on."""
        # A view of the array forbids that it grows: it must not outlive this call.
        return np.searchsorted(np.frombuffer(self.ends, np.int64), times_us)

    def count(self, first: int, last: int) -> int:
        """Return how many matches the places `[first, last)` stand for."""
        if self._counts is None:
            return last - first
        known = len(self._counts) - 1
        if known < last and last - first <= last - known:
            return sum(map(_count_of, self._entries[first:last]))
        for count in map(_count_of, self._entries[known:]):
            self._counts.append(self._counts[-1] + count)
        return self._counts[last] - self._counts[first]

    def value(self, number: int, first: int, last: int) -> Values:
        """Return an aggregate of the matches `[first, last)`."""
        call = self._aggregates[number]
        if call.function == "count" and not call.arguments:
            return (double_of(self.count(first, last)),)
        if last - first > LOOKED_AT:
            column = self._column(number)
            found = None if column is None else column.between(first, last)
            if found is not None:
                return found
        return aggregated(call.function, self._asked(number, first, last))

    def bounds(self, number: int, first: int, last: int) -> AggregateBounds | None:
        """Return the bounds of an aggregate of the matches from each place of a stretch to its end.

        None says that nothing is known.
        """
        call = self._aggregates[number]
        if call.function == "count" and not call.arguments:
            if self._counts is not None:
                return None
            counts = np.arange(last - first, 0.0, -1)
            return AggregateBounds(counts, counts)
        column = self._column(number)
        return None if column is None else column.bounds(first, last)

    def extremes(self, number: int, first: int, last: int) -> tuple[float, float] | None:
        """Return between what an aggregate of the matches from each place of a stretch on lies.

        It is for stretches that end with the last match; None says that nothing is known.
        """
        call = self._aggregates[number]
        if call.function == "count" and not call.arguments:
            return None if self._counts is not None else (1.0, float(last - first))
        return extremes_of(self._column(number), first, last)

    def _asked(self, number: int, first: int, last: int) -> list[tuple[Values, ...]]:
        place = self._first + number
        return [match.asked(place) for match in self.between(first, last)]

    def _column(self, number: int) -> AggregateColumn | None:
        column = self._columns.get(number)
        if column is None:
            call = self._aggregates[number]
            column = column_of(call.function, len(call.arguments))
            if column is not None:
                for asked in self._asked(number, 0, len(self)):
                    column.append(asked)
                self._columns[number] = column
        return column

    def forget(self, before_us: int) -> None:
        """Forget matches that end before a time, once they are most."""
        gone = self.first_from(before_us)
        if 2 * gone >= len(self):
            del self._entries[:gone], self.ends[:gone]
            self._columns.clear()
            self._counts = None if self._counts is None else [0]


def _count_of(entry: Matched | tuple[CountedPiece, int]) -> int:
    if isinstance(entry, tuple):
        piece, at = entry
        return piece.totals[at]
    return entry.count


def _place_among(matches: Sequence[Matched], match: Matched) -> int:
    """Return the place of a match among some that end with it, in order.

    Documents are compared of those only that also begin with it: a run has many.
    """
    low = bisect_left(matches, match.second, key=_second)
    high = bisect_right(matches, match.second, low, key=_second)
    if low == high:
        return low
    return low + bisect_right(matches[low:high], match.order, key=_order)


def _second(match: Matched) -> int:
    return match.second


def _order(match: Matched) -> tuple[Any, ...]:
    return match.order
