"""Candidate pairs: a new instance, and an earlier one with an anchored value in common.

Every class is anchored in one of its value joins: the one that makes the fewest pairs in a sample
of recent values (`sample`).  The classes of a stratum have few different anchors, however many they
are, so the new values of a batch are looked up under all of them at once.  All joined values are
indexed, not only anchored ones, so a class may get another anchor at any time.  Classes without a
value join are paired by `similarity`, else by `products`.

The newer instance of a pair, its **owner**, finds it.  How many partners an owner has under an
anchor is known before they are listed.  Where that exceeds the budget, the anchor's classes are
looked at one by one (`pairs`).  A class that has a value join with fewer partners is paired by that
one, for this owner; the uses of a class that has none are stopped, and not paired any more in this
batch.

Arrays are grouped by owner throughout: `counts[i]` partners belong to `owners[i]`, and the partners
of all owners stand one after the other.  `np.repeat` gives each partner its owner's value, and
`groups` turns owners that stand next to each other into counts again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.budget.pairs import Bounds
from joins.budget.probe import Probe, ValueJoin
from joins.classes import ClassRegistry
from joins.memory.hits import EntryHits
from joins.memory.remembered import HashValues, Remembered, hash_values
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints, Layouts, ranges
from joins.memory.times import (
    Flags,
    Pairs,
    codes_of_groups,
    distinct,
    groups,
    held_ends,
    pair_codes,
)
from joins.memory.valueindexes import NewValues
from joins.signature.alsoequal import AlsoEqual
from joins.signature.anchoring import Anchoring
from joins.signature.anchortable import NONE, AnchorTable
from joins.signature.batch import Batch
from joins.signature.compared import SharedSlots
from joins.signature.joinedvalues import JoinedValues
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
from joins.signature.products import Products
from joins.similarity.candidates import SimilarityCandidates
from templates.queryclass import QueryClass, Sides

__all__ = ["Candidates"]


@dataclass(frozen=True, slots=True)
class _LookUps:
    """New values under one side of the anchors: value `i`, of `owners[i]`, with its two anchors."""

    batch: Batch
    anchors: AnchorTable
    owners: Ints
    as_right: Ints
    as_left: Ints
    hits: list[EntryHits]

    def asked(self, which: Ints) -> tuple[Ints, Flags]:
        """Return the windows of some anchors, and which of them are symmetric."""
        return self.anchors.window[which], self.anchors.is_symmetric[which]

    def served(self, hits: EntryHits) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield, for each side, (anchor, owner, partners) of the values that have hits there."""
        for which in (self.as_right, self.as_left):
            served = which[hits.indices]
            rows = (served != NONE).nonzero()[0]
            yield served[rows], self.owners[hits.indices[rows]], hits.counts[rows]


