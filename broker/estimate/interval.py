"""How far a number that was counted in a sample may be from the true one.

An interval is of 90 %: in one sample of twenty the true number is below it, in one above.

    poisson    a count of things that come by themselves: Byar's approximation of the exact bounds
    share      how many of some examples hold: Wilson's interval

Pairs do not come by themselves: a document that meets ten others makes ten at once.  A sum of such
heaps varies like a count of `sum² / sum of squares` things, its *effective* size, so that is what
its interval is taken of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

__all__ = ["Interval", "heaps", "poisson", "share", "total"]

_Z = 1.645


@dataclass(frozen=True, slots=True)
class Interval:
    """What is expected, and the bounds within which the true number is, as far as one can tell."""

    low: float
    expected: float
    high: float

    def __mul__(self, factor: float) -> Interval:
        return Interval(self.low * factor, self.expected * factor, self.high * factor)

    def within(self, other: Interval) -> Interval:
        """Return the product with a share: where both are at their bounds, so is it."""
        return Interval(
            self.low * other.low, self.expected * other.expected, self.high * other.high
        )

    def as_data(self) -> dict[str, float]:
        """Return the interval as plain values."""
        return {"low": self.low, "expected": self.expected, "high": self.high}


def poisson(count: float) -> Interval:
    """Return the interval of the mean of a count.

    >>> [round(bound, 1) for bound in (poisson(0).low, poisson(0).high, poisson(100).high)]
    [0.0, 3.0, 118.1]
    """
    low = 0.0
    if count > 0:
        low = count * max(0.0, 1 - 1 / (9 * count) - _Z / (3 * sqrt(count))) ** 3
    above = count + 1
    high = above * (1 - 1 / (9 * above) + _Z / (3 * sqrt(above))) ** 3
    return Interval(low, count, high)


def heaps(sizes: Iterable[int]) -> Interval:
    """Return the interval of a sum of what comes in heaps of these sizes."""
    found = [size for size in sizes if size]
    whole = sum(found)
    if not whole:
        return poisson(0)
    effective = whole * whole / sum(size * size for size in found)
    return poisson(effective) * (whole / effective)


def share(holding: int, examples: int) -> Interval:
    """Return the interval of the share of all that hold, where so many of the examples do.

    >>> round(share(0, 300).high, 4)
    0.0089
    """
    if not examples:
        return Interval(0.0, 0.0, 1.0)
    mean = holding / examples
    scale = 1 + _Z * _Z / examples
    middle = (mean + _Z * _Z / (2 * examples)) / scale
    half = _Z * sqrt(mean * (1 - mean) / examples + (_Z / (2 * examples)) ** 2) / scale
    return Interval(max(0.0, middle - half) if holding else 0.0, mean, min(1.0, middle + half))


def total(intervals: Iterable[Interval]) -> Interval:
    """Return the sum of intervals, as if all were at their bounds at once."""
    found = list(intervals)
    return Interval(
        sum(one.low for one in found),
        sum(one.expected for one in found),
        sum(one.high for one in found),
    )
