"""Groups of query classes that are paired alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

__all__ = ["Group"]


class Group:
    """Classes that are paired alike, with the widest of their windows.

    To add and to remove one costs the same however many there are, but for different windows.
    """

    def __init__(self) -> None:
        self._members: dict[int, tuple[int, bool]] = {}
        self._windows: Counter[int] = Counter()
        self._symmetric = 0
        self.window_us = -1

    @property
    def members(self) -> Collection[int]:
        """The numbers of the classes."""
        return self._members.keys()

    @property
    def is_symmetric(self) -> bool:
        """Whether any of the classes is."""
        return self._symmetric > 0

    def put(self, number: int, window_us: int, *, is_symmetric: bool) -> None:
        """Add a class, or give one that is there another window."""
        self.drop(number)
        self._members[number] = window_us, is_symmetric
        self._windows[window_us] += 1
        self._symmetric += is_symmetric
        self.window_us = max(self.window_us, window_us)

    def drop(self, number: int) -> None:
        """Remove a class, if it is there."""
        if number not in self._members:
            return
        window_us, is_symmetric = self._members.pop(number)
        self._symmetric -= is_symmetric
        self._windows[window_us] -= 1
        if not self._windows[window_us]:
            del self._windows[window_us]
            if window_us == self.window_us:
                self.window_us = max(self._windows, default=-1)
