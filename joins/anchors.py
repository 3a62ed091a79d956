"""Anchors of classes: the value join by whose values a class's instances go to shards.

The anchor of a class is the value join that makes the fewest pairs in a sample of recent instances.
It may change while documents flow.  Then it begins an **epoch**: instances from some number on.
For a pair of instances the anchor in force at the earlier one counts, so it is the same for all
shards; and an instance goes to shards by the anchors of all epochs from which instances are still
remembered, so it meets the earlier ones where they are.

A class without a value join is anchored in itself: all its instances go to one shard.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from joins.candidates import ANCHOR_CHANGE
from joins.classes import ClassRegistry, QueryClass
from joins.entries import Entries
from joins.remembered import Hashes
from joins.slots import Ints

__all__ = ["Anchor", "Anchors", "Epochs"]

SAMPLE_INSTANCES = 10_000
"""Recent instances whose values are counted; the heavy ones, which cost most, show in fewer."""


class Anchor(NamedTuple):
    """The variables of a value join, in force from the instance with the number `since` on."""

    since: int
    left: int
    right: int


Epochs = tuple[Anchor, ...]
"""The anchors of one class, the oldest first."""


class Anchors:
    """The anchors of all classes that have value joins, by class number."""

    def __init__(self, classes: ClassRegistry) -> None:
        self._classes = classes
        self.epochs: dict[int, Epochs] = {}
        self._known: dict[QueryClass, int] = {}
        self._sample: deque[tuple[int, Entries]] = deque()

    def variables(self) -> set[int]:
        """Return the variables of all anchors."""
        return {v for epochs in self.epochs.values() for _, *pair in epochs for v in pair}

    def note(self, count: int, entries: Entries) -> None:
        """Take `count` instances, with their entries under joined variables, into the sample."""
        self._sample.append((count, entries))
        size = sum(count for count, _ in self._sample)
        while size - self._sample[0][0] >= SAMPLE_INSTANCES:
            size -= self._sample.popleft()[0]

    def choose(self, since: int) -> bool:
        """Anchor every class where it makes the fewest pairs; return whether anything changed.

        A class that has just moved to another stratum is a new one; its instances stay where they
        are, so its epochs go on.
        """
        pairs = _Pairs([entries for _, entries in self._sample])
        chosen, known = dict[int, Epochs](), dict[QueryClass, int]()
        for number, query_class in self._classes.by_number.items():
            if joins := list(query_class.value_pairs()):
                lasting = query_class.in_no_stratum()
                known[lasting] = number
                before = number if number in self.epochs else self._known.get(lasting, number)
                chosen[number] = _chosen(self.epochs.get(before, ()), joins, since, pairs)
        self._known = known
        has_changed = chosen != self.epochs
        self.epochs = chosen
        return has_changed

    def forget(self, before: int) -> bool:
        """Forget epochs of instances below a number; return whether there were any."""
        kept = {number: _from(epochs, before) for number, epochs in self.epochs.items()}
        has_changed = kept != self.epochs
        self.epochs = kept
        return has_changed


def _chosen(epochs: Epochs, joins: list[tuple[int, int]], since: int, pairs: _Pairs) -> Epochs:
    """Return a class's epochs, with a new one where it is worth it."""
    best = min(joins, key=lambda join: (pairs.of(*join), join))
    if epochs:
        _, *now = epochs[-1]
        if pairs.of(*now) < ANCHOR_CHANGE * (pairs.of(*best) + 1):
            return epochs
        # What no instance has gone by is no epoch.
        epochs = tuple(epoch for epoch in epochs if epoch.since < since)
    return (*epochs, Anchor(since, *best))


def _from(epochs: Epochs, first: int) -> Epochs:
    """Return the epochs from the one that holds an instance on."""
    over = sum(epoch.since <= first for epoch in epochs[1:])
    return epochs[over:]


class _Pairs:
    """How many pairs of instances in a sample have equal values under two variables."""

    def __init__(self, sample: list[Entries]) -> None:
        self._sample = sample
        self._counts: dict[int, tuple[Hashes, Ints]] = {}
        self._found: dict[tuple[int, int], int] = {}

    def of(self, left: int, right: int) -> int:
        if (left, right) not in self._found:
            values1, counts1 = self._count(left)
            values2, counts2 = self._count(right)
            _, at1, at2 = np.intersect1d(values1, values2, True, return_indices=True)
            self._found[left, right] = int((counts1[at1] * counts2[at2]).sum())
        return self._found[left, right]

    def _count(self, variable: int) -> tuple[Hashes, Ints]:
        if variable not in self._counts:
            hashes = [entries.hashes[entries.variables == variable] for entries in self._sample]
            values = np.concatenate([np.zeros(0, np.uint64), *hashes])
            self._counts[variable] = np.unique(values, return_counts=True)
        return self._counts[variable]
