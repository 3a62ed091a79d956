"""Exact sums of what elements that may come next to each other have, by a number that is compared.

A **sum by key** keeps integers of any size by a number, in sorted buckets: a number is added, taken
away, or all below another one added up, in some square root of how many there are.  The integers of
a bucket and the totals of buckets are lists, which Python adds up in C.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable

__all__ = ["SumByKey", "asked_of"]

BUCKET = 64
"""How many keys a bucket has; with twice as many it is split."""


class SumByKey:
    """Positive integers by key; equal keys are added up.  No key is NaN."""

    __slots__ = ("_keys", "_lasts", "_numbers", "_totals", "total")

    def __init__(self) -> None:
        self._keys: list[list[float]] = []
        self._numbers: list[list[int]] = []
        self._lasts: list[float] = []
        self._totals: list[int] = []
        self.total = 0

    def add(self, key: float, number: int) -> None:
        """Add a number to that of a key."""
        self.total += number
        if not self._lasts:
            self._keys, self._numbers = [[key]], [[number]]
            self._lasts, self._totals = [key], [number]
            return
        at = min(bisect_left(self._lasts, key), len(self._lasts) - 1)
        keys, numbers = self._keys[at], self._numbers[at]
        place = bisect_left(keys, key)
        self._totals[at] += number
        if place < len(keys) and keys[place] == key:
            numbers[place] += number
            return
        keys.insert(place, key)
        numbers.insert(place, number)
        self._lasts[at] = keys[-1]
        if len(keys) > 2 * BUCKET:
            self._split(at)

    def _split(self, at: int) -> None:
        keys, numbers = self._keys[at], self._numbers[at]
        self._keys[at : at + 1] = [keys[:BUCKET], keys[BUCKET:]]
        self._numbers[at : at + 1] = [numbers[:BUCKET], numbers[BUCKET:]]
        self._lasts[at : at + 1] = [keys[BUCKET - 1], keys[-1]]
        self._totals[at : at + 1] = [sum(numbers[:BUCKET]), sum(numbers[BUCKET:])]

    def take(self, key: float, number: int) -> None:
        """Undo one `add`."""
        self.total -= number
        at = bisect_left(self._lasts, key)
        keys, numbers = self._keys[at], self._numbers[at]
        place = bisect_left(keys, key)
        self._totals[at] -= number
        numbers[place] -= number
        if numbers[place]:
            return
        del keys[place], numbers[place]
        if keys:
            self._lasts[at] = keys[-1]
        else:
            del self._keys[at], self._numbers[at], self._lasts[at], self._totals[at]

    def below(self, key: float) -> int:
        """Return the sum of all with a smaller key."""
        return self._before(bisect_left(self._lasts, key), key, bisect_left)

    def through(self, key: float) -> int:
        """Return the sum of all with a key up to this one."""
        return self._before(bisect_right(self._lasts, key), key, bisect_right)

    def _before(self, at: int, key: float, bisect: Callable[[list[float], float], int]) -> int:
        if at == len(self._lasts):
            return self.total
        numbers = self._numbers[at]
        place = bisect(self._keys[at], key)
        totals = self._totals
        if 2 * at < len(totals):
            return sum(totals[:at], sum(numbers[:place]))
        return self.total - sum(totals[at + 1 :], sum(numbers[place:]))


def asked_of(operator: str, *, of_next: bool) -> Callable[[SumByKey, float], int]:
    """Return what adds up all that a comparison of neighbours lets stand next to an element.

    With `of_next` keys are those of elements before it, and the number asked about is its own;
    else they are of elements behind it.
    """
    if (operator in (">", ">=")) == of_next:
        # Keys below what is asked about.
        return SumByKey.below if operator in ("<", ">") else SumByKey.through
    if operator in ("<", ">"):
        return lambda sums, number: sums.total - sums.through(number)
    return lambda sums, number: sums.total - sums.below(number)
