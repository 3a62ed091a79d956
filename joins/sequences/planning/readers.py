"""Rows by small numbers: the seats of a stratum by the streams that they read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.memory.slots import Ints

__all__ = ["Begins", "SeatReaders"]


@dataclass(frozen=True, slots=True)
class Begins:
    """Where the rows of each number begin, from number 0 on, and last where all end.

    A number is found without a search.
    """

    rows: Ints

    @classmethod
    def of(cls, numbers: Ints) -> Begins:
        """Return where rows with some numbers begin, once they are in the order of these."""
        return cls(np.cumsum(np.concatenate([[0], np.bincount(numbers)])))

    def of_numbers(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return where the rows of some numbers begin, and how many each has."""
        last = len(self.rows) - 1
        at = np.where((numbers >= 0) & (numbers < last), numbers, last)
        first = self.rows[at]
        return first, self.rows[np.minimum(at + 1, last)] - first


@dataclass(frozen=True, slots=True)
class SeatReaders:
    """The seats of one stratum in the order of their streams' numbers."""

    seats: Ints
    begins: Begins

    @classmethod
    def of(cls, seats: Ints, streams: Ints) -> SeatReaders:
        """Return seats, given in any order."""
        return cls(seats[np.argsort(streams, kind="stable")], Begins.of(streams))

    def of_streams(self, streams: Ints) -> tuple[Ints, Ints]:
        """Return where the seats of some streams begin, and how many each has."""
        return self.begins.of_numbers(streams)
