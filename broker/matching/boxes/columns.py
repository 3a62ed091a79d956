"""The types of columns, and a column that grows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Doubles", "Flags", "GrowingColumn", "Hashes", "Ints", "are_as_before", "distinct"]

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_SPARSE = 8
"""Numbers that are this many times as large as they are many are sorted."""


def distinct(numbers: Ints) -> tuple[Ints, Ints, Ints]:
    """Return different numbers, where each of them stands first, and which of them each number is.

    They are whole numbers from 0, as numbers of rows are; where they are few, nothing is sorted.
    """
    size = 1 + int(numbers.max(initial=-1))
    if size > _SPARSE * len(numbers):
        return np.unique(numbers, return_index=True, return_inverse=True)
    first = np.full(size, -1)
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    found = (first >= 0).nonzero()[0]
    places = np.empty(size, np.int64)
    places[found] = np.arange(len(found))
    return found, first[found], places[numbers]


def are_as_before(columns: Sequence[Ints]) -> Flags:
    """Return which rows of some columns, the first one aside, are equal to the row before."""
    are_same: Flags = columns[0][1:] == columns[0][:-1]
    for column in columns[1:]:
        are_same &= column[1:] == column[:-1]
    return are_same


class GrowingColumn:
    """An array by number, as long as the largest number that is read or written.

    What was never written is `fill`.
    """

    def __init__(self, dtype: npt.DTypeLike, fill: float = 0) -> None:
        self._array = np.full(64, fill, dtype)
        self._fill = fill

    def __getitem__(self, rows: Ints) -> npt.NDArray[np.generic]:
        try:
            return self._array[rows]
        except IndexError:
            self._make_room(rows)
            return self._array[rows]

    def write(self, rows: Ints, values: object) -> None:
        """Write values at some rows."""
        self._make_room(rows)
        self._array[rows] = values

    def _make_room(self, rows: Ints) -> None:
        last = int(rows.max()) if len(rows) else 0
        if last >= len(self._array):
            more = np.full(max(last + 1 - len(self._array), len(self._array)), self._fill)
            self._array = np.concatenate([self._array, more.astype(self._array.dtype)])
