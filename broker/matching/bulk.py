"""Instances with long values: only a few of them are read at a time.

Most instances have some hundred bytes of values, and tens of thousands are read at once.  A
document may have megabytes, so the numbers of large instances are noted when these come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from broker.matching.boxes.columns import Ints
from broker.matching.limits import MatchingLimits

__all__ = ["Bulk"]

T = TypeVar("T")


def _sizes(lists: pa.ListArray) -> Ints:
    """Return the bytes of the texts of each list: texts stand one behind the other."""
    texts = lists.values
    if not len(texts):
        return np.zeros(len(lists), np.int64)
    ends = np.frombuffer(texts.buffers()[1], np.int32, offset=4 * texts.offset)
    sizes: Ints = np.diff(ends[lists.offsets.to_numpy()]).astype(np.int64)
    return sizes


class Bulk:
    """The large instances of a join, by number."""

    def __init__(self, limits: MatchingLimits) -> None:
        self._limits = limits
        self._large: dict[int, tuple[int, int]] = {}
        self._large_max = limits.large_instances

    def note(self, first: int, rows: pa.Table) -> None:
        """Note the large instances of rows of `INSTANCE_SCHEMA`, numbered from `first` on."""
        for batch in rows.select(["vals", "end_us"]).to_batches():
            values, ends = batch.columns
            sizes = _sizes(values)
            for row in (sizes > self._limits.large_bytes).nonzero()[0].tolist():
                self._large[first + row] = int(sizes[row]), ends[row].as_py()
            first += batch.num_rows

    def forget(self, before_us: int) -> None:
        """Forget instances that end before a time, once enough are known."""
        if len(self._large) > self._large_max:
            kept = {n: held for n, held in self._large.items() if held[1] >= before_us}
            self._large = kept
            self._large_max = max(self._limits.large_instances, 2 * len(kept))

    @property
    def is_much(self) -> bool:
        """Whether all large instances have more than may be read at a time."""
        return sum([size for size, _ in self._large.values()]) > self._limits.read_bytes

    def is_large(self, number: int) -> bool:
        """Return whether an instance is large."""
        return number in self._large

    def sub_batches(
        self, items: Sequence[T], instances_of: Callable[[T], Iterable[int | None]]
    ) -> Iterator[Sequence[T]]:
        """Yield items in order, in sub-batches with at most `read_bytes` of large instances."""
        start, held, total = 0, set[int](), 0
        for i, item in enumerate(items if self._large else ()):
            large = {n for n in instances_of(item) if n is not None and n in self._large}
            total += sum(self._large[number][0] for number in large - held)
            held |= large
            if total > self._limits.read_bytes and i > start:
                yield items[start:i]
                start, held = i, large
                total = sum(self._large[number][0] for number in large)
        if items:
            yield items[start:]
