"""Pair signatures in arrays: which slots of two instances have equal values.

Three ways lead to the signatures, and each wins where the others lose:

    slot by slot   of many pairs: for slot `i` of the newer and slot `j` of the older instance, one
                   comparison of two arrays with a value for each pair gives one bit of each
                   signature.  A further pair costs a few nanoseconds for each two slots
    in one list    of few pairs, which asks for fewer calls
    by a loop      the same, compiled, where that is to be had
    by sorting     of instances with many slots, where the first way would cost their product.
                   Where even the equal slots are many, they are named by value (`Grouped`)

Most slots are left out of all this: a slot of the newer instance is equal to none if no other
instance has its value (`SharedSlots`).  Slots are compared by their first hash, and equal ones by
the other hash as well.  Pairs are grouped by the signature itself, not by a hash of it.

Columns are grouped as in `Compared`: a row for each newer instance, which `spread` gives to its
pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.memory.remembered import EMPTY, Hashes, Remembered
from joins.memory.slots import Ints, Layouts, ranges
from joins.signature.compared import Code, Codes, Compared, SharedSlots
from joins.signature.compilation import are_compiled
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits

__all__ = ["pair_signatures"]

SPARSE = 8
"""Pairs are looked at one by one where they are no more than one in so many."""

NO_HASH = ~EMPTY
"""No value has this hash."""

WORD_BITS = 62

DENSE = 4_096
"""Numbers below it are counted in a table, not in a hash table."""


def pair_signatures(
    remembered: Remembered,
    layouts: Layouts,
    left: Ints,
    right: Ints,
    shared: SharedSlots,
    limits: SignatureLimits = DEFAULT_LIMITS,
) -> tuple[list[Code], Ints]:
    """Return the signatures of the pairs (left, right), and the place of each pair's signature.

    The newer instance of each pair is new; the pairs of one newer instance stand together.
    """
    pairs = Compared.of(remembered, layouts, left, right)
    numbers: dict[Code, int] = {}
    which = np.zeros(len(pairs), np.int64)
    for rows in _of_like_width(pairs, limits):
        is_all = len(rows) == len(pairs)
        part = pairs if is_all else Compared.of(remembered, layouts, left[rows], right[rows])
        if part.widest > limits.wide:
            found, which_of_part = _by_sorting(remembered, part, shared, limits.listed_slots)
        elif len(part) <= limits.few_pairs:
            found, which_of_part = _in_one_list(remembered, part, shared)
        elif are_compiled(len(part), limits):
            found, which_of_part = _by_loop(remembered, part, shared)
        else:
            found, which_of_part = _slot_by_slot(remembered, part, shared)
        numbered = [numbers.setdefault(code, len(numbers)) for code in found]
        which[rows] = np.array(numbered, np.int64)[which_of_part]
    return list(numbers), which


def _of_like_width(pairs: Compared, limits: SignatureLimits) -> Iterator[Ints]:
    """Yield pairs by their numbers of slots, to a power of two, so that little is padding."""
    rows = np.arange(len(pairs))
    is_wide = pairs.widest > limits.wide
    uniform = _is_uniform(pairs.newer_count) and _is_uniform(pairs.older_count)
    if not is_wide and (uniform or len(pairs) <= limits.few_pairs):
        yield rows
        return
    _, log2_newer = np.frexp(pairs.newer_count.astype(np.float64))
    _, log2_older = np.frexp(pairs.older_count.astype(np.float64))
    widths, kinds = _numbered(pairs.spread(log2_newer) * WORD_BITS + log2_older)
    for kind in range(kinds):
        like = rows[widths == kind]
        if not is_wide:
            yield like
            continue
        slots = pairs.spread(pairs.newer_count)[like] + pairs.older_count[like]
        part = (np.cumsum(slots) - slots) // limits.sorted_slots
        yield from np.split(like, np.flatnonzero(np.diff(part)) + 1)


def _is_uniform(values: npt.NDArray[Any]) -> bool:
    return len(values) == 0 or bool((values == values[0]).all())


def _by_loop(
    remembered: Remembered, pairs: Compared, shared: SharedSlots
) -> tuple[list[Code], Ints]:
    """Return the signatures of many pairs, and the place of each pair's signature."""
    from joins.signature.kernels import equal_slots

    newer, older = (pairs.newer, pairs.newer_count, pairs.ends), (pairs.older, pairs.older_count)
    own, i, j = equal_slots(*remembered.hashes, *newer, *older, shared.flags, shared.first)
    counts = np.bincount(own, minlength=len(pairs))
    starts = np.cumsum(counts) - counts
    # What is equal in a pair comes in one order: the first of it, the second, and so on.
    codes = [np.zeros(len(pairs), np.int64) for _ in range(int(counts.max()))]
    places = np.arange(len(own)) - starts[own]
    for place, code in enumerate(codes):
        rows = np.flatnonzero(places == place)
        code[own[rows]] = (i[rows] * (int(pairs.older_count.max()) + 1)) + j[rows] + 1
    which = _grouped(
        [pairs.is_right.astype(np.int64), pairs.newer_layout, pairs.older_layout, *codes]
    )
    one_of_each = np.zeros(int(which.max()) + 1, np.int64)
    one_of_each[which] = np.arange(len(pairs))
    of_each = counts[one_of_each]
    at = ranges(starts[one_of_each], of_each)
    listed = np.repeat(np.arange(len(one_of_each)), of_each), i[at], j[at]
    return list(pairs.codes(one_of_each, *listed)), which


