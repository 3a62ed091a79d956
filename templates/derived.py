"""Which operands stage 1 can make values of: functions of strings of one variable."""

from __future__ import annotations

from xscl.query import Call, Derived, Operand, VariableValue, operand_parameters, operand_variables
from xscl.textjoins import is_of_strings

__all__ = ["as_derived"]


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
