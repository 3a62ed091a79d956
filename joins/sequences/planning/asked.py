"""What rules ask, in columns: equalities and comparisons of terms, and the rest as functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.columns import Columns
from joins.sequences.planning.terms import Terms
from templates.rule import Condition, Rule

__all__ = ["AskedRules"]


class AskedRules:
    """The rules by number."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._rules = Columns(
            dict.fromkeys(("joins", "join_count", "comparisons", "comparison_count"), np.int64)
            | {"has_condition": np.bool_}
            | dict.fromkeys(("list", "listed", "held_on"), np.int64)
        )
        self._pairs = Columns(dict.fromkeys(("left", "operator", "right"), np.int64))
        self._conditions: dict[int, Condition] = {}

    def add(self, rule: Rule, held_on: int = -1) -> int:
        """Take a rule; return its number.

        `held_on` is the side on which a value is held against what that of an absent row is, if
        there is one.
        """
        number = len(self._rules)
        pairs = [(a, 0, b) for a, b in rule.joins] + rule.comparisons
        first = self._pairs.append(
            len(pairs),
            left=np.array([self._terms.number(a) for a, _, _ in pairs], np.int64),
            operator=np.array([operator for _, operator, _ in pairs], np.int64),
            right=np.array([self._terms.number(b) for _, _, b in pairs], np.int64),
        )
        self._rules.append(
            1,
            joins=first,
            join_count=len(rule.joins),
            comparisons=first + len(rule.joins),
            comparison_count=len(rule.comparisons),
            has_condition=rule.condition is not None,
            held_on=held_on,
            list=-1 if rule.listed is None else self._terms.number(rule.listed[0]),
            listed=-1 if rule.listed is None else self._terms.number(rule.listed[1]),
        )
        if rule.condition is not None:
            self._conditions[number] = rule.condition
        return number

    def joins(self, rules: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield the equalities of rules, one of each at a time: which rules, and both terms."""
        for own, pairs in self._each(rules, "joins", "join_count"):
            yield own, self._pairs["left"][pairs], self._pairs["right"][pairs]

    def held_on(self, rules: Ints) -> Ints:
        """Return of rules the side that `add` was told, -1 where there is none."""
        sides: Ints = self._rules["held_on"][rules]
        return sides

    def lists(self, rules: Ints) -> tuple[Ints, Ints]:
        """Return of rules the term that is a list, and the one that is in it; -1 where none is."""
        return self._rules["list"][rules], self._rules["listed"][rules]

    def comparisons(self, rules: Ints) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Yield the comparisons of rules so: which rules, a term, an operator, and a term."""
        for own, pairs in self._each(rules, "comparisons", "comparison_count"):
            columns = (self._pairs[name][pairs] for name in ("left", "operator", "right"))
            left, operators, right = columns
            yield own, left, operators, right

    def _each(self, rules: Ints, starts: str, counts: str) -> Iterator[tuple[Ints, Ints]]:
        first, count = self._rules[starts][rules], self._rules[counts][rules]
        for k in range(int(count.max(initial=0))):
            own = np.flatnonzero(count > k)
            yield own, first[own] + k

    def are_equalities(self, rules: Ints) -> Flags:
        """Return which rules ask for nothing but equalities."""
        is_more = self._rules["has_condition"][rules] | (self._rules["comparison_count"][rules] > 0)
        equalities: Flags = ~is_more
        return equalities

    def has_conditions(self, rules: Ints) -> bool:
        """Return whether any of some rules has a condition beside these, which is called."""
        return bool(self._rules["has_condition"][rules].any())

    def conditions(self, rules: Ints) -> Iterator[tuple[int, Condition]]:
        """Yield which of some rules have a condition beside these, and the condition."""
        for i in np.flatnonzero(self._rules["has_condition"][rules]).tolist():
            yield i, self._conditions[int(rules[i])]
