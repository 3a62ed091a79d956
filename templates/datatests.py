"""Conditions of a clause that compare one value with data: the join tests them by itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from templates.derived import as_derived
from xscl.path import Literal, Parameter
from xscl.pattern import INEQUALITIES, Constant, DataTest
from xscl.query import (
    Call,
    Derived,
    Disjunct,
    Operand,
    Query,
    Residual,
    VariableValue,
    Window,
    operand_parameters,
)
from xscl.syntax import TURNED
from xscl.texttests import text_test

__all__ = ["data_test", "duration_test", "without_data", "without_implied", "word_test"]


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


def duration_test(residual: Residual) -> DataTest | None:
    """Return a residual as a test of how long a tuple's interval is; None if it is none."""
    left, right, operator = residual.left, residual.right, residual.operator
    for one, data, compared in ((left, right, operator), (right, left, TURNED[operator])):
        if one != Call("dur", ()) or compared not in INEQUALITIES:
            continue
        if isinstance(data, (Literal, Parameter)):
            return DataTest(compared, data.value if isinstance(data, Literal) else data)
    return None


def without_implied(asked: Disjunct, window: Window | Parameter, above: Disjunct) -> Disjunct:
    """Return what an operator of two blocks asks but for a longest duration that `above` asks, too.

    The interval of a tuple above holds that of this one, and the operator's window is no longer
    than the duration: so there are hardly more tuples, and they are those of any such duration.
    """
    kept = tuple(
        each
        for each in asked.residuals
        if each not in above.residuals or not _lasts_at_most(each, window)
    )
    return asked if kept == asked.residuals else replace(asked, residuals=kept)


def _lasts_at_most(residual: Residual, window: Window | Parameter) -> bool:
    """Return whether a residual asks for a duration of at most a length that is no less."""
    test = duration_test(residual)
    if test is None or test.operator != "<=":
        return False
    if isinstance(window, Parameter):
        return test.data == window
    return isinstance(test.data, (int, float)) and window.length_us <= test.data


def word_test(call: Call) -> tuple[VariableValue, DataTest] | None:
    """Return a test of a text with data as a test of one value; None if it is none.

    It is none of a function of a text, which is no value of a node: conditions read that.
    """
    match call:
        case Call(
            function, (VariableValue() as value, (Literal(str()) | Parameter()) as data, *flags)
        ):
            operator = _operator(function, flags)
            given = data.value if isinstance(data, Literal) else data
            return (value, DataTest(operator, given)) if operator else None
    return None


def _operator(function: str, flags: Sequence[Operand]) -> str | None:
    match flags:
        case []:
            return text_test(function, "")
        case [Literal(str() as written)]:
            return text_test(function, written)
    return None


def without_data(query: Query, asked: Disjunct) -> tuple[Disjunct, Disjunct]:
    """Split a conjunction into what boxes test or no parameter is in, and the rest."""
    texts = query.text_parameters
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
