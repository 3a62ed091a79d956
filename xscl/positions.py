"""Which expressions are positions that the fragment can count."""

from __future__ import annotations

from xscl.opaque import subexpressions
from xscl.path import Parameter, Position
from xscl.syntax import TURNED, Binary, Expression, FunctionCall, NumberLiteral, ParameterRef

__all__ = ["as_position", "is_at", "speaks_of_position"]


def as_position(syntax: Expression) -> Position | None:
    """Return a number, `last()`, `last() - 1`, or a comparison of `position()` or `last()`.

    A parameter stands where a number can, but not added to `last()`.
    """
    if isinstance(syntax, Binary) and syntax.operator in TURNED:
        return _comparison(syntax)
    place = _place(syntax)
    if place is None:
        return None
    number, of_last = place
    return Position("=", number, of_last)


def _comparison(syntax: Binary) -> Position | None:
    left, right, operator = syntax.left, syntax.right, syntax.operator
    if _is_call(right, "position") or (_is_call(right, "last") and not _is_call(left, "position")):
        left, right, operator = right, left, TURNED[operator]
    place = _place(right)
    if place is None:
        return None
    number, of_last = place
    if _is_call(left, "position"):
        return Position(operator, number, of_last)
    if _is_call(left, "last") and not of_last:
        return Position(operator, number, is_size=True)
    return None


def _place(syntax: Expression) -> tuple[float | Parameter, bool] | None:
    """Return a number, and whether it counts back from `last()`."""
    if isinstance(syntax, NumberLiteral):
        return syntax.value, False
    if isinstance(syntax, ParameterRef):
        return Parameter(syntax.name), False
    if _is_call(syntax, "last"):
        return 0.0, True
    if not isinstance(syntax, Binary) or not _is_call(syntax.left, "last"):
        return None
    sign, right = syntax.operator, syntax.right
    if isinstance(right, NumberLiteral) and sign in ("-", "+"):
        return (right.value if sign == "-" else -right.value), True
    if isinstance(right, ParameterRef) and sign == "-":
        return Parameter(right.name), True
    return None


def is_at(number: Expression) -> Binary:
    """Return what a predicate that is a number says: `position() = number`."""
    span = number.span
    return Binary("=", FunctionCall("position", [], span, span), number, span)


def _is_call(syntax: Expression, name: str) -> bool:
    return isinstance(syntax, FunctionCall) and syntax.name == name and not syntax.arguments


def speaks_of_position(syntax: Expression) -> bool:
    """Whether `position()` or `last()` of the expression's own context stands in it."""
    return any(
        _is_call(each, "position") or _is_call(each, "last")
        for each in subexpressions(syntax, into_predicates=False)
        if isinstance(each, FunctionCall)
    )
