"""Similarity joins of what is decided: the terms of their sets, by which rows can be looked up."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from templates.queryclass import SetKind
from xscl.comparison import operands_below
from xscl.path import Literal, Parameter
from xscl.query import (
    Call,
    Disjunct,
    Operand,
    PathFrom,
    SimilarityJoin,
    VariableValue,
    operand_parameters,
    term,
)
from xscl.textjoins import is_of_strings

__all__ = ["SetTerm", "SimilarTerms", "at_zero", "scored", "similar_terms"]


class SetTerm(NamedTuple):
    """A set of words of a term's value, or of each value where the term `is_list` of several."""

    term: str
    kind: SetKind
    is_list: bool


class SimilarTerms(NamedTuple):
    """A measure of two sets that is at least `threshold`, and above 0.

    `is_turned` says that the right set stands first in the measure.
    """

    measure: str
    threshold: float
    left: SetTerm
    right: SetTerm
    is_turned: bool

    def with_right(self, terms: Collection[str]) -> SimilarTerms | None:
        """Return it with the right set of some terms, and the left one of none of them."""
        left, right = self.left, self.right
        if right.term in terms and left.term not in terms:
            return self
        if left.term in terms and right.term not in terms:
            return self._replace(left=right, right=left, is_turned=not self.is_turned)
        return None


def similar_terms(joins: Iterable[SimilarityJoin]) -> SimilarTerms | None:
    """Return the first similarity join that asks for a shared word of two terms' values."""
    for join in joins:
        sides, threshold = (_set_term(join.left), _set_term(join.right)), _threshold(join)
        if sides[0] is not None and sides[1] is not None and threshold is not None:
            return SimilarTerms(join.measure, threshold, sides[0], sides[1], join.is_turned)
    return None


def scored(disjunct: Disjunct) -> tuple[Disjunct, SimilarityJoin | None]:
    """Split a conjunction into its similarity join that is held against data, and the rest.

    There is none if several are, or if its rows could not be looked up.
    """
    held = [j for j in disjunct.similarity_joins if isinstance(j.threshold, Parameter)]
    if len(held) != 1 or similar_terms([replace(held[0], threshold=Literal(1.0))]) is None:
        return disjunct, None
    others = tuple(join for join in disjunct.similarity_joins if join is not held[0])
    return replace(disjunct, similarity_joins=others), held[0]


def at_zero(join: SimilarityJoin | None) -> SimilarityJoin | None:
    """Return a similarity join as it is for all thresholds."""
    return join and replace(join, threshold=Literal(0.0))


def _threshold(join: SimilarityJoin) -> float | None:
    """Return what a score is at least, where it is above 0."""
    value = join.threshold.value if isinstance(join.threshold, Literal) else None
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value) if value > 0 or (value == 0 and join.operator == ">") else None


def _set_term(call: Call) -> SetTerm | None:
    """Return the set of one term's value, if it is made by functions of strings."""
    read = list(_read(call))
    is_plain = all(isinstance(each, Literal) for each in call.arguments[1:])
    if len(set(read)) != 1 or not is_plain or operand_parameters(call):
        return None
    base, make = read[0], _of_one_value(call)
    is_list = isinstance(base, PathFrom)
    if not is_of_strings(make.arguments[0]) or (is_list and len(read) > 1):
        return None
    return SetTerm(term(base), SetKind(0, make), is_list)


def _read(call: Call) -> Iterator[VariableValue | PathFrom]:
    """Yield the values that a call reads."""
    for each in operands_below(call):
        if isinstance(each, (VariableValue, PathFrom)):
            yield each


def _of_one_value(call: Call) -> Call:
    """Return a call with `.` for each value that it reads."""
    arguments: list[Operand] = []
    for each in call.arguments:
        if isinstance(each, (VariableValue, PathFrom)):
            arguments.append(VariableValue("."))
        else:
            arguments.append(_of_one_value(each) if isinstance(each, Call) else each)
    return replace(call, arguments=tuple(arguments))
