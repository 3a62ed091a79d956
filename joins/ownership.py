"""Which tuples a shard owns.

A pair belongs, for a class, to the shard of the smallest hash that both instances have under the
class's anchor, the one in force at the earlier instance (`anchors`).  A shard has all values of an
instance under anchors, not only those that sent it there, so it knows of every pair that it finds
whether another shard finds it too, and which of them is the owner.  Two values with one hash are
one value here, which is as good: both instances are in that hash's shard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np
import pyarrow as pa

from joins.anchors import Anchor, Epochs
from joins.classes import QueryClass
from joins.column import Column
from joins.entries import EntryReader
from joins.remembered import Hashes, HashValues
from joins.routing import is_single, shard_of_class, shard_of_instances, shards_of
from joins.slots import Ints, ranges
from joins.times import Flags

__all__ = ["Ownership"]

Edge = tuple[int, int, int, int]


class Ownership:
    """The instances of shard `shard` of `shards`, by their places 1, 2, ... in this shard."""

    def __init__(self, shard: int, shards: int, hashing: HashValues) -> None:
        self._shard = shard
        self._shards = shards
        self._reader = EntryReader(hashing)
        self._classes: Mapping[int, QueryClass] = {}
        self._epochs: Mapping[int, Epochs] = {}
        self._numbers = Column(np.int64, 1)
        self._ends = Column(np.int64, 1)
        self._starts = Column(np.int64, 1)
        self._counts = Column(np.int64, 1)
        self._variables = Column(np.int32)
        self._hashes = Column(np.uint64)

    def add_shape(self, shape: int, edges: Sequence[Edge]) -> None:
        """Learn a shape by its edges."""
        self._reader.add_shape(shape, edges)

    def forget_shapes(self, shapes: Set[int]) -> None:
        """Forget shapes that nothing will have any more."""
        self._reader.forget_shapes(shapes)

    def follow(self, classes: Mapping[int, QueryClass], epochs: Mapping[int, Epochs]) -> None:
        """Judge by these classes and anchors from now on."""
        self._classes, self._epochs = classes, epochs
        self._reader.want({v for each in epochs.values() for _, *pair in each for v in pair})

    def absorb(self, rows: pa.Table) -> None:
        """Take on instances (`INSTANCE_SCHEMA`); they get the next places."""
        entries = self._reader.read(rows)
        counts = np.bincount(entries.owners, minlength=rows.num_rows)
        self._numbers.append(rows.column("instance").to_numpy())
        self._ends.append(rows.column("end_us").to_numpy())
        self._starts.append(self._variables.end + np.cumsum(counts) - counts)
        self._counts.append(counts)
        self._variables.append(entries.variables)
        self._hashes.append(entries.hashes)

    def evict(self, before_us: int) -> None:
        """Forget instances from the front that end before a time."""
        ends = self._ends
        alive = np.flatnonzero(ends.values[ends.start - ends.origin :] >= before_us)
        first = ends.start + int(alive[0]) if len(alive) else ends.end
        starts = self._starts
        entry = int(starts.values[first - starts.origin]) if len(alive) else self._hashes.end
        for column in (self._numbers, self._ends, self._starts, self._counts):
            column.drop(first)
        for column in (self._variables, self._hashes):
            column.drop(entry)

    def are_known(self, places: Ints) -> Flags:
        """Return which places have not been evicted."""
        return places >= self._numbers.start

    def places(self, numbers: Ints) -> Ints:
        """Return the places of those of some instances that are here."""
        column = self._numbers
        alive = column.values[column.start - column.origin :]
        places: Ints = np.flatnonzero(np.isin(alive, numbers)) + column.start
        return places

    def numbers(self, places: Ints) -> Ints:
        """Return the numbers of the instances at places; 0 for 0, which is no place."""
        numbers = np.zeros(len(places), np.int64)
        there = places > 0
        numbers[there] = self._numbers.values[places[there] - self._numbers.origin]
        return numbers

    def owned(self, classes: Ints, left: Ints, right: Ints) -> Flags:
        """Return which tuples are this shard's; `right` is 0 in those of one instance."""
        owned = np.zeros(len(classes), np.bool_)
        for query_class in np.unique(classes).tolist():
            rows = np.flatnonzero(classes == query_class)
            owned[rows] = self._owned(query_class, left[rows], right[rows])
        return owned

    def _owned(self, number: int, left: Ints, right: Ints) -> Flags:
        query_class = self._classes[number]
        if is_single(query_class):
            shards = shard_of_instances(self.numbers(left), self._shards)
            return np.equal(shards, self._shard)
        epochs = self._epochs.get(number)
        if epochs is None:
            # A product: all its instances are in its shard, and no other has the class.
            return np.ones(len(left), np.bool_)
        since = np.array([anchor.since for anchor in epochs[1:]], np.int64)
        earlier = self.numbers(np.minimum(left, right))
        epoch = np.searchsorted(since, earlier, "right")
        owned = np.zeros(len(left), np.bool_)
        for i in np.unique(epoch).tolist():
            rows = np.flatnonzero(epoch == i)
            owned[rows] = self._owned_by(epochs[i], left[rows], right[rows])
        return owned

    def counted(self, number: int, places: Ints, *, is_right: bool) -> Flags:
        """Return which instances are this shard's to count as the left or the right of a class.

        An instance may be in many shards.  It is counted in that of the smallest hash that it has
        there under the class's anchor, the one in force when it came.
        """
        epochs = self._epochs.get(number)
        if epochs is None:
            here = shard_of_class(self._classes[number], self._shards) == self._shard
            return np.full(len(places), here)
        since = np.array([anchor.since for anchor in epochs[1:]], np.int64)
        epoch = np.searchsorted(since, self.numbers(places), "right")
        counted = np.zeros(len(places), np.bool_)
        for i in np.unique(epoch).tolist():
            rows = np.flatnonzero(epoch == i)
            variable = epochs[i].right if is_right else epochs[i].left
            which, hashes = self._under(places[rows], variable)
            order = np.lexsort([hashes, which])
            with_any, first = np.unique(which[order], return_index=True)
            smallest = hashes[order[first]]
            counted[rows[with_any]] = shards_of(smallest, self._shards) == self._shard
        return counted

    def _owned_by(self, anchor: Anchor, left: Ints, right: Ints) -> Flags:
        """Return which pairs have their smallest common value in this shard."""
        codes, inverse = np.unique((left << 31) | right, return_inverse=True)
        on_left = self._under(codes >> 31, anchor.left)
        on_right = self._under(codes & 0x7FFFFFFF, anchor.right)
        pairs = np.concatenate([on_left[0], on_right[0]])
        hashes = np.concatenate([on_left[1], on_right[1]])
        is_right = np.repeat([False, True], [len(on_left[0]), len(on_right[0])])
        order = np.lexsort([is_right, hashes, pairs])
        pairs, hashes, is_right = pairs[order], hashes[order], is_right[order]
        # A value that both have stands first on the left, then on the right.
        is_common = (pairs[1:] == pairs[:-1]) & (hashes[1:] == hashes[:-1])
        common = np.flatnonzero(is_common & is_right[1:] & ~is_right[:-1])
        with_any, smallest = np.unique(pairs[common], return_index=True)
        owners = np.full(len(codes), -1)
        owners[with_any] = shards_of(hashes[common[smallest]], self._shards)
        owned: Flags = np.equal(owners, self._shard)[inverse]
        return owned

    def _under(self, places: Ints, variable: int) -> tuple[Ints, Hashes]:
        """Return what stands under a variable: (index into `places`, hash), all of them."""
        at = places - self._starts.origin
        starts = self._starts.values[at]
        counts = self._counts.values[at]
        which = np.repeat(np.arange(len(places)), counts)
        entries = ranges(starts, counts)
        held = self._variables.values[entries - self._variables.origin] == variable
        return which[held], self._hashes.values[entries[held] - self._hashes.origin]
