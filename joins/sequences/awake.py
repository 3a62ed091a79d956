"""Who has something to decide in a batch: what came for it, or a time that is settled.

Of thousands that decide most have nothing new in a batch, so nobody looks at all of them: rows that
come wake who reads them, and who has something that waits says for which time.

> **Who sleeps decides nothing.** All that is found has a part that came in the batch, or one whose
> time is settled in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, Protocol, TypeVar

__all__ = ["Awake", "Deciding"]


class Deciding(Protocol):
    """What decides; `due_us` is the first time that must be settled before it does, if any."""

    @property
    def due_us(self) -> int | None:
        """The first time that must be settled before it decides."""


D = TypeVar("D", bound=Deciding)


class Awake(Generic[D]):
    """Those that have something to decide, until the batch is over in which they have."""

    def __init__(self) -> None:
        self._awake: dict[D, None] = {}
        self._decided: dict[D, None] = {}
        self._due: list[tuple[int, int, D]] = []
        self._due_us: dict[D, int] = {}
        self._serial = count()

    def begin_batch(self) -> None:
        """Have those sleep that have decided."""
        for one in self._decided:
            self._awake.pop(one, None)
        self._decided = {}

    def wake(self, one: D) -> None:
        """Have one decide in the batch."""
        self._awake[one] = None
        self._decided.pop(one, None)

    def at(self, newest_us: int) -> Iterable[D]:
        """Return who is awake when what is before a time has been settled."""
        while self._due and self._due[0][0] < newest_us:
            due_us, _, one = heappop(self._due)
            if self._due_us.get(one) == due_us:
                del self._due_us[one]
                self._awake[one] = None
        return self._awake

    def has_decided(self, one: D) -> None:
        """Note that one has decided, and when it has to again."""
        self._decided[one] = None
        due_us = one.due_us
        if due_us is None:
            self._due_us.pop(one, None)
        elif self._due_us.get(one) != due_us:
            self._due_us[one] = due_us
            heappush(self._due, (due_us, next(self._serial), one))

    @property
    def decided(self) -> Iterable[D]:
        """Who has decided in the batch."""
        return self._decided

    @property
    def waiting(self) -> Iterable[D]:
        """Those that have something that waits."""
        return self._due_us

    def leave(self, one: D) -> None:
        """Forget one."""
        for known in (self._awake, self._decided, self._due_us):
            known.pop(one, None)
