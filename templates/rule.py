"""A conjunction that is asked of rows, taken apart: what columns say, and what is called."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from templates.decision import NOTHING, AbsentCase, Conjunction, Fit
from templates.derived import as_derived
from templates.hadtests import GivenReading, HadValue
from templates.similarterms import similar_terms
from xscl.evaluation import (
    Condition,
    Reading,
    compile_conjunction,
    compile_score,
    values_of_optional,
)
from xscl.functions import to_double
from xscl.path import Literal, Parameter
from xscl.query import Call, Operand, PathFrom, Residual, SimilarityJoin, VariableValue, term

__all__ = [
    "OPERATORS",
    "Condition",
    "Reading",
    "Rule",
    "numbers_of",
    "rule_of_case",
    "rule_of_fit",
    "values_in_lists",
]

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
"""Operators of comparisons, by number: from the third on they compare numbers."""


_DURATION = Call("dur", ())


class Rule:
    """A conjunction: `joins`, `comparisons` of two terms, and a `condition` of what is left.

    A comparison is a term, the number of its operator, and a term; `same` are joins of values that
    may be empty.  Where `others`, terms of what
    is absent, are held against an optional path, `listed` is one such equality, by which rows can
    be looked up: the term that has the path's values as a list, and the other one.  It is tested by
    the condition too, and so is `similar`, a similarity join.  `is_found_by_words` says that rows
    can be looked up by it: nothing is equal, and its right set is of the terms `last`, those of the
    operand that stands last.  `score` is a measure that is held against data, at the lowest
    threshold: it is no part of the condition.  Rows are no longer together than `within` says, if
    that is a term.
    """

    def __init__(
        self,
        asked: Conjunction,
        others: Collection[str] = (),
        last: Collection[str] = (),
        score: SimilarityJoin | None = None,
    ) -> None:
        self.joins, self.same = asked.joins, asked.same
        self.listed = _listed(asked, others)
        similar = [score] if score is not None else asked.rest.similarity_joins
        self.similar = similar_terms(similar)
        turned = self.similar and self.similar.with_right(last or others)
        self.is_found_by_words = bool(turned) and not self.joins and self.listed is None
        self.similar = turned or self.similar
        self.score = None if score is None else compile_score(score.residual)
        self.comparisons: list[tuple[str, int, str]] = []
        further: list[Residual] = []
        self.within = ""
        given = {value.parameter: value.term for value in asked.given}
        for each in asked.rest.residuals:
            left, right = each.left, each.right
            is_within = left == _DURATION and each.operator == "<=" and not self.within
            if is_within and isinstance(right, Parameter) and right.name in given:
                self.within = given[right.name]
            elif isinstance(left, VariableValue) and isinstance(right, VariableValue):
                operator = OPERATORS.index(each.operator)
                self.comparisons.append((left.variable, operator, right.variable))
            else:
                further.append(each)
        conditions: list[Condition] = []
        for test in asked.had:
            if test.comparison is None:
                conditions.append(test.condition())
            else:
                left_term, how, right_term = test.comparison
                self.comparisons.append((left_term, OPERATORS.index(how), right_term))
        rest = replace(asked.rest, residuals=tuple(further))
        if rest != NOTHING:
            conditions.append(_with(asked.given, compile_conjunction(rest)))
        self.condition = _all_of(conditions) if conditions else None

    @property
    def has_numbers(self) -> bool:
        """Whether it compares numbers."""
        return bool(self.within) or any(operator > 1 for _, operator, _ in self.comparisons)


def _with(given: tuple[HadValue, ...], condition: Condition) -> Condition:
    return (lambda rows: condition(GivenReading(rows, given))) if given else condition


def _all_of(conditions: Sequence[Condition]) -> Condition:
    if len(conditions) == 1:
        return conditions[0]
    return lambda reading: all(each(reading) for each in conditions)


def rule_of_case(case: AbsentCase, least: float) -> Rule:
    """Return what a case of an absence asks; of a score, that it is at least so much."""
    score = case.score and replace(case.score, threshold=Literal(least))
    return Rule(case.asked, case.stream.terms, score=score)


def rule_of_fit(fit: Fit, least: float) -> Rule:
    """Return what is asked of a pair; of a score, that it is at least so much."""
    score = fit.score and replace(fit.score, threshold=Literal(least))
    return Rule(fit.asked, last=fit.right.terms, score=score)


def _listed(asked: Conjunction, others: Collection[str]) -> tuple[str, str] | None:
    for join in asked.rest.value_joins:
        path: Operand = join.left
        other = as_derived(join.right)
        if isinstance(path, PathFrom) and other is not None and term(other) in others:
            return term(path), term(other)
    return None


def values_in_lists(texts: Iterable[str]) -> list[list[str]]:
    """Return the values that each of some values is a list of: those of an optional path."""
    return [[*map(str, values_of_optional(text))] for text in texts]


def numbers_of(values: Iterable[str | None]) -> list[float]:
    """Return values as `xs:double`; what is no number is NaN."""
    return [to_double(value or "") for value in values]
