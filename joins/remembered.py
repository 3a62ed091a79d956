"""Instances as columns: times, layouts and hashed values in arrays, the rest in Arrow chunks.

Rows stand in the order of their instance numbers; row `i` is instance `base + i`.  `evict` drops
rows from the front, and gives memory back once half of the rows are gone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from joins.instance import INSTANCE_SCHEMA, Instance
from joins.slots import Ints, Layouts, ranges

__all__ = ["EMPTY", "HashValues", "Hashes", "Remembered", "hash_values"]

Hashes = npt.NDArray[np.uint64]
HashValues = Callable[[pa.Array], tuple[Hashes, Hashes]]

EMPTY = np.uint64(0)
"""Stands for the empty string, which joins nothing; no other value has it."""

_KEYS = ("xscl, first hash", "xscl, other hash")


def hash_values(values: pa.Array) -> tuple[Hashes, Hashes]:
    """Return two independent 64-bit hashes of strings (SipHash); the empty string's are `EMPTY`."""
    strings = values.to_numpy(zero_copy_only=False)
    first, other = (pd.util.hash_array(strings, hash_key=key, categorize=False) for key in _KEYS)
    empty = strings == ""
    first[(first == EMPTY) | (first == ~EMPTY)] = 1
    first[empty] = other[empty] = EMPTY
    return first, other


class _Column:
    """An array that grows at the end and shrinks at the front."""

    def __init__(self, dtype: type) -> None:
        self._array: npt.NDArray[Any] = np.zeros(1_024, dtype)
        self._size = 0

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._array[: self._size]

    def padded(self, width: int) -> npt.NDArray[Any]:
        """Return the values and `width` further places, whatever is in them."""
        if self._size + width > len(self._array):
            self._grow(self._size + width)
        return self._array[: self._size + width]

    def _grow(self, size: int) -> None:
        grown = np.zeros(max(size, 2 * len(self._array)), self._array.dtype)
        grown[: self._size] = self._array[: self._size]
        self._array = grown

    def append(self, values: npt.NDArray[Any]) -> None:
        size = self._size + len(values)
        if size > len(self._array):
            self._grow(size)
        self._array[self._size : size] = values
        self._size = size

    def drop(self, count: int) -> None:
        self._array = self._array[count : self._size].copy()
        self._size -= count


_TIMES = {"docid": np.int64, "depth": np.int32, "start_us": np.int64, "end_us": np.int64}
_COLUMNS = {**_TIMES, "watermark_us": np.int64, "layout": np.int32, "slot": np.int64}


