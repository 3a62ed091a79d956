"""Columns of lists of numbers, which grow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from broker.matching.boxes.columns import GrowingColumn, Ints
from joins import ranges

__all__ = ["GrowingLists"]


class GrowingLists:
    """Lists of rows of whole numbers below 2 ** 31, by the order in which they were added.

    What is added waits until somebody reads, so that many are written at once.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._starts = GrowingColumn(np.int64)
        self._rows = [GrowingColumn(np.int32) for _ in range(width)]
        self._waiting: list[Sequence[Any]] = []
        self._lists = 0

    def append(self, rows: Sequence[Any]) -> None:
        """Add a list of rows, each a number or as many as the lists are wide."""
        self._waiting.append(rows)

    def counts(self, lists: Ints) -> Ints:
        """Return how many rows some lists have."""
        return self._extent(lists)[1]

    def taken(self, lists: Ints) -> tuple[Ints, Ints, list[Ints]]:
        """Return all rows of some lists, one list after the other, by columns.

        It is the index into `lists`, the place in the list, and what stands there.
        """
        starts, counts = self._extent(lists)
        at = ranges(starts, counts)
        if not len(at):
            return at, at, [at] * self._width
        own = np.arange(len(lists)).repeat(counts)
        return own, at - starts[own], [column[at].astype(np.int64) for column in self._rows]

    def _extent(self, lists: Ints) -> tuple[Ints, Ints]:
        """Return where some lists start, and how many rows they have."""
        self._write()
        starts = self._starts[lists].astype(np.int64)
        return starts, self._starts[lists + 1].astype(np.int64) - starts

    def _write(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        flat: Iterable[Any] = chain.from_iterable(waiting)
        if self._width > 1:
            flat = chain.from_iterable(flat)
        rows = np.fromiter(flat, np.int64).reshape(-1, self._width)
        first = int(self._starts[np.array([self._lists])][0])
        ends = first + np.array([*map(len, waiting)]).cumsum()
        self._starts.write(self._lists + 1 + np.arange(len(waiting)), ends)
        self._lists += len(waiting)
        at = first + np.arange(len(rows))
        for column, values in zip(self._rows, rows.T, strict=True):
            column.write(at, values)
