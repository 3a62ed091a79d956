"""What rows must have in common, and what is tested of them, in columns.

Equalities of terms, and comparisons of two terms, are made for all rows at once; any other
condition is called for each that is left.  Values are compared by 128 bits of hashes, as everywhere
in the join, and by their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from joins.memory.instancetable import EMPTY, Hashes
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.contenders import Contenders
from joins.sequences.plan import Plan
from templates.rule import Rule

__all__ = ["Conditions", "RowView"]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)

Located = tuple[int, int]
"""Where the value of a term is: in the row of which side, and at which place of its values."""


class Conditions:
    """The rules of a plan, asked of rows of contenders: side by side, one column for each side."""

    def __init__(self, plan: Plan, contenders: Contenders) -> None:
        self._plan = plan
        self._contenders = contenders

    def keys(self, rules: Ints, sides: Sequence[Ints], half: int) -> tuple[Ints, Hashes]:
        """Return keys made of what equalities ask: which rows have one, and the key of each.

        `half` says which term of each equality is read.  The empty string joins nothing.
        """
        asked, which = self._located(rules, sides, self._joins_of, half)
        keys = _mixed(np.zeros(len(rules), np.uint64), rules.astype(np.uint64))
        has = np.ones(len(rules), np.bool_)
        first, _ = self._contenders.hashes
        for k in range(max(map(len, asked), default=0)):
            own, slots = self._slots(k, asked, which, sides)
            hashes = first[slots]
            keys[own] = _mixed(keys[own], hashes)
            has[own[hashes == EMPTY]] = False
        rows = np.flatnonzero(has)
        return rows, keys[rows]

    def hold(self, rules: Ints, sides: Sequence[Ints], start_us: Ints, end_us: Ints) -> Flags:
        """Return where rules hold of rows together, whose interval is given."""
        holds = np.ones(len(rules), np.bool_)
        if not len(rules):
            return holds
        first, other = self._contenders.hashes
        halves = [self._located(rules, sides, self._joins_of, half) for half in (0, 1)]
        for k in range(max(map(len, halves[0][0]), default=0)):
            (own, left), (_, right) = (self._slots(k, *half, sides) for half in halves)
            holds[own] &= (first[left] == first[right]) & (other[left] == other[right])
            holds[own] &= first[left] != EMPTY
        self._compare(rules, sides, holds)
        self._test(rules, sides, (start_us, end_us), holds)
        return holds

    def _compare(self, rules: Ints, sides: Sequence[Ints], holds: Flags) -> None:
        """Leave out rows of which a comparison of two terms does not hold."""
        if not any(self._plan.rules[rule].comparisons for rule in np.unique(rules).tolist()):
            return
        halves = [self._located(rules, sides, self._comparisons_of, half) for half in (0, 2)]
        first, other = self._contenders.hashes
        numbers = self._contenders.numbers
        for k in range(max(map(len, halves[0][0]), default=0)):
            (own, left), (_, right) = (self._slots(k, *half, sides) for half in halves)
            operators = np.array(
                [self._plan.rules[rule].comparisons[k][1] for rule in rules[own].tolist()]
            )
            are_equal = (first[left] == first[right]) & (other[left] == other[right])
            a, b = numbers[left], numbers[right]
            outcomes = [are_equal, ~are_equal, a < b, a <= b, a > b, a >= b]
            holds[own] &= np.choose(operators, outcomes)

    def _test(
        self, rules: Ints, sides: Sequence[Ints], interval_us: tuple[Ints, Ints], holds: Flags
    ) -> None:
        """Leave out rows of which another condition does not hold."""
        conditions = {rule: self._plan.rules[rule].condition for rule in np.unique(rules).tolist()}
        if not any(conditions.values()):
            return
        starts_us, ends_us = interval_us
        for i in np.flatnonzero(holds).tolist():
            condition = conditions[int(rules[i])]
            if condition is not None:
                values = _RowValues(self, [int(side[i]) for side in sides])
                holds[i] = condition(RowView(values, int(starts_us[i]), int(ends_us[i])))

    # -- where values are ----------------------------------------------------------------------

    def _joins_of(self, rule: Rule, half: int) -> list[str]:
        return [join[half] for join in rule.joins]

    def _comparisons_of(self, rule: Rule, half: int) -> list[str]:
        return [str(comparison[half]) for comparison in rule.comparisons]

    def _located(
        self,
        rules: Ints,
        sides: Sequence[Ints],
        terms_of: Callable[[Rule, int], list[str]],
        half: int,
    ) -> tuple[list[list[Located]], Ints]:
        """Return where the terms are of each combination of rule and seats, and which rows have."""
        seats = [self._contenders["seat"][side] for side in sides]
        combinations, which = _combinations([rules, *seats])
        found = []
        for rule, *own in combinations:
            found.append([self._place(t, own) for t in terms_of(self._plan.rules[rule], half)])
        return found, which

    def _place(self, name: str, seats: Sequence[int]) -> Located:
        for side in reversed(range(len(seats))):
            terms = self._plan.streams[seats[side]].terms
            if name in terms:
                return side, terms.index(name)
        raise AssertionError(f"no side has {name}")

    def _slots(
        self, k: int, asked: list[list[Located]], which: Ints, sides: Sequence[Ints]
    ) -> tuple[Ints, Ints]:
        """Return the rows that have a term `k`, and the slot of its value in each."""
        has = np.array([len(each) > k for each in asked], np.bool_)[which]
        own = np.flatnonzero(has)
        table = np.array([each[k] if len(each) > k else (0, 0) for each in asked], np.int64)
        side, place = table[which[own]].T
        rows = sides[0][own]
        for number in range(1, len(sides)):
            rows = np.where(side == number, sides[number][own], rows)
        return own, self._contenders["slot"][rows] + place

    def text(self, rows: Sequence[int], name: str) -> str:
        """Return the value of a term in rows together."""
        side, place = self._place(name, [int(self._contenders["seat"][row]) for row in rows])
        value = self._contenders.texts[int(self._contenders["slot"][rows[side]]) + place]
        assert value is not None
        return str(value)


def _mixed(keys: Hashes, values: Hashes) -> Hashes:
    mixed: Hashes = (keys ^ values) * _MIX
    return mixed ^ (mixed >> _SHIFT)


def _combinations(columns: Sequence[Ints]) -> tuple[list[list[int]], Ints]:
    """Return the distinct rows of columns, and which of them each row is."""
    which = np.zeros(len(columns[0]), np.int64)
    if not len(which):
        return [], which
    for column in columns:
        if (column == column[0]).all():
            continue
        distinct, own = np.unique(column, return_inverse=True)
        _, which = np.unique(which * len(distinct) + own, return_inverse=True)
    _, firsts = np.unique(which, return_index=True)
    return np.stack([column[firsts] for column in columns], axis=1).tolist(), which


class _RowValues:
    """The values of rows together, by the names of terms."""

    def __init__(self, conditions: Conditions, rows: Sequence[int]) -> None:
        self._conditions = conditions
        self._rows = rows

    def __getitem__(self, name: str) -> str:
        return self._conditions.text(self._rows, name)


@dataclass(frozen=True, slots=True)
class RowView:
    """Rows together, as conditions read them: no parameter is left in what is decided."""

    values: _RowValues
    start_us: int
    end_us: int

    @property
    def parameters(self) -> Mapping[str, Any]:
        """No values."""
        return {}

    def value(self, name: str) -> str:
        """Return the value of a term."""
        return self.values[name]
