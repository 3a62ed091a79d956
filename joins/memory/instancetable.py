"""Instances as rows of numbers: times, layouts, and the hashes of their slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.memory.column import Column
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.places import Places
from joins.memory.slots import Ints, Layouts, ranges

__all__ = ["EMPTY", "HashValues", "Hashes", "InstanceTable", "hash_values", "mixed"]

Hashes = npt.NDArray[np.uint64]
HashValues = Callable[[pa.Array], tuple[Hashes, Hashes]]

EMPTY = np.uint64(0)
"""Stands for the empty string, which joins nothing; no other value has it."""

_DIGEST_BYTES = 16

_MIX = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xD1B54A32D192ED03)
_SPREAD = np.uint64(0xAEF17502108EF2D9)
_SHIFT = np.uint64(29)

_FIRST = 1

_GIVEN = {
    "docid": np.int64,
    "depth": np.int32,
    "start_us": np.int64,
    "end_us": np.int64,
    "watermark_us": np.int64,
}
_COLUMNS = {
    **_GIVEN,
    "newest_us": np.int64,  # the latest end so far
    "layout": np.int32,
    "slot": np.int64,
}
_PART_COLUMNS = {**_COLUMNS, "instance": np.int64}  # the number in the whole join


def hash_values(values: pa.Array) -> tuple[Hashes, Hashes]:
    """Return two independent 64-bit hashes of strings; the empty string's are `EMPTY`.

    They are the halves of BLAKE2b, so that nobody can write two texts which are taken for one.
    """
    # Tuples of many operators carry the same values.
    encoded = values.dictionary_encode()
    texts = encoded.dictionary.cast(pa.binary()).to_pylist()
    digests = b"".join(map(_digest, texts))
    first, other = np.frombuffer(digests, "<u8").reshape(-1, 2).astype(np.uint64).T.copy()
    first[(first == EMPTY) | (first == ~EMPTY)] = 1
    if b"" in texts:
        empty = texts.index(b"")
        first[empty] = other[empty] = EMPTY
    which = encoded.indices.to_numpy()
    return first[which], other[which]


_begun = blake2b(digest_size=_DIGEST_BYTES)


def _digest(text: bytes) -> bytes:
    # A copy takes a third less time than one that is begun with its parameters.
    digest = _begun.copy()
    digest.update(text)
    return digest.digest()


def mixed(hashes: Hashes, values: Hashes) -> Hashes:
    """Return hashes with values mixed in: the order matters, and equal ones do not cancel out."""
    product: Hashes = ((hashes + _STEP) * _SPREAD ^ values) * _MIX
    return product ^ (product >> _SHIFT)


class InstanceTable:
    """A row for each instance, at its place; the slots of rows stand elsewhere, in the same order.

    In a shard, which has a part of all instances (`is_part`), a row also has the instance's number
    in the whole join; these numbers ascend.
    """

    def __init__(
        self,
        layouts: Layouts,
        hashing: HashValues,
        limits: MemoryLimits = DEFAULT_MEMORY_LIMITS,
        *,
        is_part: bool = False,
    ) -> None:
        self._layouts = layouts
        self._hashing = hashing
        columns = _PART_COLUMNS if is_part else _COLUMNS
        self._columns = {name: Column(dtype, _FIRST, limits) for name, dtype in columns.items()}
        self._hashes = Column(np.uint64, 0, limits), Column(np.uint64, 0, limits)
        self._newest_us = np.iinfo(np.int64).min
        self._moved_slots = 0
        self.places = Places(_FIRST, limits)

    @property
    def memory_bytes(self) -> int:
        """The memory of all rows."""
        columns = (*self._columns.values(), *self._hashes)
        return sum(column.memory_bytes for column in columns) + self.places.memory_bytes

    @property
    def hashes(self) -> tuple[Hashes, Hashes]:
        """The hashes of all slots, row by row."""
        first, other = self._hashes
        return first.values, other.values

    def padded_hashes(self, width: int) -> tuple[Hashes, Hashes]:
        """Return the hashes of all slots, and `width` more places behind them."""
        first, other = self._hashes
        return first.padded(width), other.padded(width)

    def at(self, name: str, places: Ints) -> Ints:
        """Return a column's values at some places."""
        column = self._columns[name]
        values: Ints = column.values[places - column.origin]
        return values

    def slots(self, places: Ints) -> Ints:
        """Return where the slots of rows start in `hashes`."""
        return self.at("slot", places) - self._hashes[0].origin

    def first_from(self, times_us: Ints) -> Ints:
        """Return, for each time, a place before which all end before that time."""
        return self.places.search(self._columns["newest_us"], times_us, self.places.end)

    def numbered(self, numbers: Ints) -> Ints:
        """Return the places of instances of a part by their numbers in the whole."""
        found = self.places.search(self._columns["instance"], numbers, self.places.end)
        found = np.unique(found[found < self.places.end])
        return found[np.isin(self.at("instance", found), numbers)]

    def append(self, rows: pa.Table) -> Ints:
        """Add rows of `INSTANCE_SCHEMA`; return their layouts."""
        layouts = self._layouts.current(rows.column("shape").to_numpy().astype(np.int64))
        counts = self._layouts.arrays.slot_counts[layouts]
        ends = rows.column("end_us").to_numpy()
        newest = np.maximum(np.maximum.accumulate(ends), self._newest_us)
        self._newest_us = int(newest[-1])
        derived = {
            "newest_us": newest,
            "layout": layouts,
            "slot": self._hashes[0].end + counts.cumsum() - counts,
        }
        for name, column in self._columns.items():
            column.append(derived[name] if name in derived else rows.column(name).to_numpy())
        hashes = self._hash(rows, layouts, counts)
        for column, values in zip(self._hashes, hashes, strict=True):
            column.append(values)
        self.places.append(rows.num_rows)
        return layouts

    def _hash(self, rows: pa.Table, layouts: Ints, counts: Ints) -> tuple[Hashes, Hashes]:
        values = rows.column("vals").combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
        offsets = values.offsets.to_numpy().astype(np.int64)
        arrays = self._layouts.arrays
        nodes = arrays.slot_nodes[ranges(arrays.slot_starts[layouts], counts)]
        places = offsets[:-1].repeat(counts) + nodes
        strings = values.values.take(pa.array(places))
        return self._hashing(strings.fill_null("") if strings.null_count else strings)

    def drop(self, before: int) -> None:
        """Drop the rows before a place; not in a sweep."""
        slot = self._slot(before)
        for column in self._columns.values():
            column.drop(before)
        for hashes in self._hashes:
            hashes.drop(slot)
        self.places.drop(before)

    def _slot(self, place: int) -> int:
        """Return where the slots begin of the row at a place, or of the next one to come."""
        if place == self.places.end:
            return self._hashes[0].end
        return int(self.at("slot", np.array([place]))[0])

    def begin_sweep(self, stop: int) -> Iterator[None]:
        """Prepare to move rows before `stop`, some at a time."""
        yield from self.places.begin_sweep(stop)
        self._moved_slots = self._slot(stop)

    def move(self, kept: Ints, read: int) -> None:
        """Move rows up against the rows moved before; drop the others from place `read` on."""
        is_still = self.places.read - read == len(kept) and self.places.read == self.places.write
        counts = self._layouts.arrays.slot_counts[self.at("layout", kept)]
        self._moved_slots -= int(counts.sum())
        if not is_still:
            slots = ranges(self.at("slot", kept), counts)
            for hashes in self._hashes:
                hashes.shift(slots, self._moved_slots)
            for column in self._columns.values():
                column.shift(kept, self.places.write - len(kept))
        self.places.move(kept, read)
        if not is_still:
            moved_to = self._moved_slots + np.cumsum(counts) - counts
            self._columns["slot"].write(self.places.write, moved_to)

    def end_sweep(self) -> None:
        """Drop the places that no row stands at any more."""
        for column in self._columns.values():
            column.drop(self.places.write)
        for hashes in self._hashes:
            hashes.drop(self._moved_slots)
        self.places.end_sweep()
