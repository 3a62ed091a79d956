"""An index of hashed values: which instances have a value under a variable.

It is a log-structured set of sorted runs.  Every batch adds one, and neighbours of like size are
merged up to `run_entries` (`limits`): an entry is moved log2(run_entries) times, no merge takes
longer than one of that size, and a run is dropped whole once all of its instances have been
evicted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.lookups import LookUps
from joins.memory.remembered import EMPTY, Hashes
from joins.memory.slots import Ints
from joins.memory.sortedrun import AreThere, IndexRun, SortedRunHits
from joins.memory.times import Flags

__all__ = ["ValueIndex"]

_RUN_PARTS = 4
"""A run whose first instances are gone is written anew for each part of so many of it."""

_OFFSETS = 1 << 32
"""Instances that the entries of a run can be apart."""


class ValueIndex:
    """Sorted runs of (key, instance), oldest first."""

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._limits = limits
        self._runs: list[IndexRun] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    @property
    def memory_bytes(self) -> int:
        """The memory that entries take."""
        return sum(run.memory_bytes for run in self._runs)

    def add(self, keys: Hashes, instances: Ints, base: int, are_there: AreThere) -> None:
        """Add entries as a run; entries of instances that are not there may be dropped.

        No instance below `base` is there.  Instances are added in their order.
        """
        self.drop(base)
        if not len(keys):
            return
        self._runs.append(IndexRun.of(keys, instances, self._limits))
        while self._is_worth_merging(len(self._runs) - 1):
            self._merge(len(self._runs) - 1, are_there)

    def drop(self, before: int) -> None:
        """Drop the entries of instances below `before`, of such as are added in their order.

        A run keeps some of them, at most a third of the others: to write it anew costs by its
        entries.
        """
        while self._runs and self._runs[0].last < before:
            del self._runs[0]
        if self._runs:
            run = self._runs[0]
            if _RUN_PARTS * (before - run.first) >= run.last - run.first + 1:
                self._runs[0] = run.since(before, self._limits)

    def _is_worth_merging(self, i: int) -> bool:
        """Return whether a run and the one before it are of like size."""
        if not 0 < i < len(self._runs):
            return False
        earlier, later = self._runs[i - 1 : i + 1]
        are_near = later.last - earlier.first < _OFFSETS
        sizes = len(earlier), len(later)
        return are_near and sizes[0] < 2 * sizes[1] and sum(sizes) <= self._limits.run_entries

    def _merge(self, i: int, are_there: AreThere) -> None:
        earlier, later = (run.entries(are_there) for run in self._runs[i - 1 : i + 1])
        keys, instances = (np.concatenate(parts) for parts in zip(earlier, later, strict=True))
        self._runs[i - 1 : i + 1] = self._sorted(keys, instances)

    def _sorted(self, keys: Hashes, instances: Ints) -> list[IndexRun]:
        """Return a run of entries, if there are any."""
        return [IndexRun.of(keys, instances, self._limits, is_merged=True)] if len(keys) else []

    def sweep(self, are_there: AreThere) -> Iterator[None]:
        """Write runs anew of which half or more are entries of instances that are not there.

        Yields between two runs; entries may be added then.
        """
        for run in list(self._runs):
            yield
            if run in self._runs:
                keys, instances = run.entries(are_there)
                if 2 * len(keys) <= len(run):
                    self._put(self._runs.index(run), keys, instances, are_there)

    def _put(self, i: int, keys: Hashes, instances: Ints, are_there: AreThere) -> None:
        """Put the rest of a run in its place; merge it with the runs before it."""
        self._runs[i : i + 1] = self._sorted(keys, instances)
        while self._is_worth_merging(i):
            self._merge(i, are_there)
            i -= 1

    def shared(self, hashes: Hashes, owners: Ints) -> Flags:
        """Return which values may occur in another instance than their owner, under any variable.

        Every value that does occur is among them; the empty string occurs nowhere.
        """
        order = np.argsort(hashes)
        order = order[np.searchsorted(hashes, EMPTY, "right", sorter=order) :]
        found = np.zeros(len(hashes), np.bool_)
        for run in self._runs:
            found_here = run.shared(hashes[order], owners[order], self._limits.own_entries)
            found[order[found_here]] = True
            order = order[~found_here]
        return found

    def find(self, keys: Hashes) -> list[SortedRunHits]:
        """Return where keys are, run by run, each in the order of `keys`.

        Entries of instances that have been evicted may be among them.
        """
        order = np.argsort(keys)
        needles = keys[order]
        found = ((run, *run.find(needles)) for run in self._runs)
        return [
            SortedRunHits.of(run, order[hit], starts, n)
            for run, hit, starts, n in found
            if len(hit)
        ]

    def find_under(
        self, hashes: Hashes, variables: Ints, look_ups: LookUps, oldest: Ints
    ) -> tuple[Ints, Ints, list[SortedRunHits]]:
        """Return values that are here, the look-up of each, and where they are, run by run.

        A value of `variables[i]` is looked up as `look_ups` say.  Hits are of the places in what is
        returned; entries of instances that have been evicted may be among them, and not all of
        instances before `oldest[i]`.
        """
        order = np.argsort(hashes)
        hashes, variables, oldest = hashes[order], variables[order], oldest[order]
        which, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        hits: list[SortedRunHits] = []
        first = 0
        for run in self._runs:
            for values, asked, starts, counts in run.find_under(
                hashes, variables, look_ups, oldest
            ):
                places = np.arange(first, first + len(values))
                hits.append(SortedRunHits(run, places, starts, counts))
                which.append(order[values])
                rows.append(asked)
                first += len(values)
        return np.concatenate(which), np.concatenate(rows), hits

    def look_up(self, keys: Hashes, hits_max: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield all hits as (indices into `keys`, instances), about `hits_max` at a time."""
        for hits in self.find(keys):
            for indices, counts, instances in hits.listed(hits_max):
                yield np.repeat(indices, counts), instances
