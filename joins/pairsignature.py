"""Pair signatures in arrays: which slots of two instances have equal values.

The slots of many pairs are compared slot by slot: for slot `i` on the left and slot `j` on the
right one comparison of two arrays, a value for each pair, that gives one bit of each pair's
signature.  So a further pair costs a few nanoseconds for each two slots.  Of few pairs all slots
are compared in one list, which asks for fewer calls.  Of instances with many slots each, which
would cost their product, the values are sorted to find the equal ones.  In every way pairs are
grouped by the signature itself, not by a hash of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from joins.remembered import EMPTY, Hashes, Remembered
from joins.slots import Ints, Layouts, ranges

__all__ = ["SLOT_BITS", "Code", "Codes", "pair_signatures"]

NOTHING = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Equals no hash: `hash_values` gives it to no value."""

FEW_PAIRS = 100
"""Up to so many pairs are compared in one list: what a call costs is what a hundred pairs cost."""

WIDE = 4_096
"""From more combinations of a left slot and a right one on, values are sorted instead."""

SORTED_SLOTS = 1_000_000
"""Slots whose values are sorted at once, unless one pair alone has more."""

WORD_BITS = 64

SLOT_BITS = 32
"""Bits that hold a slot's number in a code."""

Codes = tuple[int, ...]
"""The equal pairs of slots, in order: left slot times 2 ** `SLOT_BITS` plus right slot."""

Code = tuple[int, int, Codes]
"""A signature: left layout, right layout, and the equal pairs of slots."""

