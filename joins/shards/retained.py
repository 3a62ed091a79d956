"""Counts of instances that came together: the driver of shards keeps these, not the instances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from joins.memory.retention import Retention

_FIRST_US = np.iinfo(np.int64).min

__all__ = ["RetainedCount", "RetainedCounts", "merged"]


class RetainedCount(NamedTuple):
    """How many instances there are of each shape, and the latest end among them."""

    by_shape: Mapping[int, tuple[int, int]]

    @classmethod
    def of(cls, rows: pa.Table) -> RetainedCount:
        """Count rows of `INSTANCE_SCHEMA`."""
        shapes, ends = (rows.column(name).to_numpy() for name in ("shape", "end_us"))
        if len(shapes) and (shapes == shapes[0]).all():
            return cls({int(shapes[0]): (len(shapes), int(ends.max()))})
        distinct, which = np.unique(shapes, return_inverse=True)
        counts = np.bincount(which, minlength=len(distinct))
        newest = np.full(len(distinct), _FIRST_US)
        np.maximum.at(newest, which, ends)
        columns = (each.tolist() for each in (distinct, counts, newest))
        return cls({shape: (count, end_us) for shape, count, end_us in zip(*columns, strict=True)})

    def __len__(self) -> int:
        return sum(count for count, _ in self.by_shape.values())

    def of_use(self, retention: Retention, horizon_us: int) -> RetainedCount:
        """Return the count without the shapes of which no class can use any instance."""
        return RetainedCount(
            {
                shape: (count, end_us)
                for shape, (count, end_us) in self.by_shape.items()
                if end_us >= retention.needed_from(shape, horizon_us)
            }
        )


def merged(counts: Iterable[RetainedCount]) -> RetainedCount:
    """Return counts as one."""
    by_shape: dict[int, tuple[int, int]] = {}
    for retained in counts:
        for shape, (count, end_us) in retained.by_shape.items():
            before, newest = by_shape.get(shape, (0, end_us))
            by_shape[shape] = (before + count, max(newest, end_us))
    return RetainedCount(by_shape)


class RetainedCounts:
    """All that is remembered, the oldest first; neighbours are merged up to `counted_max`."""

    def __init__(self, counted_max: int) -> None:
        self._counted_max = counted_max
        self._retained: list[RetainedCount] = []

    def __iter__(self) -> Iterator[RetainedCount]:
        return iter(self._retained)

    def __len__(self) -> int:
        return sum(map(len, self._retained))

    def append(self, retained: RetainedCount) -> None:
        """Add a count of new instances."""
        self._retained.append(retained)

    def evict(self, retention: Retention, horizon_us: int) -> int:
        """Leave out the shapes of counts that are of no use any more; return how many went."""
        before = len(self)
        kept: list[RetainedCount] = []
        for retained in self._retained:
            left = retained.of_use(retention, horizon_us)
            if kept and len(kept[-1]) + len(left) <= self._counted_max:
                kept[-1] = merged([kept[-1], left])
            elif left.by_shape:
                kept.append(left)
        self._retained = kept
        return before - len(self)
