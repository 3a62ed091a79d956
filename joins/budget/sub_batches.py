"""Sub-batches: few new instances are joined at a time, so that their tuples fit into memory.

Where each document has a value once, or a few times, a batch is joined whole.  But two documents
with 300 equal nodes have 90,000 tuples, and a thousand such documents 45 billion: their query is
paused at one of the first, but only when the tuples of that one have been listed.  So the tuples of
each new instance are bounded before they are listed, from counts of values (`sketch`) and from how
often one instance has the same value (`repeats`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from joins.budget.probe import ValueJoin
from joins.budget.repeats import Most, Repeats
from joins.budget.sketch import CountedInstances, FrequencySketch
from joins.classes import ClassRegistry
from joins.memory.durations import UNBOUNDED
from joins.memory.slots import Ints

__all__ = ["SubBatches"]


class SubBatches:
    """Cuts batches by what a frequency sketch and `repeats` have noted of their instances.

    A batch is joined whole where one pair has no more than `pair_tuples` tuples in a class; else a
    sub-batch has `listed_tuples` at most, unless one instance alone has more.
    """

    def __init__(
        self,
        classes: ClassRegistry,
        sketch: FrequencySketch,
        repeats: Repeats,
        *,
        pair_tuples: int,
        listed_tuples: int,
    ) -> None:
        self._pair_tuples = pair_tuples
        self._listed_tuples = listed_tuples
        self._classes = classes
        self._sketch = sketch
        self._repeats = repeats

    def of(
        self, stratum: int, new: range, counted: Sequence[CountedInstances], most: Most
    ) -> Iterator[range]:
        """Yield the new instances of a batch in sub-batches, in order, for a stratum.

        `counted` and `most` have been noted of the new instances.
        """
        if not self._sketch.is_needed:
            yield new
            return
        joined = Counter(
            tuple(query_class.value_pairs())
            for query_class in self._classes.by_number.values()
            if query_class.stratum == stratum
        )
        equal_max = {
            join: self._repeats.equal_max(join, most) for joins in joined for join in joins
        }
        combined = max((prod(equal_max[join] for join in joins) for joins in joined), default=0)
        if combined <= self._pair_tuples:
            yield new
            return
        tuples = self._tuples(joined, equal_max, counted, len(new))
        part = (np.cumsum(tuples) - tuples) // self._listed_tuples
        starts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist()]
        for start, stop in zip(starts, [*starts[1:], len(new)], strict=True):
            yield new[start:stop]

    def _tuples(
        self,
        joined: Counter[tuple[ValueJoin, ...]],
        equal_max: dict[ValueJoin, int],
        counted: Sequence[CountedInstances],
        count: int,
    ) -> Ints:
        """Return how many tuples each new instance has at most, in all classes together."""
        equal = {
            join: self._sketch.equal_nodes(join, counted).astype(np.float64) for join in equal_max
        }
        tuples = np.zeros(count)
        for joins, classes in joined.items():
            bounds = [
                equal[join] * min(UNBOUNDED, prod(equal_max[j] for j in joins[:i] + joins[i + 1 :]))
                for i, join in enumerate(joins)
            ]
            if bounds:
                tuples += classes * np.minimum.reduce(bounds)
        return np.minimum(tuples, self._listed_tuples + 1).astype(np.int64)