class Remembered:
    """What the join remembers of instances.

    `is_ordered` says that so far every instance stands at a larger docid than all before it.
    """

    def __init__(self, layouts: Layouts, hashing: HashValues) -> None:
        self.base = 1
        self.next_instance = 1
        self._newest_docid = -1
        self._layouts = layouts
        self._hashing = hashing
        self._columns = {name: _Column(dtype) for name, dtype in _COLUMNS.items()}
        self._first_hash = _Column(np.uint64)
        self._other_hash = _Column(np.uint64)
        self._slot_base = 0
        self._chunks: list[pa.Table] = []
        self._chunk_starts: list[int] = []
        self.published_ids: dict[int, str] = {}
        self.is_ordered = True

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column, one value for each row."""
        return self._columns[name].values

    def take(self, name: str, instances: Ints) -> Ints:
        """Return a column's values of some instances."""
        return self._columns[name].values[instances - self.base]

    def slots(self, instances: Ints) -> Ints:
        """Return where the slots of instances start in `hashes`."""
        return self.take("slot", instances) - self._slot_base

    @property
    def hashes(self) -> tuple[Hashes, Hashes]:
        """The hashes of all slots, instance by instance."""
        return self._first_hash.values, self._other_hash.values

    def padded_hashes(self, width: int) -> Hashes:
        """Return the first hashes of all slots, and `width` more places behind them."""
        return self._first_hash.padded(width)

    def append(self, rows: pa.Table) -> tuple[int, Ints]:
        """Add instances; return the first one's number, and their layouts."""
        first = self.next_instance
        rows = rows.combine_chunks()
        layouts = self._layouts.current(rows.column("shape").to_numpy().astype(np.int64))
        counts = self._layouts.arrays.slot_counts[layouts]
        slot_end = self._slot_base + len(self._first_hash.values)
        for name in ("docid", "depth", "start_us", "end_us", "watermark_us"):
            self._columns[name].append(rows.column(name).to_numpy())
        self._columns["layout"].append(layouts)
        self._columns["slot"].append(slot_end + np.cumsum(counts) - counts)
        for column, hashes in zip(
            (self._first_hash, self._other_hash), self._hash(rows, layouts, counts), strict=True
        ):
            column.append(hashes)
        self._remember_published(rows, first)
        self._check_order(rows)
        self._chunks.append(rows)
        self._chunk_starts.append(first)
        self.next_instance += rows.num_rows
        return first, layouts

    def _hash(self, rows: pa.Table, layouts: Ints, counts: Ints) -> tuple[Hashes, Hashes]:
        values = rows.column("vals").combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
        offsets = values.offsets.to_numpy().astype(np.int64)
        arrays = self._layouts.arrays
        nodes = arrays.slot_nodes[ranges(arrays.slot_starts[layouts], counts)]
        places = np.repeat(offsets[:-1], counts) + nodes
        return self._hashing(values.values.take(pa.array(places)).fill_null(""))

    def _check_order(self, rows: pa.Table) -> None:
        """Note when a position is not above all before it, as of tuples of inner operators."""
        docids = rows.column("docid").to_numpy()
        last = self._newest_docid
        if len(docids):
            self.is_ordered &= bool(docids[0] > last and (np.diff(docids) > 0).all())
        self._newest_docid = max(last, int(docids.max(initial=last)))

    def _remember_published(self, rows: pa.Table, first: int) -> None:
        depths = rows.column("depth").to_numpy()
        for i in np.flatnonzero(depths > 0):
            self.published_ids[first + int(i)] = rows.column("match_id")[int(i)].as_py()

    def evict(self, before_us: int) -> int:
        """Drop instances from the front that end before a time; return how many went."""
        ends = self._columns["end_us"].values
        alive = np.flatnonzero(ends >= before_us)
        dead = int(alive[0]) if len(alive) else len(ends)
        if not dead or 2 * dead < len(ends):
            return 0
        slots = self._columns["slot"].values
        slot_base = int(slots[dead]) if dead < len(ends) else self._slot_base + len(self.hashes[0])
        for column in self._columns.values():
            column.drop(dead)
        for hashes in (self._first_hash, self._other_hash):
            hashes.drop(slot_base - self._slot_base)
        self._slot_base = slot_base
        self.base += dead
        while len(self._chunk_starts) > 1 and self._chunk_starts[1] <= self.base:
            del self._chunks[0], self._chunk_starts[0]
        self.published_ids = {i: m for i, m in self.published_ids.items() if i >= self.base}
        return dead

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        by_chunk: dict[int, list[int]] = {}
        for number in sorted(set(numbers)):
            by_chunk.setdefault(bisect_right(self._chunk_starts, number) - 1, []).append(number)
        found: dict[int, Instance] = {}
        for i, wanted in by_chunk.items():
            rows = self._chunks[i].take(pa.array([n - self._chunk_starts[i] for n in wanted]))
            columns = [rows.column(name).to_pylist() for name in _READ]
            for number, values in zip(wanted, zip(*columns, strict=True), strict=True):
                found[number] = Instance(number, *values[:-3], *map(tuple, values[-3:]))
        return found


_READ = [name for name in INSTANCE_SCHEMA.names if name not in ("instance", "shape")]
