"""The ways over windows, as compiled loops.

What is here is imported when it is first of use (`templates.compiling`).

    ways_back   from some elements back: integers of any size, four ends at a time
    ways_since  to each element from what begins since each of some places: doubles

A number is a row of digits of so many bits, the lowest first, that words of 64 bits have room for
the sum of as many of them as there are elements: nothing is carried while they are added up.  Each
of four `lanes` has the ways to an end of its own.  An element that comes behind the end has none
there, nor has one that leads to no place below the end's; one before its window is not counted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from templates.compiling import compiled, inlined

__all__ = ["PIVOTS", "Digits", "ways_back", "ways_since"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Digits = npt.NDArray[np.uint64]

PIVOTS = 16
"""Since so many places ways are counted in one pass."""

_LANES = 4

_NOTHING = np.uint64(0)


@inlined
def _clear(digits: Digits, digit: int, size: int) -> None:
    for row in range(size):
        for lane in range(_LANES):
            digits[digit, row, lane] = _NOTHING


@inlined
def _spread(tree: Digits, digit: int, ways: Digits, row: int, first: int, top: int) -> None:
    """Add a digit of an element to the sums from a place on."""
    a0, a1 = ways[digit, row, 0], ways[digit, row, 1]
    a2, a3 = ways[digit, row, 2], ways[digit, row, 3]
    i = first
    while i <= top:
        tree[digit, i, 0] += a0
        tree[digit, i, 1] += a1
        tree[digit, i, 2] += a2
        tree[digit, i, 3] += a3
        i += i & -i


@inlined
def _add_up(tree: Digits, digit: int, last: int, ways: Digits, row: int) -> None:
    """Add the sum through a place to a digit of an element."""
    a0, a1 = ways[digit, row, 0], ways[digit, row, 1]
    a2, a3 = ways[digit, row, 2], ways[digit, row, 3]
    i = last
    while i > 0:
        a0 += tree[digit, i, 0]
        a1 += tree[digit, i, 1]
        a2 += tree[digit, i, 2]
        a3 += tree[digit, i, 3]
        i &= i - 1
    ways[digit, row, 0], ways[digit, row, 1] = a0, a1
    ways[digit, row, 2], ways[digit, row, 3] = a2, a3


@compiled
def ways_back(
    ends_us: Ints,
    places: Ints,
    bounds: Ints,
    leads: Flags,
    begins: Flags,
    asked_for: Ints,
    within_us: int,
    slots: int,
    skips: bool,
    digits: int,
    bits: int,
) -> tuple[Digits, Flags]:
    """Return the ways to some elements from all beginnings in their windows, in so many digits.

    Elements come by end; `asked_for` are rows of theirs, of which neighbours in place should be
    neighbours.  `places` are those of their numbers in order, among so many `slots`, -1 of what is
    none; behind one may stand what has a place from its bound on.  With `skips` it leads to an end
    only where that may stand behind it at once.  The flags say for which elements the digits are
    enough; others have no number.
    """
    found = np.zeros((len(asked_for), digits), np.uint64)
    enough = np.ones(len(asked_for), np.bool_)
    # Sums by place, from the highest down (Fenwick), of as many digits as are in use: while the
    # highest one of no element is above `much`, all of them together have no more.
    tree = np.zeros((digits, slots + 2, _LANES), np.uint64)
    ways = np.zeros((digits + 1, len(ends_us), _LANES), np.uint64)
    sizes = np.zeros(len(ends_us), np.int64)
    sums = np.zeros((digits, _LANES), np.uint64)
    active = np.zeros(_LANES, np.uint64)
    firsts, owns = np.zeros(_LANES, np.int64), np.zeros(_LANES, np.int64)
    shift, mask = np.uint64(bits), (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    much = np.uint64(1) << np.uint64(2 * bits - 64)
    for group in range(0, len(asked_for), _LANES):
        lanes = min(_LANES, len(asked_for) - group)
        low, next_own, next_first, top = len(ends_us), -1, 0, 0
        for lane in range(_LANES):
            for digit in range(digits):
                sums[digit, lane] = _NOTHING
            active[lane] = _NOTHING
        for lane in range(lanes):
            own = asked_for[group + lane]
            owns[lane] = own
            firsts[lane] = np.searchsorted(ends_us, ends_us[own] - within_us)
            active[lane] = ~_NOTHING
            low, next_first = min(low, firsts[lane]), max(next_first, firsts[lane])
            next_own, top = max(next_own, own), max(top, places[own] + 1)
            if places[own] < 0 and begins[own]:
                sums[0, lane] = np.uint64(1)
        if not skips:
            top = slots
        used = 1
        _clear(tree, 0, top + 1)
        high = next_own
        waiting = high + 1
        for at in range(high, low - 1, -1):
            if at < high and ends_us[at] < ends_us[at + 1]:
                # Elements that end later may stand behind what comes now.
                while waiting > at + 1:
                    waiting -= 1
                    size, first = sizes[waiting], top - places[waiting]
                    for digit in range(size):
                        _spread(tree, digit, ways, waiting, first, top)
            sizes[at] = 0
            last = top - bounds[at]
            is_leading = leads[at] and bounds[at] >= 0 and (last > 0 or not skips)
            if not is_leading and at != next_own:
                continue
            for lane in range(_LANES):
                ways[0, at, lane] = _NOTHING
            some = _NOTHING
            for digit in range(used):
                if is_leading:
                    _add_up(tree, digit, last, ways, at)
                for lane in range(_LANES):
                    own_digit = ways[digit, at, lane]
                    ways[digit + 1, at, lane] = own_digit >> shift
                    ways[digit, at, lane] = own_digit & mask
                    some |= own_digit
            if at == next_own:
                next_own = -1
                for lane in range(lanes):
                    if owns[lane] == at and places[at] >= 0:
                        ways[0, at, lane] = np.uint64(1)
                        some = np.uint64(1)
                    elif owns[lane] < at:
                        next_own = max(next_own, owns[lane])
            if some == _NOTHING:
                continue
            if places[at] >= 0:
                sizes[at] = used
            if at < next_first:
                next_first = -1
                for lane in range(lanes):
                    if at < firsts[lane]:
                        active[lane] = _NOTHING
                    else:
                        next_first = max(next_first, firsts[lane])
            if begins[at]:
                for digit in range(used):
                    for lane in range(_LANES):
                        sums[digit, lane] += ways[digit, at, lane] & active[lane]
            largest = _NOTHING
            for lane in range(_LANES):
                largest |= ways[used - 1, at, lane]
            if largest >= much:
                if used < digits:
                    _clear(tree, used, top + 1)
                    used += 1
                else:
                    for lane in range(lanes):
                        if active[lane] and ways[used - 1, at, lane] >= much:
                            enough[group + lane] = False
        for lane in range(lanes):
            carry = _NOTHING
            for digit in range(digits):
                carry += sums[digit, lane]
                found[group + lane, digit] = carry & mask
                carry >>= shift
    return found, enough


@compiled
def ways_since(
    ends_us: Ints,
    places: Ints,
    bounds: Ints,
    leads: Flags,
    begins: Flags,
    pivots: Ints,
    slots: int,
    count: int,
) -> Floats:
    """Return the ways to the last so many elements, of runs that begin with one since each pivot.

    All but the `PIVOTS` pivots, rows that ascend, is as `ways_back` takes it.  What is too large is
    infinite.
    """
    size = len(ends_us)
    ways = np.zeros((size, PIVOTS), np.float64)
    # Sums by bound, from the lowest up (Fenwick): of what an element may stand behind.
    tree = np.zeros((slots + 2, PIVOTS), np.float64)
    waiting = pivots[0]
    for at in range(pivots[0], size):
        if at > pivots[0] and ends_us[at] > ends_us[at - 1]:
            # What comes now may stand behind elements that end earlier.
            while waiting < at:
                if leads[waiting] and bounds[waiting] >= 0:
                    i = bounds[waiting] + 1
                    while i < slots + 2:
                        for lane in range(PIVOTS):
                            tree[i, lane] += ways[waiting, lane]
                        i += i & -i
                waiting += 1
        i = places[at] + 1
        while i > 0:
            for lane in range(PIVOTS):
                ways[at, lane] += tree[i, lane]
            i &= i - 1
        if begins[at]:
            for lane in range(PIVOTS):
                if pivots[lane] <= at:
                    ways[at, lane] += 1.0
    return ways[size - count :]
