"""An index of words as chains of entries, the newest first: for loops that are compiled.

A word has a **mark**, the first half of its hash.  Marks that are near each other share a head, and
from it a chain goes back from entry to entry, each of which says whose it is.  Sets come in the
order of their numbers.  So a chain is followed until a set is older than what is looked for, and
entries of sets that are gone stand in front of all others: they give their memory back at once.

An entry takes 12 bytes, and a head 4.  There are one and a half to two heads for an entry, else all
entries are linked anew.
Two words with one mark are taken for one: then a pair is found that shares a word less than is
counted, and none is lost.
"""

from __future__ import annotations

import numpy as np

from joins.memory.column import Column
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.remembered import Hashes
from joins.memory.slots import Ints
from joins.similarity.kernels import ChainColumns, Marks, link

__all__ = ["Chains"]

_FEWEST_HEADS = 1 << 10

_NUMBERS = 3
"""The numbers of an entry: its mark, its set, and how far back the next one of its chain is."""

_MOST = (1 << 32) - 1
"""How far entries of one head, and sets, are apart at most."""


class Chains:
    """Entries (mark, set) in the order of sets."""

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._entries = Column(np.uint32, limits=limits)
        self._heads: Marks = np.zeros(_FEWEST_HEADS, np.uint32)
        self._first = 0
        self._set_base = 0

    @property
    def memory_bytes(self) -> int:
        """The memory that entries take."""
        return self._entries.memory_bytes + self._heads.nbytes

    def columns(self) -> ChainColumns:
        """Return the heads, and the entries that are there, as they lie in memory."""
        lowest = self._entries.start // _NUMBERS - self._first
        return ChainColumns(self._heads, self._there(), lowest, self._set_base)

    def _there(self) -> Marks:
        column = self._entries
        values: Marks = column.values[column.start - column.origin :]
        return values

    def add(self, keys: Hashes, sets: Ints) -> None:
        """Add entries of sets, whose numbers ascend from those there."""
        if not len(keys):
            return
        if sets[-1] - self._set_base > _MOST:
            self._count_from_first(sets)
        before = self._entry_count
        new = np.zeros((len(keys), _NUMBERS), np.uint32)
        new[:, 0] = keys >> np.uint64(32)
        new[:, 1] = sets - self._set_base
        self._entries.append(new.ravel())
        self._link(before)

    def drop(self, before: int) -> None:
        """Drop the entries of sets with numbers below `before`."""
        sets = self._there()[1::_NUMBERS]
        gone = int(np.searchsorted(sets, max(0, before - self._set_base)))
        self._entries.drop(self._entries.start + _NUMBERS * gone)
        self._link(self._entry_count)

    @property
    def _entry_count(self) -> int:
        return len(self._there()) // _NUMBERS

    def _link(self, first: int) -> None:
        """Link the entries from one on; all of them where heads are too few or too many."""
        entries = self._entry_count
        fits = 3 * entries // 2 <= len(self._heads) <= max(_FEWEST_HEADS, 2 * entries)
        if not fits or self._entries.end // _NUMBERS - self._first > _MOST:
            self._heads = np.zeros(max(_FEWEST_HEADS, 7 * entries // 4), np.uint32)
            self._first, first = self._entries.start // _NUMBERS, 0
        link(self.columns(), first)

    def _count_from_first(self, new: Ints) -> None:
        """Count sets from the first on that is there, or is to come."""
        own = self._there()[1::_NUMBERS]
        first = int(own[0]) + self._set_base if len(own) else int(new[0])
        own -= np.uint32(first - self._set_base)
        self._set_base = first
