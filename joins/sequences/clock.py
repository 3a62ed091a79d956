"""The clock that documents make: at which document a time is settled.

`W` grows with documents from outside.  A time is settled for a grace by the first document behind
which `W` is larger than the time and the grace.  Of what was settled before the batch in hand it is
not known when: what is decided in a batch was settled in it, or has a part that came in it.
"""

from __future__ import annotations

import numpy as np

from joins.memory.slots import Ints

__all__ = ["WatermarkSteps"]

_BEGINNING_US = -(1 << 63)


class WatermarkSteps:
    """The steps of `W` in one batch, behind the document `before` and its `W`.

    `through` is the last document so far, and `newest_us` is `W` behind it.
    """

    def __init__(self, before: int = 0, before_us: int = _BEGINNING_US) -> None:
        self.before = self.through = before
        self.newest_us = self._before_us = before_us
        self._docids = self._times_us = np.zeros(0, np.int64)

    def next_batch(self) -> WatermarkSteps:
        """Return the steps of the batch behind this one, of which there are none yet."""
        return WatermarkSteps(self.through, self.newest_us)

    def advance(self, docids: Ints, before_us: Ints, ends_us: Ints) -> None:
        """Take documents from outside in order: their docids, `W` before each, and event times.

        Where documents are left out, as in a restart, time passes between the others.
        """
        if not len(docids):
            return
        at = np.stack([docids - 1, docids], axis=1).reshape(-1)
        times_us = np.stack([before_us, ends_us], axis=1).reshape(-1)
        newest_us = np.maximum.accumulate(np.concatenate([[self.newest_us], times_us]))
        grew = (newest_us[1:] > newest_us[:-1]).nonzero()[0]
        self._docids = np.concatenate([self._docids, at[grew]])
        self._times_us = np.concatenate([self._times_us, times_us[grew]])
        self.newest_us = int(newest_us[-1])
        self.through = max(self.through, int(docids.max()))

    def settling(self, times_us: Ints) -> Ints:
        """Return the documents that settle times, grace included, which are below `newest_us`.

        Of what was settled before the batch it is `before`, the last document before the batch.
        """
        docids = np.append(self._docids, self.before)
        steps = self._times_us.searchsorted(times_us, "right")
        return np.where(times_us < self._before_us, self.before, docids[steps])

    def newest_through(self, docids: Ints) -> Ints:
        """Return `W` behind documents; behind those before the batch, `W` before the batch."""
        steps = np.searchsorted(self._docids, docids, "right")
        return np.concatenate([[self._before_us], self._times_us])[steps]
