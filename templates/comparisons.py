"""What operators compare, as one list: conjunctions taken apart, and put together again."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from typing import TypeGuard

from templates.datatests import data_test, word_test
from xscl.comparison import is_datum, is_of_one
from xscl.path import Literal, Parameter
from xscl.query import (
    Call,
    Derived,
    Disjunct,
    Operand,
    Residual,
    SimilarityJoin,
    ValueJoin,
    operand_variables,
)

__all__ = [
    "Comparison",
    "EqualTerm",
    "both",
    "compared",
    "comparisons_of",
    "conjunction",
    "equality",
    "held_against_data",
]

Comparison = ValueJoin | Residual | SimilarityJoin | Call

EqualTerm = Derived | Literal | Parameter
"""What an equality speaks of: data, a variable, or a function of one."""


def comparisons_of(disjunct: Disjunct) -> list[Comparison]:
    """Return the comparisons of a conjunction."""
    return [
        *disjunct.value_joins,
        *disjunct.residuals,
        *disjunct.similarity_joins,
        *disjunct.tests,
    ]


def conjunction(comparisons: Sequence[Comparison]) -> Disjunct:
    """Return comparisons as one conjunction."""
    return Disjunct(
        tuple(each for each in comparisons if isinstance(each, ValueJoin)),
        tuple(each for each in comparisons if isinstance(each, Residual)),
        tuple(each for each in comparisons if isinstance(each, SimilarityJoin)),
        tuple(each for each in comparisons if isinstance(each, Call)),
    )


def both(first: Disjunct, second: Disjunct) -> Disjunct:
    """Return two conjunctions as one, without what stands twice."""
    return conjunction(list(dict.fromkeys([*comparisons_of(first), *comparisons_of(second)])))


def compared(comparison: Comparison) -> tuple[Operand, ...]:
    """Return the operands of a comparison."""
    match comparison:
        case Call():
            return (comparison,)
        case SimilarityJoin():
            return compared(comparison.residual)
    return (comparison.left, comparison.right)


def equality(comparison: Comparison) -> tuple[EqualTerm, EqualTerm] | None:
    """Return the two terms that a comparison makes equal, None for another comparison."""
    if isinstance(comparison, ValueJoin) or (
        isinstance(comparison, Residual) and comparison.operator == "="
    ):
        left, right = comparison.left, comparison.right
        if _is_equal_term(left) and _is_equal_term(right):
            return left, right
    return None


def _is_equal_term(operand: Operand) -> TypeGuard[EqualTerm]:
    return is_datum(operand) or is_of_one(operand)


def held_against_data(
    disjunct: Disjunct, names: Set[str], texts: Collection[str]
) -> tuple[Disjunct, Disjunct]:
    """Split a conjunction into what it holds against parameters of some variables, and the rest.

    `texts` are the parameters whose values are never numbers.
    """
    comparisons = comparisons_of(disjunct)
    own = [each for each in comparisons if _is_held_against_data(each, names, texts)]
    return conjunction(own), conjunction([each for each in comparisons if each not in own])


def _is_held_against_data(comparison: Comparison, names: Set[str], texts: Collection[str]) -> bool:
    tested = None
    if isinstance(comparison, Residual):
        tested = data_test(comparison, texts)
    elif isinstance(comparison, Call):
        tested = word_test(comparison)
    if tested is None:
        return False
    value, test = tested
    return isinstance(test.data, Parameter) and names >= set(operand_variables(value))
