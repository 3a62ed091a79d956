"""The homes of tuples: of the shards that find a tuple, its home gives it out.

A pair belongs, for a class, to the shard of the smallest hash that both instances have under the
class's anchor, the one in force at the earlier instance (`anchors`).  A shard has all values of an
instance, not only the value that sent it there.  So it knows of every pair that it finds which
shards find it too, and which of them is its home.  Two values with one hash count as one value,
which is as good: both instances are in that hash's shard.

A pair of similar texts belongs to the shard of the first word that both have (`wordrouting`).

Homes keep nothing of instances: they read the shard's processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Protocol

import numpy as np

from joins.memory.remembered import Hashes
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.shards.anchors import Anchor, Epochs
from joins.shards.routing import shard_of_class, shard_of_instances, shards_of
from templates.queryclass import QueryClass, SetKind, SimilarPair

__all__ = ["Homes", "ShardInstances"]

Values = Callable[[Ints], tuple[Ints, Hashes]]
"""Returns all values of some instances, as (index into these, hash of a value)."""


class ShardInstances(Protocol):
    """The instances of one shard, as its processor remembers them."""

    def numbers(self, instances: Ints) -> Ints:
        """Return the numbers that the whole join has given to instances."""

    def numbered(self, numbers: Ints) -> Ints:
        """Return the instances here to which the whole join has given some numbers, in order."""

    def under(self, variable: int, instances: Ints) -> tuple[Ints, Hashes]:
        """Return all values under a variable, as (index into `instances`, hash of a value).

        Indices ascend.  The empty string, which joins nothing, is left out.
        """

    def words(self, kind: SetKind, instances: Ints) -> tuple[Ints, Hashes]:
        """Return the words of all sets of a kind, as (index into `instances`, hash of a word)."""


class Homes:
    """The tuples whose home is shard `shard` of `shards`; `part` are the instances that it has."""

    def __init__(self, shard: int, shards: int, part: ShardInstances) -> None:
        self._shard = shard
        self._shards = shards
        self._part = part
        self._classes: Mapping[int, QueryClass] = {}
        self._epochs: Mapping[int, Epochs] = {}

    def follow(self, classes: Mapping[int, QueryClass], epochs: Mapping[int, Epochs]) -> None:
        """Judge by these classes and anchors from now on."""
        self._classes, self._epochs = classes, epochs

    def are_home(self, classes: Ints, left: Ints, right: Ints) -> Flags:
        """Return which tuples belong to this shard; `right` is 0 in a tuple of one instance."""
        distinct, which = np.unique(classes, return_inverse=True)
        # Many classes have the same anchors, and pairs have the same home in all of those.
        groups: dict[tuple[Epochs, SimilarPair | None, int], int] = {}
        keys = map(self._key, distinct.tolist())
        group = np.array([groups.setdefault(each, len(groups)) for each in keys], np.int64)
        are_home = np.zeros(len(classes), np.bool_)
        for (anchors, similar, shard), number in groups.items():
            rows = np.flatnonzero(group[which] == number)
            if similar is None:
                are_home[rows] = self._are_home(anchors, left[rows], right[rows])
            else:
                are_home[rows] = self._are_home_by_words(similar, shard, left[rows], right[rows])
        return are_home

    def _key(self, number: int) -> tuple[Epochs, SimilarPair | None, int]:
        """Return what the homes of a class's tuples depend on."""
        query_class = self._classes[number]
        if not query_class.similar:
            return self._epochs.get(number, ()), None, 0
        return (), query_class.similar[0], shard_of_class(query_class, self._shards)

    def _are_home(self, epochs: Epochs, left: Ints, right: Ints) -> Flags:
        if not epochs:
            # Of a product all instances are in its shard, and no other has the class.
            return (right > 0) | self._are_here(
                shard_of_instances(self._part.numbers(left), self._shards)
            )
        are_home = np.zeros(len(left), np.bool_)
        for anchor, rows in self._by_anchor(epochs, np.minimum(left, right)):
            values = partial(self._part.under, anchor.left), partial(self._part.under, anchor.right)
            are_home[rows] = self._are_home_by(*values, left[rows], right[rows])
        return are_home

    def _are_home_by_words(self, pair: SimilarPair, shard: int, left: Ints, right: Ints) -> Flags:
        """Return which pairs are at home here: by a common word, and without any, in `shard`."""
        words = partial(self._part.words, pair.left), partial(self._part.words, pair.right)
        return self._are_home_by(*words, left, right, otherwise=shard)

    def _are_home_by(
        self, on_left: Values, on_right: Values, left: Ints, right: Ints, otherwise: int = -1
    ) -> Flags:
        """Return which pairs have their smallest common value in this shard.

        Pairs that have none are at home in the shard `otherwise`.
        """
        instances, ranks = np.unique(np.concatenate([left, right]), return_inverse=True)
        codes = ranks[: len(left)] * len(instances) + ranks[len(left) :]
        codes, inverse = np.unique(codes, return_inverse=True)
        lefts, rights = np.divmod(codes, len(instances))
        of_left, of_right = on_left(instances[lefts]), on_right(instances[rights])
        pairs = np.concatenate([of_left[0], of_right[0]])
        hashes = np.concatenate([of_left[1], of_right[1]])
        is_right = np.repeat([False, True], [len(of_left[0]), len(of_right[0])])
        order = np.lexsort([is_right, hashes, pairs])
        pairs, hashes, is_right = pairs[order], hashes[order], is_right[order]
        # A value that both have stands first on the left, then on the right.
        is_common = (pairs[1:] == pairs[:-1]) & (hashes[1:] == hashes[:-1])
        common = np.flatnonzero(is_common & is_right[1:] & ~is_right[:-1])
        are_home = np.full(len(codes), otherwise == self._shard)
        with_any, smallest = np.unique(pairs[common], return_index=True)
        are_home[with_any] = self._are_here(shards_of(hashes[common[smallest]], self._shards))
        return are_home[inverse]

    def counted(self, number: int, instances: Ints, *, is_right: bool) -> Flags:
        """Return which instances this shard counts as the left or the right of a class.

        An instance may be in many shards.  It is counted in the shard of the smallest hash that it
        has under the class's anchor, the one in force when it came.
        """
        epochs = self._epochs.get(number)
        if epochs is None:
            here = shard_of_class(self._classes[number], self._shards) == self._shard
            return np.full(len(instances), here)
        counted = np.zeros(len(instances), np.bool_)
        for anchor, rows in self._by_anchor(epochs, instances):
            variable = anchor.right if is_right else anchor.left
            which, hashes = self._part.under(variable, instances[rows])
            order = np.lexsort([hashes, which])
            with_any, first = np.unique(which[order], return_index=True)
            counted[rows[with_any]] = self._are_here(shards_of(hashes[order[first]], self._shards))
        return counted

    def _by_anchor(self, epochs: Epochs, instances: Ints) -> Iterator[tuple[Anchor, Ints]]:
        """Yield the anchors in force when instances came, each with the rows of its instances."""
        since = np.array([anchor.since for anchor in epochs[1:]], np.int64)
        epoch = np.searchsorted(since, self._part.numbers(instances), "right")
        for i in np.unique(epoch).tolist():
            yield epochs[i], np.flatnonzero(epoch == i)

    def _are_here(self, shards: Ints) -> Flags:
        return np.equal(shards, self._shard)
