"""Complete runs, followed back from their last heads: their elements, and what these come to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from joins.memory.slots import Ints
from joins.sequences.lockstep.layout import ElementColumn, HeadColumn
from joins.sequences.runparts import Extent, Part

__all__ = ["AT_A_TIME", "extents_of", "runs_of"]

AT_A_TIME = 256
"""Runs that are followed back together."""


def runs_of(h: Ints, heads: Ints) -> tuple[Ints, Ints]:
    """Return the heads of complete runs, from the first one on, and where each run begins."""
    before = h[:, HeadColumn.BEFORE]
    rows = [heads]
    while (rows[-1] >= 0).any():
        rows.append(np.where(rows[-1] >= 0, before[rows[-1]], -1))
    by_run = np.stack(rows[::-1], axis=1)
    is_head = by_run >= 0
    at: Ints = np.concatenate([[0], np.cumsum(is_head.sum(axis=1))])
    return by_run[is_head], at


def extents_of(
    own: Ints, at: Ints, e: Ints, extents: Ints, parts: Mapping[int, Part]
) -> list[Extent]:
    """Return the extents of runs of the elements `own`, which begin at places among these.

    `e` and `extents` are rows of these elements, `parts` those of all that have some.
    """
    firsts = at[:-1]
    orders = e[:, ElementColumn.ORDER]
    newest = np.repeat(np.maximum.reduceat(orders, firsts), np.diff(at)) == orders
    places = np.flatnonzero(newest)
    of_run = np.searchsorted(at, places, "right") - 1
    _, first = np.unique(of_run, return_index=True)
    newest_parts = [parts[each] for each in own[places[first]].tolist()]
    columns = (
        np.minimum.reduceat(extents[:, 0], firsts),
        np.maximum.reduceat(extents[:, 1], firsts),
        e[firsts, ElementColumn.START],
        e[at[1:] - 1, ElementColumn.END],
        np.maximum.reduceat(e[:, ElementColumn.WATERMARK], firsts),
        np.maximum.reduceat(extents[:, 2], firsts),
    )
    leaves = np.split(extents[:, 3], at[1:-1])
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    return [
        Extent(part, docid_min, docid_max, start_us, end_us, watermark_us, depth, some)
        for part, (docid_min, docid_max, start_us, end_us, watermark_us, depth), some in zip(
            newest_parts, numbers, leaves, strict=True
        )
    ]
