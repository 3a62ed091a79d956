"""The choice of anchors: each class is anchored in its value join with the rarest values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from joins.budget.probe import ValueJoin
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
from joins.signature.sample import InstanceSample, PairCounts, rarest

__all__ = ["Anchoring", "Moved", "ValueJoins"]

ValueJoins = tuple[ValueJoin, ...]
"""All value joins of a class."""


class Moved(NamedTuple):
    """Classes that get another anchor."""

    classes: Collection[int]
    before: ValueJoin
    now: ValueJoin


class Anchoring:
    """The anchors of classes, by their value joins: classes with equal ones have one anchor.

    An anchor is changed for one that is several times rarer (`anchor_change`), so a look at recent
    values has to go through the value joins under each anchor, not through the classes, to see that
    none is.  A look goes through `looked_at` anchors at a time, and no more than there are new
    instances, so that none holds up a batch.
    """

    def __init__(self, limits: SignatureLimits = DEFAULT_LIMITS) -> None:
        self.sample = InstanceSample(limits)
        self._change = limits.anchor_change
        self._looked_at = limits.looked_at
        self._waiting: list[ValueJoin] = []
        self._counts = PairCounts([])
        self.anchor_of: dict[ValueJoins, ValueJoin] = {}
        self._classes: dict[ValueJoins, set[int]] = {}
        self._anchored: dict[ValueJoin, dict[ValueJoins, None]] = {}
        self._others: dict[ValueJoin, Counter[ValueJoin]] = {}
        self._also: dict[ValueJoin, ValueJoins] = {}

    def enter(self, number: int, value_joins: ValueJoins) -> ValueJoin:
        """Return the anchor of a class, which may be known already."""
        if value_joins not in self.anchor_of:
            self._classes[value_joins] = set()
            self._anchor(value_joins, rarest(value_joins, self.sample.counts(), None, self._change))
            self.sample.look_soon()
        self._classes[value_joins].add(number)
        return self.anchor_of[value_joins]

    def leave(self, number: int, value_joins: ValueJoins) -> ValueJoin:
        """Forget a class; return its anchor."""
        anchor = self.anchor_of[value_joins]
        self._classes[value_joins].remove(number)
        if not self._classes[value_joins]:
            del self._classes[value_joins]
            self._free(value_joins)
        return anchor

    def _anchor(self, value_joins: ValueJoins, anchor: ValueJoin) -> None:
        self.anchor_of[value_joins] = anchor
        self._anchored.setdefault(anchor, {})[value_joins] = None
        # Two nodes of a pattern may be one variable's: then a value join stands there twice.
        self._others.setdefault(anchor, Counter()).update({*value_joins})
        self._also.pop(anchor, None)

    def _free(self, value_joins: ValueJoins) -> None:
        anchor = self.anchor_of.pop(value_joins)
        del self._anchored[anchor][value_joins]
        if self._anchored[anchor]:
            self._others[anchor] -= Counter({*value_joins})
        else:
            del self._anchored[anchor], self._others[anchor]
        self._also.pop(anchor, None)

    def also(self, anchor: ValueJoin) -> ValueJoins:
        """Return the value joins that all classes have that are anchored there, beside it."""
        known = self._also.get(anchor)
        if known is None:
            count = len(self._anchored.get(anchor, ()))
            others = self._others.get(anchor, Counter())
            found = [each for each, times in others.items() if times == count and each != anchor]
            known = self._also[anchor] = tuple(found)
        return known

    def follow_values(self) -> Iterator[Moved]:
        """Yield classes that get another anchor; most calls look at nothing and yield nothing."""
        most = min(self._looked_at, self.sample.take_new())
        if not self._waiting:
            if not self.sample.is_due():
                return
            self._waiting, self._counts = list(self._others), self.sample.counts()
        counts, kept = self._counts, max(0, len(self._waiting) - most)
        some = self._waiting[kept:]
        del self._waiting[kept:]
        moved = [
            (value_joins, anchor, best)
            for anchor in some
            if anchor in self._others and self._is_beaten(anchor, counts)
            for value_joins in self._anchored[anchor]
            if (best := rarest(value_joins, counts, anchor, self._change)) != anchor
        ]
        for value_joins, before, now in moved:
            self._free(value_joins)
            self._anchor(value_joins, now)
            yield Moved(self._classes[value_joins], before, now)

    def _is_beaten(self, anchor: ValueJoin, counts: PairCounts) -> bool:
        """Return whether some class that is anchored there has a much rarer value join."""
        if len(self._others[anchor]) == 1 or (pairs := counts.of(anchor)) < self._change:
            return False
        return pairs >= self._change * (min(map(counts.of, self._others[anchor])) + 1)
