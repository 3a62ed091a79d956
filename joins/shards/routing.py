"""Routing: instances go to the shards of their values under anchors.

    a class with value joins   an instance goes to the shard of each value under its anchor; a pair
                               belongs to the shard of the smallest value that both have there
    one of similar texts       an instance goes to the shard of each first word of its sets
                               (`wordrouting`); a pair belongs to that of the first that both have
    one without (a product)    is anchored in itself: all its instances go to one shard
    one of a single block      an instance goes to one shard, by its number

An instance goes to a shard whole, and once.  The home of a pair, and only it, gives out all of the
pair's tuples in a class; both instances are there, so nothing is missed, and nothing doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from zlib import crc32

import numpy as np
import pyarrow as pa

from joins.budget.entries import Entries
from joins.memory.remembered import Hashes
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints
from joins.shards.wordrouting import WordRouter
from templates.queryclass import QueryClass

__all__ = ["Router", "is_product", "is_single", "shard_of_class", "shard_of_instances", "shards_of"]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(33)


def shards_of(hashes: Hashes, shards: int) -> Ints:
    """Return the shards of values."""
    return ((hashes * _MIX >> _HIGH) % np.uint64(shards)).astype(np.int64)


def shard_of_instances(numbers: Ints, shards: int) -> Ints:
    """Return the shard of each instance for classes of one block."""
    return numbers % shards


def shard_of_class(query_class: QueryClass, shards: int) -> int:
    """Return the shard of a class without value joins: the same in every stratum."""
    return crc32(query_class.spelled_in_no_stratum().encode()) % shards


def is_single(query_class: QueryClass) -> bool:
    """Return whether a class is of one block."""
    return not query_class.template.has_right


def is_product(query_class: QueryClass) -> bool:
    """Return whether a class pairs instances without comparing their values."""
    has_joins = query_class.template.value_joins or query_class.similar
    return query_class.template.has_right and not has_joins


class Router:
    """Assigns instances to `shards` shards."""

    def __init__(self, shards: int, shapes: Shapes) -> None:
        self._shards = shards
        self._shapes = shapes
        self._singles: frozenset[int] = frozenset()
        self._products: dict[int, frozenset[int]] = {}
        self._words = WordRouter(shapes)

    def follow(
        self, classes: Mapping[int, QueryClass], thresholds: Callable[[int], Sequence[float]]
    ) -> None:
        """Route for these classes from now on, at the lowest thresholds in force of each."""
        self._words.follow(classes, thresholds)
        variables = [c.row.variables for c in classes.values() if is_single(c)]
        self._singles = frozenset(v for each in variables for v in each)
        products: dict[int, set[int]] = {}
        for query_class in classes.values():
            if is_product(query_class):
                shard = shard_of_class(query_class, self._shards)
                products.setdefault(shard, set()).update(query_class.row.variables)
        self._products = {shard: frozenset(bound) for shard, bound in products.items()}

    def route(self, instances: pa.Table, entries: Entries) -> list[Ints]:
        """Return the rows for each shard; `entries` are the rows' values under anchors."""
        numbers = instances.column("instance").to_numpy()
        shapes = instances.column("shape").to_numpy().astype(np.int64)
        rows = [entries.owners]
        shards = [shards_of(entries.hashes, self._shards)]
        for owners, words in self._words.words(instances):
            rows.append(owners)
            shards.append(shards_of(words, self._shards))
        if self._words.everywhere:
            bound = np.flatnonzero(self._binds(shapes, self._words.everywhere))
            rows.append(np.repeat(bound, self._shards))
            shards.append(np.tile(np.arange(self._shards), len(bound)))
        single = np.flatnonzero(self._binds(shapes, self._singles))
        rows.append(single)
        shards.append(shard_of_instances(numbers[single], self._shards))
        for shard, variables in self._products.items():
            bound = np.flatnonzero(self._binds(shapes, variables))
            rows.append(bound)
            shards.append(np.full(len(bound), shard))
        size = max(1, len(numbers))
        codes = np.unique(np.concatenate(shards) * size + np.concatenate(rows))
        ends = np.searchsorted(codes, np.arange(self._shards + 1) * size)
        return [codes[ends[i] : ends[i + 1]] - i * size for i in range(self._shards)]

    def _binds(self, shapes: Ints, variables: frozenset[int]) -> Ints:
        """Return which instances bind one of some variables."""
        distinct, inverse = np.unique(shapes, return_inverse=True)
        shapes_ = (self._shapes[int(shape)] for shape in distinct)
        binding = [not variables.isdisjoint(shape.variables) for shape in shapes_]
        return np.array(binding, np.int64)[inverse]