def _slot_by_slot(
    remembered: Remembered, pairs: Compared, shared: SharedSlots
) -> tuple[list[Code], Ints]:
    """Return the signatures of many pairs, and the place of each pair's signature."""
    places, words = _equal_slots(remembered, pairs, shared)
    which = _grouped([pairs.newer_layout, pairs.older_layout, *words])
    one_of_each = np.zeros(int(which.max()) + 1, np.int64)
    one_of_each[which] = np.arange(len(pairs))
    return list(_codes(pairs, one_of_each, places, words)), which


def _equal_slots(
    remembered: Remembered, pairs: Compared, shared: SharedSlots
) -> tuple[list[tuple[int, int]], list[Ints]]:
    """Return (newer slot, older slot) with equal values in some pair, and a bit for each.

    The bits of a pair are in words, after one that is set if the newer instance is the right one.
    """
    width, newer_width = int(pairs.older_count.max()), int(pairs.newer_count.max())
    first, other = remembered.padded_hashes(max(width, newer_width))
    at_older: dict[int, Hashes] = {}
    places: list[tuple[int, int]] = []
    words = [pairs.is_right.astype(np.int64)]
    for i in range(newer_width):
        asked = _AskedSlots.of_slot(pairs, shared, i)
        at_newer = asked.spread(first)
        # An instance without a slot `j` reads `EMPTY`, and one that is not asked `NO_HASH`: neither
        # is equal to anything, so no row has to be left out.
        for j in range(width if len(at_newer) else 0):
            if j not in at_older:
                at_older[j] = _slot(first, pairs.older, pairs.older_count, j)
            equal = at_newer == asked.some(at_older[j])
            count = np.count_nonzero(equal)
            if not count:
                continue
            places.append((i, j))
            word, bit = divmod(len(places), WORD_BITS)
            if word == len(words):
                words.append(np.zeros(len(pairs), np.int64))
            # The other hash is compared where the first is equal: over whole columns while these
            # rows are many, row by row while they are few.
            if asked.rows is None and count * SPARSE > len(pairs):
                equal &= np.repeat(other[pairs.newer + i], pairs.counts) == other[j:][pairs.older]
                words[word] |= equal.astype(np.int64) << bit
            else:
                rows = asked.places(np.flatnonzero(equal))
                newer = pairs.newer[np.searchsorted(pairs.ends, rows, "right")]
                is_equal = other[newer + i] == other[pairs.older[rows] + j]
                words[word][rows[is_equal]] |= 1 << bit
    return places, words


