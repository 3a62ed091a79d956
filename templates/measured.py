"""Measures of sets in a clause: tests of a number that is worked out of a tuple's values."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from templates.box import BAR, Measured, Place, Test
from templates.clause import Clause
from templates.decision import Decided
from templates.queryclass import SetKind, SimilarPair
from xscl.path import Literal, Parameter
from xscl.pattern import INEQUALITIES, derivation, term_variable
from xscl.query import (
    Call,
    Disjunct,
    Operand,
    Residual,
    SimilarityJoin,
    operand_parameters,
    operand_variables,
)
from xscl.signatures import MEASURES
from xscl.textjoins import is_of_strings

__all__ = ["in_text", "is_scored", "similar_pairs", "split_measured", "test_of", "thresholds"]

SMALLEST = sys.float_info.min
"""A threshold that every score above 0 passes."""


def in_text(below: Sequence[Clause | None], own: Disjunct) -> tuple[SimilarityJoin, ...]:
    """Return the similarity joins of an operator and of the clauses of its operands, in order."""
    if not own.similarity_joins and not [each for each in below if each and each.similar]:
        return ()
    first, *others = [() if each is None else each.similar for each in below]
    return tuple(dict.fromkeys((*first, *own.similarity_joins, *(j for o in others for j in o))))


def similar_pairs(disjunct: Disjunct, variables: Mapping[str, int]) -> tuple[SimilarPair, ...]:
    """Return the similarity joins by which a class can be paired; `variables` are the terms'."""
    found: list[SimilarPair] = []
    for join in disjunct.similarity_joins:
        if _is_measure(join.measured):
            left, right = derivation(join.left), derivation(join.right)
            assert isinstance(left, Call)
            assert isinstance(right, Call)
            first = SetKind(variables[term_variable(join.left)], left)
            other = SetKind(variables[term_variable(join.right)], right)
            found.append(SimilarPair(join.measure, first, other, join.is_turned))
    return tuple(found)


def is_scored(clause: Clause) -> bool:
    """Return whether a measure is held against data in what a clause decides."""
    decided = clause.query_class.decided
    return isinstance(decided, Decided) and decided.decision.is_scored


def thresholds(clause: Clause, bounds: Iterable[float]) -> tuple[float, ...]:
    """Return what a box asks at least of the similarity joins of a clause's class.

    Of a decision it is what is asked at least of the scores that are held against data.

    `bounds` are those of the box, upper ones: the tests from below have them negated.  At 0 all
    pairs are asked for; above 0, however little it is, only pairs that share something.
    """
    found: list[float] = []
    bars: list[float] = []
    given = iter(bounds)
    is_decided = is_scored(clause)
    for test in clause.box:
        if test.operator in INEQUALITIES:
            bound = next(given)
            if isinstance(test.place, Measured):
                found.append(_least(-bound, is_above=test.operator == ">"))
            elif is_decided and test.place == BAR:
                # A bar that is below a threshold takes away what has it, and one that may be at it
                # what is above.
                bars.append(_least(bound, is_above=test.operator == "<="))
    count = 1 if is_decided else len(clause.query_class.similar)
    return tuple((found or bars)[:count])


def _least(threshold: float, *, is_above: bool) -> float:
    if math.isnan(threshold):
        return math.inf
    return SMALLEST if is_above and threshold == 0 else max(threshold, 0.0)


def split_measured(
    disjunct: Disjunct, others: Iterable[Residual]
) -> tuple[list[Residual], list[Residual]]:
    """Return the comparisons of a measure with a number that is data, and the other residuals.

    What makes a set must not depend on an assignment: then it is no data alone.
    """
    rest: list[Residual] = []
    measured: list[Residual] = []
    for each in (*(join.residual for join in disjunct.similarity_joins), *others):
        is_measured = each.operator in INEQUALITIES and _is_measure(each.left)
        is_data = isinstance(each.right, Parameter) or (
            isinstance(each.right, Literal) and isinstance(each.right.value, (int, float))
        )
        (measured if is_measured and is_data else rest).append(each)
    return measured, rest


def _is_measure(operand: Operand) -> bool:
    """Whether an operand is a measure of sets, each of one variable's text and of literals."""
    match operand:
        case Call(function, arguments) if function in MEASURES:
            return all(
                isinstance(each, Call)
                and len(operand_variables(each)) == 1
                and all(map(_is_of_text, each.arguments))
                for each in arguments
            )
    return False


def _is_of_text(operand: Operand) -> bool:
    return is_of_strings(operand) and not operand_parameters(operand)


def test_of(measured: Residual, place_of: Callable[[str], Place]) -> Test:
    """Return the comparison of a measure with data as a test of tuples."""
    call, operator, data = measured.left, measured.operator, measured.right
    assert isinstance(call, Call)
    sets: list[Any] = list(call.arguments)
    places = [place_of(term_variable(each)) for each in sets]
    left, right = (derivation(each) for each in sets)
    assert isinstance(left, Call)
    assert isinstance(right, Call)
    number = Measured(call.function, places[0], left, places[1], right, operator)
    assert isinstance(data, (Literal, Parameter))
    return Test(number, operator, data.value if isinstance(data, Literal) else data)
