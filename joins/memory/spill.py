"""The rows of instances, strings and all: the newest in memory, older ones in files.

The join itself reads times and hashes only; whole rows are read for matches, a few for each.  So at
most `rows_bytes` of them (`limits`) stay in memory.  When there are more, the oldest are written as
an Arrow file and mapped, and the operating system keeps the parts in memory that are read.  The
file has no name: it goes with this process, however that ends, or with the last of its instances.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.ordering import ascending
from joins.memory.slots import Ints

__all__ = ["InstanceRows", "SpillError"]


class SpillError(RuntimeError):
    """The state of the join does not fit into memory, and cannot be written to the disk."""


AreThere = Callable[[Ints], npt.NDArray[np.bool_]]
"""Says of instances, by number, which have not been evicted."""


@dataclass(slots=True, eq=False)
class _Chunk:
    """Rows of instances from number `first` on; `is_spilled` if they are in a file.

    `chosen` are their numbers, where these are not consecutive.  Arrow finds their bytes buffer by
    buffer, which takes as long as a copy of some rows.
    """

    first: int
    rows: pa.RecordBatch
    is_spilled: bool
    chosen: Ints | None = None
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.nbytes = self.rows.nbytes

    @property
    def numbers(self) -> Ints:
        """The numbers of the rows."""
        if self.chosen is not None:
            return self.chosen
        return np.arange(self.first, self.first + self.rows.num_rows)

    @property
    def end(self) -> int:
        """The number after the last."""
        if self.chosen is not None:
            return int(self.chosen[-1]) + 1
        return self.first + int(self.rows.num_rows)

    def take(self, numbers: Ints) -> pa.RecordBatch:
        """Return the rows of some numbers, which ascend; neighbours in memory are not copied."""
        places = numbers - self.first
        if self.chosen is not None:
            places = np.searchsorted(self.chosen, numbers)
        first, count = int(places[0]), len(places)
        if not self.is_spilled and int(places[-1]) - first + 1 == count:
            return self.rows.slice(first, count)
        return self.rows.take(pa.array(places))

    def of(self, are_there: npt.NDArray[np.bool_]) -> _Chunk:
        """Return a chunk of some of the rows, in memory."""
        numbers = self.numbers[are_there]
        rows = self.rows.take(pa.array(np.flatnonzero(are_there)))
        return _Chunk(int(numbers[0]), rows, is_spilled=False, chosen=numbers)

    def followed_by(self, later: _Chunk) -> _Chunk:
        """Return this and a later chunk as one, in memory."""
        chosen = None
        if self.chosen is not None or later.chosen is not None or self.end != later.first:
            chosen = np.concatenate([self.numbers, later.numbers])
        return _Chunk(self.first, _joined([self.rows, later.rows]), False, chosen)


class InstanceRows:
    """Rows of instances by number, in memory or in files in `directory`.

    Without a directory they go where the system has its temporary files.
    """

    def __init__(
        self, directory: Path | None = None, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS
    ) -> None:
        self._limits = limits
        self._directory = directory
        self._chunks: list[_Chunk] = []
        self.memory_bytes = 0
        self.spilled_bytes = 0

    def append(self, first: int, rows: pa.Table) -> None:
        """Add the rows of instances from number `first` on; raises `SpillError`.

        Meanwhile memory holds `rows_bytes`, `file_bytes` and these rows.
        """
        for batch in rows.to_batches():
            self._add(_Chunk(first, batch, is_spilled=False))
            first += batch.num_rows
        while self.memory_bytes > self._limits.rows_bytes + self._limits.file_bytes:
            self._spill()

    def _add(self, chunk: _Chunk) -> None:
        self._chunks.append(chunk)
        self._account(chunk, 1)
        # As with a binary counter: a row is copied a few times, and few small chunks are left.
        while self._is_worth_merging():
            self._merge()

    def _is_worth_merging(self) -> bool:
        if len(self._chunks) < 2:
            return False
        earlier, later = self._chunks[-2:]
        sizes = earlier.rows.num_rows, later.rows.num_rows
        if earlier.is_spilled or sizes[0] >= min(self._limits.chunk_rows, 2 * sizes[1]):
            return False
        return earlier.nbytes + later.nbytes <= self._limits.file_bytes

    def _merge(self) -> None:
        earlier, later = self._chunks[-2:]
        self._replace(len(self._chunks) - 2, 2, earlier.followed_by(later))

    def _replace(self, start: int, count: int, *chunks: _Chunk) -> None:
        """Put chunks in the place of `count` others."""
        for chunk in self._chunks[start : start + count]:
            self._account(chunk, -1)
        self._chunks[start : start + count] = chunks
        for chunk in chunks:
            self._account(chunk, 1)

    def _account(self, chunk: _Chunk, sign: int) -> None:
        if chunk.is_spilled:
            self.spilled_bytes += sign * chunk.nbytes
        else:
            self.memory_bytes += sign * chunk.nbytes

    def _spill(self) -> None:
        """Write the oldest rows in memory to a file, and map them from there."""
        start = next(i for i, chunk in enumerate(self._chunks) if not chunk.is_spilled)
        stop, size = start, 0
        while size < self._limits.file_bytes and stop < len(self._chunks):
            size += self._chunks[stop].nbytes
            stop += 1
        together = _together(self._chunks[start:stop])
        self._replace(start, stop - start, self._in_file(together))

    def _in_file(self, chunk: _Chunk) -> _Chunk:
        return replace(chunk, rows=self._written(chunk.rows), is_spilled=True)

    def _written(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Write rows to a file without a name; return them as they are there."""
        try:
            if self._directory is not None:
                self._directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._directory, prefix="xscl-join-") as file:
                with pa.ipc.new_file(pa.PythonFile(file, "w"), rows.schema) as writer:
                    writer.write_batch(rows)
                file.flush()
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise SpillError(self._complaint(error)) from error
        return pa.ipc.open_file(pa.py_buffer(mapped)).get_batch(0)

    def _complaint(self, error: OSError) -> str:
        reason = os.strerror(error.errno) if error.errno else str(error)
        return (
            f"the join's state cannot be written to {self._directory or tempfile.gettempdir()}: "
            f"{reason}; {self.spilled_bytes >> 20} MB are there, {self._limits.file_bytes >> 20} MB"
            " more were to come: make room there, or register shorter windows"
        )

    def evict(self, before: int) -> None:
        """Forget chunks that hold only instances with numbers below `before`."""
        gone = bisect_right(self._chunks, before, key=lambda chunk: chunk.end)
        self._replace(0, gone)

    def sweep(self, are_there: AreThere) -> Iterator[None]:
        """Forget rows of evicted instances, in the chunks of which they are half or more.

        Yields between two steps; rows may be appended and evicted then.
        """
        seen = 0
        for chunk in list(self._chunks):
            there = are_there(chunk.numbers)
            if 2 * np.count_nonzero(there) <= len(there):
                self._thin(chunk, there)
            seen += len(there)
            if chunk.is_spilled or seen >= self._limits.swept_rows:
                seen = 0
                yield

    def _thin(self, chunk: _Chunk, there: npt.NDArray[np.bool_]) -> None:
        """Keep some rows of a chunk, unless it has been merged, spilled or evicted meanwhile."""
        at = bisect_right(self._chunks, chunk.first, key=lambda each: each.first) - 1
        if at < 0 or self._chunks[at] is not chunk:
            return
        if not there.any():
            self._replace(at, 1)
            return
        first, kept = at, chunk.of(there)
        most = self._limits.file_bytes if chunk.is_spilled else self._limits.compacted_bytes
        while first and _are_worth_merging(self._chunks[first - 1], kept, chunk, most):
            first -= 1
            kept = self._chunks[first].followed_by(kept)
        try:
            kept = self._in_file(kept) if chunk.is_spilled else kept
        except SpillError:
            return  # for want of room: what is there is as good
        self._replace(first, at + 1 - first, kept)

    def take(self, numbers: Iterable[int]) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield the numbers of instances, which are there, with their rows, some at a time."""
        wanted = ascending(numbers)
        firsts = np.array([chunk.first for chunk in self._chunks], np.int64)
        stops = [*wanted.searchsorted(firsts[1:]).tolist(), len(wanted)]
        start = 0
        for chunk, stop in zip(self._chunks, stops, strict=False):
            if start < stop:
                some = wanted[start:stop]
                yield some.tolist(), chunk.take(some)
            start = stop


def _are_worth_merging(earlier: _Chunk, kept: _Chunk, chunk: _Chunk, most: int) -> bool:
    """Return whether an earlier chunk is to be merged with the kept rows of the next one."""
    sizes = earlier.nbytes, kept.nbytes
    return earlier.is_spilled == chunk.is_spilled and sizes[0] < min(most - sizes[1], 2 * sizes[1])


def _together(chunks: Sequence[_Chunk]) -> _Chunk:
    """Return neighbours as one chunk, in memory."""
    numbers = np.concatenate([chunk.numbers for chunk in chunks])
    is_whole = int(numbers[-1]) - int(numbers[0]) + 1 == len(numbers)
    rows = _joined([chunk.rows for chunk in chunks])
    return _Chunk(chunks[0].first, rows, False, None if is_whole else numbers)


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    (rows,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return rows
