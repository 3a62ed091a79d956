"""Which operands stage 1 can make values of: functions of strings of one variable."""

from __future__ import annotations

from xscl.path import Literal, Parameter
from xscl.query import Call, Derived, Operand, VariableValue, operand_parameters, operand_variables
from xscl.signatures import DERIVING_FUNCTIONS

__all__ = ["as_derived", "is_of_strings"]


def as_derived(operand: Operand) -> Derived | None:
    """Return the operand when it is a value derived from one variable, else None.

    A function of a text and of parameters is none, since stage 1 knows no data: it is worked out
    of each tuple.
    """
    match operand:
        case VariableValue():
            return operand
        case Call() if len(operand_variables(operand)) == 1 and is_of_strings(operand):
            return None if operand_parameters(operand) else operand
    return None


def is_of_strings(operand: Operand) -> bool:
    """Return whether an operand is made of texts by functions of strings alone."""
    match operand:
        case Call(function, arguments):
            return function in DERIVING_FUNCTIONS and all(map(is_of_strings, arguments))
    return isinstance(operand, (VariableValue, Literal, Parameter))
