"""Matches of keys that have too few of them for any row: they are set aside, in columns.

Where HAVING asks that a count reaches a number, a row needs so many values.  Most keys never have
them: a link that one item carries has no row of five feeds.  So of the matches of such a statement
no more is kept at first than columns, and by key how many values there are.  A key that reaches
the least number that somebody asks for is **woken**: its matches are made and put into a series,
where each stands as if it had been there from the beginning.

Values are counted for as long as their matches are held, so there may be fewer in any window: a key
is woken too early, never too late.  A match of several tuples is not set aside, and wakes its keys.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np

from broker.matching.uses import Topic
from xscl.comparison import Operand, PathFrom, Residual, VariableValue
from xscl.path import Literal, Parameter
from xscl.query import Query, Rows
from xscl.rowvalues import numbered_aggregate

__all__ = ["Keys", "SetAside", "are_plain", "counted_aggregates", "least_values"]

Keys = tuple[str, ...]
"""A value of each key."""

T = TypeVar("T")

HELD_MIN = 1_000
"""Of fewer entries none is forgotten: to look through them costs more than they do."""

_TURNED = {"<": ">", "<=": ">=", "=": "="}


class SetAside(Generic[T]):
    """Entries by their keys, each with the entry of its key before it.

    An entry is a number in a piece, so that all of them are columns.
    """

    def __init__(self) -> None:
        self._newest: dict[Keys, int] = {}
        self._keys: list[Keys | None] = []
        self._before = array("q")
        self._totals = array("q")
        self._ends_us = array("q")
        self._numbers = array("q")
        self._pieces: list[T] = []
        self._starts: list[int] = []
        self._held_max = HELD_MIN

    def __len__(self) -> int:
        return len(self._newest)

    def begin(self, piece: T) -> None:
        """Have what is added next be of a piece."""
        self._pieces.append(piece)
        self._starts.append(len(self._keys))

    def add(self, keys: Keys, values: int, end_us: int, number: int) -> int:
        """Add an entry with so many values; return how many its key has."""
        at = len(self._keys)
        before = self._newest.get(keys, -1)
        total = values if before < 0 else values + self._totals[before]
        self._newest[keys] = at
        self._keys.append(keys)
        self._before.append(before)
        self._totals.append(total)
        self._ends_us.append(end_us)
        self._numbers.append(number)
        return total

    def pop(self, keys: Keys) -> list[tuple[T, int]]:
        """Remove the entries of a key, and return them from the oldest on."""
        found: list[tuple[T, int]] = []
        at = self._newest.pop(keys, -1)
        while at >= 0:
            found.append((self._piece(at), self._numbers[at]))
            self._keys[at] = None
            at = self._before[at]
        return found[::-1]

    def _piece(self, at: int) -> T:
        return self._pieces[bisect_right(self._starts, at) - 1]

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time, once there is twice as much as was left."""
        if len(self._keys) < self._held_max:
            return
        kept = SetAside[T]()
        for piece, first, last in zip(
            self._pieces, self._starts, [*self._starts[1:], len(self._keys)], strict=True
        ):
            ends_us = np.array(self._ends_us[first:last], np.int64)
            some = (first + np.flatnonzero(ends_us >= before_us)).tolist()
            own = [at for at in some if self._keys[at] is not None]
            if own:
                kept.begin(piece)
            for at in own:
                keys, before = self._keys[at], self._before[at]
                assert keys is not None
                values = self._totals[at] - (self._totals[before] if before >= 0 else 0)
                kept.add(keys, values, self._ends_us[at], self._numbers[at])
        self.__dict__.update(kept.__dict__)
        self._held_max = max(HELD_MIN, 2 * len(self._keys))


def counted_aggregates(query: Query) -> frozenset[int] | None:
    """Return the aggregates of which a row needs so many values, by number.

    None says that a row may have fewer, or that more is asked than documents say.
    """
    rows = query.rows
    if rows is None or rows.having is None or query.tables or query.learns:
        return None
    if query.has_confidence or not all(map(are_plain, rows.keys)):
        return None
    found: set[int] = set()
    for disjunct in rows.having:
        own = {aggregate for each in disjunct.residuals for aggregate, _, _ in _bounds(each, rows)}
        if not own:
            return None
        found |= own
    return frozenset(found)


def least_values(rows: Rows, topics: Iterable[Topic]) -> int:
    """Return how many values a row needs at least that one of some topics has."""
    return min((_least(rows, topic) for topic in topics), default=0)


def _least(rows: Rows, topic: Topic) -> int:
    least = []
    for disjunct in rows.having or ():
        asked = [0]
        for each in disjunct.residuals:
            for _, operator, operand in _bounds(each, rows):
                number = (
                    topic.parameters[operand.name]
                    if isinstance(operand, Parameter)
                    else operand.value
                )
                if isinstance(number, float | int):
                    asked.append(_whole(number, operator))
        least.append(max(asked))
    return min(least, default=0)


def _bounds(residual: Residual, rows: Rows) -> Iterator[tuple[int, str, Literal | Parameter]]:
    """Yield the number of an aggregate that counts, how it is compared, and with what."""
    sides = residual.left, residual.right
    turned = _TURNED.get(residual.operator, "")
    for one, other, operator in ((*sides, residual.operator), (*sides[::-1], turned)):
        number = numbered_aggregate(one, rows)
        if number is None or operator not in (">", ">=", "="):
            continue
        match other:
            case Parameter():
                pass
            case Literal(float() as value) if _whole(value, operator) > 1:
                pass
            case _:
                continue
        call = rows.aggregates[number]
        if call.function in ("count", "count distinct") and all(map(are_plain, call.arguments)):
            yield number, operator, other


def _whole(number: float, operator: str) -> int:
    """Return the least count that compares so with a number, as far as it says."""
    if not math.isfinite(number):
        return 0
    whole = math.floor(number)
    return whole + 1 if operator == ">" or whole < number else whole


def are_plain(operand: Operand) -> bool:
    """Return whether an operand is what a tuple says, with nothing made of it."""
    return isinstance(operand, VariableValue | PathFrom)
