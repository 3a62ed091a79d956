"""Comparisons with a number within arithmetic, solved for that number: `price > vat * 3`.

Of a node the other numbers are known, so it has those between two that the comparison holds of
(docs/prefilters.md, "Between"), whatever statements have in the place of `3`.  Of a node whose
numbers are too large for that, or divide by 0, the comparison is written down and asked of each.
"""

from __future__ import annotations

import json
import math
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from xscl.arithmetic import CALCULATE, COMPARE, divided
from xscl.numerals import spell_double

__all__ = ["BESIDE", "LARGEST_SOLVED", "STEPS_MAX", "Chain", "Solvable", "SolvedEnds", "refutes"]

BESIDE = "numbers beside"
"""The function whose values are the numbers of a node that are beside data: see `Chain.of`."""

LARGEST_SOLVED = 1e50
"""Up to how much, from 0, the numbers may be that data are calculated with to be solved for."""

STEPS_MAX = 5

_LARGEST = sys.float_info.max


Steps = tuple[tuple[str, bool], ...]
"""What is done with a number, one after the other: an operator, and whether it is the right one."""


class Solvable(NamedTuple):
    """`steps(x) operator other`, with the numbers of a node but for `x`; one of `others` will do.

    Each of `numbers` belongs to a step.  None of them, nor of the others, is NaN.
    """

    steps: Steps
    operator: str
    numbers: tuple[float, ...]
    others: tuple[float, ...]

    @property
    def is_moderate(self) -> bool:
        """Whether what is calculated is a number of any, so that what fits is between two.

        What overflows before it is multiplied by 0 would be none.
        """
        return len(self.others) == 1 and all(
            abs(number) <= LARGEST_SOLVED
            and (step != "div" or abs(number) >= 1 / LARGEST_SOLVED)
            and (step != "*" or number != 0 or not i)
            for i, ((step, _), number) in enumerate(zip(self.steps, self.numbers, strict=True))
        )

    def calculated(self, number: float) -> float:
        """Return what the steps make of a number."""
        for (step, is_turned), own in zip(self.steps, self.numbers, strict=True):
            calculate = CALCULATE[step]
            number = calculate(own, number) if is_turned else calculate(number, own)
        return number

    def holds(self, number: float) -> bool:
        """Return whether the comparison holds of a number."""
        found, compare = self.calculated(number), COMPARE[self.operator]
        first, *more = self.others  # mostly one
        return compare(found, first) or any(compare(found, other) for other in more)

    def holds_within(self, least: float, greatest: float) -> bool:
        """Return whether it holds of one of two numbers; of `=`, whether it may between them."""
        if self.operator != "=":
            return self.holds(least) or self.holds(greatest)
        one, two = self.calculated(least), self.calculated(greatest)
        return min(one, two) <= self.others[0] <= max(one, two)

    def ends(self) -> tuple[float, float]:
        """Return the least and the greatest number that it holds of, where it is moderate.

        Where there is none, the least is infinite and the greatest minus infinity; where all are,
        it is the other way round.
        """
        if self.operator == "=":
            below, above = (self._replace(operator=each).ends() for each in ("<=", ">="))
            return max(below[0], above[0]), min(below[1], above[1])
        at_low, at_high = self.holds(-_LARGEST), self.holds(_LARGEST)
        if at_low == at_high:
            return (-math.inf, math.inf) if at_low else (math.inf, -math.inf)
        low, high = _wall(self, at_low)
        return (-math.inf, low) if at_low else (high, math.inf)

    def written(self) -> str:
        """Return it as a text."""
        return json.dumps([*self])


