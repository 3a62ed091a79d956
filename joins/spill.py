"""The rows of instances, strings and all: the newest in memory, older ones in files.

The join itself reads times and hashes only.  Rows are read for what is found: a few for each match.
So at most `MEMORY_BYTES` of them stay in memory; when there are more, the oldest are written as an
Arrow file and mapped, and the operating system keeps of it what is read.  The file has no name: it
is gone with this process, however that ends, or once all of its instances are evicted.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

__all__ = ["InstanceRows", "SpillError"]

MEMORY_BYTES = 256 << 20
"""Bytes of rows that are kept in memory: half a million news items."""

FILE_BYTES = 64 << 20
"""Bytes of rows that are written at a time: each file costs an open descriptor while it lives."""

CHUNK_ROWS = 512
"""Rows of small batches are put together up to this many: each batch costs some kilobytes."""


class SpillError(RuntimeError):
    """The state of the join does not fit into memory, and cannot be written to the disk."""


class _Chunk(NamedTuple):
    """Rows of consecutive instances from `first` on; `is_spilled` if they are in a file."""

    first: int
    rows: pa.RecordBatch
    is_spilled: bool

    @property
    def end(self) -> int:
        """The number of the instance after the last."""
        return self.first + int(self.rows.num_rows)


class InstanceRows:
    """Rows of instances by number, in memory or in files in `directory`.

    Without a directory they go where the system has its temporary files.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._chunks: list[_Chunk] = []
        self.memory_bytes = 0
        self.spilled_bytes = 0

    def append(self, first: int, rows: pa.Table) -> None:
        """Add the rows of instances from number `first` on; raises `SpillError`."""
        for batch in rows.to_batches():
            self._add(_Chunk(first, batch, is_spilled=False))
            first += batch.num_rows
        while self.memory_bytes > MEMORY_BYTES + FILE_BYTES:
            self._spill()

    def _add(self, chunk: _Chunk) -> None:
        self._chunks.append(chunk)
        self.memory_bytes += chunk.rows.nbytes
        # As with a binary counter: a row is copied a few times, and few small chunks are left.
        while self._is_worth_merging():
            self._merge()

    def _is_worth_merging(self) -> bool:
        if len(self._chunks) < 2:
            return False
        earlier, later = self._chunks[-2:]
        sizes = earlier.rows.num_rows, later.rows.num_rows
        return not earlier.is_spilled and sizes[0] < min(CHUNK_ROWS, 2 * sizes[1])

    def _merge(self) -> None:
        earlier, later = self._chunks[-2:]
        rows = _joined([earlier.rows, later.rows])
        self._chunks[-2:] = [_Chunk(earlier.first, rows, is_spilled=False)]
        self.memory_bytes += rows.nbytes - earlier.rows.nbytes - later.rows.nbytes

    def _spill(self) -> None:
        """Write the oldest rows in memory to a file, and map them from there."""
        start = next(i for i, chunk in enumerate(self._chunks) if not chunk.is_spilled)
        stop, size = start, 0
        while size < FILE_BYTES and stop < len(self._chunks):
            size += self._chunks[stop].rows.nbytes
            stop += 1
        rows = self._written(_joined([chunk.rows for chunk in self._chunks[start:stop]]))
        self._chunks[start:stop] = [_Chunk(self._chunks[start].first, rows, is_spilled=True)]
        self.memory_bytes -= size
        self.spilled_bytes += rows.nbytes

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
            f"{reason}; {self.spilled_bytes >> 20} MB are there, {FILE_BYTES >> 20} MB more were "
            "to come: make room there, or register shorter windows"
        )

    def evict(self, before: int) -> None:
        """Forget chunks that hold only instances with numbers below `before`."""
        gone = bisect_right(self._chunks, before, key=lambda chunk: chunk.end)
        for chunk in self._chunks[:gone]:
            if chunk.is_spilled:
                self.spilled_bytes -= chunk.rows.nbytes
            else:
                self.memory_bytes -= chunk.rows.nbytes
        del self._chunks[:gone]

    def take(self, numbers: Iterable[int]) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield instances' numbers with their rows, some at a time."""
        by_chunk: dict[int, list[int]] = {}
        for number in sorted(set(numbers)):
            at = bisect_right(self._chunks, number, key=lambda chunk: chunk.first) - 1
            by_chunk.setdefault(at, []).append(number)
        for at, wanted in by_chunk.items():
            chunk = self._chunks[at]
            yield wanted, chunk.rows.take(pa.array([n - chunk.first for n in wanted]))


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    (rows,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return rows
