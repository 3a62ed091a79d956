"""Comparisons solved for the data within: between which numbers they must be for a tuple to pass.

`f(x) operator c` is asked, where `f` adds, subtracts, multiplies and divides, one operand after the
other, and never divides by `x`.  Each such step is monotone in the number it is given, and so is
the rounding of its result (IEEE 754); so `f` is monotone, and what holds of it holds on one side of
some double, or between two.  Which, is found by halving the doubles between the largest and the
smallest: they are as many as 64 halvings tell apart, and all tuples are halved at once.  So the
ends are those of the arithmetic as it is calculated, and not as it should be.

That needs each result to be a number: `moderate` operands cannot lead to an infinity, hence not to
NaN.  With others both ends are infinite, and the comparison itself has to be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from broker.matching.boxes.columns import Doubles, Flags
from templates.box import ArithmeticStep
from templates.elementnumbers import calculated
from xscl.solving import LARGEST_SOLVED

__all__ = ["are_moderate", "solve"]

_Keys = npt.NDArray[np.uint64]

_SIGN = np.uint64(1 << 63)

_COMPARE: dict[str, Callable[[Doubles, Doubles], Flags]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}

_BITS = ((32, 8), (512, 4), (1 << 62, 2))
"""Of up to so many tuples, how many halvings are done in one step: a step costs its calls."""


def are_moderate(steps: Sequence[ArithmeticStep], operands: Sequence[Doubles]) -> Flags:
    """Return with which operands no step comes to an infinity; `solve` has their ends."""
    found = np.ones(len(operands[0]), np.bool_)
    for step, operand in zip(steps, operands, strict=True):
        sizes = np.abs(operand)
        # NaN passes: then nothing is equal to what is calculated, or more or less.
        found &= ~(sizes > LARGEST_SOLVED)
        if step.operator == "div":
            found &= ~(sizes < 1 / LARGEST_SOLVED)
    return found


def solve(
    steps: Sequence[ArithmeticStep], operands: Sequence[Doubles], operator: str, other: Doubles
) -> tuple[Doubles, Doubles]:
    """Return the least and the largest number up to `LARGEST_SOLVED` for which a comparison holds.

    Where none does, the least is infinite and the largest minus infinity; where all do, or the
    operands are not moderate, it is the other way round.
    """
    if operator == "=":
        both = [solve(steps, operands, each, other) for each in ("<=", ">=")]
        least, largest = (np.stack(ends) for ends in zip(*both, strict=True))
        return least.max(axis=0), largest.min(axis=0)

    def hold(rows: npt.NDArray[np.intp], numbers: Doubles) -> Flags:
        """Return which numbers, a column for each of some tuples, pass."""
        found = numbers
        for step, operand in zip(steps, operands, strict=True):
            own = operand[rows]
            pair = (own, found) if step.is_turned else (found, own)
            found = np.broadcast_to(calculated(step.operator, *pair), numbers.shape)
        return _COMPARE[operator](found, other[rows])

    size = len(other)
    least, largest = np.full(size, -np.inf), np.full(size, np.inf)
    every = np.arange(size)
    ends = np.array([[-LARGEST_SOLVED], [LARGEST_SOLVED]])
    at_low, at_high = hold(every, np.broadcast_to(ends, (2, size)))
    moderate = are_moderate(steps, operands)
    nowhere = moderate & ~at_low & ~at_high
    least[nowhere], largest[nowhere] = np.inf, -np.inf
    open_rows = np.flatnonzero(moderate & (at_low != at_high))
    low, high = _keys(np.repeat(ends, len(open_rows), axis=1))
    bits = next(bits for most, bits in _BITS if len(open_rows) <= most)
    places = np.arange(1, 1 << bits, dtype=np.uint64)[:, None]
    while len(open_rows) and (high - low > 1).any():
        strides = np.maximum((high - low) >> np.uint64(bits), np.uint64(1))
        tried = np.minimum(low + places * strides, high)
        as_low = hold(open_rows, _numbers(tried)) == at_low[open_rows]
        # They are in order, so those that are as the low end stand first.
        count = as_low.sum(axis=0)
        walls = np.vstack([low, tried, high])
        columns = np.arange(len(open_rows))
        low, high = walls[count, columns], walls[count + 1, columns]
    is_rising = at_high[open_rows]
    least[open_rows] = np.where(is_rising, _numbers(high), -np.inf)
    largest[open_rows] = np.where(is_rising, np.inf, _numbers(low))
    return least, largest


def _keys(numbers: Doubles) -> _Keys:
    """Return whole numbers in the order of doubles; both zeros are neighbours."""
    bits = np.ascontiguousarray(numbers).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _numbers(keys: _Keys) -> Doubles:
    """Return the doubles of keys."""
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)
