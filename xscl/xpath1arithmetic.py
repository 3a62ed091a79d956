"""Comparisons of numbers in XPath 1.0 with parameters within: `price > vat * $x`.

What has no parameter is a number of its node, which XPath 1.0 works out; what is calculated of
these and of parameters is arithmetic like any other.
"""

from __future__ import annotations

from collections.abc import Callable

from xscl.path import FunctionValue, Literal, Parameter, Path, Value, XPathNumber
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
from xscl.xpath1numbers import as_number

__all__ = ["Calculated", "calculated_comparison"]

Calculated = tuple[Value, str, Value]
"""Two sides, and how they are compared.

A side is made of numbers and parameters by functions that are called as operators are.
"""

TextOf = Callable[[Expression], tuple[str, tuple[tuple[str, str], ...]]]
"""Gives an expression as text, and the prefixes that it uses."""

PathOf = Callable[[PathExpression], Path | None]


def calculated_comparison(
    expression: Expression, text_of: TextOf, path_of: PathOf
) -> Calculated | None:
    """Return a comparison of numbers that are calculated with parameters; None for others.

    Of a path alone on its side each node has a number.  `!=` holds of what is no number, which is
    left to XPath 1.0.
    """
    if not isinstance(expression, Binary) or expression.operator not in TURNED:
        return None
    if expression.operator == "!=":
        return None
    sides = [_side(each, text_of, path_of) for each in (expression.left, expression.right)]
    left, right = sides
    if left is None or right is None:
        return None
    return left, expression.operator, right


def _side(expression: Expression, text_of: TextOf, path_of: PathOf) -> Value | None:
    if isinstance(expression, PathExpression):
        path = path_of(expression)
        return None if path is None else XPathNumber(path, "number(.)")
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
        case Negative(operand=operand) if _has_parameter(operand):
            return _call("-", [operand], text_of)
        case Binary(operator=operator) if operator in ARITHMETIC and _has_parameter(expression):
            return _call(operator, [expression.left, expression.right], text_of)
    if _has_parameter(expression):
        return None
    text, namespaces = text_of(expression)
    number = text if is_numeric(expression) else f"number({text})"
    return XPathNumber(Path(()), number, namespaces)


def _call(function: str, operands: list[Expression], text_of: TextOf) -> FunctionValue | None:
    found = [_number(each, text_of) for each in operands]
    known = tuple(each for each in found if each is not None)
    return FunctionValue(function, known) if len(known) == len(found) else None


def _has_parameter(expression: Expression) -> bool:
    from xscl.opaque import subexpressions

    return any(isinstance(each, ParameterRef) for each in subexpressions(expression))
