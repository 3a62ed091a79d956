"""The sets of one variable's values: their words as hashes, and an index of the rare ones.

Theory.  Let `o` be the words that two sets must share to be similar, and let all words stand in one
order.  The first word that both sets have, in that order, has at most `n - o` words of a set of `n`
before it: those are not shared, and `o` are.  So it is among the first `n - o + 1`, the **prefix**,
of either set, and an index of prefixes finds each similar set (Chaudhuri, Ganti, Kaushik, ICDE
2006; Bayardo, Ma, Srikant, WWW 2007).  Any order will do.  Where rare words come first, few others
are found: the order is by how many sets have a word, and by its hash among equals.

Frequencies are counted in slots by hash, so a word may seem more frequent than it is.  They are
those of the sets that were there when the index was last **written anew**: when as many have come
as were there then, or when what is asked changes.  Between two such times the order and the
lengths of prefixes are fixed.  Sets of instances that are gone are dropped from the front, and
their entries with the runs of the index.

There are two indexes.  `containment` asks nothing of how many words of its second set are shared:
such a set is indexed **whole**, and looked up in the prefixes of first sets.

How many words two prefixes share says more.  Of two prefixes one ends first in the order; up to
there every shared word is in both.  So what is not seen is behind the end of that prefix, in its
own set: at most as many words as the larger rest of the two has.

Words are hashes of 64 bits.  A set keeps a hash for each of its words, so that two words with one
hash are two.  Then sizes are exact, and what sets share is counted too high at worst: a collision
adds a pair, and loses none.

A set has 64 bits of which each word sets one.  Words that one set alone has set every bit in which
two sets differ; so they share at most half of what their sizes exceed the number of such bits by
(Sandes, Teodoro, Melo 2017).  That refuses nearly all that the index finds among titles, at the
price of one exclusive or.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from joins.memory.column import Column
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.remembered import Hashes
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags
from joins.memory.valueindex import ValueIndex
from joins.similarity.bounds import Asked

__all__ = ["Indexed", "SetTable", "Sets", "shared_words"]

FIRST_LOOK = 64
"""Sets after which the index is written anew for the first time."""

_COUNT_BITS = 16
_MOST = (1 << _COUNT_BITS) - 1
"""Sets with a word are counted up to this many."""

_SORTED_SETS, _SORTED_WORDS = 1 << 22, 1 << 26
"""Sets, and words, that are put in order at once: their numbers and a count fit in 64 bits."""


class Indexed(NamedTuple):
    """What sets are found by: prefixes for all that look for so much, and their whole."""

    asked: frozenset[Asked]

    @property
    def is_whole(self) -> bool:
        """Whether sets are found by any of their words."""
        return any(each.is_any for each in self.asked)

    def prefixes(self, sizes: Ints) -> Ints:
        """Return the lengths of prefixes of sets of some sizes."""
        lengths = [each.prefixes(sizes) for each in self.asked if not each.is_any]
        return np.max(lengths, axis=0) if lengths else np.zeros_like(sizes)


class Sets:
    """Sets in columns, numbered in the order of their owners: words as ascending hashes."""

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._owners = Column(np.int64, limits=limits)
        self._sizes = Column(np.int32, limits=limits)
        self._starts = Column(np.int64, limits=limits)
        self._bits = Column(np.uint64, limits=limits)
        self._words = Column(np.uint64, limits=limits)

    @property
    def start(self) -> int:
        """The number of the first set that is there."""
        return self._owners.start

    @property
    def end(self) -> int:
        """The number of the next set."""
        return self._owners.end

    @property
    def memory_bytes(self) -> int:
        """The memory that sets take."""
        columns = (self._owners, self._sizes, self._starts, self._bits, self._words)
        return sum(column.memory_bytes for column in columns)

    def owners(self, which: Ints) -> Ints:
        """Return the instances that have some sets."""
        found: Ints = self._owners.values[which - self._owners.origin]
        return found

    def first_of(self, owners: Ints) -> Ints:
        """Return the first set of each owner, or of the next one that has any."""
        column = self._owners
        found: Ints = np.searchsorted(column.values[column.start - column.origin :], owners)
        return found + column.start

    def sizes(self, which: Ints) -> Ints:
        """Return how many words some sets have."""
        return self._sizes.values[which - self._sizes.origin].astype(np.int64)

    def bits(self, which: Ints) -> Hashes:
        """Return the bits of some sets."""
        found: Hashes = self._bits.values[which - self._bits.origin]
        return found

    def places(self, which: Ints) -> Ints:
        """Return where the words of some sets begin in `words`."""
        found: Ints = self._starts.values[which - self._starts.origin] - self._words.origin
        return found

    @property
    def words(self) -> Hashes:
        """The words of sets, and of some that are gone."""
        return self._words.values

    def append(self, owners: Ints, sizes: Ints, words: Hashes) -> None:
        """Add sets that are not empty, their words ascending."""
        if not len(owners):
            return
        starts = np.cumsum(sizes) - sizes
        bits = np.bitwise_or.reduceat(np.uint64(1) << (words & np.uint64(63)), starts)
        self._starts.append(starts + self._words.end)
        self._owners.append(owners)
        self._sizes.append(sizes)
        self._bits.append(bits)
        self._words.append(words)

    def drop(self, before: int) -> None:
        """Drop the sets with numbers below `before`."""
        if before <= self.start:
            return
        is_last = before == self.end
        words = self._words.end if is_last else self._starts.values[before - self._starts.origin]
        self._words.drop(int(words))
        for column in (self._owners, self._sizes, self._starts, self._bits):
            column.drop(before)

    def take(self, which: Ints) -> tuple[Ints, Ints, Hashes]:
        """Return the owners, the sizes and the words of some sets."""
        sizes = self.sizes(which)
        return self.owners(which), sizes, self.words[ranges(self.places(which), sizes)]


class SetTable:
    """The sets that a function makes of a variable's values, and the indexes of their words."""

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._limits = limits
        self.sets = Sets(limits)
        self._prefixes = ValueIndex(limits)
        self._whole = ValueIndex(limits)
        self._counts = np.zeros(2, np.uint16)
        self._shift = np.uint64(63)
        self._written = self._written_at = 0
        self._indexed = Indexed(frozenset())

    @property
    def memory_bytes(self) -> int:
        """The memory that sets and their indexes take."""
        indexes = self._prefixes.memory_bytes + self._whole.memory_bytes
        return self.sets.memory_bytes + indexes + self._counts.nbytes

    def add(
        self, owners: Ints, sizes: Ints, words: Hashes, indexed: Indexed, first_owner: int
    ) -> None:
        """Add sets of instances, whose numbers ascend from those there; none is empty.

        Their words ascend.  Instances below `first_owner` are gone.
        """
        self.sets.drop(int(self.sets.first_of(np.array([first_owner]))[0]))
        first = self.sets.end
        self.sets.append(owners, sizes, words)
        is_due = self.sets.end - self._written_at >= max(FIRST_LOOK, self._written)
        new = np.arange(first, self.sets.end)
        self._index_whole(new, sizes, words, indexed)
        if is_due or indexed != self._indexed:
            self._indexed = indexed
            self._write_anew()
        else:
            self._index(new, sizes, words)

    def _write_anew(self) -> None:
        """Order words by how many sets have them."""
        which = np.arange(self.sets.start, self.sets.end)
        _, sizes, words = self.sets.take(which)
        bits = max(4, len(words).bit_length() - 1)
        self._shift = np.uint64(64 - bits)
        counts = np.bincount((words >> self._shift).astype(np.int64), minlength=1 << bits)
        self._counts = np.minimum(counts, _MOST).astype(np.uint16)
        self._prefixes = ValueIndex(self._limits)
        self._written, self._written_at = len(which), self.sets.end
        self._index(which, sizes, words)

    def _index(self, which: Ints, sizes: Ints, words: Hashes) -> None:
        rows, own = self._rare(words, sizes, self._indexed.prefixes(sizes))
        self._prefixes.add(words[rows], which[own], self.sets.start, self._are_there)

    def _index_whole(self, new: Ints, sizes: Ints, words: Hashes, indexed: Indexed) -> None:
        """Index new sets whole if that is asked for, and all sets where it was not."""
        if not indexed.is_whole:
            self._whole = ValueIndex(self._limits)
            return
        if not self._indexed.is_whole:
            new = np.arange(self.sets.start, self.sets.end)
            _, sizes, words = self.sets.take(new)
        self._whole.add(words, np.repeat(new, sizes), self.sets.start, self._are_there)

    def _are_there(self, which: Ints) -> Flags:
        return np.greater_equal(which, self.sets.start)

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
        keys = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes) << np.uint64(_COUNT_BITS)
        keys |= self._counts[words >> self._shift]
        keys <<= bits
        keys |= np.arange(len(words), dtype=np.uint64)
        keys.sort()
        kept = keys[ranges(np.cumsum(sizes) - sizes, lengths)]
        return (kept & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)

    def find(
        self, words: Hashes, sizes: Ints, asked: Asked, oldest: Ints, hits_max: int
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield (which of some sets, which set here) that have a word of both prefixes in common.

        `asked` is what the others ask of sets here.  A pair comes once for each such word, and the
        first numbers ascend in each part.  Of set `i` only those are found whose owners are
        `oldest[i]` or later.
        """
        rows, which = self._rare(words, sizes, asked.turned().prefixes(sizes))
        first = self.sets.first_of(oldest)[which]
        index = self._whole if asked.is_any else self._prefixes
        for hits in index.find(words[rows]):
            recent = hits.since(first[hits.indices])
            for positions, counts, found in recent.listed(hits_max):
                yield np.repeat(which[positions], counts), found

    def unseen(self, sizes: Ints, asked: Asked) -> Ints:
        """Return how many words of sets here are not found by: they may be shared unseen."""
        if asked.is_any:
            return np.zeros_like(sizes)
        return sizes - self._indexed.prefixes(sizes)


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
    needles = small.words[ranges(small.places(smalls), sizes)]
    words = large.words
    low = large.places(larges)[which]
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