@dataclass(frozen=True, slots=True)
class _AskedSlots:
    """The pairs whose newer instance shares the value of its `i`-th slot, or all pairs.

    `of` are the rows of those newer instances, `slots` the places of the slot.  `rows` are the
    pairs; None stands for all pairs.
    """

    pairs: Compared
    of: Ints
    slots: Ints
    rows: Ints | None

    @classmethod
    def of_slot(cls, pairs: Compared, shared: SharedSlots, i: int) -> _AskedSlots:
        """Return the pairs of the `i`-th slot: all of them, unless they are few."""
        wide = np.flatnonzero(pairs.newer_count > i)
        of = wide[shared.has(pairs.newer[wide] + i)]
        counts = pairs.counts[of]
        is_sparse = int(counts.sum()) * SPARSE <= len(pairs)
        rows = ranges(pairs.ends[of] - counts, counts) if is_sparse else None
        return cls(pairs, of, pairs.newer[of] + i, rows)

    def spread(self, hashes: Hashes) -> Hashes:
        """Return the value of each pair's newer instance, `NO_HASH` where it is not asked for."""
        if self.rows is not None:
            return np.repeat(hashes[self.slots], self.pairs.counts[self.of])
        values = np.full(len(self.pairs.newer), NO_HASH)
        values[self.of] = hashes[self.slots]
        return np.repeat(values, self.pairs.counts)

    def some(self, values: Hashes) -> Hashes:
        """Return the values of the asked pairs, of a column with one for each pair."""
        return values if self.rows is None else values[self.rows]

    def places(self, which: Ints) -> Ints:
        """Return the pairs that some of the asked ones are."""
        return which if self.rows is None else self.rows[which]


def _slot(hashes: Hashes, starts: Ints, counts: Ints, i: int) -> Hashes:
    """Return the hashes of the `i`-th slots; where there is none `EMPTY`, which is not shared."""
    values: Hashes = hashes[i:][starts]
    if int(counts.min()) <= i:
        values[counts <= i] = EMPTY
    return values


def _grouped(columns: Sequence[Ints]) -> Ints:
    """Number rows: rows that are alike in all columns have one number, the next free one."""
    numbers = None
    for column in columns:
        if _is_uniform(column):
            continue
        # Numbered anew after each column: numbers stay below the rows, and products in 64 bits.
        codes, count = _numbered(column)
        if numbers is not None:
            codes, _ = _numbered(numbers * count + codes)
        numbers = codes
    return np.zeros(len(columns[0]), np.int64) if numbers is None else numbers


def _numbered(column: Ints) -> tuple[Ints, int]:
    """Replace numbers, none of them negative, by consecutive ones; return how many there are."""
    if int(column.max()) >= DENSE:
        return _looked_up(column)
    present = np.bincount(column) > 0
    return (np.cumsum(present) - 1)[column], int(np.count_nonzero(present))


def _looked_up(column: npt.NDArray[Any]) -> tuple[Ints, int]:
    """Replace numbers by consecutive ones, by a hash table; return how many there are."""
    encoded = pa.array(column).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _codes(
    pairs: Compared, rows: Ints, places: Sequence[tuple[int, int]], words: Sequence[Ints]
) -> Iterator[Code]:
    """Yield the signatures of some pairs, from their bits."""
    listed = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for number, word in enumerate(words):
        bits = word[rows, None] >> np.arange(WORD_BITS) & 1
        which, bit = np.nonzero(bits)
        listed.append((which, number * WORD_BITS + bit))
    which, bits = (np.concatenate(each) for each in zip(*listed, strict=True))
    # The first bit says which instance is the right one.
    which, place = which[bits > 0], bits[bits > 0] - 1
    slots = np.array(places, np.int64).reshape(-1, 2)[place]
    yield from pairs.codes(rows, which, *slots.T)


def _in_one_list(
    remembered: Remembered, pairs: Compared, shared: SharedSlots
) -> tuple[list[Code], Ints]:
    """Return the signatures of few pairs, and the place of each pair's signature."""
    first, _ = remembered.hashes
    newer, i = _shared_slots(pairs, shared)
    counts = pairs.older_count[newer]
    which, i = newer.repeat(counts), i.repeat(counts)
    j = ranges(np.zeros_like(counts), counts)
    starts = pairs.spread(pairs.newer)
    rows = np.flatnonzero(first[starts[which] + i] == first[pairs.older[which] + j])
    return _listed(remembered, pairs, which[rows], i[rows], j[rows], {})


