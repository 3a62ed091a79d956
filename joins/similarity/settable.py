"""The sets of one variable's values, and an index of their rare words.

Theory.  Let `o` be the words that two sets must share to be similar, and let all words stand in one
order.  The first word that both sets have, in that order, has at most `n - o` words of a set of `n`
before it: those are not shared, and `o` are.  So it is among the first `n - o + 1`, the **prefix**,
of either set, and an index of prefixes finds each similar set (Chaudhuri, Ganti, Kaushik, ICDE
2006; Bayardo, Ma, Srikant, WWW 2007).  Any order will do.  Where rare words come first, few others
are found: the order is by how many sets have a word, and by its hash among equals.

Frequencies are counted in slots by hash, so a word may seem more frequent than it is.  They are
those of the sets that were there when the index was last **written anew**: when as many have come
as were there then, when fewer than half of these are left, or when what is asked changes.  Between
two such times the order and the lengths of prefixes are fixed.

Sets go when their instances go, with their entries in the index: at once where they stand in front,
and where they stand between others as soon as they are a quarter of all.

There are two indexes.  `containment` asks nothing of how many words of its second set are shared:
such a set is indexed **whole**, and looked up in the prefixes of first sets.

How many words two prefixes share says more.  Of two prefixes one ends first in the order; up to
there every shared word is in both.  So what is not seen is behind the end of that prefix, in its
own set: at most as many words as the larger rest of the two has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.remembered import Hashes
from joins.memory.slots import Ints
from joins.memory.sortedrun import AreThere
from joins.similarity.bounds import AskedMeasure
from joins.similarity.sets import Sets

__all__ = ["Indexed", "SetTable"]

FIRST_LOOK = 64
"""Sets after which the index is written anew for the first time."""

COUNT_BITS = 16
_MOST = (1 << COUNT_BITS) - 1
"""Sets with a word are counted up to this many."""

PART_WORDS = 1 << 20
"""Words of sets that are copied, or put into an index, at once, about: so what that takes does not
grow with the table."""

_GONE_PARTS = 4
"""Sets that are gone stay between others while they are less than one of so many parts."""


class Indexed(NamedTuple):
    """What sets are found by: prefixes for all that look for so much, and their whole."""

    asked: frozenset[AskedMeasure]

    @property
    def is_whole(self) -> bool:
        """Whether sets are found by any of their words."""
        return any(each.is_any for each in self.asked)

    def prefixes(self, sizes: Ints) -> Ints:
        """Return the lengths of prefixes of sets of some sizes."""
        lengths = [each.prefixes(sizes) for each in self.asked if not each.is_any]
        return np.max(lengths, axis=0) if lengths else np.zeros_like(sizes)


class SetIndex(Protocol):
    """An index of words: which sets, by number, are found by a word."""

    @property
    def memory_bytes(self) -> int:
        """The memory that entries take."""

    def add(self, keys: Hashes, sets: Ints) -> None:
        """Add entries of sets, whose numbers ascend from those there."""

    def drop(self, before: int) -> None:
        """Drop the entries of sets with numbers below `before`, or most of them."""


Index = TypeVar("Index", bound=SetIndex)


class SetTable(ABC, Generic[Index]):
    """The sets that a function makes of a variable's values, and the indexes of their words."""

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._limits = limits
        self.sets = Sets(limits)
        self._prefixes = self._empty()
        self._whole = self._empty()
        self._counts = np.zeros(2, np.uint16)
        self._shift = np.uint64(63)
        self._written = self._written_at = 0
        self._indexed = Indexed(frozenset())

    @abstractmethod
    def _empty(self) -> Index:
        """Return an index without entries."""

    @abstractmethod
    def similar(
        self, own: Sets, mine: Ints, look: AskedMeasure, oldest: Ints, listed: int
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield (which of some sets, which set here) that may be similar, each pair once.

        The sets `mine` are among `own`; `look` is what is asked of them.  Of set `mine[i]` only
        those are found whose owners come before its own, and are `oldest[i]` or later.  About
        `listed` are yielded at once.
        """

    @abstractmethod
    def _rare(self, words: Hashes, sizes: Ints, lengths: Ints) -> tuple[Ints, Ints]:
        """Return where the first words of some sets are, so many of each, and of which set."""

    @property
    def memory_bytes(self) -> int:
        """The memory that sets and their indexes take."""
        indexes = self._prefixes.memory_bytes + self._whole.memory_bytes
        return self.sets.memory_bytes + indexes + self._counts.nbytes

    def add(self, owners: Ints, sizes: Ints, words: Hashes, indexed: Indexed) -> None:
        """Add sets of instances, whose numbers ascend from those there; none is empty.

        Their words ascend.
        """
        new = np.arange(self.sets.end, self.sets.end + len(owners))
        self.sets.append(owners, sizes, words)
        is_due = self.sets.end - self._written_at >= max(FIRST_LOOK, self._written)
        before, self._indexed = self._indexed, indexed
        if indexed.is_whole and before.is_whole:
            self._whole.add(words, np.repeat(new, sizes))
        elif indexed.is_whole or before.is_whole:
            self._write_whole()
        if is_due or indexed != before:
            self._write_anew()
        else:
            self._index(new, sizes, words)

    def drop(self, first_owner: int) -> None:
        """Drop the sets of instances below one."""
        self.sets.drop(int(self.sets.first_of(np.array([first_owner]))[0]))
        self._prefixes.drop(self.sets.start)
        self._whole.drop(self.sets.start)
        if 2 * len(self.sets) < self._written:
            self._write_anew()

    def sweep(self, are_there: AreThere) -> None:
        """Drop the sets of instances that are gone, if they are many."""
        there = [which[are_there(self.sets.owners(which))] for which in self._parts()]
        left = sum(map(len, there))
        if left == len(self.sets) or _GONE_PARTS * (len(self.sets) - left) < len(self.sets):
            return
        kept = Sets(self._limits)
        for which in there:
            kept.append(*self.sets.take(which))
            self.sets.drop(int(which[-1]) + 1 if len(which) else self.sets.start)
        self.sets = kept
        self._write_whole()
        self._write_anew()

    def take_on(self, other: SetTable[Any]) -> None:
        """Take the sets of a table that is used no more, and index them here, where none are."""
        self.sets, self._indexed = other.sets, other._indexed
        self._write_whole()
        self._write_anew()

    def _write_anew(self) -> None:
        """Order words by how many sets have them."""
        bits = max(4, self.sets.word_count.bit_length() - 2)
        self._shift = np.uint64(64 - bits)
        counts = np.zeros(1 << bits, np.int64)
        for which in self._parts():
            slots = (self.sets.take(which)[2] >> self._shift).astype(np.int64)
            counts += np.bincount(slots, minlength=1 << bits)
        self._counts = np.minimum(counts, _MOST).astype(np.uint16)
        self._prefixes = self._empty()
        self._written, self._written_at = len(self.sets), self.sets.end
        for which in self._parts():
            self._index(which, *self.sets.take(which)[1:])

    def _write_whole(self) -> None:
        self._whole = self._empty()
        if self._indexed.is_whole:
            for which in self._parts():
                _, sizes, words = self.sets.take(which)
                self._whole.add(words, np.repeat(which, sizes))

    def _index(self, which: Ints, sizes: Ints, words: Hashes) -> None:
        rows, own = self._rare(words, sizes, self._indexed.prefixes(sizes))
        self._prefixes.add(words[rows], which[own])

    def _parts(self) -> Iterator[Ints]:
        """Yield the numbers of all sets, in parts."""
        numbers = np.arange(self.sets.start, self.sets.end)
        part = self.sets.places(numbers) // PART_WORDS
        for which in np.split(numbers, np.flatnonzero(np.diff(part)) + 1):
            if len(which):
                yield which

    def _searched(self, asked: AskedMeasure) -> Index:
        """Return the index by which sets are found that have something asked of them."""
        return self._whole if asked.is_any else self._prefixes

    def unseen(self, sizes: Ints, asked: AskedMeasure) -> Ints:
        """Return how many words of sets here are not found by: they may be shared unseen."""
        if asked.is_any:
            return np.zeros_like(sizes)
        return sizes - self._indexed.prefixes(sizes)
