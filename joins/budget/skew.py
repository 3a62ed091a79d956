"""The skew of a pair: a bound on its tuples in a class, before any is listed.

Two documents with n nodes each of one value have n * n pairs of equal nodes, and further value
joins multiply.  The number of equal nodes by each value join is known from reading the values
alone; it bounds the tuples of the pair.  A pair is

    even       if the product of these numbers is within the budget,
    skewed     if one of them alone exceeds it, where none is 0, or if the product exceeds it
               `COMBINATIONS` times,
    uncertain  between the two: its tuples are counted, and it is skewed if there are more than
               the budget allows.

Tuples of skewed pairs are not listed.  The uses of a class that see a skewed pair are stopped
(`pairs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod

from joins.memory.durations import UNBOUNDED

__all__ = ["Skew", "skew_of"]

COMBINATIONS = 20
"""How many combinations of equal nodes are tried for each tuple that the budget allows.  Two
documents of 100 entries that are alike in three elements each have 1,000,000, and 100 tuples."""


class Skew(Enum):
    """How a pair stands to the budget; the module says when it is which."""

    EVEN = 1
    UNCERTAIN = 2
    SKEWED = 3


def skew_of(equal: Sequence[int], tuples_max: int) -> Skew:
    """Return the skew of a pair with so many equal nodes by each value join of a class."""
    combinations = prod(equal)
    if combinations <= tuples_max or tuples_max == UNBOUNDED:
        return Skew.EVEN
    if max(equal) > tuples_max or combinations > COMBINATIONS * tuples_max:
        return Skew.SKEWED
    return Skew.UNCERTAIN
