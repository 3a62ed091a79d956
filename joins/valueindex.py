"""An index of hashed values: which instances have a value under a variable.

It is a log-structured set of sorted runs: every batch adds one, and neighbours of like size are
merged, so there are about log2(n) runs, an entry is moved log2(n) times, and a batch of look-ups
is a binary search in each run.  Entries of instances that have been evicted are dropped when
their run is merged next, and never given out.
"""

from __future__ import annotations

import numpy as np

from joins.remembered import Hashes
from joins.slots import Ints, ranges

__all__ = ["ValueIndex", "entry_keys"]

_MIX = np.uint64(0x9E3779B97F4A7C15)


def entry_keys(hashes: Hashes, variables: Ints) -> Hashes:
    """Return the keys of values under variables."""
    return hashes ^ (variables.astype(np.uint64) * _MIX)


class ValueIndex:
    """Sorted runs of (key, instance)."""

    def __init__(self) -> None:
        self._runs: list[tuple[Hashes, Ints]] = []

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self._runs)

    def add(self, keys: Hashes, instances: Ints, base: int) -> None:
        """Add entries as a run; entries of instances below `base` may be dropped."""
        if not len(keys):
            return
        order = np.argsort(keys, kind="stable")
        self._runs.append((keys[order], instances[order]))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            self._merge(base)

    def _merge(self, base: int) -> None:
        (keys1, instances1), (keys2, instances2) = self._runs[-2:]
        alive = instances1 >= base
        keys = np.concatenate([keys1[alive], keys2])
        order = np.argsort(keys, kind="stable")
        instances = np.concatenate([instances1[alive], instances2])
        self._runs[-2:] = [(keys[order], instances[order])]

    def counts(self, keys: Hashes) -> Ints:
        """Return for each key how many entries there are, those of evicted instances included."""
        total = np.zeros(len(keys), np.int64)
        for run, _ in self._runs:
            total += np.searchsorted(run, keys, "right") - np.searchsorted(run, keys, "left")
        return total

    def look_up(self, keys: Hashes) -> tuple[Ints, Ints]:
        """Return all hits as (position in `keys`, instance)."""
        positions: list[Ints] = [np.zeros(0, np.int64)]
        instances: list[Ints] = [np.zeros(0, np.int64)]
        for run, owners in self._runs:
            starts = np.searchsorted(run, keys, "left")
            counts = np.searchsorted(run, keys, "right") - starts
            hit = np.flatnonzero(counts)
            if len(hit):
                positions.append(np.repeat(hit, counts[hit]))
                instances.append(owners[ranges(starts[hit], counts[hit])])
        return np.concatenate(positions), np.concatenate(instances)
