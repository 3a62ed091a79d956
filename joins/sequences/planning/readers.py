"""The seats of a stratum by the streams that they read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.memory.slots import Ints

__all__ = ["SeatReaders"]


@dataclass(frozen=True, slots=True)
class SeatReaders:
    """The seats of one stratum in the order of their streams' numbers."""

    streams: Ints
    seats: Ints

    @classmethod
    def of(cls, seats: Ints, streams: Ints) -> SeatReaders:
        """Return seats, given in any order."""
        order = np.argsort(streams, kind="stable")
        return cls(streams[order], seats[order])

    def of_streams(self, streams: Ints) -> tuple[Ints, Ints]:
        """Return where the seats of some streams begin, and how many each has."""
        low, high = (np.searchsorted(self.streams, streams, side) for side in ("left", "right"))
        return low, high - low
