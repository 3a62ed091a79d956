"""The budget of pairs: how many of them a new instance may make in a class.

A use of a class goes over its budget at an instance that makes more than `pairs_max` pairs by every
one of the class's value joins.  A pair counts if its other instance

    stands before it     has no larger docid
    can be joined        has a value under all variables that the class joins on its side
    is near              is held by the use's own window
    is the use's         came after the use's registration point; where the class reads tuples of
                         operators, or documents that others want, both are those of the use's query
                         (`Holders`)

and it counts once, however many values both have in common.  A use also goes over its budget at an
instance that makes one skewed pair (`skew`) which the use sees.  So the budget is a matter of the
documents and of the use: other queries, the anchor in use, batches and shards do not decide it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from joins.budget.groups import ClassGroup
from joins.budget.limits import RunLimits
from joins.budget.probe import Probe, ValueJoin
from joins.classes import ClassRegistry, Positions, UseKind
from joins.memory.durations import CLOSED, UNBOUNDED
from joins.memory.slots import Ints
from joins.memory.times import Flags, Pairs

__all__ = ["Bounds", "Overrun", "PairBudget", "SkewedPair"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The allowed lateness, and how many pairs an instance may make.

    In a shard, which has a part of all instances (`is_part`), an instance with too many partners is
    paired by the value join that makes the fewest; the driver, which knows all parts, stops uses.
    """

    lateness_us: int
    pairs_max: int = UNBOUNDED
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class Overrun:
    """The uses of a class with one window and point went over the budget at a document.

    There they made `pairs` by the value joins that make fewest; without any, there is none.  An
    overrun `is_skewed` where it made a skewed pair by its value joins; then `pairs` is 1.  It is
    `of_runs` where a repetition had more runs, or longer ones, than these limits allow, and also
    `of_steps` where runs are counted: then their graphs may have had too many steps.
    """

    query_class: int
    kind: UseKind
    docid: int
    pairs: int
    value_joins: tuple[ValueJoin, ...]
    is_skewed: bool = False
    of_runs: RunLimits | None = None
    of_steps: bool = False


class SkewedPair(NamedTuple):
    """Two instances that are skewed in a class, and the smallest window that holds them.

    `docid` is the larger one of both, `other` the smaller one.  Which instances they are says
    `sides` where the class is in use by holders.
    """

    query_class: int
    docid: int
    other: int
    span_us: int
    sides: tuple[int, int] = (0, 0)


Count = Callable[[ValueJoin | None, Sequence[UseKind]], Ints]
"""Counts what an instance makes by a value join of a class, for each of some uses."""


