"""What is left of the columns of a table when elements are forgotten, under new numbers.

`into` has the new number of each element, or head, -1 of one that is forgotten.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from joins.memory.slots import Ints, ranges
from joins.sequences.lockstep.layout import NO_LIMIT, HeadColumn, LineColumn

__all__ = ["NOTHING_NEW", "kept_heads", "kept_lines", "kept_near", "numbering"]

NOTHING_NEW = NO_LIMIT
"""Stands for the first place of a line that was filled in a batch, where none was."""

Flags = npt.NDArray[np.bool_]


def numbering(kept: Flags) -> Ints:
    """Return the new number of each row, -1 of one that is not kept."""
    return np.where(kept, np.cumsum(kept) - 1, -1)


def kept_heads(h: Ints, is_kept: Flags, into: Ints, head_into: Ints) -> Ints:
    """Return some heads, by the new numbers of elements and of heads."""
    h = h[is_kept]
    for column in (HeadColumn.ELEMENT, HeadColumn.FIRST):
        h[:, column] = into[h[:, column]]
    before = h[:, HeadColumn.BEFORE]
    h[:, HeadColumn.BEFORE] = np.where(before >= 0, head_into[before], -1)
    return h


def kept_near(h: Ints, near: Ints, into: Ints) -> tuple[Ints, int]:
    """Return the lists of what is near heads without what is forgotten, and their size."""
    kept = np.empty_like(near)
    count = 0
    heads = h[:, HeadColumn.NEAR]
    whose = np.flatnonzero(heads >= 0)
    at = heads[whose]
    heads[whose] = -1
    # One entry of each list at a time.
    while len(at):
        elements, following = into[near[at, 0]], near[at, 1]
        are_kept = elements >= 0
        own = whose[are_kept]
        places = np.arange(count, count + len(own))
        kept[places, 0], kept[places, 1] = elements[are_kept], heads[own]
        heads[own] = places
        count += len(own)
        whose, at = whose[following >= 0], following[following >= 0]
    return kept, count


def kept_lines(lines: Ints, arena: Ints, into: Ints, codes: Ints, of_key: int) -> tuple[Ints, Ints]:
    """Return the lines of the keys that are in use, `of_key` of each, and what is in them.

    `codes` has the new code of each key, -1 of one that is not in use.
    """
    used = np.flatnonzero(codes >= 0)
    found = np.zeros((len(codes) * of_key, len(LineColumn)), np.int64)
    found[:, LineColumn.NEW] = NOTHING_NEW
    known = lines[: len(found)]
    found[: len(known)] = known
    found = found.reshape(len(codes), of_key, len(LineColumn))[used].reshape(-1, len(LineColumn))
    sizes = found[:, LineColumn.SIZE]
    own = into[arena[ranges(found[:, LineColumn.AT], sizes)]]
    of_line = np.repeat(np.arange(len(found)), sizes)[own >= 0]
    sizes = np.bincount(of_line, minlength=len(found))
    found[:, LineColumn.AT] = np.cumsum(sizes) - sizes
    found[:, LineColumn.SIZE] = found[:, LineColumn.ROOM] = sizes
    return found, own[own >= 0]
