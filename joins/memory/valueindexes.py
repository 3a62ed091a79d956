"""The values of all instances: one index for instances of each number of documents.

The operator of a stratum mostly joins documents with tuples of so many documents.  So a value of a
document is looked up among those of these tuples alone, and a value of a tuple among those of
documents: an index of all would have many entries of the value that nobody in the stratum asks for.
Of a variable is known in which indexes it has had values, so what is in no other is not missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from joins.memory.hits import EntryHits
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.lookups import LookUps, entry_keys
from joins.memory.remembered import Hashes
from joins.memory.slots import Ints
from joins.memory.sortedrun import AreThere
from joins.memory.times import Flags
from joins.memory.valueindex import ValueIndex
from joins.memory.valuelookup import put_together

__all__ = ["NewValues", "ValueIndexes"]

_INDEXES_MAX = 8
"""Tuples of more documents than this are in one index."""


class NewValues(NamedTuple):
    """New values in columns: `values[i]`, of slot `slots[i]` of `owners[i]`, under a variable."""

    owners: Ints
    variables: Ints
    slots: Ints
    values: Hashes

    @classmethod
    def none(cls) -> NewValues:
        """Return no values."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, nothing, np.zeros(0, np.uint64))

    def take(self, rows: Ints | slice) -> NewValues:
        """Return some of the entries."""
        owners, variables, slots, values = self
        return NewValues(owners[rows], variables[rows], slots[rows], values[rows])

    def without_repeats(self) -> NewValues:
        """Return each value of an instance under a variable once, with one of its slots."""
        order = np.lexsort((self.values, self.variables, self.owners))
        is_new = np.zeros(len(order), np.bool_)
        is_new[:1] = True
        for column in (self.owners, self.variables, self.values):
            is_new[1:] |= column[order[1:]] != column[order[:-1]]
        return self.take(np.sort(order[is_new]))


class ValueIndexes:
    """Indexes of (value, variable, instance) by the number of documents of the instance."""

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._limits = limits
        self._indexes: list[ValueIndex] = []
        # Bit `i` of a variable says that the index `i` has had values under it.
        self._occurs: Ints = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return sum(map(len, self._indexes))

    @property
    def memory_bytes(self) -> int:
        """The memory that entries take."""
        return self._occurs.nbytes + sum(index.memory_bytes for index in self._indexes)

    def add(self, new: NewValues, documents: Ints, base: int, are_there: AreThere) -> None:
        """Add values of instances, each of so many documents.

        No instance below `base` is there, and entries of instances that are not may be dropped.
        Instances are added in their order.
        """
        for index in self._indexes:
            index.drop(base)
        values, variables, instances = new.values, new.variables, new.owners
        kinds = np.minimum(np.maximum(documents, 1), _INDEXES_MAX) - 1
        for kind in np.unique(kinds).tolist():
            rows = np.flatnonzero(kinds == kind)
            while kind >= len(self._indexes):
                self._indexes.append(ValueIndex(self._limits))
            keys = entry_keys(values[rows], variables[rows])
            self._indexes[kind].add(keys, instances[rows], base, are_there)
            self._note(variables[rows], 1 << kind)

    def _note(self, variables: Ints, bit: int) -> None:
        short = int(variables.max()) + 1 - len(self._occurs)
        if short > 0:
            more = max(short, len(self._occurs))
            self._occurs = np.concatenate([self._occurs, np.zeros(more, np.int64)])
        self._occurs[variables] |= bit

    def sweep(self, are_there: AreThere) -> Iterator[None]:
        """Write anew, step by step, what is mostly entries of instances that are not there."""
        for index in self._indexes:
            yield from index.sweep(are_there)

    def shared(self, hashes: Hashes, owners: Ints) -> Flags:
        """Return which values may occur in another instance than their owner, under any variable.

        Every value that does occur is among them; the empty string occurs nowhere.
        """
        found = np.zeros(len(hashes), np.bool_)
        for index in self._indexes:
            rows = np.flatnonzero(~found)
            found[rows] = index.shared(hashes[rows], owners[rows])
        return found

    def find(self, keys: Hashes) -> list[EntryHits]:
        """Return where keys are, run by run, each in the order of `keys`.

        Entries of instances that have been evicted may be among them.
        """
        return [hits for index in self._indexes for hits in index.find(keys)]

    def find_under(
        self, hashes: Hashes, variables: Ints, look_ups: LookUps, oldest: Ints
    ) -> tuple[Ints, Ints, list[EntryHits]]:
        """Return values that are here, the look-up of each, and where they are, run by run.

        It is what `ValueIndex.find_under` returns.
        """
        which, rows, hits = list[Ints](), list[Ints](), list[EntryHits]()
        first = 0
        asked_of = look_ups.any_of(self._occurs, variables)
        for i, index in enumerate(self._indexes):
            asked = np.flatnonzero(asked_of >> i & 1)
            if not len(asked):
                continue
            own, at, found = index.find_under(
                hashes[asked], variables[asked], look_ups, oldest[asked]
            )
            # Most values are asked for in one index alone, and numbers of hits are large arrays.
            hits += (
                replace(each, indices=each.indices + first) if first else each for each in found
            )
            which.append(asked[own])
            rows.append(at)
            first += len(own)
        return put_together(which), put_together(rows), hits
