"""Operands of one element as columns of numbers: `xs:double`, as `xscl.evaluation` reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from xscl.comparison import Call, Operand, term
from xscl.functions import to_double
from xscl.path import Literal

__all__ = ["END", "calculate", "calculated", "numbers_of"]

Doubles = npt.NDArray[np.float64]

END = term(Call("end", ()))
"""What the column of when elements end is called; it has no texts, but times."""

_PLAIN = r"^-?[0-9]+(\.[0-9]+)?$"


def numbers_of(operand: Operand, column_of: Callable[[str], pa.Array]) -> Any:
    """Return the number of an operand of each element, as `xscl.evaluation` says."""
    return calculate(operand, lambda read: _doubles(column_of(term(read))))


def calculate(operand: Operand, read: Callable[[Operand], Any]) -> Any:
    """Return what arithmetic comes to; `read` gives the numbers of what is none."""
    match operand:
        case Literal(value):
            return to_double(value)
        case Call("-", (only,)):
            return -calculate(only, read)
        case Call("+" | "-" | "*" | "div" | "mod" as function, (left, right)):
            return calculated(function, calculate(left, read), calculate(right, read))
    return read(operand)


def calculated(function: str, left: Any, right: Any) -> Any:
    """Return the arithmetic of XPath on doubles."""
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
    """Return texts as `xs:double`, or times."""
    if pa.types.is_integer(texts.type):
        return np.asarray(texts.to_numpy().astype(np.float64))
    if pc.all(pc.match_substring_regex(texts, _PLAIN), min_count=0).as_py():
        return np.asarray(pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False))
    return np.array([to_double(text) for text in texts.to_pylist()], np.float64)
