"""Conditions of a clause that compare one value with data: the join tests them by itself."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from templates.derived import as_derived
from xscl.path import Literal, Parameter
from xscl.pattern import INEQUALITIES, WORD_TESTS, Constant, DataTest
from xscl.positions import TURNED
from xscl.query import Call, Derived, Disjunct, Operand, Query, Residual, operand_parameters

__all__ = ["data_test", "without_data", "word_test"]


def data_test(residual: Residual, texts: Collection[str]) -> tuple[Derived, DataTest] | None:
    """Return a residual as a test of one value; None if it is none.

    `texts` are the parameters whose values are never numbers.
    """
    left, right, operator = residual.left, residual.right, residual.operator
    for one, data, compared in ((left, right, operator), (right, left, TURNED[operator])):
        value = as_derived(one)
        if value is None or not isinstance(data, (Literal, Parameter)):
            continue
        if compared in INEQUALITIES:
            return value, DataTest(compared, data.value if isinstance(data, Literal) else data)
        if (text := _text(data, texts)) is not None:
            return value, DataTest(compared, text)
    return None


def word_test(call: Call) -> tuple[Derived, DataTest] | None:
    """Return a test of words with a parameter as a test of one value; None if it is none."""
    match call:
        case Call(function, (operand, Parameter() as given)) if function in WORD_TESTS:
            value = as_derived(operand)
            return None if value is None else (value, DataTest(function, given))
    return None


def without_data(query: Query, asked: Disjunct) -> tuple[Disjunct, Disjunct]:
    """Split a conjunction into what boxes test or no parameter is in, and the rest."""
    texts = {name for name, kind in query.parameters if kind not in ("number", "duration")}
    residuals = [
        each
        for each in asked.residuals
        if _has_parameter(each.left, each.right) and data_test(each, texts) is None
    ]
    tests = [each for each in asked.tests if _has_parameter(each) and word_test(each) is None]
    here = replace(
        asked,
        residuals=tuple(each for each in asked.residuals if each not in residuals),
        tests=tuple(each for each in asked.tests if each not in tests),
    )
    return here, Disjunct(residuals=tuple(residuals), tests=tuple(tests))


def _has_parameter(*operands: Operand) -> bool:
    return any(True for each in operands for _ in operand_parameters(each))


def _text(operand: Operand, texts: Collection[str]) -> Constant | None:
    match operand:
        case Literal(str() as text):
            return text
        case Parameter(name) if name in texts:
            return operand
    return None
