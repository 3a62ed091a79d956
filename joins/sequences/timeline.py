"""Timelines: contenders by key, in the order of their ends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterator
from operator import attrgetter

from joins.sequences.contender import Contender

__all__ = ["Timeline"]

_END = attrgetter("end_us")


class Timeline:
    """Contenders under keys; one contender may stand under several."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, list[Contender]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, key: Hashable, contender: Contender) -> None:
        """Add a contender under a key."""
        line = self._by_key.setdefault(key, [])
        self._size += 1
        if not line or line[-1].end_us <= contender.end_us:
            line.append(contender)
        else:
            insort(line, contender, key=_END)

    def within(self, key: Hashable, first_us: int, last_us: int) -> Iterator[Contender]:
        """Yield the contenders under a key that end in a closed interval, the first to end first.

        Those that are done are left out.
        """
        line = self._by_key.get(key)
        if line is None:
            return
        start = bisect_left(line, first_us, key=_END)
        for place in range(start, bisect_right(line, last_us, lo=start, key=_END)):
            if not line[place].is_done:
                yield line[place]

    def forget(self, before_us: int) -> None:
        """Forget contenders that ended before a time, or that are done."""
        kept: dict[Hashable, list[Contender]] = {}
        for key, line in self._by_key.items():
            left = [one for one in line if one.end_us >= before_us and not one.is_done]
            if left:
                kept[key] = left
        self._by_key = kept
        self._size = sum(map(len, kept.values()))

    def sweep(self, key: Hashable) -> None:
        """Forget the contenders under a key that are done."""
        line = self._by_key.get(key)
        if line is not None:
            before = len(line)
            line[:] = [one for one in line if not one.is_done]
            self._size += len(line) - before
