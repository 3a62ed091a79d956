"""Conditions of a clause that compare one value with data: the join tests them by itself."""

from __future__ import annotations

from collections.abc import Collection

from templates.derived import as_derived
from xscl.path import Literal, Parameter
from xscl.pattern import INEQUALITIES, WORD_TESTS, Constant, DataTest
from xscl.positions import TURNED
from xscl.query import Call, Derived, Operand, Residual

__all__ = ["data_test", "word_test"]


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


def _text(operand: Operand, texts: Collection[str]) -> Constant | None:
    match operand:
        case Literal(str() as text):
            return text
        case Parameter(name) if name in texts:
            return operand
    return None
