"""Columns of numbers that grow at the end and shrink at the front without being copied.

A column lies in one mapping of anonymous memory that is larger than its rows.  Memory is taken page
by page as rows are written, and rows that are dropped from the front give their pages back at once:
a column takes the memory of its living rows, to a page.  When the end of the mapping is reached,
it is made larger: the system gives the pages other addresses, and nothing is copied.  Where that
cannot be, since somebody reads the rows where they are, or most of them have been dropped, the
living rows are moved, piece by piece, to a new one of four times their size: one row at most is
moved for three that are appended.

Addresses are taken sparingly all the same.  The system counts them as if they were memory when it
copies a process, and a broker on a small machine must be able to start others.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits

__all__ = ["SPARE_ROWS", "Column"]

SPARE_ROWS = 1 << 13
"""Places that a mapping always has behind the last row."""


class _Mapping:
    """Anonymous memory as an array, of which the front can be given back."""

    def __init__(self, dtype: np.dtype[Any], rows: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._memory = mmap.mmap(-1, rows * dtype.itemsize, flags=flags)
        self.array: npt.NDArray[Any] = np.frombuffer(self._memory, dtype)
        self._released = 0

    def release(self, rows: int) -> None:
        """Give back the pages that hold nothing but the first `rows` rows."""
        stop = rows * self.array.itemsize // mmap.PAGESIZE * mmap.PAGESIZE
        if stop > self._released:
            self._memory.madvise(mmap.MADV_DONTNEED, self._released, stop - self._released)
            self._released = stop

    def grow(self, rows: int) -> bool:
        """Have so many rows in all, where they stand; return whether that could be.

        What is read at their addresses has to stay.
        """
        dtype, self.array = self.array.dtype, np.zeros(0, self.array.dtype)
        try:
            self._memory.resize(rows * dtype.itemsize)
        except (BufferError, SystemError):  # somebody reads; there is no such call
            return False
        finally:
            self.array = np.frombuffer(self._memory, dtype)
        return True

    def use_huge_pages(self) -> None:
        """Ask for large pages, where the system has them."""
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._memory.madvise(mmap.MADV_HUGEPAGE)


class Column:
    """Rows of one number each, numbered from `first` on; row `origin` stands first in `values`.

    Row `start` is the first living one; the values of earlier rows are undefined.
    """

    def __init__(
        self, dtype: type, first: int = 0, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS
    ) -> None:
        self._limits = limits
        self._dtype = np.dtype(dtype)
        self._mapping = _Mapping(self._dtype, limits.column_rows + SPARE_ROWS)
        self._huge_from = limits.huge_page_bytes // self._dtype.itemsize
        self._size = 0
        self.start = self.origin = first

    @property
    def end(self) -> int:
        """The number of the next row."""
        return self.origin + self._size

    @property
    def memory_bytes(self) -> int:
        """The memory of the rows that are alive."""
        return (self.end - self.start) * self._dtype.itemsize

    @property
    def values(self) -> npt.NDArray[Any]:
        """The rows from `origin` on."""
        return self._mapping.array[: self._size]

    def padded(self, width: int) -> npt.NDArray[Any]:
        """Return the rows from `origin` on and `width` further places with undefined values.

        `width` is at most `SPARE_ROWS`: so nothing is moved for it, and `origin` stays.
        """
        assert width <= SPARE_ROWS
        return self._mapping.array[: self._size + width]

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add rows at the end."""
        self._make_room(len(values))
        size = self._size + len(values)
        self._mapping.array[self._size : size] = values
        if self._size < self._huge_from <= size:
            self._mapping.use_huge_pages()
        self._size = size

    def extend(self, rows: int) -> None:
        """Add rows of undefined values at the end; they take no memory until they are written."""
        self._make_room(rows)
        self._size += rows

    def shift(self, rows: npt.NDArray[np.int64], to: int) -> None:
        """Copy some rows, in ascending order, to `to` and the rows after it."""
        self.write(to, self.values[rows - self.origin])

    def write(self, first: int, values: npt.NDArray[Any]) -> None:
        """Write over the rows from `first` on."""
        at = first - self.origin
        self._mapping.array[at : at + len(values)] = values

    def drop(self, before: int) -> None:
        """Drop the rows with numbers below `before`."""
        self.start = before
        self._mapping.release(before - self.origin)

    def _make_room(self, rows: int) -> None:
        if self._size + rows + SPARE_ROWS <= len(self._mapping.array):
            return
        dropped, alive = self.start - self.origin, self.end - self.start
        room = max(self._limits.column_rows, 4 * alive, alive + rows) + SPARE_ROWS
        if dropped > alive or not self._mapping.grow(dropped + room):
            self._move(room)

    def _move(self, room: int) -> None:
        """Move the living rows to a new mapping, with room for so many."""
        old, dropped, alive = self._mapping, self.start - self.origin, self.end - self.start
        new = _Mapping(self._dtype, room)
        if alive >= self._huge_from:
            new.use_huge_pages()
        for start in range(0, alive, self._limits.moved_rows):
            stop = min(alive, start + self._limits.moved_rows)
            new.array[start:stop] = old.array[dropped + start : dropped + stop]
            old.release(dropped + stop)
        self._mapping, self._size, self.origin = new, alive, self.start
