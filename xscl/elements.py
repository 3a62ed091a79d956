"""Aggregates over the elements of a repetition: where they are nested, and what is not repeated."""

from __future__ import annotations

from xscl.scopes import Scope
from xscl.signatures import ROW_AGGREGATES
from xscl.syntax import Binary, Expression, FunctionCall, IfExpression, Negative

__all__ = ["aggregate_below", "not_repeated"]


def aggregate_below(syntax: Expression) -> FunctionCall | None:
    """Return an aggregate that an expression is made of, if there is one."""
    match syntax:
        case FunctionCall(name=name) if name in ROW_AGGREGATES or name == "prev":
            return syntax
        case FunctionCall(arguments=below):
            pass
        case Binary(left=left, right=right):
            below = [left, right]
        case Negative(operand=operand):
            below = [operand]
        case IfExpression(then=then, otherwise=otherwise):
            below = [then, otherwise]
        case _:
            return None
    found = (aggregate_below(each) for each in below)
    return next((each for each in found if each is not None), None)


def not_repeated(name: str, scope: Scope, has_argument: bool) -> tuple[str, str]:
    """Return what is wrong with an aggregate here, and what to write."""
    if name == "last" and scope.elements:
        return "a run has no last element before it ends", "the one before is `prev(...)`"
    if name == "count" and scope.elements and has_argument:
        return "`count` of a run that goes on has nothing between its brackets", "write `count()`"
    if not has_argument:
        return "`count()` of what?", (
            "write `count(x)`, with `x` bound in a block with a `+`; rows of WINDOW are counted"
            " behind HAVING"
        )
    return (
        f"`{name}` is of what a repetition has taken, and this is not repeated",
        "a `+` stands behind the block that binds it",
    )