def _by_sorting(
    remembered: Remembered, pairs: Compared, shared: SharedSlots, listed_max: int
) -> tuple[list[Code], Ints]:
    """Return the signatures of pairs with many slots, and the place of each pair's signature."""
    first, _ = remembered.hashes
    pair1, i = _shared_slots(pairs, shared)
    pair2, j = _slots(pairs.older_count)
    hashes = first[pairs.spread(pairs.newer)[pair1] + i], first[pairs.older[pair2] + j]
    # A slot's key is its value's number and its pair's in one: equal keys, equal slots of a pair.
    values, _ = _looked_up(np.concatenate(hashes))
    keys1 = values[: len(i)] * len(pairs) + pair1
    keys2 = values[len(i) :] * len(pairs) + pair2
    order = np.argsort(keys2, kind="stable")
    starts = np.searchsorted(keys2, keys1, "left", sorter=order)
    counts = np.searchsorted(keys2, keys1, "right", sorter=order) - starts
    # Where a pair has very many, they are not listed: its counts become 0, and it is grouped.
    equal = np.bincount(pair1, counts, len(pairs))
    many = np.flatnonzero(equal > listed_max).tolist()
    counts[equal[pair1] > listed_max] = 0
    grouped = {
        pair: _groups(remembered, pairs, pair, i[pair1 == pair], j[pair2 == pair]) for pair in many
    }
    rows1, rows2 = np.repeat(np.arange(len(keys1)), counts), order[ranges(starts, counts)]
    return _listed(remembered, pairs, pair1[rows1], i[rows1], j[rows2], grouped)


def _groups(
    remembered: Remembered, pairs: Compared, pair: int, newer_slots: Ints, older_slots: Ints
) -> Code:
    """Return the signature of one pair by values."""
    newer = int(pairs.spread(pairs.newer)[pair]) + newer_slots
    places = np.concatenate([newer, int(pairs.older[pair]) + older_slots])
    first, other = (_looked_up(hashes[places])[0] for hashes in remembered.hashes)
    # Both hashes are numbered from 0, so the two numbers of a value fit into one.
    values = first * len(places) + other
    sides = values[: len(newer)], values[len(newer) :]
    by_value = [_by_value(*side) for side in zip(sides, (newer_slots, older_slots), strict=True)]
    common = by_value[0].keys() & by_value[1].keys()
    return pairs.grouped_code(pair, [(by_value[0][v], by_value[1][v]) for v in common])


def _by_value(values: Ints, slots: Ints) -> dict[int, Codes]:
    """Return the slots, which ascend, of each value."""
    order = np.argsort(values, kind="stable")
    distinct, starts = np.unique(values[order], return_index=True)
    parts = np.split(slots[order], starts[1:])
    return {v: tuple(part.tolist()) for v, part in zip(distinct.tolist(), parts, strict=True)}


def _slots(counts: Ints) -> tuple[Ints, Ints]:
    """Return all slots of instances: (instance, slot)."""
    return np.repeat(np.arange(len(counts)), counts), ranges(np.zeros_like(counts), counts)


def _shared_slots(pairs: Compared, shared: SharedSlots) -> tuple[Ints, Ints]:
    """Return the slots of newer instances that another one may share: (pair, slot)."""
    which, slots = _slots(pairs.spread(pairs.newer_count))
    found = np.flatnonzero(shared.has(pairs.spread(pairs.newer)[which] + slots))
    return which[found], slots[found]


def _listed(
    remembered: Remembered,
    pairs: Compared,
    which: Ints,
    newer_slots: Ints,
    older_slots: Ints,
    grouped: Mapping[int, Code],
) -> tuple[list[Code], Ints]:
    """Number pairs by their slots that are equal in the first hash, listed pair by pair.

    `grouped` are the known signatures of some pairs.
    """
    _, other = remembered.hashes
    newer = pairs.spread(pairs.newer)[which] + newer_slots
    equal = other[newer] == other[pairs.older[which] + older_slots]
    slots: list[list[tuple[int, int]]] = [[] for _ in range(len(pairs))]
    listed = (each[equal].tolist() for each in (which, newer_slots, older_slots))
    for pair, i, j in zip(*listed, strict=True):
        slots[pair].append((i, j))
    numbers: dict[Code, int] = {}
    of_pairs = [
        numbers.setdefault(grouped.get(pair) or pairs.code(pair, own), len(numbers))
        for pair, own in enumerate(slots)
    ]
    return list(numbers), np.array(of_pairs, np.int64)
