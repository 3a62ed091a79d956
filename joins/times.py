"""What the semantics say of time, for pairs of instances in arrays (section 1.1 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from joins.remembered import Remembered
from joins.slots import Ints

__all__ = ["Flags", "Pairs"]

Flags = npt.NDArray[np.bool_]

_NUMBER_BITS = 31
"""Bits that hold the number of a remembered instance, counted from the first one."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of instances, with what time says of them.

    `span` is the smallest window that holds a pair, in microseconds; `follows` says that its left
    instance ends before its right one starts.
    """

    left: Ints
    right: Ints
    span: Ints
    follows: Flags

    @classmethod
    def of(cls, remembered: Remembered, left: Ints, right: Ints, lateness_us: int) -> Pairs:
        """Return the pairs (left, right) of instances."""
        span = _span(remembered, np.maximum(left, right), np.minimum(left, right), lateness_us)
        follows = remembered.take("end_us", left) < remembered.take("start_us", right)
        return cls(left, right, span, follows)

    @classmethod
    def distinct(cls, parts: Sequence[Pairs], base: int) -> Pairs:
        """Put pairs of instances from `base` on together, each once, in order of appearance."""
        if not parts:
            nothing = np.zeros(0, np.int64)
            return cls(nothing, nothing, nothing, nothing > 0)
        columns = ((part.left, part.right, part.span, part.follows) for part in parts)
        pairs = cls(*map(np.concatenate, zip(*columns, strict=True)))
        codes = pd.Series(((pairs.left - base) << _NUMBER_BITS) | (pairs.right - base))
        return pairs.keep(np.flatnonzero(~codes.duplicated().to_numpy()))

    def __len__(self) -> int:
        return len(self.left)

    def keep(self, which: Ints | slice) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.left[which], self.right[which], self.span[which], self.follows[which])


def _span(remembered: Remembered, newer: Ints, older: Ints, lateness_us: int) -> Ints:
    """Return the smallest window that holds two instances, whichever of them is the left one.

    `newer` are the instances with the larger numbers.  With `Y` the instance of the larger position
    and `X` the other: `T >= |R.end - L.end|` and `T >= W(Y) - A - X.end`.
    """
    newer_end, older_end = remembered.take("end_us", newer), remembered.take("end_us", older)
    reach = remembered.take("watermark_us", newer) - older_end
    if not remembered.is_ordered:
        earlier = ~_is_later(remembered, newer, older)
        reach[earlier] = (remembered.take("watermark_us", older) - newer_end)[earlier]
    widest: Ints = np.maximum(np.abs(newer_end - older_end), reach - lateness_us)
    return widest


def _is_later(remembered: Remembered, left: Ints, right: Ints) -> Flags:
    """Return where the left position `(docid, depth, match id)` is the larger one."""
    docid1, docid2 = remembered.take("docid", left), remembered.take("docid", right)
    later: Flags = docid1 > docid2
    ties = np.flatnonzero(docid1 == docid2)
    if len(ties):
        depth1 = remembered.take("depth", left[ties])
        depth2 = remembered.take("depth", right[ties])
        later[ties] = depth1 > depth2
        for i in ties[(depth1 == depth2) & (depth1 > 0)].tolist():
            ids = remembered.published_ids
            later[i] = ids[int(left[i])] > ids[int(right[i])]
    return later
