"""The kernel of `wordcolumns`: sets of words of folded texts, in one pass over their characters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from templates.compiling import compiled

__all__ = ["sets_of_parts", "shell_sort"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint32]
Hashes = npt.NDArray[np.uint64]

_FEW = 32
"""Up to so many hashes are sorted by insertion."""


@compiled
def _sorted(hashes: Hashes) -> Ints:
    """Sort hashes where they stand, and return where each of them stood.

    Hashes are spread evenly, so by their first bits alone nearly all come to stand right.
    """
    count = len(hashes)
    which = np.arange(count)
    widest = count
    if count > _FEW:
        bits = 1
        while 1 << bits < count:
            bits += 1
        shift = np.uint64(64 - bits)
        ends = np.zeros((1 << bits) + 1, np.int64)
        for value in hashes:
            ends[np.int64(value >> shift) + 1] += 1
        widest = ends.max()
        for i in range(1 << bits):
            ends[i + 1] += ends[i]
        before = hashes.copy()
        for i in range(count):
            bucket = np.int64(before[i] >> shift)
            hashes[ends[bucket]] = before[i]
            which[ends[bucket]] = i
            ends[bucket] += 1
    shell_sort(hashes, which, widest)
    return which


@compiled
def shell_sort(values: Hashes, others: Ints, widest: int) -> None:
    """Sort values of which each stands less than `widest` from its place, and others with them."""
    gap = 1
    while 3 * gap + 1 < widest // 3:
        gap = 3 * gap + 1
    while gap:
        for i in range(gap, len(values)):
            value, other = values[i], others[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                others[j] = others[j - gap]
                j -= gap
            values[j], others[j] = value, other
        gap //= 3


@compiled
def _are_equal(
    codes: Codes, places: Ints, lengths: Ints, one: int, other: int, length: int
) -> bool:
    """Return whether the runs of `length` words from two words on are the same."""
    for i in range(length):
        if lengths[one + i] != lengths[other + i]:
            return False
        a, b = places[one + i], places[other + i]
        for j in range(lengths[one + i]):
            if codes[a + j] != codes[b + j]:
                return False
    return True


@compiled
def sets_of_parts(
    codes: Codes, ends: Ints, order: Ints, length: int, powers: Hashes, mixers: Hashes
) -> tuple[Ints, Hashes, Flags]:
    """Return the sizes and hashes of the sets of parts, and in which parts two runs share a hash.

    The characters of part `i` end before `ends[i]`, and 0 stands between words.  A set is of runs
    of `length` words.  `sizes[k]` is that of the part `order[k]`; a part whose flag is set has runs
    that differ and have one hash, of which one is left out.  `powers` are those of the base.
    """
    sizes = np.zeros(len(order), np.int64)
    apart = np.zeros(len(order), np.bool_)
    hashes = np.empty(len(codes) // 2 + len(order) + 1, np.uint64)
    longest = 0
    for i in range(len(ends)):
        longest = max(longest, ends[i] - (ends[i - 1] if i else 0))
    values = np.empty(longest, np.uint64)
    places = np.empty(longest + 1, np.int64)
    lengths = np.empty(longest, np.int64)
    done = 0
    for k in range(len(order)):
        part = order[k]
        first = ends[part - 1] if part else 0
        words = 0
        at = first
        while at < ends[part]:
            if codes[at] == 0:
                at += 1
                continue
            value = np.uint64(0)
            places[words] = at
            while at < ends[part] and codes[at] != 0:
                value += np.uint64(codes[at]) * powers[at - places[words]]
                at += 1
            values[words] = value
            lengths[words] = at - places[words]
            words += 1
        if not words:
            continue
        runs = max(1, words - length + 1)
        of_run = min(words, length)
        own = hashes[done : done + runs]
        for i in range(runs):
            value = values[i + of_run - 1]
            for j in range(i + of_run - 2, i - 1, -1):
                value = values[j] + powers[lengths[j]] * (np.uint64(32) + powers[1] * value)
            value = (value ^ (value >> np.uint64(30))) * mixers[0]
            value = (value ^ (value >> np.uint64(27))) * mixers[1]
            own[i] = value ^ (value >> np.uint64(31))
        which = _sorted(own)
        size = 1
        for i in range(1, runs):
            if own[i] != own[i - 1]:
                own[size] = own[i]
                size += 1
            elif not _are_equal(codes, places, lengths, which[i - 1], which[i], of_run):
                apart[k] = True
        sizes[k] = size
        done += size
    return sizes, hashes[:done], apart
