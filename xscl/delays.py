"""How likely it is that a document was lost, or was not there: `docs/loss.md` has the theory.

A delay is a distribution of the time in microseconds by which a document comes after the one before
it.  Probabilities are fractions: numbers of a text are the decimals that they are, so a confidence
that is equal to a threshold reaches it.  Those of `exp` are doubles, taken as fractions.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from xscl.query import Delay, Loss, Window

__all__ = [
    "LEARNED_LEAST",
    "LEARNED_MOST",
    "Sample",
    "exact",
    "in_time",
    "lost",
    "share",
    "unseen",
]

LEARNED_LEAST = 30
"""The fewest delays that say how a delay is distributed."""

LEARNED_MOST = 1_000
"""How many delays one is learned from at most: the last ones."""

ZERO, ONE = Fraction(0), Fraction(1)


def exact(number: float) -> Fraction:
    """Return a number as the shortest decimal that stands for it."""
    return Fraction(repr(number))


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A delay as far as it has been seen: lengths in microseconds, in order."""

    delays: Sequence[int]

    def count(self, gap_us: int) -> int:
        """Return how many lengths are at most a given one."""
        return bisect_right(self.delays, gap_us)


def share(delay: Delay | Sample, gap_us: int) -> Fraction:
    """Return how probable it is that a delay is at most a length: `F`."""
    if isinstance(delay, Sample):
        return Fraction(delay.count(gap_us), len(delay.delays))
    if delay.kind == "exp":
        return Fraction(-math.expm1(-gap_us / _lengths(delay)[0]))
    points = _points(delay)
    if gap_us < points[0][0]:
        return ZERO
    for (start, low), (end, high) in pairwise(points):
        if gap_us < end:
            return low + (high - low) * Fraction(gap_us - start, end - start)
    return points[-1][1]


def in_time(delays: Sequence[Delay | Sample], gap_us: int) -> Fraction:
    """Return how probable it is that a delay, or two one after the other, are at most a length."""
    first, *others = delays
    return _together(first, others[0], gap_us) if others else share(first, gap_us)


@lru_cache(maxsize=10_000)
def lost(losses: tuple[Loss, ...], gap_us: int) -> Fraction:
    """Return how probable it is that one unit, or two side by side, came in a gap and were lost."""
    came = in_time([loss.delay for loss in losses], gap_us)
    return math.prod((exact(loss.probability) for loss in losses), start=came)


@lru_cache(maxsize=10_000)
def unseen(loss: Loss, gap_us: int) -> Fraction:
    """Return how probable it is that nothing came in a gap in which nothing was seen."""
    came = share(loss.delay, gap_us)
    seen_nothing = exact(loss.probability) * came + 1 - came
    return (1 - came) / seen_nothing if seen_nothing else ONE


def _lengths(delay: Delay) -> list[int]:
    """Return the lengths of a delay in which no parameter is left."""
    assert all(isinstance(each, Window) for each in delay.lengths), delay
    return [each.length_us for each in delay.lengths if isinstance(each, Window)]


@lru_cache(maxsize=1_000)
def _points(delay: Delay) -> Sequence[tuple[int, Fraction]]:
    """Return the corners of a distribution that is made of lines."""
    lengths = _lengths(delay)
    if delay.kind == "uniform":
        return list(zip(lengths, (ZERO, ONE), strict=True))
    points = list(zip(lengths, map(exact, delay.shares), strict=True))
    return points if points[0][0] == 0 else [(0, ZERO), *points]


def _together(first: Delay | Sample, second: Delay | Sample, gap_us: int) -> Fraction:
    if isinstance(second, Sample):
        first, second = second, first
    if isinstance(first, Sample):
        return _behind_sample(first, second, gap_us)
    assert isinstance(second, Delay)
    if first.kind == "exp":
        if second.kind == "exp":
            return _both_exponential(_lengths(first)[0], _lengths(second)[0], gap_us)
        first, second = second, first
    points = _points(first)
    begin, mass = points[0]
    found = mass * share(second, gap_us - begin) if gap_us >= begin else ZERO
    for (start, low), (end, high) in pairwise(points):
        if gap_us > start:
            area = _area(second, gap_us - start) - _area(second, max(0, gap_us - end))
            found += (high - low) / (end - start) * area
    return found


def _behind_sample(first: Sample, second: Delay | Sample, gap_us: int) -> Fraction:
    """Return the mean of what a second delay can be behind each of the first."""
    left = [gap_us - each for each in first.delays[: first.count(gap_us)]]
    if isinstance(second, Sample):
        pairs = len(first.delays) * len(second.delays)
        return Fraction(sum(second.count(each) for each in left), pairs)
    if second.kind == "exp":
        mean_us = _lengths(second)[0]
        came = math.fsum(-math.expm1(-each / mean_us) for each in left)
        return Fraction(came / len(first.delays))
    return sum((share(second, each) for each in left), ZERO) / len(first.delays)


def _both_exponential(first_us: int, second_us: int, gap_us: int) -> Fraction:
    if first_us == second_us:
        steps = gap_us / first_us
        return Fraction(-math.expm1(-steps) - steps * math.exp(-steps))
    means = (first_us, second_us)
    shares = [-mean * math.expm1(-gap_us / mean) for mean in means]
    return max(ZERO, Fraction((shares[0] - shares[1]) / (means[0] - means[1])))


def _area(delay: Delay, length_us: int) -> Fraction:
    """Return the integral of a distribution from 0 to a length."""
    if delay.kind == "exp":
        mean = _lengths(delay)[0]
        return Fraction(length_us + mean * math.expm1(-length_us / mean))
    points = _points(delay)
    area = ZERO
    for (start, low), (end, high) in pairwise(points):
        if length_us > start:
            until = min(end, length_us)
            at_end = low + (high - low) * Fraction(until - start, end - start)
            area += (low + at_end) / 2 * (until - start)
    last, share_of_last = points[-1]
    return area + share_of_last * max(0, length_us - last)
