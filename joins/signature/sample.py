"""A sample of recent values: how many pairs of instances each value join makes.

Anchors are chosen by it, in one process and for shards alike.  It counts under every value join,
whether that is an anchor or not, and knows the recent past only.  So anchors follow a drift however
long the broker has run.  A value that is frequent enough to cost anything shows in few instances.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from joins.budget.probe import ValueJoin
from joins.memory.remembered import Hashes
from joins.memory.slots import Ints
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits

__all__ = ["InstanceSample", "PairCounts", "rarest"]


_FEW = 32
"""Variables up to which their values are looked for among all of a sample."""


class InstanceSample:
    """The values of the latest instances, and when to look at them."""

    def __init__(self, limits: SignatureLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._parts: deque[tuple[int, Ints, Hashes]] = deque()
        self._size = 0
        self._unseen = self._new = 0
        self._look_after = self._limits.first_look
        self._counts: PairCounts | None = None
        self._uncounted = 0

    def note(self, count: int, variables: Ints, hashes: Hashes) -> None:
        """Take `count` instances in, which have a value `hashes[i]` under `variables[i]`."""
        self._parts.append((count, variables, hashes))
        self._size += count
        self._unseen += count
        self._new += count
        self._uncounted += count
        while self._size - self._parts[0][0] >= self._limits.sample_instances:
            self._size -= self._parts.popleft()[0]

    def take_new(self) -> int:
        """Return how many instances have come since this was last asked."""
        new, self._new = self._new, 0
        return new

    def look_soon(self) -> None:
        """Begin with frequent looks again: there are new value joins."""
        self._look_after = self._limits.first_look

    def is_due(self) -> bool:
        """Return whether it is time for a look; if so, the next look is due later."""
        if self._unseen < self._look_after:
            return False
        self._unseen = 0
        self._look_after = min(2 * self._look_after, self._limits.looks_apart)
        return True

    def counts(self) -> PairCounts:
        """Return the pairs of each value join; the last `first_look` instances may be left out."""
        if self._counts is None or self._uncounted >= self._limits.first_look:
            self._uncounted = 0
            self._counts = PairCounts([(variables, hashes) for _, variables, hashes in self._parts])
        return self._counts


class PairCounts:
    """How many pairs of instances in a sample have equal values under two variables.

    Once somebody asks for many variables, the values of all are put in order and counted at once:
    for one class more, that would take ten times as long as to find the values of its few.
    """

    def __init__(self, parts: list[tuple[Ints, Hashes]]) -> None:
        self._variables = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in parts)])
        self._hashes = np.concatenate([np.zeros(0, np.uint64), *(each for _, each in parts)])
        # How often each value is there, once all are counted.
        self._times: Ints | None = None
        self._values: dict[int, tuple[Hashes, Ints]] = {}
        self._pairs: dict[ValueJoin, int] = {}

    def of(self, value_join: ValueJoin) -> int:
        """Return the pairs of a value join; an instance makes one with itself."""
        pairs = self._pairs.get(value_join)
        if pairs is None:
            pairs = self._pairs[value_join] = self._count(*value_join)
        return pairs

    def _count(self, left: int, right: int) -> int:
        (values1, counts1), (values2, counts2) = map(self._occurrences, (left, right))
        if not len(values1) or not len(values2):
            return 0
        at = np.minimum(np.searchsorted(values2, values1), len(values2) - 1)
        return int((counts1 * counts2[at])[values2[at] == values1].sum())

    def _occurrences(self, variable: int) -> tuple[Hashes, Ints]:
        """Return the values under a variable, in order, and how often each occurs."""
        found = self._values.get(variable)
        if found is None:
            if self._times is None and len(self._values) >= _FEW:
                self._count_all()
            found = self._values[variable] = self._under(variable)
        return found

    def _count_all(self) -> None:
        order = np.argsort(self._variables)
        variables, hashes = self._variables[order], self._hashes[order]
        for own in np.split(hashes, np.flatnonzero(np.diff(variables)) + 1):
            own.sort()  # a third of what it takes to sort all by both
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (np.diff(variables) != 0) | (hashes[1:] != hashes[:-1])
        first = np.flatnonzero(is_first)
        self._variables, self._hashes = variables[first], hashes[first]
        self._times = np.diff(first, append=len(order))

    def _under(self, variable: int) -> tuple[Hashes, Ints]:
        if self._times is None:
            own: Hashes = self._hashes[self._variables == variable]
            return np.unique(own, return_counts=True)
        rows = slice(*self._variables.searchsorted((variable, variable + 1)))
        return self._hashes[rows], self._times[rows]


def rarest(
    value_joins: Sequence[ValueJoin], counts: PairCounts, now: ValueJoin | None, change: int
) -> ValueJoin:
    """Return the value join that makes the fewest pairs.

    It is the one in use unless another makes `change` times fewer.
    """
    if len(value_joins) == 1:
        return value_joins[0]
    best = min(value_joins, key=lambda join: (counts.of(join), join))
    if now is not None and counts.of(now) < change * (counts.of(best) + 1):
        return now
    return best
