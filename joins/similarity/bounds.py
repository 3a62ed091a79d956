"""What a threshold asks of two sets, in arrays: how many words they share at least.

With `x` and `y` the sizes of two sets and `o` how many words they share:

    jaccard >= t        o >= t (x + y - o)
    containment >= t    o >= t x, where x is the measure's first set
    overlap >= t        o >= t

A threshold is a double that is rounded, so each test has a margin: it may let a pair pass that
fails by less than `MARGIN`, and refuses none that holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from joins.memory.slots import Ints
from joins.memory.times import Flags
from templates.queryclass import SimilarPair

__all__ = [
    "MARGIN",
    "MOST",
    "AskedMeasure",
    "Doubles",
    "ScoreBounds",
    "asked_of_side",
    "least_overlap",
    "may_hold",
]

Doubles = npt.NDArray[np.float64]

MARGIN = 1e-9

MOST = 1e12
"""More words than any text has."""


class AskedMeasure(NamedTuple):
    """What is asked of a set: a measure that is at least a threshold, and whether it stands first.

    Of its second set `containment` asks nothing but that a word is shared (`is_any`).
    """

    measure: str
    threshold: float
    is_first: bool

    @property
    def is_any(self) -> bool:
        """Whether a set may share any one of its words with a set that it is similar to."""
        return self.measure == "containment" and not self.is_first

    def turned(self) -> AskedMeasure:
        """Return what is asked of the other set."""
        return self._replace(is_first=not self.is_first)

    def prefixes(self, sizes: Ints) -> Ints:
        """Return how many of their words sets of some sizes are looked up, or found, by.

        One eighth more than has to be: pairs that share few of them are no pairs.
        """
        least = self._least(sizes)
        lengths: Ints = np.clip(sizes - least + 1 + (least >> 3), 0, sizes)
        return np.where(least > sizes, 0, lengths)

    def shortest_prefixes(self, sizes: Ints) -> Ints:
        """Return how many of their first words are enough to have one of a similar set's."""
        lengths: Ints = np.maximum(sizes - self._least(sizes) + 1, 0)
        return lengths

    def _least(self, sizes: Ints) -> Ints:
        return least_overlap(self.measure, sizes, self.threshold, is_first=self.is_first)


class ScoreBounds(NamedTuple):
    """What each of some pairs of sets asks: `factor * shared >= left * x + right * y + least`."""

    factor: Doubles
    left: Doubles
    right: Doubles
    least: Doubles

    @classmethod
    def of(cls, measure: str, threshold: float, *, is_turned: bool) -> ScoreBounds:
        """Return what a measure asks that is at least a threshold, as one row.

        `is_turned` says that the right set stands first in the measure.
        """
        numbers = _BOUNDS[measure](threshold)
        factor, first, second, least = (np.array([each], np.float64) for each in numbers)
        left, right = (second, first) if is_turned else (first, second)
        return cls(factor, left, right, least)

    def some(self, rows: Ints) -> ScoreBounds:
        """Return those of some pairs."""
        return ScoreBounds(*(each[rows] for each in self))

    def may_hold(self, shared: Ints, left: Ints, right: Ints) -> Flags:
        """Return where sets of some sizes that share so many words may pass."""
        asked = self.left * left + self.right * right + self.least - MARGIN
        return (self.factor * shared >= asked) & (shared > 0)

    def prefixes(self, sizes: Ints, *, is_right: bool) -> Ints:
        """Return how many first words of the sets on one side have one of a similar set's.

        What is shared is no more than the other set has, so it is at least what is asked of this
        one alone.
        """
        own = self.right if is_right else self.left
        least = np.ceil(np.clip(own * sizes + self.least - MARGIN, 1, MOST)).astype(np.int64)
        lengths: Ints = np.maximum(sizes - least + 1, 0)
        return lengths


_BOUNDS: dict[str, Callable[[float], tuple[float, float, float, float]]] = {
    "jaccard": lambda threshold: (1 + threshold, threshold, threshold, 0),
    "containment": lambda threshold: (1, threshold, 0, 0),
    "overlap": lambda threshold: (1, 0, 0, threshold),
}


def asked_of_side(pair: SimilarPair, threshold: float, *, is_right: bool) -> AskedMeasure:
    """Return what a pair asks of the set on one side."""
    return AskedMeasure(pair.measure, threshold, is_right == pair.is_turned)


def least_overlap(measure: str, sizes: Ints, threshold: float, *, is_first: bool) -> Ints:
    """Return how many words sets of some sizes share with any set that they are similar to.

    It is at least one: sets that share nothing have the score 0.
    """
    if measure == "overlap":
        asked = np.full(len(sizes), threshold)
    elif measure == "containment" and not is_first:
        asked = np.ones(len(sizes))
    else:
        asked = sizes * min(threshold, 2.0)
    least: Ints = np.ceil(np.clip(asked - MARGIN, 1, MOST)).astype(np.int64)
    return least


def may_hold(measure: str, threshold: float, shared: Ints, first: Ints, second: Ints) -> Flags:
    """Return where sets that share so many words, the first set's size given first, may pass."""
    if measure == "overlap":
        held: Flags = shared >= threshold - MARGIN
    elif measure == "containment":
        held = shared >= threshold * first - MARGIN
    else:
        held = shared * (1 + threshold) >= threshold * (first + second) - MARGIN
    return held & (shared > 0)