class PairBudget:
    """The uses of classes that are over the budget in one batch.

    After the batch they are removed, or the next batch counts for them again.
    """

    def __init__(
        self, classes: ClassRegistry, bounds: Bounds, positions: Positions | None = None
    ) -> None:
        self.pairs_max = bounds.pairs_max
        self.overruns: list[Overrun] = []
        self.skewed: set[SkewedPair] = set()
        self._skewed_from: dict[tuple[int, UseKind], int] = {}
        self._is_part = bounds.is_part
        self._classes = classes
        self._positions = positions
        self._open: dict[int, list[UseKind]] = {}
        self._limits: dict[int, list[tuple[int, int]]] = {}

    def limit(self, number: int, docid: int, window_us: int = CLOSED) -> None:
        """Pair an instance from a document on for a class within a window only in this batch."""
        limits = self._limits.setdefault(number, [])
        if (docid, window_us) not in limits:
            limits.append((docid, window_us))

    def limits(self) -> dict[int, list[tuple[int, int]]]:
        """Return, for each limited class, its limits as (first document, window)."""
        limits = {number: list(own) for number, own in self._limits.items()}
        for number in {overrun.query_class for overrun in self.overruns}:
            overruns = [overrun for overrun in self.overruns if overrun.query_class == number]
            for docid in sorted({overrun.docid for overrun in overruns}):
                over = {overrun.kind for overrun in overruns if overrun.docid <= docid}
                windows = (k.window_us for k in self._classes.kinds(number) if k not in over)
                limits.setdefault(number, []).append((docid, max(windows, default=CLOSED)))
        return limits

    def closed_from(self, group: ClassGroup) -> int:
        """Return from which document on no class of a group is asked for."""
        if not self._limits:
            return UNBOUNDED
        return max(map(self._closed_from, group.members), default=UNBOUNDED)

    def closed(self) -> dict[int, int]:
        """Return the closed classes, each with the document from which on it is not asked for."""
        closed = {number: self._closed_from(number) for number in self._limits}
        return {number: docid for number, docid in closed.items() if docid != UNBOUNDED}

    def _closed_from(self, number: int) -> int:
        limits = self._limits.get(number, ())
        return min((docid for docid, window in limits if window == CLOSED), default=UNBOUNDED)

    def overrun_by(self, pair: SkewedPair) -> None:
        """Note that uses of a class see a skewed pair; of a part, it is noted in `skewed` only."""
        if pair in self.skewed:
            return
        self.skewed.add(pair)
        if self._is_part:
            return
        number = pair.query_class
        joins = tuple(self._classes.by_number[number].value_pairs())
        has = self.holding(number, *np.array([pair.sides]).T)
        for kind in self._classes.kinds(number):
            is_seen = kind.point < pair.other and pair.span_us <= kind.window_us
            if is_seen and kind.holder:
                is_seen = bool(has(kind.holder).all())
            if is_seen and pair.docid < self._skewed_from.get((number, kind), UNBOUNDED):
                self._skewed_from[number, kind] = pair.docid
                self.overruns.append(Overrun(number, kind, pair.docid, 1, joins, is_skewed=True))

    def is_open(self, number: int) -> bool:
        """Return whether some use of a class is within the budget so far."""
        return bool(self._open.get(number, True))

    def kinds(self, number: int, docid: int) -> list[UseKind]:
        """Return the uses of a class that are still open and see a document."""
        if number not in self._open:
            self._open[number] = self._classes.kinds(number)
        limits = self._limits.get(number, ())
        window = min((w for since, w in limits if since <= docid), default=UNBOUNDED)
        if window == CLOSED:
            return []
        return [
            kind._replace(window_us=min(kind.window_us, window))
            for kind in self._open[number]
            if kind.point < docid
        ]

    def pairs(
        self,
        group: ClassGroup,
        docid: int,
        first: Probe,
        meet: Callable[[int, ValueJoin | None], Probe],
    ) -> Iterator[Pairs]:
        """Yield the pairs of a new instance that a group's classes ask for.

        `first` is the instance's probe by the group's anchor.  If it is too large, the group's
        classes are looked at one by one, each with probes by its own value joins (`meet`).
        """
        window_us, is_symmetric = group.window_us, group.is_symmetric
        if docid >= self.closed_from(group) or not any(map(self.is_open, group.members)):
            return
        if first.partners(window_us, is_symmetric=is_symmetric) <= self.pairs_max:
            yield first.pairs([UseKind(window_us, -1)], is_symmetric=is_symmetric)
            return
        for number in filter(self.is_open, group.members):
            is_symmetric = self._classes.by_number[number].is_symmetric
            meet_own = partial(meet, number)
            for value_join, kinds in self.judge_met(number, docid, meet_own):
                pairs = meet_own(value_join).pairs(kinds, is_symmetric=is_symmetric)
                held = self._are_held(number, pairs, kinds)
                yield pairs if held.all() else pairs.keep(np.flatnonzero(held))

    def judge_met(
        self, number: int, docid: int, meet: Callable[[ValueJoin | None], Probe]
    ) -> list[tuple[ValueJoin | None, list[UseKind]]]:
        """Judge an instance (`judge`) by the pairs that it makes by each value join of a class."""
        is_symmetric = self._classes.by_number[number].is_symmetric

        def count(value_join: ValueJoin | None, kinds: Sequence[UseKind]) -> Ints:
            probe = meet(value_join)
            counts = probe.count(kinds, is_symmetric=is_symmetric)
            return self._held(number, probe, kinds, counts, is_symmetric)

        return self.judge(number, docid, count)

    def holding(self, number: int, left: Ints, right: Ints) -> Callable[[int], Flags]:
        """Return what says of which of some pairs of a class a holder has both instances."""
        holders = self._classes.holders
        if holders is None or not self._classes.has_holders(number):
            return lambda holder: np.ones(len(left), np.bool_)
        assert self._positions is not None, "parts have no holders"
        return holders.of_pairs(number, left, right, self._positions)

    def _held(
        self,
        number: int,
        probe: Probe,
        kinds: Sequence[UseKind],
        counts: Ints,
        is_symmetric: bool,
    ) -> Ints:
        """Return counts of which those over the budget are of what holders have, and no more."""
        over = [i for i in np.flatnonzero(counts > self.pairs_max).tolist() if kinds[i].holder]
        if over:
            has = self.holding(number, probe.met.left, probe.met.right)
            for i in over:
                held = has(kinds[i].holder)
                counts[i] = held.sum()
                if counts[i] > self.pairs_max:
                    some = probe.some(held)
                    (counts[i],) = some.count([kinds[i]], is_symmetric=is_symmetric)
        return counts

    def nobodys(self, number: int, docid: int, pairs: Pairs) -> Pairs:
        """Return those of a new instance's pairs that only holders have who are over the budget."""
        held = self._are_held(number, pairs, self.kinds(number, docid))
        return pairs.keep(np.flatnonzero(~held))

    def _are_held(self, number: int, pairs: Pairs, kinds: Sequence[UseKind]) -> Flags:
        """Return which pairs some of the uses within the budget have; all where none is over."""
        if not self._are_closed(number) or not all(kind.holder for kind in kinds):
            return np.ones(len(pairs), np.bool_)
        has = self.holding(number, pairs.left, pairs.right)
        held = np.zeros(len(pairs), np.bool_)
        for kind in kinds:
            held |= has(kind.holder)
        return held

    def _are_closed(self, number: int) -> bool:
        """Return whether some uses of a class are over the budget."""
        every = self._classes.kinds(number)
        return len(every) > len(self._open.get(number, every))

    def judge_counted(
        self, number: int, docid: int, kinds: Sequence[UseKind], counts: Sequence[Ints]
    ) -> None:
        """Stop the uses of a class that an instance takes over the budget.

        `counts` are the pairs that the instance makes, by value join and by use in `kinds`.
        """
        joins: list[ValueJoin | None] = [*self._classes.by_number[number].value_pairs()] or [None]
        places = {kind: i for i, kind in enumerate(kinds)}

        def count(value_join: ValueJoin | None, asked: Sequence[UseKind]) -> Ints:
            return counts[joins.index(value_join)][[places[kind] for kind in asked]]

        self.judge(number, docid, count)

    def judge(
        self, number: int, docid: int, count: Count
    ) -> list[tuple[ValueJoin | None, list[UseKind]]]:
        """Return the value joins by which to pair an instance for a class, each with its uses.

        Uses that this instance takes over the budget are stopped.
        """
        joins: list[ValueJoin | None] = [*self._classes.by_number[number].value_pairs()] or [None]
        judged: list[tuple[ValueJoin | None, list[UseKind]]] = []
        over = self.kinds(number, docid)
        made: dict[UseKind, dict[ValueJoin | None, int]] = defaultdict(dict)
        for value_join in joins:
            if not over:
                break
            for kind, pairs in zip(over, count(value_join, over).tolist(), strict=True):
                made[kind][value_join] = pairs
            within = {kind for kind in over if made[kind][value_join] <= self.pairs_max}
            judged.append((value_join, [kind for kind in over if kind in within]))
            over = [kind for kind in over if kind not in within]
        if self._is_part:
            judged += [(min(made[kind], key=made[kind].__getitem__), [kind]) for kind in over]
        else:
            self.overruns += [_overrun(number, kind, docid, made[kind]) for kind in over]
            self._open[number] = [kind for kind in self._open[number] if kind not in set(over)]
        return [each for each in judged if each[1]]


def _overrun(
    number: int, kind: UseKind, docid: int, made: Mapping[ValueJoin | None, int]
) -> Overrun:
    """Return the overrun of a use that made so many pairs by each value join."""
    pairs = min(made.values())
    joins = tuple(join for join, count in made.items() if join is not None and count == pairs)
    return Overrun(number, kind, docid, pairs, joins)
