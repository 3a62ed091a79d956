"""How far lefts are served, where rights do not all compete: where data are held against them.

A right that has the value `d` where assignments ask for a value competes with rights alone that
have it too: a left has a next for each `d`, its **group**.  Where a threshold or a window is data,
it is served step by step (`steps`).  So a left is never done, but *served* in a group up to a
height.  How far is kept for as long as the left.

A right need not look at lefts that end before an earlier right of its group and key starts: that
one has served them as high, if it is as high, ends before, counts from no later, and was in time.
Lefts that came after all grace are left out of this argument, and what they may follow with them.
"""

from __future__ import annotations

import numpy as np

from joins.memory.durations import UNBOUNDED
from joins.memory.instancetable import Hashes, mixed
from joins.memory.limits import MemoryLimits
from joins.memory.ordering import order_by
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.columns import Columns
from joins.sequences.conditions import RuleConditions
from joins.sequences.contenders import Contenders
from joins.sequences.planning.plan import Plan
from joins.sequences.steps import LOWEST, PairHeights
from joins.sequences.timeline import SortedRun, Timeline

__all__ = ["Groups", "Served"]

Groups = tuple[Hashes, Hashes]
"""Two hashes of what makes a group; zeros where all compete."""


class Served:
    """How far lefts are served by group, and the rights that have served."""

    def __init__(
        self,
        plan: Plan,
        contenders: Contenders,
        conditions: RuleConditions,
        steps: PairHeights,
        limits: MemoryLimits,
    ) -> None:
        self._plan = plan
        self._contenders = contenders
        self._conditions = conditions
        self._steps = steps
        self._all_until_us = -UNBOUNDED
        self._heights = Columns({"left": np.int64, "height": np.int64})
        # By key and hash, rows of these.
        self._lefts = Timeline(limits)
        self.rights = Timeline(limits)

    def are_served(self, rows: Ints) -> Flags:
        """Return which rows are of decisions whose lefts are served, and never done."""
        decisions = self._plan.seats["decision"][self._contenders["seat"][rows]]
        are_served: Flags = self._plan.decisions["is_served"][decisions]
        return are_served

    def bars(self, lefts: Ints, groups: Groups) -> Ints:
        """Return how high lefts are served in groups."""
        bars = np.full(len(lefts), LOWEST)
        which, rows = self._found(lefts, groups)
        bars[which] = self._heights["height"][rows]
        return bars

    def serve(self, lefts: Ints, groups: Groups, heights: Ints) -> None:
        """Take lefts as served in groups, as high as the highest of their rows here says."""
        if not len(lefts):
            return
        order = order_by(lefts, *groups[::-1], heights)
        lefts, heights = lefts[order], heights[order]
        groups = groups[0][order], groups[1][order]
        is_last = np.ones(len(order), np.bool_)
        columns = (lefts, *groups)
        is_last[:-1] = np.logical_or.reduce([each[1:] != each[:-1] for each in columns])
        lefts, heights = lefts[is_last], heights[is_last]
        groups = groups[0][is_last], groups[1][is_last]
        which, rows = self._found(lefts, groups)
        self._heights["height"][rows] = np.maximum(self._heights["height"][rows], heights[which])
        is_new = np.ones(len(lefts), np.bool_)
        is_new[which] = False
        lefts, others = lefts[is_new], groups[1][is_new].view(np.int64)
        first = self._heights.append(len(lefts), left=lefts, height=heights[is_new])
        keys = self._keys(lefts, (groups[0][is_new], groups[1][is_new]))
        self._lefts.add(keys, others, first + np.arange(len(lefts)), _all_of_use)

    def _found(self, lefts: Ints, groups: Groups) -> tuple[Ints, Ints]:
        """Return which lefts are served in groups, and the rows that say how high."""
        others = groups[1].view(np.int64)
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        spans = self._lefts.between(self._keys(lefts, groups), others, others)
        for which, run, places in spans.listed(UNBOUNDED):
            rows = run.rows[places]
            own = self._heights["left"][rows] == lefts[which]
            found.append((which[own], rows[own]))
        which, rows = (np.concatenate(each) for each in zip(*found, strict=True))
        return which, rows

    def _keys(self, lefts: Ints, groups: Groups) -> Hashes:
        instances, seats = (self._contenders[name][lefts] for name in ("instance", "seat"))
        return mixed(mixed(groups[0], instances.astype(np.uint64)), seats.astype(np.uint64))

    def renumber(self, of_use: Flags, numbers: Ints) -> None:
        """Forget lefts that are of no use; the others get other numbers."""
        kept: Flags = of_use[self._heights["left"]]
        rows = np.cumsum(kept) - 1
        self._lefts.renumber(lambda own: kept[own], rows)
        self._heights.keep(kept)
        self._heights["left"][:] = numbers[self._heights["left"]]

    def come(self, lefts: Ints, windows_us: Ints) -> None:
        """Take note of lefts that came."""
        late = self.are_served(lefts) & ~self._are_in_time(lefts)
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
        heights, counts_from = self._steps.of_rights(rows), contenders["counts_from"]

        def have_served(questions: Ints, run: SortedRun, places: Ints) -> Flags:
            before = run.rows[places]
            have_entered: Flags = counts_from[before] <= counts_from[rows[questions]]
            return have_entered & (self._steps.of_rights(before) >= heights[questions])

        last_us = contenders["end_us"][rows] - 1
        first_us = last_us - self._windows_us(rows)
        spans = self.rights.between(mixed(keys[own], groups), first_us, last_us)
        for which, before in spans.last(have_served):
            until_us[own[which]] = np.maximum(until_us[own[which]], contenders["start_us"][before])
        return until_us

    def _windows_us(self, rows: Ints) -> Ints:
        decisions = self._plan.seats["decision"][self._contenders["seat"][rows]]
        windows_us: Ints = self._plan.decisions["window_us"][decisions]
        return windows_us

    def _are_skipping(self, rights: Ints, rules: Ints) -> Flags:
        return self.are_served(rights) & self._plan.asked.are_equalities(rules)

    def _are_in_time(self, rows: Ints) -> Flags:
        contenders = self._contenders
        late_us = contenders["watermark_us"][rows] - contenders["end_us"][rows]
        in_time: Flags = late_us <= contenders.lateness_us
        return in_time


def _all_of_use(rows: Ints) -> Flags:
    return np.ones(len(rows), np.bool_)
