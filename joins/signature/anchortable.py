"""The anchors of a stratum in columns, which change row by row as classes come and go."""

from __future__ import annotations

import numpy as np

from joins.budget.groups import ClassGroup
from joins.budget.probe import ValueJoin
from joins.memory.durations import CLOSED
from joins.memory.lookups import LookUps
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags

__all__ = ["NONE", "NO_VARIABLE", "AnchorTable"]

NONE = 0
"""Stands for an anchor where there is none: its window holds no pair."""

NO_VARIABLE = -1
"""Stands in a row that is free; nothing has a value under it."""

_ROWS_MIN = 16

_CHANGED_PARTS = 8
"""Look-ups are put together anew where one in so many has changed."""


class AnchorTable:
    """The anchors of a stratum, each with the classes that are anchored there.

    New values under `mine[i]` are looked up under `other[i]`.  A hit serves the anchor
    `as_right[i]` where the new instance is the right one, and `as_left[i]` where it is the left
    one; `NONE` stands for no anchor.  `widest[i]` is the wider window of the two.
    """

    def __init__(self) -> None:
        self.groups = [ClassGroup()]
        self.window: Ints = np.full(_ROWS_MIN, CLOSED, np.int64)
        self.is_symmetric: Flags = np.zeros(_ROWS_MIN, np.bool_)
        self._value_joins: list[ValueJoin] = [(NO_VARIABLE, NO_VARIABLE)]
        self._anchors: dict[ValueJoin, int] = {}
        self._free_anchors: list[int] = []
        self._look_ups: Ints = np.full((5, _ROWS_MIN), NO_VARIABLE, np.int64)
        self._rows: dict[ValueJoin, int] = {}
        self._free_rows: list[int] = []
        self._asked: tuple[LookUps, Ints] | None = None
        self._changed: set[int] = set()

    def __len__(self) -> int:
        return len(self._anchors)

    def value_join(self, anchor: int) -> ValueJoin:
        """Return the value join that an anchor is."""
        return self._value_joins[anchor]

    def asked(self) -> LookUps:
        """Return the look-ups that the rows in use are; they have the numbers of the rows."""
        return self._in_use()[0]

    def reach_us(self, variables: Ints) -> Ints:
        """Return how far before new instances, with values of some variables, partners may end.

        A partner that has to come later ends behind the start of the new one: `CLOSED` stands for
        variables whose values are looked up for such alone.
        """
        _, reach = self._in_use()
        return reach[np.minimum(variables, len(reach) - 1)]

    def _in_use(self) -> tuple[LookUps, Ints]:
        changed = np.fromiter(self._changed, np.int64, len(self._changed))
        self._changed.clear()
        if self._asked is None or _CHANGED_PARTS * len(changed) > len(self._asked[0]):
            rows = (self.mine != NO_VARIABLE).nonzero()[0]
            look_ups = LookUps.of(self.mine[rows], self.other[rows], rows)
            self._asked = look_ups, self._reach(np.zeros(0, np.int64), rows)
        elif len(changed):
            look_ups, reach = self._asked
            rows = changed[self.mine[changed] != NO_VARIABLE]
            gone = look_ups.variables_of(changed)
            look_ups = look_ups.with_changes(changed, self.mine[rows], self.other[rows], rows)
            variables = np.unique(np.append(gone, self.mine[rows]))
            reach[variables[variables < len(reach)]] = CLOSED
            of_these = look_ups.rows[ranges(*look_ups.of_values(variables))]
            self._asked = look_ups, self._reach(reach, of_these)
        return self._asked

    def _reach(self, reach: Ints, rows: Ints) -> Ints:
        """Return how far partners may end before instances, with what some look-ups say."""
        mine, as_right, as_left = (c[rows] for c in (self.mine, self.as_right, self.as_left))
        longer = int(mine.max(initial=-1)) + 2 - len(reach)
        if longer > 0:
            reach = np.append(reach, np.full(longer, CLOSED))
        np.maximum.at(reach, mine, self.window[as_right])
        before = np.where(self.is_symmetric[as_left], self.window[as_left], CLOSED)
        np.maximum.at(reach, mine, before)
        return reach

    @property
    def mine(self) -> Ints:
        """The variables whose new values are looked up."""
        return self._column(0)

    @property
    def other(self) -> Ints:
        """The variables under which new values are looked up."""
        return self._column(1)

    @property
    def as_right(self) -> Ints:
        """The anchors that a hit serves where the new instance is the right one."""
        return self._column(2)

    @property
    def as_left(self) -> Ints:
        """The anchors that a hit serves where the new instance is the left one."""
        return self._column(3)

    @property
    def widest(self) -> Ints:
        """The widest window that a look-up serves."""
        return self._column(4)

    def _column(self, i: int) -> Ints:
        column: Ints = self._look_ups[i, : len(self._rows) + len(self._free_rows)]
        return column

    def put(self, number: int, anchor: ValueJoin, window_us: int, *, is_symmetric: bool) -> None:
        """Anchor a class, or give one that is anchored there another window."""
        i = self._anchors.get(anchor)
        if i is None:
            i = self._open(anchor)
        self.groups[i].put(number, window_us, is_symmetric=is_symmetric)
        self._write(i)

    def drop(self, number: int, anchor: ValueJoin) -> None:
        """Take away a class that is anchored there."""
        i = self._anchors[anchor]
        self.groups[i].drop(number)
        if not self.groups[i].members:
            del self._anchors[anchor]
            self._free_anchors.append(i)
        self._write(i)

    def _open(self, anchor: ValueJoin) -> int:
        """Give a new anchor a number."""
        if self._free_anchors:
            i = self._free_anchors.pop()
        else:
            i = len(self.groups)
            self.groups.append(ClassGroup())
            self._value_joins.append(anchor)
        if i == len(self.window):
            self.window = np.append(self.window, np.full(i, CLOSED))
            self.is_symmetric = np.append(self.is_symmetric, np.zeros(i, np.bool_))
        self._anchors[anchor] = i
        self._value_joins[i] = anchor
        return i

    def _write(self, i: int) -> None:
        """Write an anchor's columns, and the look-ups that serve it."""
        self.window[i] = self.groups[i].window_us
        self.is_symmetric[i] = self.groups[i].is_symmetric
        left, right = self._value_joins[i]
        for mine, other in {(left, right), (right, left)}:
            self._write_look_up(mine, other)

    def _write_look_up(self, mine: int, other: int) -> None:
        as_right = self._anchors.get((other, mine), NONE)
        as_left = self._anchors.get((mine, other), NONE)
        if as_right == as_left == NONE:
            row = self._rows.pop((mine, other))
            self._changed.add(row)
            self._free_rows.append(row)
            self._look_ups[:, row] = NO_VARIABLE
            return
        widest = max(self.window[as_right], self.window[as_left])
        row = self._row((mine, other))
        self._changed.add(row)
        self._look_ups[:, row] = mine, other, as_right, as_left, widest

    def _row(self, look_up: ValueJoin) -> int:
        if look_up not in self._rows:
            row = self._free_rows.pop() if self._free_rows else len(self._rows)
            if row == self._look_ups.shape[1]:
                more = np.full_like(self._look_ups, NO_VARIABLE)
                self._look_ups = np.concatenate([self._look_ups, more], axis=1)
            self._rows[look_up] = row
        return self._rows[look_up]
