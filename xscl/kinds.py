"""What kind of number an expression is, by which a parameter beside it has its type."""

from __future__ import annotations

from xscl.signatures import MEASURES, SEQUENCE_FUNCTIONS
from xscl.syntax import (
    Binary,
    Expression,
    FunctionCall,
    IfExpression,
    LengthLiteral,
    Negative,
    NumberLiteral,
)

__all__ = ["kind_in_arithmetic", "kind_in_comparison", "kind_of"]

_OF_ARGUMENT = frozenset({"prev", "first", "last", "sum", "avg", "min", "max", "argmax", "argmin"})
_INSTANTS = frozenset({"time", "start", "end"})
_COUNTS = (SEQUENCE_FUNCTIONS - _OF_ARGUMENT - _INSTANTS - {"dur", "collect"}) | MEASURES


def kind_of(syntax: Expression) -> str:
    """Return `duration`, `instant`, `number`, or `text` of what may be anything.

    Instants are points of time, whose difference is a duration.
    """
    match syntax:
        case LengthLiteral() | FunctionCall(name="dur"):
            return "duration"
        case FunctionCall(name=name) if name in _INSTANTS:
            return "instant"
        case FunctionCall(name=name, arguments=arguments) if name in _OF_ARGUMENT and arguments:
            return kind_of(arguments[0])
        case FunctionCall(name=name) if name in _COUNTS:
            return "number"
        case NumberLiteral():
            return "number"
        case Negative(operand=operand):
            return "duration" if kind_of(operand) == "duration" else "number"
        case IfExpression(then=then):
            return kind_of(then)
        case Binary(operator=operator, left=left, right=right):
            return _of_binary(operator, kind_of(left), kind_of(right))
    return "text"


def _of_binary(operator: str, left: str, right: str) -> str:
    kinds = {left, right}
    if operator == "-" and left == right == "instant":
        return "duration"
    if operator in ("+", "-") and "instant" in kinds:
        return "instant"
    if operator == "div" and left == right == "duration":
        return "number"
    return "duration" if "duration" in kinds and operator != "mod" else "number"


def kind_in_arithmetic(operation: Binary, other: Expression) -> str:
    """Return the type of a parameter that is one side of an operation, the other side given."""
    if operation.operator not in ("+", "-"):
        return "number"
    kind = kind_of(other)
    is_first = operation.right is other
    if kind == "instant" and is_first and operation.operator == "-":
        return "number"
    return "duration" if kind in ("duration", "instant") else "number"


def kind_in_comparison(operator: str, other: Expression) -> str:
    """Return the type of a parameter that is one side of a comparison, the other side given."""
    kind = kind_of(other)
    if kind == "duration":
        return "duration"
    if kind == "instant" or (kind == "number" and not isinstance(other, NumberLiteral)):
        return "number"
    return "value" if operator in ("=", "!=") else "number"
