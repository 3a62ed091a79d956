"""Operands of conditions of chains, as programs over columns see them: numbers, and texts."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from xscl.comparison import (
    INSTANTS,
    Call,
    Conditional,
    Elements,
    Operand,
    VariableValue,
    operands_below,
)
from xscl.path import Literal
from xscl.syntax import ARITHMETIC

__all__ = [
    "ChainOperand",
    "TextOf",
    "constants_in",
    "has_choice",
    "is_number_of_element",
    "is_of_first",
    "may_be_text",
]


@dataclass(frozen=True, slots=True)
class TextOf:
    """The text of a variable's node; a number stands for it, of equal texts the same."""

    variable: str


ChainOperand = Operand | TextOf
"""An operand whose numbers are a column of a program."""


def constants_in(operand: Operand) -> int:
    """Return how many constants an operand has."""
    match operand:
        case Literal():
            return 1
        case Call(arguments=arguments):
            return sum(map(constants_in, arguments))
        case Elements(otherwise=otherwise) if otherwise is not None:
            return constants_in(otherwise)
    return 0


def is_of_first(operand: Operand) -> bool:
    """Return whether an operand is of nothing but what begins a run, and of constants."""
    match operand:
        case Literal(value):
            return not isinstance(value, str)
        case Elements(run=None, function="candidate" | "first"):
            return True
        case Call(function, arguments) if function in ARITHMETIC:
            return all(map(is_of_first, arguments))
    return False


def has_choice(operand: Operand) -> bool:
    """Return whether an operand has an `if`."""
    return any(isinstance(each, Conditional) for each in operands_below(operand))


def may_be_text(operand: Operand, text_folds: Container[str] = ()) -> bool:
    """Return whether a value may be compared as a string, as some values of FOLD may."""
    match operand:
        case Literal(value):
            return isinstance(value, str)
        case Conditional(_, then, otherwise):
            return may_be_text(then, text_folds) or may_be_text(otherwise, text_folds)
        case Elements(function="fold", operand=Literal(name)):
            return name in text_folds
        case Elements(function="candidate" | "prev" | "first" | "last" | "all", operand=of):
            values = [each for each in (of, operand.otherwise) if each is not None]
            return any(may_be_text(each, text_folds) for each in values)
        case Call(function):
            return function not in ARITHMETIC and function not in ("start", "end", "dur", "time")
        case Elements():
            return False
    return True


def is_number_of_element(operand: Operand) -> bool:
    """Return whether an operand is one number of each element."""
    match operand:
        case VariableValue() | Call("end", ()):
            return True
        case Literal(value):
            return not isinstance(value, str)
        case Call(function, (VariableValue(),)) if function in INSTANTS:
            return True
        case Call("-", (only,)):
            return is_number_of_element(only)
        case Call(function, (left, right)) if function in ARITHMETIC:
            return is_number_of_element(left) and is_number_of_element(right)
    return False
