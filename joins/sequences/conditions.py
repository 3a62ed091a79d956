"""What rows must have in common, and what is tested of them, in columns.

Equalities of terms, and comparisons of two terms, are made for all rows at once; any other
condition is called for each that is left.  Values are compared by 128 bits of hashes, as everywhere
in the join, and by their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from joins.memory.instancetable import EMPTY, Hashes
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.contenders import Contenders
from joins.sequences.plan import Plan

__all__ = ["Conditions", "RowView"]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class Conditions:
    """The rules of a plan, asked of rows of contenders: side by side, one column for each side."""

    def __init__(self, plan: Plan, contenders: Contenders) -> None:
        self._plan = plan
        self._contenders = contenders

    def keys(self, rules: Ints, sides: Sequence[Ints], half: int) -> tuple[Ints, Hashes]:
        """Return keys made of what equalities ask: which rows have one, and the key of each.

        `half` says which term of each equality is read.  The empty string joins nothing.
        """
        keys = _mixed(np.zeros(len(rules), np.uint64), rules.astype(np.uint64))
        has = np.ones(len(rules), np.bool_)
        first, _ = self._contenders.hashes
        for own, *terms in self._plan.asked.joins(rules):
            hashes = first[self._slots(terms[half], [side[own] for side in sides])]
            keys[own] = _mixed(keys[own], hashes)
            has[own[hashes == EMPTY]] = False
        rows = np.flatnonzero(has)
        return rows, keys[rows]

    def hold(self, rules: Ints, sides: Sequence[Ints], start_us: Ints, end_us: Ints) -> Flags:
        """Return where rules hold of rows together, whose interval is given."""
        holds = np.ones(len(rules), np.bool_)
        (first, other), numbers = self._contenders.hashes, self._contenders.numbers
        for own, *terms in self._plan.asked.joins(rules):
            a, b = (self._slots(each, [side[own] for side in sides]) for each in terms)
            holds[own] &= (first[a] == first[b]) & (other[a] == other[b]) & (first[a] != EMPTY)
        for own, left, operators, right in self._plan.asked.comparisons(rules):
            a, b = (self._slots(each, [side[own] for side in sides]) for each in (left, right))
            are_equal = (first[a] == first[b]) & (other[a] == other[b])
            x, y = numbers[a], numbers[b]
            outcomes = [are_equal, ~are_equal, x < y, x <= y, x > y, x >= y]
            holds[own] &= np.choose(operators, outcomes)
        for i, condition in self._plan.asked.conditions(rules):
            if holds[i]:
                rows = [int(side[i]) for side in sides]
                view = RowView(self, rows, int(start_us[i]), int(end_us[i]))
                holds[i] = condition(view)
        return holds

    def _slots(self, terms: Ints, sides: Sequence[Ints]) -> Ints:
        """Return the slots of terms' values, each in the row of the side that has it."""
        slots = np.full(len(terms), -1, np.int64)
        for rows in sides:
            seats, first = self._contenders["seat"][rows], self._contenders["slot"][rows]
            places = self._plan.terms.places(terms, self._plan.seats["layout"][seats])
            slots = np.where(places >= 0, first + places, slots)
        assert (slots >= 0).all(), "a term is on no side"
        return slots

    def text(self, rows: Sequence[int], name: str) -> str:
        """Return the value of a term in rows together."""
        number = np.array([self._plan.terms.number(name)])
        [slot] = self._slots(number, [np.array([row]) for row in rows]).tolist()
        value = self._contenders.texts[slot]
        assert value is not None
        return str(value)


def _mixed(keys: Hashes, values: Hashes) -> Hashes:
    mixed: Hashes = (keys ^ values) * _MIX
    return mixed ^ (mixed >> _SHIFT)


@dataclass(frozen=True, slots=True)
class RowView:
    """Rows together, as conditions read them: no parameter is left in what is decided."""

    conditions: Conditions
    rows: Sequence[int]
    start_us: int
    end_us: int

    @property
    def parameters(self) -> Mapping[str, Any]:
        """No values."""
        return {}

    def value(self, name: str) -> str:
        """Return the value of a term."""
        return self.conditions.text(self.rows, name)
