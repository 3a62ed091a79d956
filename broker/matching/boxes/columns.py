"""The types of columns, and a column that grows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Doubles", "Flags", "GrowingColumn", "Hashes", "Ints"]

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class GrowingColumn:
    """An array by number, as long as the largest number that is read or written.

    What was never written is `fill`.
    """

    def __init__(self, dtype: npt.DTypeLike, fill: float = 0) -> None:
        self._array = np.full(64, fill, dtype)
        self._fill = fill

    def __getitem__(self, rows: Ints) -> npt.NDArray[np.generic]:
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
