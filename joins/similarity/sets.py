"""Sets in columns: their words as hashes, their sizes, and 64 bits of each.

Words are hashes of 64 bits.  A set keeps a hash for each of its words, so that two words with one
hash are two.  Then sizes are exact, and what sets share is counted too high at worst: a collision
adds a pair, and loses none.

A set has 64 bits of which each word sets one.  Words that one set alone has set every bit in which
two sets differ; so they share at most half of what their sizes exceed the number of such bits by
(Sandes, Teodoro, Melo 2017).  That refuses nearly all that the index finds among titles, at the
price of one exclusive or.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from joins.memory.column import Column
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.remembered import Hashes
from joins.memory.slots import Ints, ranges

__all__ = ["SetColumns", "Sets", "most_shared", "shared_words"]


class SetColumns(NamedTuple):
    """Sets that are there, from number `origin` on.

    The words of set `i` begin at `starts[i]`; `words` begins with the word `word_origin`.
    """

    origin: int
    owners: Ints
    sizes: npt.NDArray[np.int32]
    starts: Ints
    bits: Hashes
    word_origin: int
    words: Hashes


class Sets:
    """Sets in columns, numbered in the order of their owners: words as ascending hashes.

    No set has had more than `largest` words.
    """

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._owners = Column(np.int64, limits=limits)
        self._sizes = Column(np.int32, limits=limits)
        self._starts = Column(np.int64, limits=limits)
        self._bits = Column(np.uint64, limits=limits)
        self._words = Column(np.uint64, limits=limits)
        self.largest = 0

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def start(self) -> int:
        """The number of the first set that is there."""
        return self._owners.start

    @property
    def end(self) -> int:
        """The number of the next set."""
        return self._owners.end

    @property
    def word_count(self) -> int:
        """How many words the sets that are there have."""
        return self._words.end - self._words.start

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

    def columns(self) -> SetColumns:
        """Return the sets that are there, as they lie in memory."""
        columns = (self._owners, self._sizes, self._starts, self._bits, self._words)
        owners, sizes, starts, bits, words = (
            column.values[column.start - column.origin :] for column in columns
        )
        return SetColumns(self.start, owners, sizes, starts, bits, self._words.start, words)

    def append(self, owners: Ints, sizes: Ints, words: Hashes) -> None:
        """Add sets that are not empty, their words ascending."""
        if not len(owners):
            return
        self.largest = max(self.largest, int(sizes.max()))
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


def most_shared(left: Ints, right: Ints, left_bits: Hashes, right_bits: Hashes) -> Ints:
    """Return how many words sets of some sizes share at most, by their bits."""
    apart = np.bitwise_count(left_bits ^ right_bits).astype(np.int64)
    most: Ints = np.minimum(np.minimum(left, right), (left + right - apart) >> 1)
    return most


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
        if not len(rows):
            continue
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
