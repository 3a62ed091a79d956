"""An index of hashed values: which instances have a value under a variable.

It is a log-structured set of sorted runs.  Every batch adds one, and neighbours of like size are
merged up to `run_entries` (`limits`): an entry is moved log2(run_entries) times, no merge takes
longer than one of that size, and a run is dropped whole once all of its instances have been
evicted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from joins.memory.compilation import are_compiled
from joins.memory.hits import EntryHits
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.lookups import LookUps
from joins.memory.remembered import EMPTY, Hashes
from joins.memory.slots import Ints
from joins.memory.sortedrun import AreThere, IndexRun
from joins.memory.times import Flags
from joins.memory.valuelookup import AskedValues, are_large, find_compiled

__all__ = ["ValueIndex"]

_RUN_PARTS = 4
"""A run whose first instances are gone is written anew for each part of so many of it."""

_GROWTH = 3
"""A run so many times as large as all behind it, or larger, is left alone."""

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
        self._merge_up_to(len(self._runs) - 1, are_there)

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

    def _merge_up_to(self, last: int, are_there: AreThere) -> None:
        """Merge a run at once with all the runs before it that are worth it."""
        first, entries = last, len(self._runs[last])
        while first and self._is_worth_merging(first - 1, last, entries):
            first -= 1
            entries += len(self._runs[first])
        if first < last:
            runs = self._runs[first : last + 1]
            parts = zip(*(run.entries(run.there(are_there)) for run in runs), strict=True)
            keys, instances = map(np.concatenate, parts)
            self._runs[first : last + 1] = self._sorted(keys, instances)

    def _is_worth_merging(self, earlier: int, last: int, entries: int) -> bool:
        """Return whether a run is not much larger than so many entries of later ones."""
        run = self._runs[earlier]
        are_near = self._runs[last].last - run.first < _OFFSETS
        is_small = len(run) + entries <= self._limits.run_entries
        return are_near and is_small and len(run) < _GROWTH * entries

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
                there = run.there(are_there)
                if 2 * np.count_nonzero(there) <= len(run):
                    self._put(self._runs.index(run), *run.entries(there), are_there)

    def _put(self, i: int, keys: Hashes, instances: Ints, are_there: AreThere) -> None:
        """Put the rest of a run in its place; merge it with the runs before it."""
        self._runs[i : i + 1] = self._sorted(keys, instances)
        if i < len(self._runs):
            self._merge_up_to(i, are_there)

    def shared(self, hashes: Hashes, owners: Ints) -> Flags:
        """Return which values may occur in another instance than their owner, under any variable.

        Every value that does occur is among them; the empty string occurs nowhere.
        """
        if are_compiled(len(hashes), self._limits):
            return self._shared_compiled(hashes, owners)
        order = np.argsort(hashes)
        order = order[np.searchsorted(hashes, EMPTY, "right", sorter=order) :]
        found = np.zeros(len(hashes), np.bool_)
        # What occurs often is found in the newest runs, which are short.
        for run in reversed(self._runs):
            found_here = run.shared(hashes[order], owners[order], self._limits.own_entries)
            found[order[found_here]] = True
            order = order[~found_here]
        return found

    def _shared_compiled(self, hashes: Hashes, owners: Ints) -> Flags:
        """Return what `shared` does, by a compiled loop."""
        from joins.memory.kernels import share_values

        order: Ints | None = None
        if are_large(self._runs):
            order = np.argsort(hashes)
            hashes, owners = hashes[order], owners[order]
        found = np.zeros(len(hashes), np.bool_)
        for run in reversed(self._runs):
            share_values(hashes, owners, found, run.columns, self._limits.own_entries)
        if order is None:
            return found
        as_given = np.empty_like(found)
        as_given[order] = found
        return as_given

    def find(self, keys: Hashes) -> list[EntryHits]:
        """Return where keys are, run by run, each in the order of `keys`.

        Entries of instances that have been evicted may be among them.
        """
        order = keys.argsort()
        needles = keys[order]
        found = ((run, *run.find(needles)) for run in self._runs)
        return [
            EntryHits.of(run, order[hit], starts, n) for run, hit, starts, n in found if len(hit)
        ]

    def find_under(
        self, hashes: Hashes, variables: Ints, look_ups: LookUps, oldest: Ints
    ) -> tuple[Ints, Ints, list[EntryHits]]:
        """Return values that are here, the look-up of each, and where they are, run by run.

        A value of `variables[i]` is looked up as `look_ups` say.  Hits are of the places in what is
        returned; entries of instances that have been evicted may be among them, and not all of
        instances before `oldest[i]`.
        """
        if are_compiled(len(hashes), self._limits):
            return find_compiled(self._runs, hashes, variables, oldest, look_ups)
        return AskedValues.of(hashes, variables, oldest, look_ups).find(self._runs)

    def look_up(self, keys: Hashes, hits_max: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield all hits as (indices into `keys`, instances), about `hits_max` at a time."""
        for hits in self.find(keys):
            for indices, counts, instances in hits.listed(hits_max):
                yield np.repeat(indices, counts), instances
