"""The clock that documents make: at which document a time is settled.

`W` grows with documents from outside.  A time is settled for a grace by the first document behind
which `W` is larger than the time and the grace.  Of what was settled before the batch in hand it is
not known when: what is decided in a batch was settled in it, or has a part that came in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

__all__ = ["Clock"]

_BEGINNING_US = -(1 << 63)


class Clock:
    """The steps of `W` in the batch in hand; `through` is the last document so far."""

    def __init__(self) -> None:
        self.through = 0
        self.newest_us = _BEGINNING_US
        self._before = 0
        self._before_us = _BEGINNING_US
        self._docids: list[int] = []
        self._times_us: list[int] = []

    def begin_batch(self) -> None:
        """Forget the steps of the batch before."""
        self._before, self._before_us = self.through, self.newest_us
        self._docids, self._times_us = [], []

    def advance(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Take documents from outside in order: docid, `W` before it, and its event time.

        Where documents are left out, as in a restart, time passes between the others.
        """
        for docid, before_us, end_us in rows:
            self._step(docid - 1, before_us)
            self._step(docid, end_us)
            self.through = max(self.through, docid)

    def _step(self, docid: int, time_us: int) -> None:
        if time_us > self.newest_us:
            self.newest_us = time_us
            self._docids.append(docid)
            self._times_us.append(time_us)

    def settled(self, time_us: int) -> int | None:
        """Return the document that settles a time, grace included, None while none does.

        Of what was settled before the batch it is the last document before the batch.
        """
        if self.newest_us <= time_us:
            return None
        if self._before_us > time_us:
            return self._before
        return self._docids[bisect_right(self._times_us, time_us)]
