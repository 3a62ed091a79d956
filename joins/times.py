"""What the semantics say of time, for pairs of instances in arrays (section 1.1 and 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from joins.remembered import Remembered
from joins.slots import Ints

__all__ = ["Flags", "Pairs", "follows", "span", "span_and_order"]

Flags = npt.NDArray[np.bool_]


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

    def __len__(self) -> int:
        return len(self.left)

    def keep(self, which: Ints | slice) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.left[which], self.right[which], self.span[which], self.follows[which])


def span(remembered: Remembered, newer: Ints, older: Ints, lateness_us: int) -> Ints:
    """Return the smallest window that holds each pair, whichever of the two is the left one.

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


def follows(remembered: Remembered, left: Ints, right: Ints) -> Flags:
    """Return whether the left one of each pair ends before the right one starts."""
    return np.less(remembered.take("end_us", left), remembered.take("start_us", right))


def span_and_order(
    remembered: Remembered, left: Ints, right: Ints, lateness_us: int
) -> tuple[Ints, Flags]:
    """Return the smallest window that holds each pair, and whether its left one ends first."""
    newer, older = np.maximum(left, right), np.minimum(left, right)
    return span(remembered, newer, older, lateness_us), follows(remembered, left, right)


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
