"""Comparisons of numbers in XPath 1.0 with data within: `price > vat * $x`, `price > vat * 3`.

What has no data is a number of its node, which XPath 1.0 works out; what is calculated of these and
of data is arithmetic like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from xscl.opaque import has_parameters
from xscl.path import FunctionValue, Literal, Parameter, Path, Value, XPathValue
from xscl.syntax import (
    ARITHMETIC,
    TURNED,
    Binary,
    Expression,
    FunctionCall,
    Negative,
    NumberLiteral,
    ParameterRef,
    PathExpression,
)
from xscl.xpath1 import is_numeric
from xscl.xpath1frames import PathOf, TextOf
from xscl.xpath1numbers import NUMBER_OF_TEXT, as_number

__all__ = ["Calculated", "calculated_comparison", "written_comparison"]

Calculated = tuple[Value, str, Value]
"""Two sides, and how they are compared.

A side is made of numbers and parameters by functions that are called as operators are.
"""


def calculated_comparison(
    expression: Expression, text_of: TextOf, path_of: PathOf
) -> Calculated | None:
    """Return a comparison of numbers that are calculated with parameters; None for others.

    Of a path alone on its side each node has a number.
    """
    if not isinstance(expression, Binary) or expression.operator not in TURNED:
        return None
    sides = [_side(each, text_of, path_of) for each in (expression.left, expression.right)]
    left, right = sides
    if left is None or right is None:
        return None
    return left, expression.operator, right


def written_comparison(
    expression: Expression, text_of: TextOf, path_of: PathOf
) -> Calculated | None:
    """Return a comparison of numbers that are calculated with such that are written out.

    Where it may be solved for one, it is the first one with which nothing is done but that, and the
    only `Literal` on its side.  All else are numbers, of several the first; but of a path alone on
    the other side each counts.
    """
    if not isinstance(expression, Binary) or expression.operator not in TURNED:
        return None
    left, right = expression.left, expression.right

    def number_of(operand: Expression) -> XPathValue:
        path = path_of(operand) if isinstance(operand, PathExpression) else None
        # Its nodes come in the order of the document, of which the first one counts.
        if path is not None and not any(step.is_deep for step in path.steps):
            return XPathValue(path, NUMBER_OF_TEXT)
        return _number_of_node(operand, text_of)

    for is_left, (one, other) in ((True, (left, right)), (False, (right, left))):
        if expression.operator == "!=":
            break
        for calculated in _around_literals(one, number_of):
            if not isinstance(calculated, FunctionValue):
                continue
            beside = _side(other, text_of, path_of)
            if beside is None:
                break
            sides = (calculated, beside) if is_left else (beside, calculated)
            return sides[0], expression.operator, sides[1]
    sides_of = [
        _of_literals(each, number_of) or _side(each, text_of, path_of) for each in (left, right)
    ]
    if None in sides_of or not any(isinstance(each, FunctionValue) for each in sides_of):
        return None
    return cast(Value, sides_of[0]), expression.operator, cast(Value, sides_of[1])


def _of_literals(expression: Expression, number_of: Callable[[Expression], Value]) -> Value | None:
    """Return an expression around all numbers that are written in it; None without any."""
    match expression:
        case NumberLiteral(value=value):
            return Literal(as_number(value))
        case Negative(operand=operand):
            own = _of_literals(operand, number_of)
            return None if own is None else FunctionValue("-", (own,))
        case Binary(operator=operator, left=left, right=right) if operator in ARITHMETIC:
            sides = [_of_literals(each, number_of) for each in (left, right)]
            if sides == [None, None]:
                return None
            numbers = (own or number_of(e) for own, e in zip(sides, (left, right), strict=True))
            return FunctionValue(operator, tuple(numbers))
    return None


def _around_literals(
    expression: Expression, number_of: Callable[[Expression], Value]
) -> Iterator[Value]:
    """Yield an expression once for each number that is written in it, all else made numbers."""
    match expression:
        case NumberLiteral(value=value):
            yield Literal(as_number(value))
        case Negative(operand=NumberLiteral(value=value)):
            yield Literal(-as_number(value))
        case Negative(operand=operand):
            for each in _around_literals(operand, number_of):
                yield FunctionValue("-", (each,))
        case Binary(operator="+" | "-" | "*" | "div" as operator, left=left, right=right):
            for each in _around_literals(left, number_of):
                yield FunctionValue(operator, (each, number_of(right)))
            if operator != "div":
                for each in _around_literals(right, number_of):
                    yield FunctionValue(operator, (number_of(left), each))


def _side(expression: Expression, text_of: TextOf, path_of: PathOf) -> Value | None:
    if isinstance(expression, PathExpression):
        path = path_of(expression)
        return None if path is None else XPathValue(path, NUMBER_OF_TEXT)
    return _number(expression, text_of) if is_numeric(expression) else None


def _number(expression: Expression, text_of: TextOf) -> Value | None:
    """Return a number that arithmetic makes; None where a parameter stands otherwise."""
    match expression:
        case NumberLiteral(value=value):
            return Literal(as_number(value))
        case (
            ParameterRef(name=name)
            | FunctionCall(name="number", arguments=[ParameterRef(name=name)])
        ):
            return Parameter(name)
        case Negative(operand=operand) if has_parameters(operand):
            return _call("-", [operand], text_of)
        case Binary(operator=operator) if operator in ARITHMETIC and has_parameters(expression):
            return _call(operator, [expression.left, expression.right], text_of)
    return None if has_parameters(expression) else _number_of_node(expression, text_of)


def _number_of_node(expression: Expression, text_of: TextOf) -> XPathValue:
    """Return what XPath 1.0 makes of an expression without parameters."""
    text, namespaces = text_of(expression)
    number = text if is_numeric(expression) else f"number({text})"
    return XPathValue(Path(()), number, namespaces)


def _call(function: str, operands: list[Expression], text_of: TextOf) -> FunctionValue | None:
    found = [_number(each, text_of) for each in operands]
    known = tuple(each for each in found if each is not None)
    return FunctionValue(function, known) if len(known) == len(found) else None
