"""The search for similar sets by array operations: what a broker does without the extra `fast`.

look up    the prefixes of sets are looked up in the index of the sets that are there
bits       most of what is found is refused by sizes, and by 64 bits of each set
tally      of the rest some are refused by how many words both prefixes share
count      of what is left the shared words are counted
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from joins.memory.hits import EntryHits
from joins.memory.limits import MemoryLimits
from joins.memory.remembered import Hashes
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags
from joins.memory.valueindex import ValueIndex
from joins.similarity.bounds import AskedMeasure, may_hold
from joins.similarity.sets import Sets, most_shared, shared_words
from joins.similarity.settable import COUNT_BITS, SetTable

__all__ = ["ArrayTable", "tallied"]

_SORTED_SETS, _SORTED_WORDS = 1 << 22, 1 << 26
"""Sets, and words, that are put in order at once: their numbers and a count fit in 64 bits."""


class SortedRuns:
    """An index of words as sorted runs of entries."""

    def __init__(self, limits: MemoryLimits) -> None:
        self._index = ValueIndex(limits)
        self._first_set = 0

    @property
    def memory_bytes(self) -> int:
        """The memory that entries take."""
        return self._index.memory_bytes

    def add(self, keys: Hashes, sets: Ints) -> None:
        """Add entries of sets, whose numbers ascend from those there."""
        first = self._first_set
        self._index.add(keys, sets, first, lambda which: np.greater_equal(which, first))

    def drop(self, before: int) -> None:
        """Drop the entries of sets with numbers below `before`, or most of them."""
        self._first_set = before
        self._index.drop(before)

    def find(self, keys: Hashes) -> list[EntryHits]:
        """Return where words are; entries of sets that are gone may be among them."""
        return self._index.find(keys)


class ArrayTable(SetTable[SortedRuns]):
    """Sets whose words are in sorted runs."""

    def _empty(self) -> SortedRuns:
        return SortedRuns(self._limits)

    def similar(
        self, own: Sets, mine: Ints, look: AskedMeasure, oldest: Ints, listed: int
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield pairs of sets that may be similar; see `SetTable.similar`."""
        newer, sizes, words = own.take(mine)
        unseen = sizes - look.prefixes(sizes)

        def may_be(which: Ints, found: Ints, shared: Ints) -> Flags:
            sides = (sizes[which], self.sets.sizes(found))
            first, second = sides if look.is_first else sides[::-1]
            return may_hold(look.measure, look.threshold, shared, first, second)

        def alike(parts: Iterable[tuple[Ints, Ints]]) -> Iterator[tuple[Ints, Ints]]:
            for which, found in parts:
                sides = (sizes[which], self.sets.sizes(found))
                most = most_shared(*sides, own.bits(mine[which]), self.sets.bits(found))
                passed = may_be(which, found, most)
                passed &= self.sets.owners(found) < newer[which]
                rows = np.flatnonzero(passed)
                yield which[rows], found[rows]

        hits = self.find(words, sizes, look.turned(), oldest, listed)
        for which, found, seen in tallied(alike(hits), self.sets.end):
            there = self.unseen(self.sets.sizes(found), look.turned())
            rows = np.flatnonzero(may_be(which, found, seen + np.maximum(unseen[which], there)))
            which, found = which[rows], found[rows]
            shared = shared_words(own, mine[which], self.sets, found, listed)
            held = may_be(which, found, shared)
            yield which[held], found[held]

    def find(
        self, words: Hashes, sizes: Ints, asked: AskedMeasure, oldest: Ints, hits_max: int
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield (which of some sets, which set here) that have a word of both prefixes in common.

        `asked` is what the others ask of sets here.  A pair comes once for each such word, and the
        first numbers ascend in each part.  Of set `i` only those are found whose owners are
        `oldest[i]` or later.
        """
        rows, which = self._rare(words, sizes, asked.turned().prefixes(sizes))
        first = self.sets.first_of(oldest)[which]
        for hits in self._searched(asked).find(words[rows]):
            recent = hits.since(first[hits.indices])
            for positions, counts, found in recent.listed(hits_max):
                yield np.repeat(which[positions], counts), found

    def _rare(self, words: Hashes, sizes: Ints, lengths: Ints) -> tuple[Ints, Ints]:
        """Return where the first words of some sets are, so many of each, and of which set."""
        starts = np.cumsum(sizes) - sizes
        part = starts // _SORTED_WORDS + np.arange(len(sizes)) // _SORTED_SETS
        cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(sizes)]
        rows = [np.zeros(0, np.int64)]
        for first, last in pairwise(cuts):
            if last > first:
                start, stop = int(starts[first]), int(starts[last - 1] + sizes[last - 1])
                some = self._first(words[start:stop], sizes[first:last], lengths[first:last])
                rows.append(some + start)
        return np.concatenate(rows), np.repeat(np.arange(len(sizes)), lengths)

    def _first(self, words: Hashes, sizes: Ints, lengths: Ints) -> Ints:
        """Return where the first words of sets are in the order of words, set by set."""
        if (lengths >= sizes).all():
            return np.arange(len(words))
        bits = np.uint64(len(words).bit_length())
        keys = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes) << np.uint64(COUNT_BITS)
        keys |= self._counts[words >> self._shift]
        keys <<= bits
        keys |= np.arange(len(words), dtype=np.uint64)
        keys.sort()
        kept = keys[ranges(np.cumsum(sizes) - sizes, lengths)]
        return (kept & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)


def tallied(parts: Iterable[tuple[Ints, Ints]], numbers: int) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield each pair once, with how often it comes; the second of a pair is below `numbers`.

    In a part the first ones ascend, so of a pair that comes in two parts they are the last of one.
    """
    kept, kept_counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for which, found in parts:
        if not len(which):
            continue
        codes = np.concatenate([kept, which * numbers + found])
        counts = np.concatenate([kept_counts, np.ones_like(which)])
        codes, inverse = np.unique(codes, return_inverse=True)
        counts = np.bincount(inverse, counts, len(codes)).astype(np.int64)
        last = int(np.searchsorted(codes, which[-1] * numbers))
        kept, kept_counts = codes[last:], counts[last:]
        yield *np.divmod(codes[:last], numbers), counts[:last]
    yield *np.divmod(kept, numbers), kept_counts
