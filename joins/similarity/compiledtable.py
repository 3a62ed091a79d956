"""The search for similar sets by compiled loops: what a broker does with the extra `fast`.

It finds what `arraytable` finds, in the same order of words: for each set that looks, one by one,
the entries of its prefix are gone through, and what is found there is tallied, refused or counted
before the next one comes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from joins.memory.remembered import Hashes
from joins.memory.slots import Ints
from joins.similarity.bounds import AskedMeasure
from joins.similarity.chains import Chains
from joins.similarity.kernels import (
    MEASURES,
    AskedNumbers,
    LookingSets,
    rare_words,
    similar_sets,
)
from joins.similarity.sets import Sets
from joins.similarity.settable import SetTable

__all__ = ["CompiledTable"]


class CompiledTable(SetTable[Chains]):
    """Sets whose words are in chains."""

    def _empty(self) -> Chains:
        return Chains(self._limits)

    def _rare(self, words: Hashes, sizes: Ints, lengths: Ints) -> tuple[Ints, Ints]:
        rows = rare_words(words, sizes, lengths, self._counts, self._shift)
        return rows, np.repeat(np.arange(len(sizes)), lengths)

    def similar(
        self, own: Sets, mine: Ints, look: AskedMeasure, oldest: Ints, listed: int
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield pairs of sets that may be similar; see `SetTable.similar`."""
        newer, sizes, words = own.take(mine)
        lengths = look.prefixes(sizes)
        rows, _ = self._rare(words, sizes, lengths)
        window = self.sets.first_of(oldest), self.sets.first_of(newer)
        looking = LookingSets(mine, *window, words[rows], np.cumsum(lengths), sizes - lengths)
        columns = own.columns(), self.sets.columns()
        index = self._searched(look.turned()).columns()
        unseen = self.unseen(np.arange(self.sets.largest + 1), look.turned())
        share = 1 / (1 + look.threshold)
        asked = AskedNumbers(MEASURES[look.measure], look.threshold, share, look.is_first, unseen)
        there = len(self.sets)
        seen, touched = np.zeros(there, np.int32), np.empty(there, np.int64)
        which, found = (np.empty(max(listed, there), np.int64) for _ in range(2))
        begin = 0
        while begin < len(mine):
            begin, count = similar_sets(
                begin, looking, *columns, index, asked, seen, touched, which, found
            )
            yield which[:count].copy(), found[:count].copy()
