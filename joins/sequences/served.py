"""Which lefts have their next, where rights compete in groups: those of one assignment's data.

A right that has the value `d` where assignments ask for a value competes with those alone that have
it too: a left has a next for each `d` (`docs/decided.md`).  So a left is never done, but *served*
in a group.  What was served is kept by hashes, 128 bits, for as long as the left.

A right need not look at lefts that end before an earlier right of its group and key starts: that
one has served them, if it ends before, counts from no later, and was in time.  Lefts that came
after all grace are left out of this argument, and what they may follow with them.
"""

from __future__ import annotations

import numpy as np

from joins.memory.durations import UNBOUNDED
from joins.memory.instancetable import Hashes
from joins.memory.limits import MemoryLimits
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.conditions import RuleConditions, mixed
from joins.sequences.contenders import Contenders
from joins.sequences.plan import Plan
from joins.sequences.timeline import Timeline

__all__ = ["Groups", "Served"]

Groups = tuple[Hashes, Hashes]
"""Two hashes of what makes a group; zeros where all compete."""


class Served:
    """The lefts that are served by group, and the rights that have served."""

    def __init__(
        self, plan: Plan, contenders: Contenders, conditions: RuleConditions, limits: MemoryLimits
    ) -> None:
        self._plan = plan
        self._contenders = contenders
        self._conditions = conditions
        self._all_until_us = -UNBOUNDED
        self.lefts, self.rights = Timeline(limits), Timeline(limits)

    def are_grouped(self, rows: Ints) -> Flags:
        """Return which rows are of decisions whose rights compete in groups."""
        decisions = self._plan.seats["decision"][self._contenders["seat"][rows]]
        grouped: Flags = self._plan.decisions["is_grouped"][decisions]
        return grouped

    def are_served(self, lefts: Ints, groups: Groups) -> Flags:
        """Return which lefts are served in a group."""
        others = groups[1].view(np.int64)
        served: Flags = self.lefts.between(self._keys(lefts, groups), others, others).counts() > 0
        return served

    def serve(self, lefts: Ints, groups: Groups) -> None:
        """Take lefts as served in groups."""
        others = groups[1].view(np.int64)
        self.lefts.add(self._keys(lefts, groups), others, lefts, _all_of_use)

    def _keys(self, lefts: Ints, groups: Groups) -> Hashes:
        instances, seats = (self._contenders[name][lefts] for name in ("instance", "seat"))
        return mixed(mixed(groups[0], instances.astype(np.uint64)), seats.astype(np.uint64))

    def come(self, lefts: Ints, windows_us: Ints) -> None:
        """Take note of lefts that came."""
        late = self.are_grouped(lefts) & ~self._are_in_time(lefts)
        until_us = self._contenders["end_us"][lefts[late]] + windows_us[late]
        self._all_until_us = max(self._all_until_us, int(until_us.max(initial=-UNBOUNDED)))

    def enter(self, rights: Ints, rules: Ints, keys: Hashes) -> None:
        """Take note of rights that enter under keys of rules."""
        own = np.flatnonzero(self._are_skipping(rights, rules) & self._are_in_time(rights))
        rows = rights[own]
        groups, _ = self._conditions.groups(rows)
        self.rights.add(
            mixed(keys[own], groups), self._contenders["end_us"][rows], rows, _all_of_use
        )

    def served_until_us(self, rights: Ints, rules: Ints, keys: Hashes) -> Ints:
        """Return before when all lefts are served that rights may follow."""
        contenders = self._contenders
        until_us = np.full(len(rights), -UNBOUNDED)
        own = np.flatnonzero(self._are_skipping(rights, rules))
        own = own[contenders["end_us"][rights[own]] > self._all_until_us]
        if not len(own):
            return until_us
        rows = rights[own]
        groups, _ = self._conditions.groups(rows)
        first_us = np.full(len(own), -UNBOUNDED)
        spans = self.rights.between(
            mixed(keys[own], groups), first_us, contenders["end_us"][rows] - 1
        )
        for part in spans.parts:
            has = np.flatnonzero(part.starts < part.stops)
            before = part.run.rows[part.stops[has] - 1]
            counts_from = contenders["counts_from"]
            has_entered = counts_from[before] <= counts_from[rows[has]]
            has, before = has[has_entered], before[has_entered]
            until_us[own[has]] = np.maximum(until_us[own[has]], contenders["start_us"][before])
        return until_us

    def _are_skipping(self, rights: Ints, rules: Ints) -> Flags:
        return self.are_grouped(rights) & self._plan.asked.are_equalities(rules)

    def _are_in_time(self, rows: Ints) -> Flags:
        contenders = self._contenders
        late_us = contenders["watermark_us"][rows] - contenders["end_us"][rows]
        in_time: Flags = late_us <= contenders.lateness_us
        return in_time


def _all_of_use(rows: Ints) -> Flags:
    return np.ones(len(rows), np.bool_)
