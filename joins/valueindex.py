"""An index of hashed values: which instances have a value under a variable.

It is a log-structured set of sorted runs: every batch adds one, and neighbours of like size are
merged, so there are about log2(n) runs, an entry is moved log2(n) times, and a batch of look-ups
is a binary search in each run.  Entries of instances that have been evicted are dropped when
their run is merged next, and never given out.
"""

from __future__ import annotations

from collections.abc import Iterator

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

    def look_up(self, keys: Hashes, hits_max: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield all hits as (positions in `keys`, instances), about `hits_max` at a time.

        A slice goes over that only where one key alone has more hits.
        """
        order = np.argsort(keys)
        needles = keys[order]
        for run, owners in self._runs:
            starts = np.searchsorted(run, needles, "left")
            hit = np.flatnonzero(run[np.minimum(starts, len(run) - 1)] == needles)
            if not len(hit):
                continue
            starts = starts[hit]
            counts = np.searchsorted(run, needles[hit], "right") - starts
            for part in _slices(counts, hits_max):
                positions = np.repeat(order[hit[part]], counts[part])
                yield positions, owners[ranges(starts[part], counts[part])]


def _slices(counts: Ints, total_max: int) -> Iterator[slice]:
    """Cut into slices whose counts add up to at most `total_max`, or of one count over it."""
    ends = np.cumsum(counts)
    start, done = 0, 0
    while start < len(counts):
        stop = max(start + 1, int(np.searchsorted(ends, done + total_max, "right")))
        yield slice(start, stop)
        start, done = stop, int(ends[stop - 1])