class Candidates:
    """Finds candidate pairs; holds the indexes and the anchors."""

    def __init__(
        self,
        shapes: Shapes,
        remembered: Remembered,
        layouts: Layouts,
        classes: ClassRegistry,
        bounds: Bounds,
        limits: SignatureLimits = DEFAULT_LIMITS,
        hashing: HashValues = hash_values,
    ) -> None:
        self._limits = limits
        self._remembered = remembered
        self._layouts = layouts
        self._classes = classes
        self._lateness_us = bounds.lateness_us
        self._changes = classes.watch()
        self._present: set[int] = set()
        self._anchors: dict[int, AnchorTable] = {}
        self.anchoring = Anchoring(limits)
        self.values = JoinedValues(remembered, layouts, limits)
        self.products = Products(shapes, remembered, layouts, bounds.lateness_us)
        self._equal = AlsoEqual(remembered, layouts)
        self.similar = SimilarityCandidates(
            shapes,
            remembered,
            self.products,
            bounds.lateness_us,
            listed=limits.found,
            compiled_sets=limits.compiled_sets,
        )

    def follow(self) -> None:
        """Anchor the classes that there are now, by the values of late."""
        for number, query_class in self._changes.take().items():
            if not query_class.template.has_right:
                continue
            if number in self._classes.by_number:
                self._put(number, query_class)
            elif number in self._present:
                self._drop(number, query_class)
        for classes, before, now in self.anchoring.follow_values():
            for number in classes:
                query_class = self._classes.by_number[number]
                self._anchors[query_class.stratum].drop(number, before)
                self._put_under(number, query_class, now)
        self.similar.forget_unused()

    def _put(self, number: int, query_class: QueryClass) -> None:
        """Pair for a class, or for one that is there in another window."""
        self._present.add(number)
        if value_joins := tuple(query_class.value_pairs()):
            anchor = self.anchoring.enter(number, value_joins)
            self._put_under(number, query_class, anchor)
            return
        window_us = self._classes.window_us(number)
        if query_class.similar:
            thresholds = self._classes.thresholds(number)
            self.similar.put(number, query_class, window_us, thresholds)
        else:
            self.products.put(number, query_class, window_us)

    def _put_under(self, number: int, query_class: QueryClass, anchor: ValueJoin) -> None:
        anchors = self._anchors.setdefault(query_class.stratum, AnchorTable())
        window_us, is_symmetric = self._classes.window_us(number), query_class.is_symmetric
        anchors.put(number, anchor, window_us, is_symmetric=is_symmetric)

    def _drop(self, number: int, query_class: QueryClass) -> None:
        self._present.remove(number)
        if value_joins := tuple(query_class.value_pairs()):
            anchors = self._anchors[query_class.stratum]
            anchors.drop(number, self.anchoring.leave(number, value_joins))
            if not len(anchors):
                del self._anchors[query_class.stratum]
        elif query_class.similar:
            self.similar.drop(number, query_class)
        else:
            self.products.drop(number, query_class)

    def absorb(self, batch: Batch, rows: pa.Table, first: int, layouts: Ints) -> None:
        """Take in instances that have just been remembered."""
        documents = pc.list_value_length(rows.column("leaves")).to_numpy().astype(np.int64)
        new = self.values.absorb(first, layouts, documents)
        self.similar.absorb(rows, first)
        batch.add(new)
        self.anchoring.sample.note(len(layouts), new.variables, new.values)

    def shared(self, batch: Batch) -> SharedSlots:
        """Return the slots of new instances whose values another instance may have too."""
        if batch.shared is None:
            batch.shared = self.values.shared_slots(batch.first, batch.were_shared)
        return batch.shared

    def pairs(self, batch: Batch, stratum: int, new: range) -> Iterator[Pairs]:
        """Yield the pairs of some new instances that a class of a stratum may hold on, each once.

        The newer instance of each pair is among the new ones asked for.
        """
        bases = self._remembered.base, batch.first
        for found in self._found(batch, stratum, new):
            codes = distinct(found)
            for start in range(0, len(codes), self._limits.pairs):
                part = codes[start : start + self._limits.pairs]
                yield Pairs.of_codes(self._remembered, part, bases, self._lateness_us)

    def _found(self, batch: Batch, stratum: int, new: range) -> Iterator[list[Ints]]:
        """Yield the codes of pairs, possibly with repetitions, for some new instances at a time."""
        anchors = self._anchors.get(stratum) or AnchorTable()
        look_ups = self._look_ups(batch, anchors, new)
        partners = self._count(look_ups)
        has_products = self.products.has(stratum)
        if has_products:
            partners += self.products.partners_max(stratum, batch.first)
        over_budget = (partners > batch.pair_budget.pairs_max).nonzero()[0]
        if not has_products and not len(over_budget) and partners.sum() <= self._limits.found:
            owners = np.arange(new.start, new.stop)
            yield [*self._list(look_ups), *self._similar(batch, stratum, owners)]
            return
        over = self._over(look_ups, over_budget)
        for owners in self._sub_batches(batch, partners, new):
            chosen = np.zeros(len(partners), np.bool_)
            chosen[owners] = True
            found = list(self._list(self._some(look_ups, chosen, over)))
            found += self._similar(batch, stratum, np.sort(owners) + batch.first)
            for owner in (owners + batch.first).tolist():
                pairs = [self._within_budget(batch, owner, anchors, i) for i in over.get(owner, ())]
                pairs.append(self.products.pairs(batch.pair_budget, stratum, owner))
                found += (self._codes(batch, each) for each in chain.from_iterable(pairs))
            yield found

    def _similar(self, batch: Batch, stratum: int, owners: Ints) -> Iterator[Ints]:
        bases = self._remembered.base, batch.first
        return self.similar.codes(batch.pair_budget, stratum, owners, bases)

    def _codes(self, batch: Batch, pairs: Pairs) -> Ints:
        return pair_codes(pairs.left, pairs.right, (self._remembered.base, batch.first))

    def _look_ups(self, batch: Batch, anchors: AnchorTable, new_instances: range) -> _LookUps:
        shared = self._shared_values(batch)
        if new_instances != range(batch.first, self._remembered.next_instance):
            owners = shared.owners
            are_asked = (owners >= new_instances.start) & (owners < new_instances.stop)
            shared = shared.take(np.flatnonzero(are_asked))
        owners, under, found = self._hits(shared, anchors)
        hits = [self._in_reach(each, owners, anchors.widest[under]) for each in found]
        if self._remembered.is_ordered:
            # Positions ascend with numbers, so later instances are cut off alike; else `_list`
            # tests them one by one.
            hits = [each.before(owners[each.indices]) for each in hits]
        as_right, as_left = anchors.as_right[under], anchors.as_left[under]
        return _LookUps(batch, anchors, owners, as_right, as_left, hits)

    def _in_reach(self, hits: EntryHits, owners: Ints, widest: Ints) -> EntryHits:
        """Leave out hits of instances that no window of an anchor reaches, where they may be many.

        They are cut off by a binary search, and never listed.
        """
        many = np.flatnonzero(hits.counts > self._limits.listed_hits)
        if not len(many):
            return hits
        at = hits.indices[many]
        ends = self._remembered.take("end_us", owners[at])
        return hits.since(self._remembered.first_from(ends - widest[at]), many)

    def _hits(self, values: NewValues, anchors: AnchorTable) -> tuple[Ints, Ints, list[EntryHits]]:
        """Return the owners of new values that others have, the row of anchors of each, and where.

        A value is there for each row that it serves.
        """
        look_ups = anchors.asked()
        if not len(look_ups):
            return look_ups.rows, look_ups.rows, []
        _, counts = look_ups.of_values(values.variables)
        values = values.take(np.flatnonzero(counts))
        found = self.values.indexes.find_under(
            values.values, values.variables, look_ups, self._oldest(values, anchors)
        )
        which, rows, hits = found
        return values.owners[which], rows, hits

    def _oldest(self, values: NewValues, anchors: AnchorTable) -> Ints:
        """Return for each value an instance before which no partner by it is in time."""
        ends, starts = (
            self._remembered.take(name, values.owners) for name in ("end_us", "start_us")
        )
        reach = anchors.reach_us(values.variables)
        return self._remembered.first_from(np.minimum(ends - reach, starts))

    def _shared_values(self, batch: Batch) -> NewValues:
        """Return the values of new instances that another one may have too."""
        new = batch.values
        places = self._remembered.slots(new.owners) + new.slots
        return new.take(self.shared(batch).has(places).nonzero()[0])

    def _count(self, look_ups: _LookUps) -> Ints:
        """Count the hits of each new instance."""
        first = look_ups.batch.first
        new = self._remembered.next_instance - first
        partners = np.zeros(new, np.int64)
        for hits in look_ups.hits:
            for _, owners, counts in look_ups.served(hits):
                partners += np.bincount(owners - first, counts, new).astype(np.int64)
        return partners

    def _over(self, look_ups: _LookUps, over_budget: Ints) -> dict[int, list[int]]:
        """Return, by new instance, the anchors under each of which it goes over the budget."""
        batch = look_ups.batch
        by_anchor: Counter[tuple[int, int]] = Counter()
        for hits in look_ups.hits:
            for which, owners, counts in look_ups.served(hits):
                for k in np.flatnonzero(np.isin(owners - batch.first, over_budget)).tolist():
                    by_anchor[int(owners[k]), int(which[k])] += int(counts[k])
        over: dict[int, list[int]] = {}
        for (owner, i), partners in sorted(by_anchor.items()):
            if partners > batch.pair_budget.pairs_max:
                over.setdefault(owner, []).append(i)
        return over

    def _sub_batches(self, batch: Batch, partners: Ints, new: range) -> Iterator[Ints]:
        """Cut new instances, in the order of their docids, into parts of `found` hits.

        They are counted from the first new one.
        """
        # A part ends where the hits up to an instance pass another multiple of `found`.
        docids = self._remembered.take("docid", np.arange(new.start, new.stop))
        order = np.argsort(docids, kind="stable") + (new.start - batch.first)
        part = (np.cumsum(partners[order]) - partners[order]) // self._limits.found
        yield from np.split(order, np.flatnonzero(np.diff(part)) + 1)

    def _some(self, look_ups: _LookUps, chosen: Flags, over: dict[int, list[int]]) -> _LookUps:
        """Return the look-ups of some new instances, but for anchors that are over or closed."""
        batch, anchors, owners = look_ups.batch, look_ups.anchors, look_ups.owners
        closed_from = np.array(list(map(batch.pair_budget.closed_from, anchors.groups)), np.int64)
        docids = self._remembered.take("docid", owners)
        # Few owners are over, so they are looked at in Python.
        are_over = np.flatnonzero(np.isin(owners, list(over)))

        def allowed(which: Ints) -> Ints:
            side = np.where(docids < closed_from[which], which, NONE)
            for k in are_over.tolist():
                if side[k] in over[int(owners[k])]:
                    side[k] = NONE
            return side

        as_right, as_left = allowed(look_ups.as_right), allowed(look_ups.as_left)
        kept = chosen[owners - batch.first] & ((as_right != NONE) | (as_left != NONE))
        hits = [each.some(kept[each.indices]) for each in look_ups.hits]
        return replace(look_ups, as_right=as_right, as_left=as_left, hits=hits)

    def _list(self, look_ups: _LookUps) -> Iterator[Ints]:
        """Yield the codes of the pairs that an anchor's classes could hold in time."""
        for hits in look_ups.hits:
            for found, counts, partners in hits.listed(self._limits.pairs):
                earlier = self._remembered.are_there(partners)
                if not self._remembered.is_ordered:
                    earlier &= partners < np.repeat(look_ups.owners[found], counts)
                if not earlier.all():
                    rows = np.flatnonzero(earlier)
                    partners = partners[rows]
                    if not len(rows):
                        continue
                    found, counts = groups(np.repeat(found, counts)[rows])
                yield from self._in_time(found, counts, partners, look_ups)

    def _in_time(
        self, found: Ints, counts: Ints, partners: Ints, look_ups: _LookUps
    ) -> Iterator[Ints]:
        """Yield the codes of pairs that an anchor's classes could hold in time.

        The earlier instance, the partner, is on the left of most pairs.
        """
        remembered, batch = self._remembered, look_ups.batch
        bases = remembered.base, batch.first
        # The partner on the left: what time asks of it is a range of ends for each owner.
        owners, ends = look_ups.owners[found], remembered.take("end_us", partners)
        window, is_symmetric = look_ups.asked(look_ups.as_right[found])
        oldest, newest = held_ends(remembered, owners, window, is_symmetric, self._lateness_us)
        held = (ends >= oldest.repeat(counts)) & (ends <= newest.repeat(counts))
        held &= self._also_equal(look_ups, look_ups.as_right[found], owners, counts, partners)
        codes = codes_of_groups(owners, counts, partners, bases)
        yield codes if held.all() else codes[held]
        # The partner on the right: for FOLLOWED BY it starts behind an owner that came later, which
        # is rare, so `oldest` cuts most of them before the rest is tested in full.
        window, is_symmetric = look_ups.asked(look_ups.as_left[found])
        oldest = remembered.take("end_us", owners) - window
        oldest = np.where(
            is_symmetric, oldest, np.maximum(oldest, remembered.take("start_us", owners))
        )
        rows = np.flatnonzero(ends >= np.repeat(oldest, counts))
        if len(rows):
            of_rows = np.repeat(np.arange(len(found)), counts)[rows]
            pairs = Pairs.of(remembered, owners[of_rows], partners[rows], self._lateness_us)
            held = (pairs.follows | is_symmetric[of_rows]) & (pairs.span <= window[of_rows])
            yield self._codes(batch, pairs.keep(np.flatnonzero(held)))

    def _also_equal(
        self, look_ups: _LookUps, which: Ints, owners: Ints, counts: Ints, partners: Ints
    ) -> Flags:
        """Return which pairs, with the owner on the right, may be equal by all value joins."""
        may_hold = np.ones(len(partners), np.bool_)
        starts = np.cumsum(counts) - counts
        pairs = np.bincount(which, counts)
        for anchor in np.flatnonzero(pairs >= self._limits.also_equal).tolist():
            also = self.anchoring.also(look_ups.anchors.value_join(anchor))
            own = np.flatnonzero(which == anchor) if also else which[:0]
            rows = ranges(starts[own], counts[own])
            for left, right in also:
                may_hold[rows] &= self._equal.may_hold(
                    (right, owners[own]), counts[own], (left, partners[rows])
                )
        return may_hold

    def _within_budget(
        self, batch: Batch, owner: int, anchors: AnchorTable, i: int
    ) -> Iterator[Pairs]:
        """Yield the pairs of a new instance that goes over the budget under an anchor."""
        values = batch.values_of(owner)
        times = self._remembered.take
        docid, end_us = (int(times(name, np.array([owner]))[0]) for name in ("docid", "end_us"))
        group = anchors.groups[i]

        def met(value_join: ValueJoin, asked: Sides | None) -> Probe:
            found = self.values.partners(values, value_join, asked, end_us - group.window_us)
            return Probe.of(self._remembered, owner, found, self._lateness_us)

        @cache
        def meet(number: int, value_join: ValueJoin | None) -> Probe:
            assert value_join is not None
            return met(value_join, self._classes.by_number[number].asked())

        first = met(anchors.value_join(i), None)
        yield from batch.pair_budget.pairs(group, docid, first, meet)
