"""Arrays with room behind what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from joins.memory.slots import Ints

__all__ = ["longer", "with_room"]


def longer(values: Ints, size: int, more: Ints) -> Ints:
    """Return so many values with some more behind them, and perhaps room."""
    if size + len(more) > len(values):
        grown = np.empty(2 * (size + len(more)), np.int64)
        grown[:size] = values[:size]
        values = grown
    values[size : size + len(more)] = more
    return values


def with_room(rows: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return rows with room for so many."""
    if size <= len(rows):
        return rows
    more = np.empty((max(size, 2 * len(rows)), rows.shape[1]), rows.dtype)
    more[: len(rows)] = rows
    return more
