"""Instances as columns: times, layouts and hashed values in arrays, whole rows beside them.

Rows stand in the order of their instance numbers.  `evict` drops them from the front: it looks at
what has died since the last time and no further, and what it drops is given back at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from joins.column import Column
from joins.instance import INSTANCE_SCHEMA, Instance
from joins.slots import Ints, Layouts, ranges
from joins.spill import InstanceRows

__all__ = ["EMPTY", "HashValues", "Hashes", "Remembered", "hash_values"]

Hashes = npt.NDArray[np.uint64]
HashValues = Callable[[pa.Array], tuple[Hashes, Hashes]]

EMPTY = np.uint64(0)
"""Stands for the empty string, which joins nothing; no other value has it."""

_KEYS = ("xscl, first hash", "xscl, other hash")

EVICTED_ROWS = 16_384
"""Instances that are evicted at a time, unless half of all can go: eviction costs by the piece."""

_SCANNED_ROWS = 4_096


def hash_values(values: pa.Array) -> tuple[Hashes, Hashes]:
    """Return two independent 64-bit hashes of strings (SipHash); the empty string's are `EMPTY`."""
    # Of bytes a hash is made as they are; a string would be encoded for each of the two.
    strings = values.cast(pa.binary()).to_numpy(zero_copy_only=False)
    first, other = (pd.util.hash_array(strings, hash_key=key, categorize=False) for key in _KEYS)
    empty = strings == b""
    first[(first == EMPTY) | (first == ~EMPTY)] = 1
    first[empty] = other[empty] = EMPTY
    return first, other


_TIMES = {"docid": np.int64, "depth": np.int32, "start_us": np.int64, "end_us": np.int64}
_COLUMNS = {
    **_TIMES,
    "newest_us": np.int64,  # the latest end so far
    "watermark_us": np.int64,
    "layout": np.int32,
    "slot": np.int64,
}


class Remembered:
    """What the join remembers of instances; `base` is the first of them.

    `is_ordered` says that so far every instance stands at a larger docid than all before it.
    """

    def __init__(
        self, layouts: Layouts, hashing: HashValues, spill_directory: Path | None = None
    ) -> None:
        self.base = 1
        self.next_instance = 1
        self._newest_docid = -1
        self._newest_us = np.iinfo(np.int64).min
        self._layouts = layouts
        self._hashing = hashing
        self._columns = {name: Column(dtype, self.base) for name, dtype in _COLUMNS.items()}
        self._first_hash = Column(np.uint64)
        self._other_hash = Column(np.uint64)
        self._rows = InstanceRows(spill_directory)
        self._scanned = self.base
        self.published_ids: dict[int, str] = {}
        self.is_ordered = True

    def take(self, name: str, instances: Ints) -> Ints:
        """Return a column's values of some instances."""
        column = self._columns[name]
        taken: Ints = column.values[instances - column.origin]
        return taken

    def first_from(self, times_us: Ints) -> Ints:
        """Return, for each time, an instance before which all end before that time."""
        column = self._columns["newest_us"]
        newest = column.values[self.base - column.origin :]
        return np.searchsorted(newest, times_us, "left") + self.base

    def slots(self, instances: Ints) -> Ints:
        """Return where the slots of instances start in `hashes`."""
        return self.take("slot", instances) - self._first_hash.origin

    @property
    def hashes(self) -> tuple[Hashes, Hashes]:
        """The hashes of all slots, instance by instance."""
        return self._first_hash.values, self._other_hash.values

    def padded_hashes(self, width: int) -> tuple[Hashes, Hashes]:
        """Return the hashes of all slots, and `width` more places behind them."""
        return self._first_hash.padded(width), self._other_hash.padded(width)

    @property
    def memory_bytes(self) -> int:
        """The memory that instances take."""
        columns = [*self._columns.values(), self._first_hash, self._other_hash]
        return sum(column.memory_bytes for column in columns) + self._rows.memory_bytes

    @property
    def spilled_bytes(self) -> int:
        """The bytes of instances' rows that are in files."""
        return self._rows.spilled_bytes

    def layouts_in_use(self) -> set[int]:
        """Return the numbers of the layouts that instances have."""
        column = self._columns["layout"]
        return set(np.unique(column.values[self.base - column.origin :]).tolist())

    def append(self, rows: pa.Table) -> tuple[int, Ints]:
        """Add instances; return the first one's number, and their layouts."""
        first = self.next_instance
        rows = rows.combine_chunks()
        layouts = self._layouts.current(rows.column("shape").to_numpy().astype(np.int64))
        counts = self._layouts.arrays.slot_counts[layouts]
        for name in ("docid", "depth", "start_us", "end_us", "watermark_us"):
            self._columns[name].append(rows.column(name).to_numpy())
        newest = np.maximum.accumulate(rows.column("end_us").to_numpy())
        self._columns["newest_us"].append(np.maximum(newest, self._newest_us))
        self._newest_us = max(self._newest_us, int(newest[-1]))
        self._columns["layout"].append(layouts)
        self._columns["slot"].append(self._first_hash.end + np.cumsum(counts) - counts)
        for column, hashes in zip(
            (self._first_hash, self._other_hash), self._hash(rows, layouts, counts), strict=True
        ):
            column.append(hashes)
        self._remember_published(rows, first)
        self._check_order(rows)
        self._rows.append(first, rows)
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
        """Drop instances from the front that end before a time; return how many went.

        It is lazy: they go many at a time, and those that are not dropped may still be found.
        """
        self._scan(before_us)
        dead = self._scanned - self.base
        if not dead or (dead < EVICTED_ROWS and 2 * dead < self.next_instance - self.base):
            return 0
        self._drop()
        return dead

    def _scan(self, before_us: int) -> None:
        """Move `_scanned` to the first instance that does not end before a time."""
        column = self._columns["end_us"]
        while self._scanned < self.next_instance:
            start = self._scanned - column.origin
            alive = np.flatnonzero(column.values[start : start + _SCANNED_ROWS] >= before_us)
            if len(alive):
                self._scanned += int(alive[0])
                return
            self._scanned = min(self._scanned + _SCANNED_ROWS, self.next_instance)

    def _drop(self) -> None:
        """Drop the instances before `_scanned`."""
        slots = self._columns["slot"]
        is_all = self._scanned == self.next_instance
        slot = self._first_hash.end if is_all else int(slots.values[self._scanned - slots.origin])
        for column in self._columns.values():
            column.drop(self._scanned)
        for hashes in (self._first_hash, self._other_hash):
            hashes.drop(slot)
        self._rows.evict(self._scanned)
        self.base = self._scanned
        self.published_ids = {i: m for i, m in self.published_ids.items() if i >= self.base}

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        found: dict[int, Instance] = {}
        for wanted, rows in self._rows.take(numbers):
            columns = [rows.column(name).to_pylist() for name in _READ]
            for number, values in zip(wanted, zip(*columns, strict=True), strict=True):
                found[number] = Instance(number, *values[:-3], *map(tuple, values[-3:]))
        return found


_READ = [name for name in INSTANCE_SCHEMA.names if name not in ("instance", "shape")]
