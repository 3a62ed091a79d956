"""Published documents that are not certain: their confidences, which are factors of who reads them.

The confidence of a match that is published goes with its document, as an exact fraction
(`docs/loss.md`): into the outbox, and from there back into the join.  A reader that says CONFIDENCE
multiplies those of all documents behind a tuple, so they are held by instance beside the join, and
what carries no confidence costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from broker.matching.boxes.columns import Ints

__all__ = ["Uncertain", "held"]

HELD_BITS = 1_000
"""A published document has its confidence exactly up to so many bits, enough for fifteen factors
as they are written; the confidences of readers of readers would else grow longer and longer."""


class Uncertain:
    """The confidences of published documents below 1, by instance.

    Useless ones are looked for among `held_min`.
    """

    def __init__(self, held_min: int) -> None:
        self._held_min = self._held_max = held_min
        self._held: dict[int, tuple[Fraction, int]] = {}
        self._numbers: Ints | None = None

    def __len__(self) -> int:
        return len(self._held)

    def note(self, instance: int, confidence: Fraction, end_us: int) -> None:
        """Note a document that ends at a time and has a confidence below 1."""
        self._held[instance] = confidence, end_us
        self._numbers = None

    def forget(self, before_us: int) -> None:
        """Forget documents that end before a time, once enough are known."""
        if len(self._held) > self._held_max:
            self._held = {n: each for n, each in self._held.items() if each[1] >= before_us}
            self._held_max = max(self._held_min, 2 * len(self._held))
            self._numbers = None

    @property
    def numbers(self) -> Ints:
        """The instances."""
        if self._numbers is None:
            self._numbers = np.array([*self._held], np.int64)
        return self._numbers

    def product(self, leaves: Iterable[int]) -> Fraction:
        """Return how sure it is that all of some documents are true."""
        known = (self._held[leaf][0] for leaf in leaves if leaf in self._held)
        return math.prod(known, start=Fraction(1))


def held(confidence: Fraction) -> Fraction:
    """Return a confidence as a published document has it: what is longer is rounded down.

    >>> held(Fraction(1, 20))
    Fraction(1, 20)
    >>> held(Fraction(1, 3) ** 1_000)
    Fraction(0, 1)
    """
    parts = confidence.as_integer_ratio()
    if max(part.bit_length() for part in parts) <= HELD_BITS:
        return confidence
    return Fraction((parts[0] << HELD_BITS) // parts[1], 1 << HELD_BITS)
