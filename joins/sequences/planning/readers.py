"""The seats of a stratum by the streams that they read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.memory.slots import Ints

__all__ = ["SeatReaders"]


@dataclass(frozen=True, slots=True)
class SeatReaders:
    """The seats of one stratum in the order of their streams' numbers.

    `begins` says where those of each stream begin, from stream 0 on, and last where all end.
    """

    seats: Ints
    begins: Ints

    @classmethod
    def of(cls, seats: Ints, streams: Ints) -> SeatReaders:
        """Return seats, given in any order."""
        counts = np.bincount(streams)
        begins = np.cumsum(np.concatenate([[0], counts]))
        return cls(seats[np.argsort(streams, kind="stable")], begins)

    def of_streams(self, streams: Ints) -> tuple[Ints, Ints]:
        """Return where the seats of some streams begin, and how many each has."""
        is_read = (streams >= 0) & (streams < len(self.begins) - 1)
        at = np.where(is_read, streams, 0)
        first = self.begins[at]
        return first, np.where(
            is_read, self.begins[np.minimum(at + 1, len(self.begins) - 1)] - first, 0
        )
