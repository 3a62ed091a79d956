"""Operands of one element as columns of numbers: `xs:double`, as `xscl.evaluation` reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from xscl.comparison import Call, Operand, VariableValue, term
from xscl.functions import to_double
from xscl.path import Literal

__all__ = ["numbers_of"]

Doubles = npt.NDArray[np.float64]

_PLAIN = r"^-?[0-9]+(\.[0-9]+)?$"


def numbers_of(operand: Operand, column_of: Callable[[str], pa.Array]) -> Any:
    """Return the number of an operand of each element, as `xscl.evaluation` says."""
    match operand:
        case Literal(value):
            return float(value)
        case Call("-", (only,)):
            return -numbers_of(only, column_of)
        case Call("+" | "-" | "*" | "div" | "mod" as function, (left, right)):
            return _calculated(function, numbers_of(left, column_of), numbers_of(right, column_of))
    assert isinstance(operand, (VariableValue, Call))
    return _doubles(column_of(term(operand)))


def _calculated(function: str, left: Any, right: Any) -> Any:
    with np.errstate(all="ignore"):
        match function:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "div":
                # Of negative zero, too, the sign of the dividend and that of the divisor count.
                return np.divide(left, right)
        return np.fmod(left, right)


def _doubles(texts: pa.Array) -> Doubles:
    """Return texts as `xs:double`."""
    if pc.all(pc.match_substring_regex(texts, _PLAIN), min_count=0).as_py():
        return np.asarray(pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False))
    return np.array([to_double(text) for text in texts.to_pylist()], np.float64)
