"""What boxes exclude, held against tuples of which both hashes stand in columns.

One string takes two columns, so that two strings are taken for one only if all 128 bits are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from broker.matching.boxes.columns import Flags, Hashes, Ints
from broker.matching.boxes.index import Box
from joins import hash_values

__all__ = ["NO_HASH", "differ", "excluded_by", "known_in_pairs", "loosest_excluded"]

NO_HASH = -1
"""What the first hash of no string is; those of the empty string are 0."""

_NO_TEXT = "\0"
"""What a box excludes that excludes nothing: no document has it."""


def loosest_excluded(excluded: Iterable[Sequence[str]]) -> tuple[str, ...]:
    r"""Return what all of some boxes exclude, place by place.

    >>> loosest_excluded([("a", "x"), ("a", "y")])
    ('a', '\x00')
    """
    others = iter(excluded)
    loosest = [*next(others)]
    alike = [*range(len(loosest))]
    # Of a million boxes the first ones tell, as what they exclude is mostly not the same.
    while alike and (other := next(others, None)) is not None:
        for place in [place for place in alike if other[place] != loosest[place]]:
            loosest[place] = _NO_TEXT
            alike.remove(place)
    return tuple(loosest)


def excluded_by(boxes: Sequence[Box]) -> Ints:
    """Return the columns of what boxes of one form exclude, a row for each."""
    strings = [text for box in boxes for text in box.excluded]
    if not strings:
        return np.zeros((len(boxes), 0), np.int64)
    return in_pairs(*hash_values(pa.array(strings, pa.string()))).reshape(len(boxes), -1)


def in_pairs(first: Hashes, other: Hashes) -> Ints:
    """Return both hashes of each string next to each other."""
    return np.stack([first, other], axis=1).view(np.int64)


def known_in_pairs(known: Flags, first: Hashes, other: Hashes) -> Ints:
    """Return both hashes of each string, `NO_HASH` where it is not known: it is not excluded."""
    return np.where(known[:, None], in_pairs(first, other), NO_HASH)


def differ(hashes: Ints, excluded: Ints) -> Flags:
    """Return which rows have no string that is excluded."""
    equal = hashes == excluded
    are_apart: Flags = ~(equal[..., ::2] & equal[..., 1::2]).any(axis=-1)
    return are_apart
