"""Sets of words of texts that are asked for by number, and the words by which they are found.

A decision (`joins.sequences`) asks of rows whether their texts are similar.  Its rows are looked up
under keys, so each has one for each word of its **prefix** (`settable`): the rows of two similar
texts have one in common.  That holds in any order of words that is the same for both.

The order is that of how many sets have a word, and of its hash.  Frequencies are counted anew when
as many sets have been made as had been then (`renew`); from then on keys are others, and whoever
keeps keys makes them again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from joins.memory.remembered import Hashes
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags
from joins.similarity.bounds import ScoreBounds
from joins.similarity.sets import Sets, most_shared, shared_words
from templates.queryclass import SetKind
from templates.rule import values_in_lists
from templates.wordcolumns import hashed_sets

__all__ = ["TextSets"]

FIRST_SETS = 64
"""Sets after which words are counted for the first time."""

_COUNT_BITS = np.uint64(16)
_MOST = (1 << 16) - 1
"""Sets with a word are counted up to this many."""

_LISTED = 1 << 16
"""Words that are searched in other sets at once, about."""


class _SetPlaces:
    """Which sets texts have, by the text's number; the first is -1 where none has been made."""

    def __init__(self) -> None:
        self.first = np.full(64, -1, np.int64)
        self.count = np.zeros(64, np.int32)

    def reach(self, end: int) -> None:
        """Have places for all texts with numbers below `end`."""
        if end > len(self.first):
            more = max(end, 2 * len(self.first)) - len(self.first)
            self.first = np.append(self.first, np.full(more, -1, np.int64))
            self.count = np.append(self.count, np.zeros(more, np.int32))


class TextSets:
    """The sets of texts, made when they are first asked for, and the order of their words.

    `read` returns the texts of some numbers.
    """

    def __init__(self, read: Callable[[Ints], Sequence[str]]) -> None:
        self._read = read
        self._sets = Sets()
        self._places: dict[tuple[SetKind, bool], _SetPlaces] = defaultdict(_SetPlaces)
        self._counts = np.zeros(2, np.uint16)
        self._shift = np.uint64(63)
        self._made = self._counted = 0

    def forget(self) -> None:
        """Forget all sets: texts have other numbers from now on.  Words keep their order."""
        self._sets = Sets()
        self._places.clear()

    def of(self, kind: SetKind, texts: Ints, *, is_list: bool) -> tuple[Ints, Ints]:
        """Return where the sets of some texts begin, and how many each has; none is empty.

        With `is_list` a text is that of an optional path, and has sets for each of its values.
        """
        places = self._places[kind, is_list]
        places.reach(int(texts.max(initial=-1)) + 1)
        new = np.unique(texts[places.first[texts] < 0])
        if len(new):
            read = self._read(new)
            values = values_in_lists(read) if is_list else [[each] for each in read]
            owners = np.repeat(np.arange(len(new)), [len(each) for each in values])
            found = hashed_sets(kind, [value for each in values for value in each])
            counts = np.bincount(owners[found.texts], minlength=len(new))
            places.first[new] = self._sets.end + np.cumsum(counts) - counts
            places.count[new] = counts
            self._sets.append(new[owners[found.texts]], found.sizes, found.hashes)
            self._made += len(found.texts)
        return places.first[texts], places.count[texts].astype(np.int64)

    def sizes(self, sets: Ints) -> Ints:
        """Return how many words some sets have."""
        return self._sets.sizes(sets)

    def may_hold(self, left: Ints, right: Ints, bounds: ScoreBounds) -> Flags:
        """Return which pairs of sets may be similar: all that are, and few others."""
        sizes = self._sets.sizes(left), self._sets.sizes(right)
        most = most_shared(*sizes, self._sets.bits(left), self._sets.bits(right))
        may_be = bounds.may_hold(most, *sizes)
        own = np.flatnonzero(may_be)
        shared = shared_words(self._sets, left[own], self._sets, right[own], _LISTED)
        sizes = sizes[0][own], sizes[1][own]
        may_be[own] = bounds.some(own).may_hold(shared, *sizes)
        return may_be

    # -- the order of words --------------------------------------------------------------------

    def renew(self) -> bool:
        """Order words anew where it is time; return whether their order is another one."""
        if self._made - self._counted < max(FIRST_SETS, self._counted):
            return False
        words = self._sets.columns().words
        bits = max(4, len(words).bit_length() - 2)
        self._shift = np.uint64(64 - bits)
        counts = np.bincount((words >> self._shift).astype(np.int64), minlength=1 << bits)
        self._counts = np.minimum(counts, _MOST).astype(np.uint16)
        self._counted = self._made
        return True

    def first_words(self, sets: Ints, lengths: Ints) -> Hashes:
        """Return so many of the first words of each of some sets, set by set."""
        distinct, which = np.unique(sets, return_inverse=True)
        _, sizes, words = self._sets.take(distinct)
        keys = np.repeat(np.arange(len(distinct), dtype=np.uint64), sizes) << _COUNT_BITS
        # Words ascend within a set: a stable sort leaves those of one frequency so.
        order = np.argsort(keys | self._counts[words >> self._shift], kind="stable")
        starts = np.cumsum(sizes) - sizes
        found: Hashes = words[order][ranges(starts[which], lengths)]
        return found
