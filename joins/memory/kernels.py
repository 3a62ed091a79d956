"""Look-ups in a sorted run as compiled loops: what `sortedrun` and `valuelookup` do in arrays.

What is here is imported when it is first of use (`templates.compiling`).  A value is gone through
once, from its bit in the directory to the instances that have it, where each array operation would
go through all values, most of which are in no run.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from joins.memory.lookups import CODE_MIX, LATTER_HALF, CodeColumns
from joins.memory.remembered import EMPTY, Hashes
from joins.memory.slots import Ints
from joins.memory.sortedrun import RunColumns
from joins.memory.times import Flags
from templates.compiling import borrowed, compiled, inlined

__all__ = ["share_values", "values_under"]

Marks = npt.NDArray[np.uint32]
Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int32]

_FIRST_HITS = 1_024
"""There is room for so many hits at first, and then for twice as many, and so on."""

_HALF_BITS = np.uint64(32)
_ONE = np.uint64(1)
_BYTE_BITS, _IN_BYTE = np.uint64(3), np.uint64(7)

_lent = borrowed()


@inlined
def _passed(hashes: Hashes, found: Flags, starts: Marks, bits: Bytes, bit_shift: np.uint64) -> Ints:
    """Return which values are not found yet, and pass the bits of a run that has some.

    There is no branch to predict, and as in `_places` no step waits for the one before it: memory
    that is in no cache is read ahead.
    """
    passed, count = np.empty(len(hashes), np.int64), np.int64(0)
    for i in range(len(hashes)):
        value, is_open = hashes[i], _ONE
        if len(starts):
            place = value >> bit_shift
            is_open = np.uint64(bits[np.int64(place >> _BYTE_BITS)]) >> (place & _IN_BYTE) & _ONE
        passed[count] = i
        count += np.int64(is_open) & (not found[i]) & (value != EMPTY)
    return passed[:count]


@inlined
def _places(
    hashes: Hashes, which: Ints, keys: Hashes, starts: Marks, shift: np.uint64
) -> tuple[Ints, Ints]:
    """Return between which entries some values stand, if anywhere."""
    lows = np.zeros(len(which), np.int64)
    highs = np.full(len(which), len(keys))
    if len(starts):
        for j in range(len(which)):
            at = np.int64(hashes[which[j]] >> shift)
            lows[j], highs[j] = starts[at], starts[at + 1]
    return lows, highs


@inlined
def _entries(
    keys: Hashes, low: np.int64, high: np.int64, value: np.uint64
) -> tuple[np.int64, np.int64]:
    """Return where the entries of a value start and end, between two places."""
    begin, stop = value & ~LATTER_HALF, high
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < begin:
            low = middle + 1
        else:
            high = middle
    high = low
    while high < stop and keys[high] ^ value <= LATTER_HALF:
        high += 1
    return low, high


@inlined
def _row(
    shift: np.uint64,
    of_rows: Hashes,
    places: Places,
    crowded: Flags,
    more: Hashes,
    more_rows: Ints,
    code: np.uint64,
) -> np.int64:
    """Return the number of a look-up; -1 where there is none."""
    slot = np.int64((code * CODE_MIX) >> shift)
    row = np.int64(places[slot])
    if row < 0 or of_rows[row] == code:
        return row
    if crowded[slot]:
        at = np.searchsorted(more, code)
        if at < len(more) and more[at] == code:
            return np.int64(more_rows[at])
    return np.int64(-1)


@compiled
def share_values(
    hashes: Hashes, owners: Ints, found: Flags, run: RunColumns, own_entries: int
) -> None:
    """Note which values may have an entry of another instance than their owner.

    Of a value with more than `own_entries` entries no more are looked at.
    """
    keys, offsets, starts, bits = (
        _lent(run.keys),
        _lent(run.offsets),
        _lent(run.starts),
        _lent(run.bits),
    )
    first, shift, bit_shift = run.first, run.shift, run.bit_shift
    passed = _passed(hashes, found, starts, bits, bit_shift)
    lows, highs = _places(hashes, passed, keys, starts, shift)
    for j in range(len(passed)):
        i = passed[j]
        low, high = _entries(keys, lows[j], highs[j], hashes[i])
        found[i] = high - low > own_entries
        for entry in range(low, min(high, low + own_entries)):
            if first + offsets[entry] != owners[i]:
                found[i] = True
                break


@compiled
def values_under(
    hashes: Hashes,
    variables: Ints,
    asked: Ints,
    oldest: Ints,
    run: RunColumns,
    table: CodeColumns,
    few: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return look-ups that a run has: the value and the number of each, its entries, and instances.

    A value of `variables[i]` is looked up under `asked[i]` others.  Where it has more entries than
    that, and than `few`, it is not looked up, and returned last.  Entries of instances before
    `oldest[i]` are left out.
    """
    keys, offsets, starts, bits = (
        _lent(run.keys),
        _lent(run.offsets),
        _lent(run.starts),
        _lent(run.bits),
    )
    first, shift, bit_shift = run.first, run.shift, run.bit_shift
    of_rows, places, crowded = _lent(table.of_rows), _lent(table.places), _lent(table.crowded)
    more, more_rows, code_shift = _lent(table.more), _lent(table.more_rows), table.shift
    # Most values are in no run, and memory that nobody has touched costs more than a look-up.
    which = np.empty(_FIRST_HITS, np.int64)
    rows, counts = np.empty_like(which), np.empty_like(which)
    owners, many = np.empty_like(which), np.empty_like(which)
    hits, entries, others = 0, 0, 0
    passed = _passed(hashes, np.zeros(len(hashes), np.bool_), starts, bits, bit_shift)
    lows, highs = _places(hashes, passed, keys, starts, shift)
    low, high = np.int64(0), np.int64(0)
    for j in range(len(passed)):
        i = passed[j]
        value = hashes[i]
        # Variables that bind one node have its value, and stand together.
        if j == 0 or value != hashes[passed[j - 1]]:
            low, high = _entries(keys, lows[j], highs[j], value)
        if high - low > few and high - low > asked[i]:
            if others == len(many):
                many = np.concatenate((many, np.empty_like(many)))
            many[others] = i
            others += 1
            continue
        while entries + high - low > len(owners):
            owners = np.concatenate((owners, np.empty_like(owners)))
        while hits + high - low > len(which):
            which = np.concatenate((which, np.empty_like(which)))
            rows = np.concatenate((rows, np.empty_like(rows)))
            counts = np.concatenate((counts, np.empty_like(counts)))
        own, since = np.uint64(variables[i]) << _HALF_BITS, oldest[i] - first
        entry = low
        while entry < high:
            key, start, row = keys[entry], entries, np.int64(-2)
            # The entries of one key ascend by their instances.
            while entry < high and keys[entry] == key:
                if row != -1 and offsets[entry] >= since:
                    if row == -2:
                        row = _row(
                            code_shift,
                            of_rows,
                            places,
                            crowded,
                            more,
                            more_rows,
                            own | (key ^ value),
                        )
                    if row >= 0:
                        owners[entries] = first + offsets[entry]
                        entries += 1
                entry += 1
            if row >= 0:
                which[hits], rows[hits], counts[hits] = i, row, entries - start
                hits += 1
    return which[:hits], rows[:hits], counts[:hits], owners[:entries], many[:others]
