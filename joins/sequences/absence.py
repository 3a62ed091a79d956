"""Absence: which decided tuples are taken away by what stands where nothing may stand.

It is asked once, when a tuple is decided, of what is there by then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from joins.memory.limits import MemoryLimits
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.conditions import RuleConditions
from joins.sequences.contenders import Contenders
from joins.sequences.pairs import DecidedTuples
from joins.sequences.planning.plan import KINDS, Plan
from joins.sequences.timeline import SortedRun, Timeline
from templates.decision import DecisionKind

__all__ = ["AbsentContenders"]

_BEFORE, _AFTER, _AROUND = (
    KINDS.index(kind) for kind in (DecisionKind.BEFORE, DecisionKind.AFTER, DecisionKind.AROUND)
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Rows of decided tuples, each with a case that would take the tuple away.

    `parts` are the rows, side by side; `window_us` is that of the absent unit.
    """

    which: Ints
    tuples: DecidedTuples
    rules: Ints
    window_us: Ints
    parts: list[Ints]

    def some(self, chosen: Flags | Ints) -> _Asked:
        """Return some of the rows."""
        return _Asked(
            self.which[chosen],
            self.tuples.some(chosen),
            self.rules[chosen],
            self.window_us[chosen],
            [part[chosen] for part in self.parts],
        )


class AbsentContenders:
    """The contenders of all absent units."""

    def __init__(
        self, plan: Plan, contenders: Contenders, conditions: RuleConditions, limits: MemoryLimits
    ) -> None:
        self._plan = plan
        self._contenders = contenders
        self._conditions = conditions
        self.cancelling = Timeline(limits)

    def add(self, rows: Ints) -> None:
        """Take rows that came of absent units."""
        which, rules = self._plan.rules_of(self._contenders["seat"][rows])
        some, keys = self._conditions.keys(rules, [rows[which]], 1)
        own = rows[which][some]
        self.cancelling.add(keys, self._contenders["end_us"][own], own, _all_of_use)

    def left(self, tuples: DecidedTuples) -> DecidedTuples:
        """Return the tuples that nothing takes away."""
        taken = np.zeros(len(tuples), np.bool_)
        for is_pair in (True, False):
            own = np.flatnonzero((tuples.right >= 0) == is_pair)
            if not len(own):
                continue
            asked = self._asked(tuples.some(own), is_pair=is_pair)
            taken[own[asked.which[self._cancelled(asked)]]] = True
        return tuples.some(~taken)

    def _asked(self, tuples: DecidedTuples, *, is_pair: bool) -> _Asked:
        """Return the rows of tuples with the cases that apply to them."""
        contenders, seats = self._contenders, self._contenders["seat"]
        right = seats[tuples.right] if is_pair else np.full(len(tuples), -1, np.int64)
        which, rules, window_us = self._plan.cases_of(tuples.decision, seats[tuples.left], right)
        parts: list[Ints] = []
        for side in [tuples.left, tuples.right][: 1 + is_pair]:
            again, rows = contenders.rows_of(side[which])
            own = self._plan.seats["is_deciding"][seats[rows]]
            again, rows = again[own], rows[own]
            which, rules, window_us = which[again], rules[again], window_us[again]
            parts = [*(part[again] for part in parts), rows]
        return _Asked(which, tuples.some(which), rules, window_us, parts)

    def _cancelled(self, asked: _Asked) -> Ints:
        """Return the places of rows that something there takes away."""
        if not len(asked.which):
            return asked.which
        own, keys = self._conditions.keys(asked.rules, asked.parts, 0)
        asked = asked.some(own)
        first_us, last_us = self._between(asked)
        spans = self.cancelling.between(keys, first_us, last_us)

        # What stands between, or before, is most likely what came last.
        is_last = self._kinds(asked) <= _BEFORE
        taken = np.zeros(len(own), np.bool_)
        for at_end in (True, False):
            some = np.flatnonzero(is_last == at_end)
            fits = partial(self._fit, asked.some(some))
            taken[some] = spans.some(some).has(fits, is_last=at_end)
        return own[taken]

    def _fit(self, asked: _Asked, questions: Ints, run: SortedRun, places: Ints) -> Flags:
        return self._stand(asked.some(questions), run.rows[places])

    def _kinds(self, asked: _Asked) -> Ints:
        kinds: Ints = self._plan.decisions["kind"][asked.tuples.decision]
        return kinds

    def _between(self, asked: _Asked) -> tuple[Ints, Ints]:
        """Return between which times an absent row has to end, both included."""
        contenders, tuples = self._contenders, asked.tuples
        window_us = self._plan.decisions["window_us"][tuples.decision]
        start_us, end_us = contenders["start_us"], contenders["end_us"]
        left_us = end_us[tuples.left]
        if len(asked.parts) > 1:
            first_us = np.maximum(left_us + 1, tuples.end_us - asked.window_us)
            return first_us, start_us[tuples.right] - 1
        kinds = self._kinds(asked)
        first_us = np.choose(
            kinds - _BEFORE, [left_us - asked.window_us, left_us + 1, left_us - window_us]
        )
        last_us = np.where(kinds == _BEFORE, start_us[tuples.left] - 1, tuples.end_us)
        return first_us, last_us

    def _stand(self, asked: _Asked, near: Ints) -> Flags:
        """Return where a row that ends in time stands where it takes a tuple away, and may."""
        contenders, tuples = self._contenders, asked.tuples
        kinds = self._kinds(asked)
        window_us = self._plan.decisions["window_us"][tuples.decision]
        start_us, end_us = contenders["start_us"], contenders["end_us"]
        holds = contenders["docid"][near] <= tuples.docid
        is_behind = start_us[near] > end_us[tuples.left]
        around = np.flatnonzero(kinds == _AROUND)
        if len(around):
            near_us, left_us = end_us[near[around]], end_us[tuples.left[around]]
            is_behind[around] = np.abs(near_us - left_us) <= window_us[around]
            is_behind[around] &= ~contenders.share(near[around], tuples.left[around])
        holds &= is_behind | (kinds == _BEFORE)
        own_us = np.where(kinds == _BEFORE, asked.window_us, window_us)
        begin_us, stop_us = start_us[near], end_us[near]
        for part in asked.parts:
            holds &= contenders.meet(part, near, own_us)
            begin_us = np.minimum(begin_us, start_us[part])
            stop_us = np.maximum(stop_us, end_us[part])
        some = np.flatnonzero(holds)
        sides = [*(part[some] for part in asked.parts), near[some]]
        holds[some] = self._conditions.hold(asked.rules[some], sides, begin_us[some], stop_us[some])
        return holds


def _all_of_use(rows: Ints) -> Flags:
    return np.ones(len(rows), np.bool_)
