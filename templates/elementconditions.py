"""Conditions in braces that hold an element against data, as conditions of its block.

What an element, or a unit that must be absent, is asked beside nothing else says of its node what
`[k = $x]` says in the block, where there is a place for data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from xscl.functions import FUNCTIONS
from xscl.path import (
    Comparison,
    Condition,
    Exists,
    FunctionValue,
    Literal,
    Not,
    Parameter,
    Path,
    PathValue,
    StringTest,
    Value,
    condition_parameters,
)
from xscl.query import (
    Call,
    Disjunct,
    Elements,
    Operand,
    PathFrom,
    Residual,
    VariableValue,
)
from xscl.syntax import TURNED
from xscl.texttests import text_test

__all__ = ["without_conditions_of_elements"]

OfNode = tuple[str, Condition]
"""A variable, and what is asked of its node."""

_Asked = TypeVar("_Asked", Residual, Call)


def without_conditions_of_elements(
    asked: tuple[Disjunct, ...], added: dict[str, tuple[Condition, ...]]
) -> tuple[Disjunct, ...]:
    """Return what is asked of candidates without conditions of nodes, which are added to these."""
    if len(asked) != 1:
        return asked
    [only] = asked
    residuals = {each: _of_residual(each) for each in only.residuals}
    tests = {each: _of_test(each) for each in only.tests}
    for variable, condition in filter(None, (*residuals.values(), *tests.values())):
        added[variable] += (condition,)
    return (replace(only, residuals=_left_over(residuals), tests=_left_over(tests)),)


def _left_over(found: Mapping[_Asked, OfNode | None]) -> tuple[_Asked, ...]:
    return tuple([each for each, of_node in found.items() if of_node is None])


def _of_residual(residual: Residual) -> OfNode | None:
    left, right, operator = residual.left, residual.right, residual.operator
    for one, data, compared in ((left, right, operator), (right, left, TURNED[operator])):
        if isinstance(data, Parameter) and (own := _of_candidate(one)) is not None:
            return own[0], Comparison(own[1], compared, data)
    return None


def _of_test(test: Call) -> OfNode | None:
    match test:
        case Call(function, (operand, Parameter() as data, *flags)) if (
            own := _of_candidate(operand)
        ) is not None:
            written = "".join(str(each.value) for each in flags if isinstance(each, Literal))
            is_test = len(flags) < 2 and text_test(function, written) is not None
            return (own[0], StringTest(function, own[1], data, written)) if is_test else None
        case Call("exists" | "empty" as function, (Elements(None, "candidate", PathFrom() as of),)):
            holds = Exists(of.path)
            if any(condition_parameters(holds)):
                return of.variable, holds if function == "exists" else Not(holds)
    return None


def _of_candidate(operand: Operand) -> tuple[str, Value] | None:
    """Return a variable of the candidate, and an operand as a value of its node."""
    match operand:
        case Elements(None, "candidate", VariableValue(name)):
            return name, PathValue(Path(()))
        case Elements(None, "candidate", PathFrom(name, path)):
            return name, PathValue(path)
        case Call(function, (of, *further)) if function in FUNCTIONS:
            own = _of_candidate(of)
            literals = [each for each in further if isinstance(each, Literal)]
            if own is not None and literals == further:
                return own[0], FunctionValue(function, (own[1], *literals))
    return None
