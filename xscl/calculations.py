"""Comparisons of numbers, and frames, of XPath 1.0 that are not solved for the data within.

`price > vat mod $x` and `price != vat * $x` are no chain of steps (`xscl.solving`), and of what
`and`, `or` and `not` combine each is one test of several.  So a node has all its values in one
text, and who looks for a comparison has that as a text, with its data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from xscl.arithmetic import CALCULATE, COMPARE
from xscl.excerpttests import is_asked_of_excerpt, passes_excerpt
from xscl.path import (
    FunctionValue,
    Literal,
    Parameter,
    PathValue,
    Value,
    XPathFrame,
    XPathValue,
)
from xscl.xpath1calls import call_xpath, given_value
from xscl.xpath1numbers import as_number, number_of_truth

__all__ = [
    "ALL_VALUES",
    "CALCULATED",
    "NOT",
    "Calculation",
    "Framed",
    "Side",
    "calculation",
    "framed_by",
    "passes_calculated",
    "read_calculation",
]

ALL_VALUES = "all values"
"""The function whose value is one text: of each operand, all numbers, or texts, of a node."""

CALCULATED = "calculated"
"""The operator of a text of values that passes a comparison, or a frame."""

NOT = "not "
"""What stands before the operator of a comparison that must not hold."""

Side = int | float | Parameter | tuple[Any, ...]
"""An operand by its place, a number, a parameter, or a function with its sides."""


class Calculation(NamedTuple):
    """Two sides and how they are compared; `int` are places of operands.

    How is an operator, or `NOT` and one: then no two numbers are to be compared so.
    """

    left: Side
    operator: str
    right: Side

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters."""
        for side in (self.left, self.right):
            yield from _parameters(side)

    def text(self, values: Mapping[str, Any]) -> str:
        """Return it with the values of parameters, each as the number that XPath 1.0 reads."""
        return json.dumps([_given(self.left, values), self.operator, _given(self.right, values)])

    def opposite(self) -> Calculation:
        """Return what holds where it does not."""
        return self._replace(operator=f"{NOT}{self.operator}")


class Framed(NamedTuple):
    """What XPath 1.0 asks of parameters and of operands: of their places, nodes or not."""

    expression: str
    arguments: tuple[Parameter | tuple[int, bool], ...]

    def parameters(self) -> Iterator[Parameter]:
        """Yield its parameters."""
        return (each for each in self.arguments if isinstance(each, Parameter))

    def text(self, values: Mapping[str, Any]) -> str:
        """Return it with the values of parameters."""
        given = (
            given_value(values[e.name]) if isinstance(e, Parameter) else e for e in self.arguments
        )
        return json.dumps([self.expression, [*given]])

    def opposite(self) -> Framed:
        """Return what holds where it does not."""
        return self._replace(expression=f"not({self.expression})")


def framed_by(frame: XPathFrame) -> tuple[FunctionValue, Framed]:
    """Return a frame around values, and the operand that has those of a node for it."""
    operands = tuple(dict.fromkeys(e for e in frame.arguments if not isinstance(e, Parameter)))
    arguments = tuple(
        each if isinstance(each, Parameter) else (operands.index(each), isinstance(each, PathValue))
        for each in frame.arguments
    )
    return FunctionValue(ALL_VALUES, operands), Framed(frame.expression, arguments)


def _passes_framed(values: Sequence[Sequence[Any]], expression: str, arguments: list[Any]) -> bool:
    own = [
        (values[each[0]] if each[1] else values[each[0]][0]) if isinstance(each, list) else each
        for each in arguments
    ]
    return call_xpath(number_of_truth(expression), own) == 1.0


def read_calculation(text: str) -> Calculation:
    """Return a comparison without parameters that was written as a text."""
    left, operator, right = _read(text)
    return Calculation(_of_tuples(left), operator, _of_tuples(right))


def _of_tuples(side: Any) -> Side:
    return tuple(map(_of_tuples, side)) if isinstance(side, list) else side


def calculation(left: Value, operator: str, right: Value) -> tuple[FunctionValue, Calculation]:
    """Return a comparison of two sides, and the operand that has the numbers of a node for it."""
    operands: list[Value] = []

    def side(value: Value) -> Side:
        match value:
            case FunctionValue(function, arguments):
                return (function, *map(side, arguments))
            case Literal(number):
                return as_number(number)
            case Parameter():
                return value
        assert isinstance(value, XPathValue)
        if value not in operands:
            operands.append(value)
        return operands.index(value)

    compared = Calculation(side(left), operator, side(right))
    return FunctionValue(ALL_VALUES, tuple(operands)), compared


def _parameters(side: Side) -> Iterator[Parameter]:
    if isinstance(side, Parameter):
        yield side
    elif isinstance(side, tuple):
        for each in side[1:]:
            yield from _parameters(each)


def _given(side: Side, values: Mapping[str, Any]) -> Any:
    match side:
        case Parameter(name):
            given = values[name]
            return as_number(given if isinstance(given, str) else float(given))
        case (function, *sides):
            return [function, *(_given(each, values) for each in sides)]
    return side


def passes_calculated(text: str, wanted: str) -> bool:
    """Return whether numbers, or an excerpt, of a node, as a text has them, pass what is asked.

    XPath 1.0 compares each node of a path with a number.
    """
    if is_asked_of_excerpt(wanted):
        return passes_excerpt(text, wanted)
    numbers, compared = _read(text), _read(wanted)
    if len(compared) == 2:
        return _passes_framed(numbers, *compared)
    left, operator, right = compared
    compare = COMPARE[operator.removeprefix(NOT)]
    ones, others = _side(left, numbers), _side(right, numbers)
    found = any(compare(one, other) for one in ones for other in others)
    return found is not operator.startswith(NOT)


@lru_cache(maxsize=4_096)
def _read(text: str) -> Any:
    return json.loads(text)


def _side(side: Any, numbers: Sequence[Sequence[float]]) -> Sequence[float]:
    if isinstance(side, int):
        return numbers[side]
    if isinstance(side, float):
        return (side,)
    function, *sides = side
    own = [next(iter(_side(each, numbers)), math.nan) for each in sides]
    return (-own[0] if len(own) == 1 else CALCULATE[function](*own),)
