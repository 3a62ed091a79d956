"""Loops of the search for similar sets, compiled: `compiledtable` puts them together.

What they ask of two sets is what `bounds` asks: `_least` is `may_hold`, solved for what is shared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from joins.memory.remembered import Hashes
from joins.memory.slots import Ints
from joins.similarity.bounds import MARGIN, MOST
from joins.similarity.sets import SetColumns
from templates.compiling import compiled
from templates.wordkernels import shell_sort

__all__ = [
    "MEASURES",
    "AskedNumbers",
    "ChainColumns",
    "LookingSets",
    "Marks",
    "link",
    "rare_words",
    "similar_sets",
]

Marks = npt.NDArray[np.uint32]

MEASURES = {"jaccard": 0, "containment": 1, "overlap": 2}


class ChainColumns(NamedTuple):
    """An index of chains (`chains`): an entry is a mark, a set, and how far back the next one is.

    The first of its entries has the number `lowest`.
    """

    heads: Marks
    entries: Marks
    lowest: int
    set_base: int


class LookingSets(NamedTuple):
    """Sets that look for others, by number: from `oldest` on, and before `before`.

    `needles` are the words of their prefixes, those of each before one of `ends`.  Behind its
    prefix each has `rests` more.
    """

    sets: Ints
    oldest: Ints
    before: Ints
    needles: Hashes
    ends: Ints
    rests: Ints


class AskedNumbers(NamedTuple):
    """What is asked of a set that looks, by number of the measure (`MEASURES`).

    Of a set of `n` words that is there, `unseen[n]` are not found.  `share` is 1 / (1 + threshold):
    with a Jaccard index of the threshold, sets share that part of the threshold times both sizes.
    """

    measure: int
    threshold: float
    share: float
    is_first: bool
    unseen: Ints


_MUCH_LARGER = 16
"""Of a set that is so many times larger words are looked up one by one."""


@compiled
def rare_words(
    words: Hashes, sizes: Ints, lengths: Ints, counts: npt.NDArray[np.uint16], shift: np.uint64
) -> Ints:
    """Return where the first words of sets are, by how many sets have them, and by their hash."""
    rows = np.empty(lengths.sum(), np.int64)
    longest = sizes.max() if len(sizes) else 0
    keys = np.empty(longest, np.uint64)
    places = np.empty(longest, np.int64)
    start = done = 0
    for i in range(len(sizes)):
        size, length = sizes[i], lengths[i]
        if length == size:
            for j in range(size):
                rows[done + j] = start + j
        elif length:
            for j in range(size):
                count = np.uint64(counts[np.int64(words[start + j] >> shift)])
                keys[j] = (count << np.uint64(40)) | np.uint64(j)
                places[j] = start + j
            shell_sort(keys[:size], places[:size], size)
            rows[done : done + length] = places[:length]
        start += size
        done += length
    return rows


@compiled
def link(index: ChainColumns, first: int) -> None:
    """Put the entries from `first` on in front of the chains of their marks.

    A head has the number behind that of an entry, so that 0 is none.
    """
    for i in range(first, len(index.entries) // 3):
        head = _head(index, index.entries[3 * i])
        before = np.int64(index.heads[head])
        number = index.lowest + i + 1
        index.entries[3 * i + 2] = number - before if before else 0
        index.heads[head] = number


@compiled
def _head(index: ChainColumns, mark: np.uint32) -> int:
    """Return the head of a mark: marks are spread evenly over all heads."""
    return int((np.uint64(mark) * np.uint64(len(index.heads))) >> np.uint64(32))


@compiled
def similar_sets(
    begin: int,
    look: LookingSets,
    own: SetColumns,
    there: SetColumns,
    index: ChainColumns,
    asked: AskedNumbers,
    seen: npt.NDArray[np.int32],
    touched: Ints,
    which: Ints,
    found: Ints,
) -> tuple[int, int]:
    """Write the pairs of the sets from number `begin` on that may be similar, while there is room.

    Returns the set to go on with, and how many pairs were written.  `seen` holds zeros, one for
    each set that is there, before and afterwards; `touched` has room for as many.
    """
    done = 0
    chains = np.empty(_longest(look.ends), np.int64)
    for i in range(begin, len(look.sets)):
        needles = look.needles[look.ends[i - 1] if i else 0 : look.ends[i]]
        count = _tally(needles, look.oldest[i], look.before[i], index, there, chains, seen, touched)
        is_room = done + count <= len(which)
        mine = look.sets[i] - own.origin
        size = int(own.sizes[mine])
        words = own.words[own.starts[mine] - own.word_origin :][:size]
        for k in range(count):
            j = touched[k]
            tally, seen[j] = seen[j], 0
            other = int(there.sizes[j])
            least = _least(asked, size, other)
            seen_most = tally + max(look.rests[i], asked.unseen[other])
            most = min(size, other, seen_most)
            if most < least or not is_room:
                continue
            if (size + other - _ones(own.bits[mine] ^ there.bits[j])) >> 1 < least:
                continue
            words_there = there.words[there.starts[j] - there.word_origin :][:other]
            if _share(words, words_there, least):
                which[done] = i
                found[done] = j + there.origin
                done += 1
        if not is_room:
            return i, done
    return len(look.sets), done


@compiled
def _longest(ends: Ints) -> int:
    longest = 0
    for i in range(len(ends)):
        longest = max(longest, ends[i] - (ends[i - 1] if i else 0))
    return longest


@compiled
def _tally(
    needles: Hashes,
    oldest: int,
    before: int,
    index: ChainColumns,
    there: SetColumns,
    chains: Ints,
    seen: npt.NDArray[np.int32],
    touched: Ints,
) -> int:
    """Count in `seen` how many words lead to each set from one on and before another.

    Returns how many sets were `touched`.  All chains are followed at once, one step of each in
    turn: so their entries are fetched from memory side by side.
    """
    open_chains = 0
    marks = np.empty(len(needles), np.uint32)
    for needle in needles:
        mark = np.uint32(needle >> np.uint64(32))
        entry = np.int64(index.heads[_head(index, mark)]) - 1 - index.lowest
        if entry >= 0:
            chains[open_chains], marks[open_chains] = entry, mark
            open_chains += 1
    count = 0
    while open_chains:
        k = 0
        while k < open_chains:
            entry = 3 * chains[k]
            back = np.int64(index.entries[entry + 2])
            other = np.int64(index.entries[entry + 1]) + index.set_base
            if oldest <= other < before and index.entries[entry] == marks[k]:
                j = other - there.origin
                if not seen[j]:
                    touched[count] = j
                    count += 1
                seen[j] += 1
            if other >= oldest and 0 < back <= chains[k]:
                chains[k] -= back
                k += 1
            else:
                open_chains -= 1
                chains[k], marks[k] = chains[open_chains], marks[open_chains]
    return count


@compiled
def _least(asked: AskedNumbers, own: int, other: int) -> int:
    """Return how many words two sets share at least if they pass."""
    if asked.measure == 2:
        least = asked.threshold - MARGIN
    elif asked.measure == 1:
        least = asked.threshold * (own if asked.is_first else other) - MARGIN
    else:
        least = (asked.threshold * (own + other) - MARGIN) * asked.share
    return max(1, int(np.ceil(min(least, MOST))))


@compiled
def _ones(bits: np.uint64) -> int:
    """Return how many bits are set."""
    bits -= (bits >> np.uint64(1)) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + (
        (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def _share(one: Hashes, other: Hashes, least: int) -> bool:
    """Return whether two sets share so many words; it ends as soon as that is known."""
    if len(one) > len(other):
        one, other = other, one
    if len(other) > _MUCH_LARGER * len(one):
        return _share_with_much_larger(one, other, least)
    i = j = shared = 0
    while shared < least:
        if shared + min(len(one) - i, len(other) - j) < least:
            return False
        if one[i] < other[j]:
            i += 1
        elif one[i] > other[j]:
            j += 1
        else:
            shared += 1
            i += 1
            j += 1
    return True


@compiled
def _share_with_much_larger(one: Hashes, other: Hashes, least: int) -> bool:
    shared = low = 0
    for i in range(len(one)):
        if shared + min(len(one) - i, len(other) - low) < least:
            return False
        high = len(other)
        while low < high:
            middle = (low + high) // 2
            if other[middle] < one[i]:
                low = middle + 1
            else:
                high = middle
        if low < len(other) and other[low] == one[i]:
            shared += 1
            low += 1
    return shared >= least
