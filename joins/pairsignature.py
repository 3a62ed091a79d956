"""Pair signatures in arrays: which slots of two instances have equal values.

A signature is a pair of layouts and a set of pairs of slots.  It is found by its hash and then
held against the entry slot by slot, so two signatures with one hash cost time, never a match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from joins.remembered import EMPTY, Remembered
from joins.slots import Ints, Layouts, ranges

__all__ = ["PairSignatures", "pair_signatures"]

NOTHING = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Equals no hash: `hash_values` gives it to no value."""

DENSE_SLOTS_MAX = 16
"""Up to this many slots on both sides all of a pair's slots are compared in one block."""

_PRIME = np.uint64(0xBF58476D1CE4E5B9)
_OTHER = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class PairSignatures:
    """The signatures of some pairs.

    The equal slots of pair `i` are `codes[starts[i]:starts[i + 1]]`, in order: left slot times
    65,536 plus right slot.  `hashes` are equal where signatures are.
    """

    left_layout: Ints
    right_layout: Ints
    starts: Ints
    codes: Ints
    hashes: npt.NDArray[np.uint64]

    def of(self, i: int) -> tuple[int, int, Ints]:
        """Return one pair's signature."""
        own = self.codes[self.starts[i] : self.starts[i + 1]]
        return int(self.left_layout[i]), int(self.right_layout[i]), own

    def groups(self) -> tuple[list[int], Ints]:
        """Return one pair of each signature, and for each pair which of them it is like."""
        _, firsts, inverse = np.unique(self.hashes, return_index=True, return_inverse=True)
        alike: list[int] = firsts.tolist()
        for i in self._unlike(firsts, inverse):
            inverse[i] = len(alike)
            alike.append(i)
        return alike, inverse

    def _unlike(self, firsts: Ints, inverse: Ints) -> Iterator[int]:
        """Yield the pairs whose signature only hashes like the one that stands for it."""
        counts = np.diff(self.starts)
        like = firsts[inverse]
        wrong = (self.left_layout[like] != self.left_layout) | (counts[like] != counts)
        wrong |= self.right_layout[like] != self.right_layout
        sizes = np.where(wrong, 0, counts)
        theirs = self.codes[ranges(self.starts[like], sizes)]
        mine = self.codes[ranges(self.starts[:-1], sizes)]
        differs = np.repeat(np.arange(len(sizes)), sizes)[theirs != mine]
        wrong[differs] = True
        yield from np.flatnonzero(wrong).tolist()


def pair_signatures(
    remembered: Remembered, layouts: Layouts, left: Ints, right: Ints
) -> PairSignatures:
    """Return the signatures of the pairs (left, right)."""
    left_layout = remembered.take("layout", left).astype(np.int64)
    right_layout = remembered.take("layout", right).astype(np.int64)
    counts = layouts.arrays.slot_counts
    left_count, right_count = counts[left_layout], counts[right_layout]
    widest = max(int(left_count.max(initial=0)), int(right_count.max(initial=0)))
    compare = _compare_densely if widest <= DENSE_SLOTS_MAX else _compare_one_by_one
    which, codes = compare(
        remembered, remembered.slots(left), remembered.slots(right), left_count, right_count
    )
    ends = np.searchsorted(which, np.arange(len(left)), "right")
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    return PairSignatures(
        left_layout, right_layout, starts, codes, _hash(starts, codes, left_layout, right_layout)
    )


def _compare_densely(
    remembered: Remembered, left: Ints, right: Ints, left_count: Ints, right_count: Ints
) -> tuple[Ints, Ints]:
    """Compare slots as blocks: a row for each pair, padded with what equals nothing."""
    _, other = remembered.hashes
    left_block = _block(remembered, left, left_count)
    # What is missing on the left must not equal what is missing on the right.
    left_block[left_block == EMPTY] = NOTHING
    right_block = _block(remembered, right, right_count)
    equal = left_block[:, :, None] == right_block[:, None, :]
    which, ij = np.divmod(np.flatnonzero(equal), max(equal.shape[1] * equal.shape[2], 1))
    i, j = np.divmod(ij, max(equal.shape[2], 1))
    sure = other[left[which] + i] == other[right[which] + j]
    return which[sure], (i[sure] << 16) | j[sure]


def _block(remembered: Remembered, starts: Ints, counts: Ints) -> npt.NDArray[np.uint64]:
    """Return the hashes of instances' slots, a row for each, padded with `EMPTY`."""
    width = int(counts.max(initial=0))
    if not width:
        return np.zeros((len(starts), 0), np.uint64)
    # Rows of a window that slides over all slots: one copy for each instance.
    block = sliding_window_view(remembered.padded_hashes(width), width)[starts]
    if int(counts.min()) < width:
        block[np.arange(width) >= counts[:, None]] = EMPTY
    return block


def _compare_one_by_one(
    remembered: Remembered, left: Ints, right: Ints, left_count: Ints, right_count: Ints
) -> tuple[Ints, Ints]:
    """Compare slots as one long list: no padding, for instances with many values."""
    first, other = remembered.hashes
    products = left_count * right_count
    which = np.repeat(np.arange(len(left)), products)
    place = ranges(np.zeros(len(left), np.int64), products)
    i, j = np.divmod(place, np.repeat(np.maximum(right_count, 1), products))
    at_left, at_right = left[which] + i, right[which] + j
    equal = (first[at_left] == first[at_right]) & (first[at_left] != EMPTY)
    equal &= other[at_left] == other[at_right]
    return which[equal], (i[equal] << 16) | j[equal]


def _hash(
    starts: Ints, codes: Ints, left_layout: Ints, right_layout: Ints
) -> npt.NDArray[np.uint64]:
    """Return a hash of each pair's layouts and set of equal slots."""
    mixed = _mix(codes.astype(np.uint64) + np.uint64(1))
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    layouts = (left_layout.astype(np.uint64) << np.uint64(32)) | right_layout.astype(np.uint64)
    return _mix((total[starts[1:]] - total[starts[:-1]]) ^ _mix(layouts + np.uint64(1)))


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return well-spread hashes of numbers (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * _PRIME
    values = (values ^ (values >> np.uint64(27))) * _OTHER
    return values ^ (values >> np.uint64(31))