Words = dict[int, npt.NDArray[np.uint64]]
"""Bits for each pair, by word; words in which no pair has a bit are left out."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """Pairs to compare: their layouts, where their slots start, and how many there are."""

    left_layout: Ints
    right_layout: Ints
    left: Ints
    right: Ints
    left_count: Ints
    right_count: Ints

    @classmethod
    def of(cls, remembered: Remembered, layouts: Layouts, left: Ints, right: Ints) -> _Compared:
        layout1, layout2 = remembered.take("layout", left), remembered.take("layout", right)
        starts = remembered.slots(left), remembered.slots(right)
        counts = layouts.arrays.slot_counts
        return cls(layout1, layout2, *starts, counts[layout1], counts[layout2])

    def __len__(self) -> int:
        return len(self.left)

    @property
    def widest(self) -> int:
        """The combinations of slots that pairs as wide as the widest on either side have."""
        if not len(self):
            return 0
        return max(1, int(self.left_count.max())) * max(1, int(self.right_count.max()))

    def take(self, rows: Ints) -> _Compared:
        """Return some of the pairs."""
        return _Compared(
            self.left_layout[rows],
            self.right_layout[rows],
            self.left[rows],
            self.right[rows],
            self.left_count[rows],
            self.right_count[rows],
        )


def pair_signatures(
    remembered: Remembered, layouts: Layouts, left: Ints, right: Ints
) -> tuple[list[Code], Ints]:
    """Return the signatures of the pairs (left, right), and for each pair which one it has."""
    pairs = _Compared.of(remembered, layouts, left, right)
    signatures: list[Code] = []
    which = np.zeros(len(pairs), np.int64)
    for rows in _of_like_width(pairs):
        part = pairs if len(rows) == len(pairs) else pairs.take(rows)
        if part.widest > WIDE:
            found, which_of_part = _by_sorting(remembered, part)
        elif len(part) <= FEW_PAIRS:
            found, which_of_part = _in_one_list(remembered, part)
        else:
            found, which_of_part = _slot_by_slot(remembered, part)
        which[rows] = which_of_part + len(signatures)
        signatures += found
    return signatures, which


def _of_like_width(pairs: _Compared) -> Iterator[Ints]:
    """Yield pairs by how many slots they have, to a power of two: little is padding then."""
    rows = np.arange(len(pairs))
    is_wide = pairs.widest > WIDE
    uniform = _is_uniform(pairs.left_count) and _is_uniform(pairs.right_count)
    if not is_wide and (uniform or len(pairs) <= FEW_PAIRS):
        yield rows
        return
    _, log2_left = np.frexp(pairs.left_count.astype(np.float64))
    _, log2_right = np.frexp(pairs.right_count.astype(np.float64))
    widths, kinds = pd.factorize(log2_left * WORD_BITS + log2_right)
    for kind in range(len(kinds)):
        like = rows[widths == kind]
        if not is_wide:
            yield like
            continue
        slots = pairs.left_count[like] + pairs.right_count[like]
        part = (np.cumsum(slots) - slots) // SORTED_SLOTS
        yield from np.split(like, np.flatnonzero(np.diff(part)) + 1)


def _is_uniform(values: npt.NDArray[Any]) -> bool:
    return len(values) == 0 or bool((values == values[0]).all())


def _slot_by_slot(remembered: Remembered, pairs: _Compared) -> tuple[list[Code], Ints]:
    """Return signatures, and which of them each pair has; many pairs."""
    width = int(pairs.right_count.max())
    words = _equal_slots(remembered, pairs, int(pairs.left_count.max()), width)
    which = _grouped([pairs.left_layout, pairs.right_layout, *words.values()])
    one_of_each = np.zeros(int(which.max()) + 1, np.int64)
    one_of_each[which] = np.arange(len(pairs))
    return [_code(pairs, words, width, i) for i in one_of_each.tolist()], which


def _equal_slots(
    remembered: Remembered, pairs: _Compared, left_width: int, right_width: int
) -> Words:
    """Return a bit for each two slots, set for the pairs whose values there are equal."""
    first, other = remembered.padded_hashes(max(left_width, right_width)), remembered.hashes[1]
    at_right = [_slot(first, pairs.right, pairs.right_count, j) for j in range(right_width)]
    words: Words = {}
    for i in range(left_width):
        at_left = _slot(first, pairs.left, pairs.left_count, i)
        # What is missing on the left must not equal what is missing on the right.
        at_left[at_left == EMPTY] = NOTHING
        for j in range(right_width):
            equal = at_left == at_right[j]
            if not equal.any():
                continue
            rows = np.flatnonzero(equal)
            equal[rows] = other[pairs.left[rows] + i] == other[pairs.right[rows] + j]
            word, bit = divmod(i * right_width + j, WORD_BITS)
            bits = equal.astype(np.uint64) << np.uint64(bit)
            words[word] = words[word] | bits if word in words else bits
    return words


def _slot(hashes: Hashes, starts: Ints, counts: Ints, i: int) -> Hashes:
    """Return the hashes of the `i`-th slots; `EMPTY` where there is none."""
    values: Hashes = hashes[starts + i]
    missing = counts <= i
    if missing.any():
        values[missing] = EMPTY
    return values


def _grouped(columns: Sequence[npt.NDArray[Any]]) -> Ints:
    """Number rows: those that are alike in all columns have one number, the next free one."""
    numbers = None
    for column in columns:
        if _is_uniform(column):
            continue
        codes, distinct = pd.factorize(column)
        if numbers is not None:
            codes, _ = pd.factorize(numbers * len(distinct) + codes)
        numbers = codes
    return np.zeros(len(columns[0]), np.int64) if numbers is None else numbers


def _code(pairs: _Compared, words: Words, right_width: int, row: int) -> Code:
    """Read a pair's signature from its bits."""
    bits = [
        word * WORD_BITS + bit
        for word, column in sorted(words.items())
        for bit in range(WORD_BITS)
        if int(column[row]) >> bit & 1
    ]
    codes = tuple((bit // right_width) << SLOT_BITS | bit % right_width for bit in bits)
    return int(pairs.left_layout[row]), int(pairs.right_layout[row]), codes


def _in_one_list(remembered: Remembered, pairs: _Compared) -> tuple[list[Code], Ints]:
    """Return signatures, and which of them each pair has; few pairs."""
    first, _ = remembered.hashes
    products = pairs.left_count * pairs.right_count
    which = np.repeat(np.arange(len(pairs)), products)
    place = ranges(np.zeros(len(pairs), np.int64), products)
    i, j = np.divmod(place, np.repeat(pairs.right_count, products))
    at_left, at_right = pairs.left[which] + i, pairs.right[which] + j
    rows = np.flatnonzero((first[at_left] == first[at_right]) & (first[at_left] != EMPTY))
    return _listed(remembered, pairs, which[rows], i[rows], j[rows])


def _by_sorting(remembered: Remembered, pairs: _Compared) -> tuple[list[Code], Ints]:
    """Return signatures, and which of them each pair has; instances with many slots."""
    first, _ = remembered.hashes
    pair1, i, hashes1 = _slots(first, pairs.left, pairs.left_count)
    pair2, j, hashes2 = _slots(first, pairs.right, pairs.right_count)
    values, _ = pd.factorize(np.concatenate([hashes1, hashes2]))
    keys1 = values[: len(hashes1)] * len(pairs) + pair1
    keys2 = values[len(hashes1) :] * len(pairs) + pair2
    order = np.argsort(keys2, kind="stable")
    starts = np.searchsorted(keys2, keys1, "left", sorter=order)
    counts = np.searchsorted(keys2, keys1, "right", sorter=order) - starts
    rows1, rows2 = np.repeat(np.arange(len(keys1)), counts), order[ranges(starts, counts)]
    return _listed(remembered, pairs, pair1[rows1], i[rows1], j[rows2])


def _slots(hashes: Hashes, starts: Ints, counts: Ints) -> tuple[Ints, Ints, Hashes]:
    """Return the slots of instances that hold something: (instance, slot, hash)."""
    which, slots = np.repeat(np.arange(len(counts)), counts), ranges(np.zeros_like(counts), counts)
    values = hashes[starts[which] + slots]
    filled = values != EMPTY
    return which[filled], slots[filled], values[filled]


def _listed(
    remembered: Remembered, pairs: _Compared, which: Ints, left_slots: Ints, right_slots: Ints
) -> tuple[list[Code], Ints]:
    """Number pairs by their slots that are equal in the first hash, listed pair by pair."""
    _, other = remembered.hashes
    equal = other[pairs.left[which] + left_slots] == other[pairs.right[which] + right_slots]
    equal_slots = ((left_slots << SLOT_BITS) | right_slots)[equal]
    codes: list[list[int]] = [[] for _ in range(len(pairs))]
    for pair, code in zip(which[equal].tolist(), equal_slots.tolist(), strict=True):
        codes[pair].append(code)
    numbers: dict[Code, int] = {}
    layouts = pairs.left_layout.tolist(), pairs.right_layout.tolist()
    of_pairs = [
        numbers.setdefault((left, right, tuple(own)), len(numbers))
        for left, right, own in zip(*layouts, codes, strict=True)
    ]
    return list(numbers), np.array(of_pairs, np.int64)
