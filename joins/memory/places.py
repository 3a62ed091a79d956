"""The places of instances' rows in their columns.

A row is appended at the place that is its instance's number, and most rows stay there: looking one
up costs nothing.  A **sweep** moves the older useful rows up against the younger ones, in order,
from the youngest to the oldest, and drops the front.  Then places are without holes again.  Numbers
stay the same; the numbers of rows that have moved stand beside them, to be searched.

    start      read        write                    moved_to                  end
      | older  | undefined   | rows that have moved    | rows at their numbers  |
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from joins.memory.column import Column
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.slots import Ints

__all__ = ["Places"]


class Places:
    """The places of rows: `start` to `end`, without `read` to `write` while a sweep goes on."""

    def __init__(self, first: int, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._numbered_rows = limits.numbered_rows
        self._numbers = Column(np.int64, first, limits)  # written of places below `moved_to` only
        self.start = self.read = self.write = self.end = self.moved_to = first

    def __len__(self) -> int:
        return self.read - self.start + self.end - self.write

    @property
    def memory_bytes(self) -> int:
        """The memory of the numbers of rows that have moved."""
        return (self.moved_to - self.start) * 8 if self.start < self.moved_to else 0

    @property
    def base(self) -> int:
        """The number of the first instance that has a row."""
        first = self.start if self.read > self.start else self.write
        return int(self.numbers(np.array([first]))[0])

    def of(self, instances: Ints) -> Ints:
        """Return the places of instances; an instance without a row gets any place."""
        if self.start >= self.moved_to:
            return instances
        have_moved = instances < self.moved_to
        if not have_moved.any():
            return instances
        places = instances.copy()
        places[have_moved] = self.search(self._numbers, instances[have_moved], self.moved_to)
        return np.minimum(places, self.end - 1)

    def are_there(self, instances: Ints) -> npt.NDArray[np.bool_]:
        """Return which instances have a row."""
        there: npt.NDArray[np.bool_] = instances >= max(self.start, self.moved_to)
        if self.start < self.moved_to:
            rest = np.flatnonzero(~there)
            places = self.of(instances[rest])
            # Where a sweep has moved nothing yet, a place may be one that it has passed.
            has_row = (places < self.read) | (places >= self.write)
            there[rest] = has_row & (self.numbers(places) == instances[rest])
        return there

    def numbers(self, places: Ints) -> Ints:
        """Return the numbers of the instances at places."""
        numbers = places.copy()
        have_moved = places < self.moved_to
        column = self._numbers
        numbers[have_moved] = column.values[places[have_moved] - column.origin]
        return numbers

    def all(self) -> Ints:
        """Return all places that have a row."""
        older, rest = np.arange(self.start, self.read), np.arange(self.write, self.end)
        return np.concatenate([older, rest])

    def search(self, column: Column, needles: Ints, stop: int) -> Ints:
        """Return the first places, before `stop`, of values not below some; the column ascends."""
        values, origin = column.values, column.origin
        found = self.write + values[self.write - origin : stop - origin].searchsorted(needles)
        if self.read > self.start:
            older = values[self.start - origin : self.read - origin]
            among_older = np.searchsorted(older, needles)
            is_older = among_older < len(older)
            found[is_older] = among_older[is_older] + self.start
        return found

    def append(self, rows: int) -> None:
        """Give further instances places, at their numbers."""
        self._numbers.extend(rows)
        self.end += rows

    def drop(self, before: int) -> None:
        """Drop the rows before a place; not in a sweep."""
        self._numbers.drop(before)
        self.start = self.read = self.write = before

    def begin_sweep(self, stop: int) -> Iterator[None]:
        """Prepare to move rows before `stop`, some at a time."""
        for first in range(max(self.start, self.moved_to), stop, self._numbered_rows):
            last = min(first + self._numbered_rows, stop)
            self._numbers.write(first, np.arange(first, last))
            yield
        self.moved_to = self.read = self.write = stop

    def move(self, rows: Ints, read: int) -> None:
        """Take note that of the rows from `read` on these, and only these, have moved up."""
        self.write -= len(rows)
        self._numbers.shift(rows, self.write)
        self.read = read

    def end_sweep(self) -> None:
        """Drop the places that no row stands at any more."""
        self.drop(self.write)
