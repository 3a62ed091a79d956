"""Candidate pairs: a new instance, and another one that has an anchored value in common with it.

Every class is anchored in one of its value joins: the one whose look-ups have met the fewest
partners so far.  The classes of a stratum have few different anchors, however many they are, so
the new values of a batch are looked up under all of them at once.  All joined values are in the
index, not only anchored ones, so a class may be anchored anew at any time.  Classes without a
value join are paired by `products`.

A pair is found from the instance that came later.  How many partners a new instance has under an
anchor is known before they are listed.  Where that exceeds the budget, the anchor's classes are
looked at one by one (`ration`): one that has a value join with fewer partners is paired by that
here; one that has none is cut, and paired no more in this batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np

from joins.classes import ClassRegistry
from joins.products import Products
from joins.ration import Bounds, Group, Meeting, Ration, ValueJoin
from joins.remembered import EMPTY, Hashes, Remembered
from joins.slots import Edge, Ints, Layouts, ranges
from joins.times import Flags, Pairs
from joins.valueindex import Hits, ValueIndex, entry_keys

__all__ = ["PAIRS_MAX", "Candidates"]

PAIRS_MAX = 20_000
"""Pairs that are worked on at once: what describes them then stays in a core's cache.  On recorded
news, 57 pairs a document, 10,000 to 30,000 are a fifth faster than 1,000,000."""

FOUND_MAX = 1_000_000
"""Candidates that are held at once (25 MB), where one instance alone does not have more."""

ANCHOR_CHANGE = 4
"""A class changes its anchor for one that is met this many times less often, not for less."""


@dataclass(frozen=True, slots=True)
class _Anchors:
    """The anchors of a stratum in columns, and the classes that are anchored there.

    New values under `mine[i]` are looked up under `other[i]`, which serves the anchor
    `as_right[i]` where the new instance is the right one, and `as_left[i]` where it is the left
    one; -1 where there is no such anchor.  `reach[i]` is the wider window of the two.
    """

    left: Ints
    right: Ints
    window: Ints
    is_symmetric: Flags
    groups: tuple[Group, ...]
    mine: Ints
    other: Ints
    as_right: Ints
    as_left: Ints
    reach: Ints

    def value_join(self, i: int) -> ValueJoin:
        """Return the value join that an anchor is."""
        return int(self.left[i]), int(self.right[i])


@dataclass(frozen=True, slots=True)
class _LookUps:
    """New values under one side of the anchors: value `i`, of `owners[i]`, for `which[i]`."""

    which: Ints
    owners: Ints
    is_right: bool
    hits: list[Hits]


class Candidates:
    """Finds candidate pairs; holds the index and what is new in the batch in hand."""

    def __init__(
        self, remembered: Remembered, layouts: Layouts, classes: ClassRegistry, bounds: Bounds
    ) -> None:
        self._remembered = remembered
        self._layouts = layouts
        self._classes = classes
        self._lateness_us = bounds.lateness_us
        self._index = ValueIndex()
        self._anchors: dict[int, _Anchors] = {}
        self._anchor_of: dict[int, ValueJoin] = {}
        self._met: Counter[ValueJoin] = Counter()
        self._new: list[tuple[Ints, Ints, Hashes]] = []
        self.ration = Ration(classes, bounds.pairs_max)
        self._products = Products(remembered, layouts, self.ration, bounds.lateness_us)
        self.first = 1

    def add_shape(self, shape: int, edges: Sequence[Edge]) -> None:
        """Learn a shape by its edges."""
        self._products.add_shape(shape, edges)

    def forget_shapes(self, shapes: Set[int]) -> None:
        """Forget shapes that nothing remembered has."""
        self._products.forget_shapes(shapes)

    @property
    def index(self) -> ValueIndex:
        """The values of what is remembered."""
        return self._index

    def begin_batch(self) -> None:
        """Make what is absorbed from now on new."""
        self.first = self._remembered.next_instance
        self.ration.begin_batch()
        self._new = []

    def choose_anchors(self) -> None:
        """Anchor every class in the value join that was met least often."""
        chosen: dict[tuple[int, ValueJoin], list[int]] = {}
        anchor_of: dict[int, ValueJoin] = {}
        for number, query_class in self._classes.by_number.items():
            pairs = list(query_class.value_pairs())
            if not pairs:
                continue
            anchor = min(pairs, key=lambda pair: (self._met[pair], pair))
            before = self._anchor_of.get(number)
            if before is not None and self._met[before] < ANCHOR_CHANGE * (self._met[anchor] + 1):
                anchor = before
            anchor_of[number] = anchor
            chosen.setdefault((query_class.stratum, anchor), []).append(number)
        self._anchor_of = anchor_of
        groups = {key: Group.of(members, self._classes) for key, members in sorted(chosen.items())}
        self._anchors = {stratum: _columns(stratum, groups) for stratum in {s for s, _ in groups}}
        self._products.group(self._classes)

    def absorb(self, first: int, layouts: Ints) -> None:
        """Index the values of instances that have just been remembered."""
        arrays = self._layouts.arrays
        counts = arrays.binding_counts[layouts]
        bindings = ranges(arrays.binding_starts[layouts], counts)
        owners = np.repeat(np.arange(first, first + len(layouts)), counts)
        hashes, _ = self._remembered.hashes
        values = hashes[self._remembered.slots(owners) + arrays.binding_slots[bindings]]
        variables = arrays.binding_variables[bindings]
        filled = values != EMPTY
        owners, variables, values = owners[filled], variables[filled], values[filled]
        self._new.append((owners, variables, values))
        self._index.add(entry_keys(values, variables), owners, self._remembered.base)

    def pairs(self, stratum: int) -> Iterator[Pairs]:
        """Yield the pairs that a class of a stratum may hold on, each once."""
        for parts in self._found(stratum):
            distinct = Pairs.distinct(parts, self._remembered.base)
            for start in range(0, len(distinct), PAIRS_MAX):
                yield distinct.keep(slice(start, start + PAIRS_MAX))

    def _found(self, stratum: int) -> Iterator[list[Pairs]]:
        """Yield pairs, possibly with repetitions, for some new instances at a time."""
        anchors = self._anchors.get(stratum, _NO_ANCHORS)
        look_ups = list(self._look_ups(anchors))
        partners = self._count(anchors, look_ups)
        has_products = self._products.has(stratum)
        if has_products:
            partners += self._products.partners_max(stratum, self.first)
        heavy = np.flatnonzero(partners > self.ration.pairs_max)
        if not has_products and not len(heavy) and partners.sum() <= FOUND_MAX:
            yield [pairs for each in look_ups for pairs in self._list(each, anchors)]
            return
        over = self._over(look_ups, heavy)
        for owners in self._portions(partners):
            chosen = np.zeros(len(partners), np.bool_)
            chosen[owners] = True
            some = [self._some(each, chosen, over, anchors) for each in look_ups]
            found = [pairs for each in some for pairs in self._list(each, anchors)]
            for owner in owners.tolist():
                for i in over.get(owner, ()):
                    found += self._rationed(owner + self.first, anchors, i)
                found += self._products.pairs(stratum, owner + self.first)
            yield found

    def _look_ups(self, anchors: _Anchors) -> Iterator[_LookUps]:
        if not self._new or not len(anchors.left):
            return
        owners, variables, values = self._entries()
        order = np.argsort(variables, kind="stable")
        starts = np.searchsorted(variables, anchors.mine, "left", sorter=order)
        counts = np.searchsorted(variables, anchors.mine, "right", sorter=order) - starts
        new, under = order[ranges(starts, counts)], np.repeat(np.arange(len(counts)), counts)
        found = self._index.find(entry_keys(values[new], anchors.other[under]))
        ends = self._remembered.take("end_us", owners[new])
        oldest = self._remembered.first_from(ends - anchors.reach[under])
        found = [each.since(oldest[each.positions]) for each in found]
        for served, is_right in ((anchors.as_right, True), (anchors.as_left, False)):
            which = served[under]
            hits = [each.some(which[each.positions] >= 0) for each in found]
            yield _LookUps(which, owners[new], is_right, hits)

    def _entries(self) -> tuple[Ints, Ints, Hashes]:
        """Return the new values as (owner, variable, value); owners ascend."""
        if len(self._new) > 1:
            owners, variables, values = (np.concatenate(x) for x in zip(*self._new, strict=True))
            self._new = [(owners, variables, values)]
        return self._new[0]

    def _count(self, anchors: _Anchors, look_ups: Sequence[_LookUps]) -> Ints:
        """Count the hits of each new instance, and note those of each anchor."""
        new = self._remembered.next_instance - self.first
        partners = np.zeros(new, np.int64)
        met = np.zeros(len(anchors.left), np.int64)
        for each in look_ups:
            for hits in each.hits:
                owners = each.owners[hits.positions] - self.first
                partners += np.bincount(owners, hits.counts, new).astype(np.int64)
                which = each.which[hits.positions]
                met += np.bincount(which, hits.counts, len(met)).astype(np.int64)
        for i in np.flatnonzero(met).tolist():
            self._met[anchors.value_join(i)] += int(met[i])
        return partners

    def _over(self, look_ups: Sequence[_LookUps], heavy: Ints) -> dict[int, list[int]]:
        """Return, by new instance, the anchors under which alone it goes over the budget."""
        by_anchor: Counter[tuple[int, int]] = Counter()
        for each in look_ups:
            for hits in each.hits:
                owners = each.owners[hits.positions] - self.first
                for k in np.flatnonzero(np.isin(owners, heavy)).tolist():
                    i = int(each.which[hits.positions[k]])
                    by_anchor[int(owners[k]), i] += int(hits.counts[k])
        over: dict[int, list[int]] = {}
        for (owner, i), partners in sorted(by_anchor.items()):
            if partners > self.ration.pairs_max:
                over.setdefault(owner, []).append(i)
        return over

    def _portions(self, partners: Ints) -> Iterator[Ints]:
        """Cut the new instances, in the order of their docids, into parts of `FOUND_MAX` hits."""
        new = np.arange(self.first, self._remembered.next_instance)
        order = np.argsort(self._remembered.take("docid", new), kind="stable")
        part = (np.cumsum(partners[order]) - partners[order]) // FOUND_MAX
        yield from np.split(order, np.flatnonzero(np.diff(part)) + 1)

    def _some(
        self, look_ups: _LookUps, chosen: Flags, over: dict[int, list[int]], anchors: _Anchors
    ) -> _LookUps:
        """Return the look-ups of some new instances, but for anchors that are over or closed."""
        closed = np.array([self.ration.closed_from(group) for group in anchors.groups], np.int64)
        hits = []
        for each in look_ups.hits:
            owners, which = look_ups.owners[each.positions], look_ups.which[each.positions]
            kept = chosen[owners - self.first]
            kept &= self._remembered.take("docid", owners) < closed[which]
            if over:
                for k in np.flatnonzero(np.isin(owners - self.first, list(over)) & kept).tolist():
                    kept[k] = which[k] not in over[int(owners[k]) - self.first]
            hits.append(each.some(kept))
        return _LookUps(look_ups.which, look_ups.owners, look_ups.is_right, hits)

    def _list(self, look_ups: _LookUps, anchors: _Anchors) -> Iterator[Pairs]:
        """Yield the pairs that an anchor's classes could hold in time."""
        owners, which = look_ups.owners, look_ups.which
        for found, partners in self._near(look_ups, anchors):
            left, right = owners[found], partners
            if look_ups.is_right:
                left, right = right, left
            pairs = Pairs.of(self._remembered, left, right, self._lateness_us)
            held = pairs.span <= anchors.window[which[found]]
            held &= anchors.is_symmetric[which[found]] | pairs.follows
            yield pairs.keep(np.flatnonzero(held))

    def _near(self, look_ups: _LookUps, anchors: _Anchors) -> Iterator[tuple[Ints, Ints]]:
        """Yield hits on earlier instances that end within the window: (place, partner).

        Most hits go here, on what a pair's distance in time and order alone say.
        """
        remembered, owners = self._remembered, look_ups.owners
        ends = remembered.take("end_us", owners)
        farthest = anchors.window[look_ups.which]
        # What follows ends later; what is symmetric may end earlier.
        nearest = np.where(anchors.is_symmetric[look_ups.which], -farthest, 1)
        for hits in look_ups.hits:
            for found, partners in hits.listed(PAIRS_MAX):
                partner_ends = remembered.take("end_us", np.maximum(partners, remembered.base))
                ahead = ends[found] - partner_ends
                if not look_ups.is_right:
                    ahead = -ahead
                near = (ahead >= nearest[found]) & (ahead <= farthest[found])
                near &= (partners >= remembered.base) & (partners < owners[found])
                rows = np.flatnonzero(near)
                yield found[rows], partners[rows]

    def _rationed(self, owner: int, anchors: _Anchors, i: int) -> Iterator[Pairs]:
        """Yield the pairs of a new instance that goes over the budget under an anchor."""
        met: dict[ValueJoin | None, Meeting] = {}

        def meet(value_join: ValueJoin | None) -> Meeting:
            assert value_join is not None
            if value_join not in met:
                met[value_join] = self._meet(owner, value_join)
            return met[value_join]

        docid = int(self._remembered.take("docid", np.array([owner]))[0])
        group, anchor = anchors.groups[i], anchors.value_join(i)
        yield from self.ration.pairs(group, docid, meet, anchor)

    def _meet(self, owner: int, value_join: ValueJoin) -> Meeting:
        """Return what a new instance meets under a value join."""
        owners, variables, values = self._entries()
        start, stop = np.searchsorted(owners, [owner, owner + 1])
        variables, values = variables[start:stop], values[start:stop]
        (left, right), found = value_join, list[tuple[Ints, bool]]()
        for mine, other, is_right in ((right, left, True), (left, right, False)):
            own = values[variables == mine]
            keys = entry_keys(own, np.full(len(own), other))
            for _, partners in self._index.look_up(keys, FOUND_MAX):
                found.append((partners[partners >= self._remembered.base], is_right))
        return Meeting.of(self._remembered, owner, found, self._lateness_us)


def _columns(stratum: int, groups: dict[tuple[int, ValueJoin], Group]) -> _Anchors:
    own = {anchor: group for (s, anchor), group in groups.items() if s == stratum}
    numbers = {anchor: i for i, anchor in enumerate(own)}
    under = sorted({(right, left) for left, right in own} | set(own))
    windows = {anchor: group.window_us for anchor, group in own.items()}
    reach = [max(windows.get((a, b), 0), windows.get((b, a), 0)) for a, b in under]
    return _Anchors(
        np.array([left for left, _ in own], np.int64),
        np.array([right for _, right in own], np.int64),
        np.array(list(windows.values()), np.int64),
        np.array([group.is_symmetric for group in own.values()], np.bool_),
        tuple(own.values()),
        np.array([mine for mine, _ in under], np.int64),
        np.array([other for _, other in under], np.int64),
        np.array([numbers.get((other, mine), -1) for mine, other in under], np.int64),
        np.array([numbers.get((mine, other), -1) for mine, other in under], np.int64),
        np.array(reach, np.int64),
    )


_NO_ANCHORS = _columns(0, {})