def _wall(asked: Solvable, at_low: bool) -> tuple[float, float]:
    """Return two neighbours, of which the lower one fares as the lowest number does."""
    low, high = _key(-_LARGEST), _key(_LARGEST)
    # It mostly is where algebra has it, but for rounding.
    tried, stride = min(max(_key(_inverse(asked)), low), high), 1
    is_low = asked.holds(_number(tried)) == at_low
    while low < tried < high and (asked.holds(_number(tried)) == at_low) == is_low:
        low, high = (tried, high) if is_low else (low, tried)
        tried, stride = tried + (stride if is_low else -stride), stride * 4
    while high - low > 1:
        if not low < tried < high:
            tried = (low + high) // 2
        if asked.holds(_number(tried)) == at_low:
            low = tried
        else:
            high = tried
        tried = (low + high) // 2
    return _number(low), _number(high)


def _inverse(asked: Solvable) -> float:
    """Return about where the steps come to the other number."""
    (found,) = asked.others
    for (step, is_turned), own in reversed([*zip(asked.steps, asked.numbers, strict=True)]):
        match step:
            case "+":
                found -= own
            case "-":
                found = own - found if is_turned else found + own
            case "*":
                found = divided(found, own)
            case _:
                found *= own
    return found if found == found else 0.0


_SIGN = 1 << 63


def _key(number: float) -> int:
    """Return a whole number in the order of doubles; both zeros are neighbours."""
    (bits,) = struct.unpack("<Q", struct.pack("<d", number))
    return int(~bits & (2 * _SIGN - 1) if bits & _SIGN else bits | _SIGN)


def _number(key: int) -> float:
    """Return the double of a key."""
    bits = key ^ _SIGN if key & _SIGN else ~key & (2 * _SIGN - 1)
    (number,) = struct.unpack("<d", struct.pack("<Q", bits))
    return float(number)


@dataclass(frozen=True, slots=True)
class Chain:
    """`steps(?) operator other`: a comparison with data, without the data and a node's numbers."""

    steps: Steps
    operator: str

    def of(self, numbers: Sequence[float]) -> Solvable | None:
        """Return it with the numbers of a node, one for each step and then the other ones.

        None where it holds of nothing.
        """
        size = len(self.steps)
        own, others = tuple(numbers[:size]), tuple(numbers[size:])
        if len(others) != 1 or others[0] != others[0]:
            others = self._decisive([each for each in others if each == each])
        for number in own:
            if number != number:
                return None
        return Solvable(self.steps, self.operator, own, others) if others else None

    def _decisive(self, numbers: Sequence[float]) -> tuple[float, ...]:
        """Return of several numbers, one of which will do, those that may."""
        if self.operator == "=":
            return tuple(sorted(set(numbers)))
        decisive = (max if self.operator[0] == "<" else min)(numbers, default=None)
        return () if decisive is None else (decisive,)

    def solved(self, numbers: Sequence[float]) -> SolvedEnds | None:
        """Return what nodes with some numbers have for a value each; None for none."""
        zeros = tuple([math.copysign(1.0, each) for each in numbers if not each])
        return _solved(self, tuple(numbers), zeros)


class SolvedEnds(NamedTuple):
    """The least and the greatest number that a comparison holds of, if it is not written down."""

    least: str
    greatest: str
    written: str | None


@lru_cache(maxsize=4_096)
def _solved(
    chain: Chain, numbers: tuple[float, ...], zeros: tuple[float, ...]
) -> SolvedEnds | None:
    # Zeros of both signs are equal, but not what is divided by them.
    asked = chain.of(numbers)
    if asked is None:
        return None
    if not asked.is_moderate:
        return SolvedEnds("-INF", "INF", asked.written())
    least, greatest = asked.ends()
    return SolvedEnds(spell_double(least), spell_double(greatest), None)


@lru_cache(maxsize=1_024)
def _read(text: str) -> Solvable:
    steps, operator_, numbers, others = json.loads(text)
    return Solvable(tuple(map(tuple, steps)), operator_, tuple(numbers), tuple(others))


def refutes(text: str, number: float) -> bool:
    """Return whether a comparison, as it is `written`, does not hold of a number."""
    return not _read(text).holds(number)
