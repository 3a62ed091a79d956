"""The sets of one variable's values: their words as hashes, and an index of the rare ones.

Theory.  Let `o` be the words that two sets must share to be similar, and let all words stand in one
order.  The first word that both sets have, in that order, has at most `n - o` words of a set of `n`
before it: those are not shared, and `o` are.  So it is among the first `n - o + 1`, the **prefix**,
of either set, and an index of prefixes finds each similar set (Chaudhuri, Ganti, Kaushik, ICDE
2006; Bayardo, Ma, Srikant, WWW 2007).  Any order will do.  Where rare words come first, few others
are found: the order is by how many sets have a word, and by its hash among equals.

Frequencies are those of the sets that were there when the index was last **written anew**: after as
many sets have come as there were then, which also drops the sets of instances that are gone.
Between two such times the order is fixed, for indexed sets and for those that are looked up.

Words are hashes of 64 bits.  A set keeps a hash for each of its words, so that two words with one
hash are two.  Then sizes are exact, and what sets share is counted too high at worst: a collision
adds a pair, and loses none.

A set has 64 bits of which each word sets one.  Words that one set alone has set every bit in which
two sets differ; so they share at most half of what their sizes exceed the number of such bits by
(Sandes, Teodoro, Melo 2017).  That refuses nearly all that the index finds, at the price of one
exclusive or.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from joins.memory.column import Column
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.remembered import Hashes, HashValues
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags
from joins.memory.valueindex import ValueIndex

__all__ = ["LeastOverlap", "SetTable", "Sets", "shared_words"]

FIRST_LOOK = 1_024
"""Sets after which the index is written anew for the first time."""

LeastOverlap = Callable[[Ints], Ints]
"""Returns for sizes of sets how many words they share with each set that they are similar to."""

AreThere = Callable[[Ints], Flags]
"""Says of instances, by number, which have not been evicted."""


class Sets:
    """Sets in columns, in the order of their owners: words as hashes, ascending within a set."""

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._owners = Column(np.int64, limits=limits)
        self._sizes = Column(np.int32, limits=limits)
        self._starts = Column(np.int64, limits=limits)
        self._bits = Column(np.uint64, limits=limits)
        self._words = Column(np.uint64, limits=limits)

    def __len__(self) -> int:
        return self._owners.end

    @property
    def memory_bytes(self) -> int:
        """The memory that sets take."""
        columns = (self._owners, self._sizes, self._starts, self._bits, self._words)
        return sum(column.memory_bytes for column in columns)

    @property
    def owners(self) -> Ints:
        """The instance that has each set; they ascend."""
        return self._owners.values

    @property
    def words(self) -> Hashes:
        """The words of all sets."""
        return self._words.values

    def sizes(self, which: Ints | slice) -> Ints:
        """Return how many words some sets have."""
        return self._sizes.values[which].astype(np.int64)

    def starts(self, which: Ints | slice) -> Ints:
        """Return where the words of some sets begin."""
        found: Ints = self._starts.values[which]
        return found

    def bits(self, which: Ints) -> Hashes:
        """Return the bits of some sets."""
        found: Hashes = self._bits.values[which]
        return found

    def append(self, owners: Ints, sizes: Ints, words: Hashes) -> None:
        """Add sets that are not empty; their words may stand in any order."""
        which = np.repeat(np.arange(len(sizes)), sizes)
        words = words[np.lexsort((words, which))]
        starts = np.cumsum(sizes) - sizes
        bits = np.bitwise_or.reduceat(np.uint64(1) << (words & np.uint64(63)), starts)
        self._starts.append(starts + self._words.end)
        self._owners.append(owners)
        self._sizes.append(sizes)
        self._bits.append(bits)
        self._words.append(words)

    def take(self, which: Ints) -> tuple[Ints, Ints, Hashes]:
        """Return the owners, the sizes and the words of some sets."""
        sizes = self.sizes(which)
        return self.owners[which], sizes, self.words[ranges(self.starts(which), sizes)]


class SetTable:
    """The sets that a function makes of a variable's values, and the index of their prefixes."""

    def __init__(self, hashing: HashValues, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._hashing = hashing
        self._limits = limits
        self.sets = Sets(limits)
        self._index = ValueIndex(limits)
        self._common = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.int64)
        self._written = 0

    @property
    def memory_bytes(self) -> int:
        """The memory that sets and their index take."""
        frequencies = self._common.nbytes + self._counts.nbytes
        return self.sets.memory_bytes + self._index.memory_bytes + frequencies

    def add(
        self,
        owners: Sequence[int],
        sets: Sequence[frozenset[str]],
        least: LeastOverlap,
        are_there: AreThere,
    ) -> None:
        """Add sets of instances, whose numbers ascend from those there; none is empty."""
        if len(self.sets) - self._written >= max(FIRST_LOOK, self._written):
            self._write_anew(least, are_there)
        if not sets:
            return
        sizes = np.fromiter(map(len, sets), np.int64, len(sets))
        words, _ = self._hashing(pa.array(chain.from_iterable(sets), pa.string()))
        self._put(np.array(owners, np.int64), sizes, words, least)

    def _put(self, owners: Ints, sizes: Ints, words: Hashes, least: LeastOverlap) -> None:
        first = len(self.sets)
        self.sets.append(owners, sizes, words)
        rows, which = self._prefixes(words, sizes, least)
        self._index.add(words[rows], first + which, 0, _all_there)

    def _write_anew(self, least: LeastOverlap, are_there: AreThere) -> None:
        """Drop the sets of instances that are gone, and order words by how many sets have them."""
        kept = np.flatnonzero(are_there(self.sets.owners))
        owners, sizes, words = self.sets.take(kept)
        distinct, counts = np.unique(words, return_counts=True)
        is_common = counts > 1
        self._common, self._counts = distinct[is_common], counts[is_common]
        self.sets, self._index = Sets(self._limits), ValueIndex(self._limits)
        self._written = len(kept)
        if len(kept):
            self._put(owners, sizes, words, least)

    def _prefixes(self, words: Hashes, sizes: Ints, least: LeastOverlap) -> tuple[Ints, Ints]:
        """Return where the words of the prefixes of some sets are, and of which set each is."""
        which = np.repeat(np.arange(len(sizes)), sizes)
        order = np.lexsort((words, self._frequencies(words), which))
        places = np.arange(len(words)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = order[places < np.repeat(sizes - least(sizes) + 1, sizes)]
        return rows, which[rows]

    def _frequencies(self, words: Hashes) -> Ints:
        if not len(self._common):
            return np.zeros(len(words), np.int64)
        places = np.minimum(np.searchsorted(self._common, words), len(self._common) - 1)
        found: Ints = np.where(self._common[places] == words, self._counts[places], 0)
        return found

    def find(
        self, words: Hashes, sizes: Ints, least: LeastOverlap, oldest: Ints, hits_max: int
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield (which of some sets, which set here) that have a word of both prefixes in common.

        A pair comes once for each such word.  Of set `i` only those are found whose owners are
        `oldest[i]` or later.
        """
        rows, which = self._prefixes(words, sizes, least)
        first = np.searchsorted(self.sets.owners, oldest)[which]
        for hits in self._index.find(words[rows]):
            recent = hits.since(first[hits.indices])
            for positions, counts, found in recent.listed(hits_max):
                yield np.repeat(which[positions], counts), found


def shared_words(left: Sets, lefts: Ints, right: Sets, rights: Ints, listed: int) -> Ints:
    """Return how many words of each left set its right one has, or the other way round.

    The words of the smaller set are searched in the larger one, about `listed` words at once.
    """
    found = np.zeros(len(lefts), np.int64)
    is_smaller = left.sizes(lefts) <= right.sizes(rights)
    for rows, (small, smalls), (large, larges) in (
        (np.flatnonzero(is_smaller), (left, lefts), (right, rights)),
        (np.flatnonzero(~is_smaller), (right, rights), (left, lefts)),
    ):
        part = np.cumsum(small.sizes(smalls[rows])) // listed
        for some in np.split(rows, np.flatnonzero(np.diff(part)) + 1):
            found[some] = _contained(small, smalls[some], large, larges[some])
    return found


def _contained(small: Sets, smalls: Ints, large: Sets, larges: Ints) -> Ints:
    sizes = small.sizes(smalls)
    which = np.repeat(np.arange(len(smalls)), sizes)
    needles = small.words[ranges(small.starts(smalls), sizes)]
    words = large.words
    low = large.starts(larges)[which]
    end = low + large.sizes(larges)[which]
    high = end
    while (is_open := low < high).any():
        middle = (low + high) // 2
        is_before = is_open & (words[np.minimum(middle, len(words) - 1)] < needles)
        low = np.where(is_before, middle + 1, low)
        high = np.where(is_before, high, np.minimum(middle, high))
    is_found = low < end
    is_found[is_found] = words[low[is_found]] == needles[is_found]
    return np.bincount(which[is_found], minlength=len(smalls))


def _all_there(owners: Ints) -> Flags:
    return np.ones(len(owners), np.bool_)
