"""What rules ask, in columns: equalities and comparisons of terms, and the rest as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.columns import Columns
from joins.sequences.planning.terms import Terms
from joins.similarity.bounds import ScoreBounds
from templates.queryclass import SetKind
from templates.rule import Condition, Reading, Rule
from templates.similarterms import SimilarTerms

__all__ = ["AskedRules", "SimilarRules"]


class SimilarRules(NamedTuple):
    """Similarity joins of some rules: which rules, and of both sets the term and the kind."""

    own: Ints
    terms: tuple[Ints, Ints]
    kinds: tuple[Ints, Ints]
    bounds: ScoreBounds


class AskedRules:
    """The rules by number."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._rules = Columns(
            dict.fromkeys(("joins", "join_count", "comparisons", "comparison_count"), np.int32)
            | {"has_condition": np.bool_, "is_found_by_words": np.bool_, "has_score": np.bool_}
            | {"list": np.int64, "listed": np.int64, "within": np.int64, "similar": np.int32}
        )
        self._similar = Columns(
            dict.fromkeys(("left_term", "right_term", "left_kind", "right_kind"), np.int64)
            | dict.fromkeys(ScoreBounds._fields, np.float64)
        )
        self.kinds: dict[tuple[SetKind, bool], int] = {}
        self._pairs = Columns(
            dict.fromkeys(("left", "operator", "right"), np.int64) | {"may_be_empty": np.bool_}
        )
        self._conditions: dict[int, Condition] = {}
        self._scores: dict[int, Callable[[Reading], float]] = {}

    def add(self, rule: Rule) -> int:
        """Take a rule; return its number."""
        number = len(self._rules)
        if rule.score is not None:
            self._scores[number] = rule.score
        joins = [*rule.joins, *rule.same]
        pairs = [(a, 0, b) for a, b in joins] + rule.comparisons
        first = self._pairs.append(
            len(pairs),
            left=np.array([self._terms.number(a) for a, _, _ in pairs], np.int64),
            operator=np.array([operator for _, operator, _ in pairs], np.int64),
            right=np.array([self._terms.number(b) for _, _, b in pairs], np.int64),
            may_be_empty=np.arange(len(pairs)) >= len(rule.joins),
        )
        self._rules.append(
            1,
            joins=first,
            join_count=len(joins),
            comparisons=first + len(joins),
            comparison_count=len(rule.comparisons),
            has_condition=rule.condition is not None,
            list=-1 if rule.listed is None else self._terms.number(rule.listed[0]),
            listed=-1 if rule.listed is None else self._terms.number(rule.listed[1]),
            within=self._terms.number(rule.within) if rule.within else -1,
            similar=-1 if rule.similar is None else self._add_similar(rule.similar),
            is_found_by_words=rule.is_found_by_words,
            has_score=rule.score is not None,
        )
        if rule.condition is not None:
            self._conditions[number] = rule.condition
        return number

    def at(self, number: int, rule: Rule) -> None:
        """Look rows up by another threshold: that of a rule like the one that is there."""
        similar = -1 if rule.similar is None else self._add_similar(rule.similar)
        self._rules["similar"][number] = similar
        self._rules["is_found_by_words"][number] = rule.is_found_by_words

    def _add_similar(self, similar: SimilarTerms) -> int:
        left, right = similar.left, similar.right
        kinds = [
            self.kinds.setdefault((each.kind, each.is_list), len(self.kinds))
            for each in (left, right)
        ]
        bounds = ScoreBounds.of(similar.measure, similar.threshold, is_turned=similar.is_turned)
        return self._similar.append(
            1,
            left_term=self._terms.number(left.term),
            right_term=self._terms.number(right.term),
            left_kind=kinds[0],
            right_kind=kinds[1],
            **bounds._asdict(),
        )

    def joins(self, rules: Ints) -> Iterator[tuple[Ints, tuple[Ints, Ints], Flags]]:
        """Yield the equalities of rules, one of each at a time.

        They are: which rules, both terms, and whether an empty value is equal to another one.
        """
        for own, pairs in self._each(rules, "joins", "join_count"):
            left, right, may_be_empty = (
                self._pairs[name][pairs] for name in ("left", "right", "may_be_empty")
            )
            yield own, (left, right), may_be_empty

    def lists(self, rules: Ints) -> tuple[Ints, Ints]:
        """Return of rules the term that is a list, and the one that is in it; -1 where none is."""
        return self._rules["list"][rules], self._rules["listed"][rules]

    def lengths(self, rules: Ints) -> Ints:
        """Return of rules the term that says how long rows are together; -1 where none does."""
        terms: Ints = self._rules["within"][rules]
        return terms

    def similar(self, rules: Ints) -> SimilarRules:
        """Return the similarity joins of the rules that have one."""
        numbers = self._rules["similar"][rules]
        own = np.flatnonzero(numbers >= 0)
        columns = {name: self._similar[name][numbers[own]] for name in self._similar.names}
        return SimilarRules(
            own,
            (columns["left_term"], columns["right_term"]),
            (columns["left_kind"], columns["right_kind"]),
            ScoreBounds(*(columns[name] for name in ScoreBounds._fields)),
        )

    def are_found_by_words(self, rules: Ints) -> Flags:
        """Return by which rules rows are looked up by their words."""
        are_found: Flags = self._rules["is_found_by_words"][rules]
        return are_found

    def comparisons(self, rules: Ints) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Yield the comparisons of rules so: which rules, a term, an operator, and a term."""
        for own, pairs in self._each(rules, "comparisons", "comparison_count"):
            columns = (self._pairs[name][pairs] for name in ("left", "operator", "right"))
            left, operators, right = columns
            yield own, left, operators, right

    def _each(self, rules: Ints, starts: str, counts: str) -> Iterator[tuple[Ints, Ints]]:
        first, count = self._rules[starts][rules], self._rules[counts][rules]
        for k in range(int(count.max(initial=0))):
            own = (count > k).nonzero()[0]
            yield own, first[own] + k

    def are_equalities(self, rules: Ints) -> Flags:
        """Return which rules ask for nothing but equalities."""
        is_more = self._rules["has_condition"][rules] | (self._rules["comparison_count"][rules] > 0)
        is_more |= self._rules["has_score"][rules] | (self._rules["within"][rules] >= 0)
        equalities: Flags = ~is_more
        return equalities

    def has_conditions(self, rules: Ints) -> bool:
        """Return whether a condition is called for most rows of any of some rules."""
        is_called = self._rules["has_condition"][rules] & (self._rules["similar"][rules] < 0)
        return bool(is_called.any())

    def conditions(self, rules: Ints, holds: Flags) -> Iterator[tuple[int, Condition]]:
        """Yield which of the rules that hold have a condition beside these, and the condition."""
        if not self._conditions:
            return
        for i in np.flatnonzero(self._rules["has_condition"][rules] & holds).tolist():
            yield i, self._conditions[int(rules[i])]

    def scores(self, rules: Ints) -> list[Callable[[Reading], float]]:
        """Return of rules what gives the scores that are held against data."""
        return [self._scores[rule] for rule in rules.tolist()]
