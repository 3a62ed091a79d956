"""What the semantics say of time, for pairs of instances in arrays (section 1.1 and 4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from joins.remembered import Remembered
from joins.slots import Ints

__all__ = ["Flags", "span_and_order"]

Flags = npt.NDArray[np.bool_]


def span_and_order(
    remembered: Remembered, left: Ints, right: Ints, lateness_us: int
) -> tuple[Ints, Flags]:
    """Return the smallest window that holds each pair, and whether its left one ends first.

    With `Y` the instance of the larger position and `X` the other: `T >= |R.end - L.end|` and
    `T >= W(Y) - A - X.end`.
    """
    left_end, right_end = remembered.take("end_us", left), remembered.take("end_us", right)
    reach = np.where(
        _is_later(remembered, left, right),
        remembered.take("watermark_us", left) - right_end,
        remembered.take("watermark_us", right) - left_end,
    )
    span: Ints = np.maximum(np.abs(right_end - left_end), reach - lateness_us)
    follows: Flags = left_end < remembered.take("start_us", right)
    return span, follows


def _is_later(remembered: Remembered, left: Ints, right: Ints) -> Flags:
    """Return where the left position `(docid, depth, match id)` is the larger one."""
    if remembered.is_ordered:
        return np.greater(left, right)
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
