"""Routing by words: instances go to the shards of the first words of their sets.

Let all words stand in the order of their hashes.  Of two sets that are similar enough the first
word that both have is among the first `n - o + 1` of each, where a set of `n` shares at least `o`
(`joins.similarity`).  So an instance goes to the shards of those words, at the lowest threshold in
force, and both of a similar pair are in the shard of the **first word that both have**, which is
the home of the pair (`homes`).  Which word that is depends on the two sets alone: on no frequency,
no threshold, and on nothing that changes.

An instance with several sets goes by all of their words.  Then the home of a pair is that of the
first word that any set of the one has in common with any set of the other: it is among the first
words of an instance with one set, since that shares no less with all sets of the other together.

A lower threshold routes new instances by more words.  It is asked for pairs of those only; and
pairs that are asked for at a higher one meet where they did.  At 0 and below, where pairs need not
share a word, instances go to all shards, and a pair that shares none is at home in its class's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from joins.memory.remembered import Hashes
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints, ranges
from joins.similarity.bounds import AskedMeasure, asked_of_side
from joins.similarity.compilation import LOOPS
from joins.similarity.reading import read_sets
from templates.queryclass import QueryClass, SetKind

__all__ = ["WordRouter"]


class WordRouter:
    """Finds the words by which instances go to shards."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._asked: dict[SetKind, set[AskedMeasure]] = {}
        self.everywhere: frozenset[int] = frozenset()
        """The variables of which all instances go to all shards."""

    def follow(
        self,
        classes: Mapping[int, QueryClass],
        thresholds: Callable[[int], Sequence[float]],
    ) -> None:
        """Find words for these classes from now on."""
        everywhere: set[int] = set()
        self._asked = {}
        for number, query_class in classes.items():
            if not query_class.similar:
                continue
            pair, least = query_class.similar[0], thresholds(number)
            if not least or least[0] <= 0:
                everywhere.update(query_class.row.variables)
                continue
            for is_right, kind in enumerate((pair.left, pair.right)):
                asked = asked_of_side(pair, least[0], is_right=bool(is_right))
                self._asked.setdefault(kind, set()).add(asked)
        self.everywhere = frozenset(everywhere)

    def words(self, rows: pa.Table) -> Iterator[tuple[Ints, Hashes]]:
        """Yield (row, hash of a word) for the words by which some instances go."""
        for kind, asked in self._asked.items():
            found = read_sets(kind, rows, self._shapes, kernels=LOOPS.are_ready())
            lengths = np.max([each.shortest_prefixes(found.sizes) for each in asked], axis=0)
            _, which, counts = np.unique(found.rows, return_inverse=True, return_counts=True)
            lengths = np.where(counts[which] > 1, found.sizes, lengths)
            starts = np.cumsum(found.sizes) - found.sizes
            yield np.repeat(found.rows, lengths), found.hashes[ranges(starts, lengths)]
