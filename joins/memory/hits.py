"""Hits: which entries of an index have a key that is looked for, and the instances they are of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags

__all__ = ["EntryHits", "FoundEntries", "RunEntries", "slices"]


class RunEntries(Protocol):
    """Entries of instances from `first` to `last`, by their places."""

    @property
    def first(self) -> int:
        """No entry is of an instance before this one."""

    @property
    def last(self) -> int:
        """No entry is of an instance behind this one."""

    def __len__(self) -> int: ...

    def owners(self, places: Ints) -> Ints:
        """Return the instances of some entries."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundEntries:
    """Entries that have been taken out of several runs, with their instances."""

    instances: Ints
    first: int
    last: int

    @classmethod
    def of(cls, instances: Ints) -> FoundEntries:
        """Return entries of some instances."""
        return cls(instances, int(instances.min(initial=0)), int(instances.max(initial=0)))

    def __len__(self) -> int:
        return len(self.instances)

    def owners(self, places: Ints) -> Ints:
        """Return the instances of some entries."""
        return self.instances[places]


@dataclass(frozen=True, slots=True)
class EntryHits:
    """Where keys are among entries: the key at `indices[i]` has `counts[i]` from `starts[i]` on.

    The entries of a key ascend by their instances.
    """

    entries: RunEntries
    indices: Ints
    starts: Ints
    counts: Ints

    @classmethod
    def of(cls, entries: RunEntries, indices: Ints, starts: Ints, counts: Ints) -> EntryHits:
        """Return hits in the order of the keys."""
        order = indices.argsort()
        return cls(entries, indices[order], starts[order], counts[order])

    def since(self, instances: Ints, rows: Ints | slice = slice(None)) -> EntryHits:
        """Return the hits of the keys from some instances on, or of the keys at `rows`.

        They are those of the key at `indices[rows][i]` from the instance `instances[i]` on.
        """
        if self.entries.first >= instances.max(initial=0):
            return self
        starts, counts = self.starts.copy(), self.counts.copy()
        some = EntryHits(self.entries, self.indices[rows], starts[rows], counts[rows])
        first = some._first_from(instances)
        counts[rows] += starts[rows] - first
        starts[rows] = first
        return replace(self, starts=starts, counts=counts).some(counts > 0)

    def before(self, instances: Ints) -> EntryHits:
        """Return the hits of the key at `indices[i]` before the instance `instances[i]`."""
        if not len(instances) or self.entries.last < instances.min():
            return self
        ends = self._first_from(instances)
        return replace(self, counts=ends - self.starts).some(self.starts < ends)

    def _first_from(self, instances: Ints) -> Ints:
        """Return the first entry of each key of an instance from some on, or where its hits end."""
        last = len(self.entries) - 1
        low, high = self.starts, self.starts + self.counts
        while (is_open := low < high).any():
            middle = (low + high) // 2
            is_before = is_open & (self.entries.owners(np.minimum(middle, last)) < instances)
            low = np.where(is_before, middle + 1, low)
            high = np.where(is_before, high, np.minimum(middle, high))
        return low

    def some(self, chosen: Flags) -> EntryHits:
        """Return the hits of some of the keys."""
        return EntryHits(
            self.entries, self.indices[chosen], self.starts[chosen], self.counts[chosen]
        )

    def listed(self, hits_max: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield all as (indices of keys, hits of each, instances), about `hits_max` at a time.

        A slice goes over that only where one key alone has more hits.
        """
        for part in slices(self.counts, hits_max):
            counts = self.counts[part]
            yield self.indices[part], counts, self.entries.owners(ranges(self.starts[part], counts))


def slices(counts: Ints, total_max: int) -> Iterator[slice]:
    """Cut into slices whose counts add up to `total_max` at most, or of one larger count."""
    ends = counts.cumsum()
    start, done = 0, 0
    while start < len(counts):
        stop = max(start + 1, int(ends.searchsorted(done + total_max, "right")))
        yield slice(start, stop)
        start, done = stop, int(ends[stop - 1])
