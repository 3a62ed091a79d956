"""Rows of numbers in columns that grow, and are written anew without some of their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from joins.memory.times import Flags

__all__ = ["Columns"]

_ROWS_MIN = 64


class Columns:
    """Columns of one length, by name."""

    def __init__(self, dtypes: Mapping[str, npt.DTypeLike]) -> None:
        self._arrays = {name: np.empty(_ROWS_MIN, dtype) for name, dtype in dtypes.items()}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._arrays)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name][: self._size]

    def append(self, count: int, **values: Any) -> int:
        """Add rows, each column's values or the one value of all; return the first one's number."""
        first, self._size = self._size, self._size + count
        for name, array in self._arrays.items():
            if self._size > len(array):
                grown = np.empty(max(self._size, 2 * len(array)), array.dtype)
                grown[:first] = array[:first]
                self._arrays[name] = grown
            self._arrays[name][first : self._size] = values[name]
        return first

    def keep(self, kept: Flags) -> None:
        """Keep some of the rows, which get the numbers from 0 on."""
        for name in self._arrays:
            rows = self[name][kept]
            self._arrays[name] = rows if len(rows) >= _ROWS_MIN else np.resize(rows, _ROWS_MIN)
        self._size = int(np.count_nonzero(kept))
