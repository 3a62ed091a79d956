"""Eviction drops instances that no class can use any more: lazily, and some at a time.

Where all instances have the same retention, the useless ones stand in front, and are dropped there.
Where retentions differ, they stand between others.  So a **sweep** begins once there are twice as
many rows as after the last one, or a retention has become shorter.  It looks at pieces of rows from
the youngest on, begins to move at the first piece of which half is useless, and moves the useful
rows together (`places`).  So for each row that is moved, about one has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import numpy as np
import numpy.typing as npt

from joins.memory.instancetable import InstanceTable
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.retention import LayoutRetention
from joins.memory.slots import Ints

__all__ = ["Eviction", "Flags"]

Flags = npt.NDArray[np.bool_]

_PACE = 8
"""Rows that a sweep looks at for each one that is appended meanwhile."""


class Eviction:
    """Drops rows from a table; `forget` gets the places of rows before they go."""

    def __init__(
        self,
        table: InstanceTable,
        retention: LayoutRetention,
        forget: Callable[[Ints], None],
        limits: MemoryLimits = DEFAULT_MEMORY_LIMITS,
    ) -> None:
        self._rows = limits.evicted_rows
        self._scanned_rows = limits.scanned_rows
        self._table = table
        self._places = table.places
        self._retention = retention
        self._forget = forget
        self._horizon_us = 0
        self._scanned = self._places.start
        self._seen = self._places.end
        self._left = 0
        self._shortened = 0
        self._sweep: Iterator[None] | None = None
        self.sweeps = 0

    def are_of_use(self, places: Ints, horizon_us: int) -> Flags:
        """Return the rows that some class can still use."""
        needed_from = self._retention.needed_from(self._table.at("layout", places), horizon_us)
        of_use: Flags = self._table.at("end_us", places) >= needed_from
        return of_use

    def run(self, horizon_us: int) -> None:
        """Do a bounded part of the work that is due."""
        self._horizon_us = horizon_us
        appended = self._places.end - self._seen
        self._seen = self._places.end
        if self._sweep is None:
            self._drop_front()
            if not self._is_sweep_due():
                return
            self._shortened = self._retention.shortened
            self._sweep = self._swept()
        for _ in range(1 + _PACE * appended // self._rows):
            if next(self._sweep, self._places) is self._places:
                self._sweep = None
                self.sweeps += 1
                return

    def _drop_front(self) -> None:
        """Drop the rows in front that are of no use, when they are many."""
        self._scan()
        gone = self._scanned - self._places.start
        if gone and (gone >= self._rows or 2 * gone >= len(self._places)):
            self._forget(np.arange(self._places.start, self._scanned))
            self._table.drop(self._scanned)

    def _scan(self) -> None:
        """Move `_scanned` to the first row that is of use."""
        self._scanned = max(self._scanned, self._places.start)
        while self._scanned < self._places.end:
            stop = min(self._scanned + self._scanned_rows, self._places.end)
            rows = np.arange(self._scanned, stop)
            of_use = self.are_of_use(rows, self._horizon_us).nonzero()[0]
            if len(of_use):
                self._scanned += int(of_use[0])
                return
            self._scanned = stop

    def _is_sweep_due(self) -> bool:
        rows = len(self._places)
        has_shortened = self._shortened != self._retention.shortened
        return rows > 2 * self._left + self._rows or (has_shortened and rows > 0)

    def _swept(self) -> Iterator[None]:
        """Move useful rows together, and drop the others; yield between two pieces."""
        places, table, end = self._places, self._table, self._places.end
        stop = yield from self._crowded_from()
        if stop > places.start:
            yield from table.begin_sweep(stop)
            while places.read > places.start:
                self._sweep_piece(max(places.start, places.read - self._rows))
                yield
            table.end_sweep()
            self._scanned = places.start
        self._left = len(places) - (places.end - end)

    def _crowded_from(self) -> Generator[None, None, int]:
        """Return the place from which on more than half of each piece is useful."""
        places = self._places
        place = places.end
        while place > max(places.start, places.moved_to):
            first = max(places.start, places.moved_to, place - self._rows)
            of_use = self.are_of_use(np.arange(first, place), self._horizon_us)
            if 2 * np.count_nonzero(of_use) <= place - first:
                break
            place = first
            yield
        return place

    def _sweep_piece(self, first: int) -> None:
        rows = np.arange(first, self._places.read)
        of_use = self.are_of_use(rows, self._horizon_us)
        self._forget(rows[~of_use])
        self._table.move(rows[of_use], first)
