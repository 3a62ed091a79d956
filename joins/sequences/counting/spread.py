"""Ways between elements of a plain lane: from one to all before it, or to all behind it.

Elements have an end and two numbers, `asked` and `given`: one may stand behind another where it
begins behind that one's end, within the gap, and `asked` of it compares with `given` of the other.
So what may stand next to an element is a sum by key of those nearer by, as time goes on.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from joins.memory.durations import UNBOUNDED
from joins.sequences.counting.rowelements import RowElements
from joins.sequences.counting.sums import SumByKey, asked_of
from joins.sequences.runparts import Part

__all__ = ["LaneProduct", "LaneSums", "PlainElement", "PlainShape", "Ways", "spread"]

_END = attrgetter("end_us")
_TESTS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class PlainShape:
    """How far runs reach: `gap_us` between neighbours, `within_us` in all; what compares them.

    Without `compares` all numbers are equal.  `are_same` says that `asked` and `given` are one
    number of each element, `may_all_begin` that runs may begin with each.  `remembered_us` is for
    how long the first of a run is remembered, the lateness included.
    """

    gap_us: int
    within_us: int
    compares: str | None
    are_same: bool
    may_all_begin: bool
    remembered_us: int

    @property
    def is_bounded(self) -> bool:
        """Whether runs are bounded as a whole."""
        return self.within_us < UNBOUNDED

    @property
    def operator(self) -> str:
        """What `asked` and `given` are compared by."""
        return self.compares or ">="

    def fits(self, one: PlainElement, other: PlainElement) -> bool:
        """Return whether one element may stand behind another, whenever they end."""
        return other.leads and _TESTS[self.operator](one.asked, other.given)


@dataclass(slots=True, eq=False)
class PlainElement:
    """An element: `asked` is compared with `given` of the one before it.

    `tuple_of` is what it is in the join: a tuple, or a row of columns that is one once it is asked.
    It `begins` runs, and `leads` on to others.  `ways` end with it, where that is kept; `serial`
    is its place in the order in which elements came.
    """

    tuple_of: Part | tuple[RowElements, int]
    end_us: int
    asked: float
    given: float
    begins: bool
    leads: bool
    serial: int = 0
    ways: int = 0

    @property
    def part(self) -> Part:
        """What it is in the join."""
        own = self.tuple_of
        if isinstance(own, tuple):
            columns, row = own
            own = self.tuple_of = columns.part(row)
        return own

    @property
    def docid(self) -> int:
        """The docid at which it stands."""
        own = self.tuple_of
        return int(own[0].docids[own[1]]) if isinstance(own, tuple) else own.docid

    @property
    def leaf(self) -> int:
        """The document that it is of."""
        own = self.tuple_of
        return int(own[0].leaves[own[1]]) if isinstance(own, tuple) else own.leaves[0]


Ways = list[tuple[PlainElement, int]]
"""Elements, each with how many ways there are between it and another one; none without any."""


def spread(
    shape: PlainShape, origin: PlainElement | None, elements: Iterable[PlainElement], *, on: bool
) -> Ways:
    """Return the ways from one element `on` to others behind it, or back to others before it.

    The others come in that order.  Without an origin they are the ways on from all beginnings.
    """
    sums = SumByKey()
    near: deque[tuple[int, float, int]] = deque()
    next_to = asked_of(shape.operator, of_next=on)
    # What one number leads to through others it leads to at once.
    is_near: Callable[[float], bool] = _always
    if origin is not None and shape.are_same:
        test, own = _TESTS[shape.operator], origin.asked
        is_near = (lambda key: test(key, own)) if on else (lambda key: test(own, key))
    found: Ways = []

    def add(each: PlainElement, ways: int) -> None:
        key = each.given if on else each.asked
        if key == key and (each.leads or not on):
            sums.add(key, ways)
            near.append((each.end_us, key, ways))

    if origin is not None:
        add(origin, 1)
    for end_us, group in groupby(elements, key=_END):
        while near and abs(end_us - near[0][0]) > shape.gap_us:
            _, key, ways = near.popleft()
            sums.take(key, ways)
        come: Ways = []
        for each in group:
            ways = int(origin is None and each.begins)
            key = each.asked if on else each.given
            if (on or each.leads) and sums.total and key == key and is_near(key):
                ways += next_to(sums, key)
            if ways:
                come.append((each, ways))
        for each, ways in come:
            add(each, ways)
        found += come
    return found


def _always(_: float) -> bool:
    return True


class LaneSums:
    """The ways to each element, where runs are not bounded as a whole: what is near adds up."""

    def __init__(self, shape: PlainShape) -> None:
        self._shape = shape
        self._next_to = asked_of(shape.operator, of_next=True)
        self._sums = SumByKey()
        self._near: deque[PlainElement] = deque()
        self._last: list[PlainElement] = []

    def add(self, own: PlainElement) -> None:
        """Add an element that ends last; its ways are known before another time comes."""
        if self._last and self._last[0].end_us < own.end_us:
            self._flush()
        near, sums = self._near, self._sums
        while near and own.end_us - near[0].end_us > self._shape.gap_us:
            gone = near.popleft()
            sums.take(gone.given, gone.ways)
        self._last.append(own)

    def ways_to(self, own: PlainElement) -> int:
        """Return the ways to an element that was added last."""
        ways = int(own.begins)
        if own.asked == own.asked and self._sums.total:
            ways += self._next_to(self._sums, own.asked)
        return ways

    def _flush(self) -> None:
        for each in self._last:
            if each.leads and each.ways and each.given == each.given:
                self._sums.add(each.given, each.ways)
                self._near.append(each)
        self._last.clear()


class LaneProduct:
    """The ways to each element, where each may stand behind each within a time.

    Of those that end together a run has one or none, so the ways to an element are a product, of
    one more than the elements that end at each time before it.
    """

    def __init__(self, shape: PlainShape) -> None:
        self._within_us = shape.within_us
        self._ways = 1
        self._groups: deque[tuple[int, int]] = deque()
        self._last = (-UNBOUNDED, 0)

    def add(self, own: PlainElement) -> None:
        """Add an element that ends last."""
        end_us, count = self._last
        if end_us < own.end_us:
            if count:
                self._groups.append(self._last)
                self._ways *= 1 + count
            end_us, count = own.end_us, 0
        while self._groups and own.end_us - self._groups[0][0] > self._within_us:
            _, gone = self._groups.popleft()
            self._ways //= 1 + gone
        self._last = end_us, count + own.leads

    def ways_to(self, _: PlainElement) -> int:
        """Return the ways to an element that was added last."""
        return self._ways
