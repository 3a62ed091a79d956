"""Points of time and lengths of time among the numbers of a normal form.

There both are microseconds, durations that were written too.  What they are follows from the
functions beside them: `time(b) - time(a) > 1200000000` was written with `20 min`.
"""

from __future__ import annotations

import enum

from xscl.comparison import Call, Conditional, Elements, Operand
from xscl.durations import render_duration
from xscl.path import Literal
from xscl.query import INFINITE_US

__all__ = ["Quantity", "quantity_of", "quantity_of_both", "spell_duration"]

_INSTANTS = frozenset({"time", "start", "end"})
_OF_ELEMENTS = frozenset({"sum", "avg", "min", "max", "argmax", "argmin"})


class Quantity(enum.Enum):
    """What a number is of; `NONE` also of what is a string, or a literal by itself."""

    NONE = enum.auto()
    INSTANT = enum.auto()
    DURATION = enum.auto()

    @property
    def is_time(self) -> bool:
        """Whether it is a point of time or a length of time."""
        return self is not Quantity.NONE


def quantity_of(operand: Operand | None) -> Quantity:
    """Return what an operand is by its functions."""
    match operand:
        case Call("dur"):
            return Quantity.DURATION
        case Call(function) if function in _INSTANTS:
            return Quantity.INSTANT
        case Call(function, (first, *_)) if function in _OF_ELEMENTS:
            return quantity_of(first)
        case Call("-", (only,)):
            is_length = quantity_of(only) is Quantity.DURATION
            return Quantity.DURATION if is_length else Quantity.NONE
        case Call("+" | "-" as sign, (left, right)):
            return _of_sum(sign, quantity_of(left), quantity_of(right))
        case Call("*", (left, right)):
            return Quantity.DURATION if _is_length(left) or _is_length(right) else Quantity.NONE
        case Elements(function="count" | "fold"):
            return Quantity.NONE
        case Elements(operand=of):
            return quantity_of(of)
        case Conditional(then=then):
            return quantity_of(then)
    return Quantity.NONE


def quantity_of_both(left: Operand, right: Operand) -> Quantity:
    """Return what the sides of a comparison are, one of which may be a literal."""
    found = quantity_of(left)
    return quantity_of(right) if found is Quantity.NONE else found


def _of_sum(sign: str, left: Quantity, right: Quantity) -> Quantity:
    if sign == "-" and left is right is Quantity.INSTANT:
        return Quantity.DURATION
    if Quantity.INSTANT in (left, right):
        return Quantity.INSTANT
    return Quantity.DURATION if Quantity.DURATION in (left, right) else Quantity.NONE


def _is_length(operand: Operand) -> bool:
    return quantity_of(operand) is Quantity.DURATION


def spell_duration(operand: Operand) -> str | None:
    """Return a literal number of whole microseconds as a duration; None for all else."""
    if isinstance(operand, Literal) and type(operand.value) in (int, float):
        value = operand.value
        if value == int(value) and 0 < value < INFINITE_US:
            return render_duration(int(value))
    return None
