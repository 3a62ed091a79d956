"""The anchors of classes: by the values of which value join instances go to shards.

The anchor of a class is the value join that makes the fewest pairs in a sample of recent instances
(`sample`).  It may change while documents flow; then an **epoch** begins with the next instance.
For a pair the anchor in force at its earlier instance counts, so it is the same for all shards.
And an instance goes to shards by the anchors of all epochs from which instances are still
remembered, so it meets the earlier ones where they are.

A class without a value join is anchored in itself: all its instances go to one shard.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from joins.budget.probe import ValueJoin
from joins.classes import ClassRegistry
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
from joins.signature.sample import InstanceSample, rarest
from templates.queryclass import QueryClass

__all__ = ["Anchor", "Anchors", "Epochs"]


class Anchor(NamedTuple):
    """The variables of a value join, in force from the instance with the number `since` on."""

    since: int
    left: int
    right: int


Epochs = tuple[Anchor, ...]
"""The anchors of one class, the oldest first."""


class Anchors:
    """The anchors of all classes that have value joins, by class number."""

    def __init__(self, classes: ClassRegistry, limits: SignatureLimits = DEFAULT_LIMITS) -> None:
        self._classes = classes
        self.epochs: dict[int, Epochs] = {}
        self._known: dict[QueryClass, int] = {}
        self.sample = InstanceSample(limits)
        self._change = limits.anchor_change

    def variables(self) -> set[int]:
        """Return the variables of all anchors."""
        return {v for epochs in self.epochs.values() for _, *pair in epochs for v in pair}

    def choose(self, since: int) -> bool:
        """Anchor every class where it makes the fewest pairs; return whether any anchor changed.

        A class that has moved to another stratum counts as a new one.  Its instances stay where
        they are, so its epochs go on.
        """
        counts = self.sample.counts()
        chosen, known = dict[int, Epochs](), dict[QueryClass, int]()
        for number, query_class in self._classes.by_number.items():
            if joins := list(query_class.value_pairs()):
                lasting = query_class.in_no_stratum()
                known[lasting] = number
                before = number if number in self.epochs else self._known.get(lasting, number)
                best = partial(rarest, joins, counts, change=self._change)
                chosen[number] = _chosen(self.epochs.get(before, ()), since, best)
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


def _chosen(epochs: Epochs, since: int, choose: Callable[[ValueJoin | None], ValueJoin]) -> Epochs:
    """Return a class's epochs, with a new one where it is worth it."""
    now = epochs[-1][1:] if epochs else None
    best = choose(now)
    if best == now:
        return epochs
    # What no instance has gone by is no epoch.
    return (*(epoch for epoch in epochs if epoch.since < since), Anchor(since, *best))


def _from(epochs: Epochs, first: int) -> Epochs:
    """Return the epochs from the one that holds an instance on."""
    over = sum(epoch.since <= first for epoch in epochs[1:])
    return epochs[over:]
