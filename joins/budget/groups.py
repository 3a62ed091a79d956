"""Groups of query classes that are paired in the same way."""

from __future__ import annotations

from collections.abc import Collection

from joins.memory.durations import CLOSED, Durations

__all__ = ["ClassGroup"]


class ClassGroup:
    """Classes that are paired in the same way, with the widest of their windows.

    Adding and removing a class costs the same however many there are.
    """

    def __init__(self) -> None:
        self._members: dict[int, tuple[int, bool]] = {}
        self._windows = Durations()
        self._symmetric = 0

    @property
    def members(self) -> Collection[int]:
        """The numbers of the classes."""
        return self._members.keys()

    @property
    def window_us(self) -> int:
        """The widest of their windows; `CLOSED` without any class."""
        return self._windows.longest if self._windows else CLOSED

    @property
    def is_symmetric(self) -> bool:
        """Whether any of the classes is."""
        return self._symmetric > 0

    def put(self, number: int, window_us: int, *, is_symmetric: bool) -> None:
        """Add a class, or give one that is there another window."""
        self.drop(number)
        self._members[number] = window_us, is_symmetric
        self._windows.add(window_us)
        self._symmetric += is_symmetric

    def drop(self, number: int) -> None:
        """Remove a class, if it is there."""
        if number not in self._members:
            return
        window_us, is_symmetric = self._members.pop(number)
        self._symmetric -= is_symmetric
        self._windows.remove(window_us)
