"""Arithmetic on doubles, and how they are compared, as XPath has both."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

__all__ = ["CALCULATE", "COMPARE", "divided"]


def divided(dividend: float, divisor: float) -> float:
    """Return XPath's `div`; of negative zero, too, the sign counts."""
    if divisor:
        return dividend / divisor
    if not dividend or dividend != dividend or divisor != divisor:
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def _remainder(dividend: float, divisor: float) -> float:
    """Return XPath's `mod`, which has the sign of the dividend."""
    if math.isinf(dividend) or divisor == 0 or divisor != divisor:
        return math.nan
    return math.fmod(dividend, divisor)


CALCULATE: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "div": divided,
    "mod": _remainder,
}

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
