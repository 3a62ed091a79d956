"""Absence: which decided tuples are taken away by what stands where nothing may stand.

It is asked once, when a tuple is decided, of what is there by then.  A row that is held against
data takes a tuple away for some of them (`TakingKind`): then all that stand there are looked at,
which raise the tuple's bar, or are the values for which it is taken, or the only ones for which it
is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from joins.memory.instancetable import Hashes
from joins.memory.limits import MemoryLimits
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.conditions import RuleConditions
from joins.sequences.contenders import Contenders
from joins.sequences.decidedtuples import DecidedTuples
from joins.sequences.planning.ascents import Ascent, TakingKind
from joins.sequences.planning.plan import KINDS, NO_TERM, Plan
from joins.sequences.steps import LOWEST, PairHeights, heights_of
from joins.sequences.takenvalues import RefusedData, TakenValues
from joins.sequences.timeline import RunSpans, SortedRun, Timeline
from templates.decision import DecisionKind
from templates.exceptions import DataSet

__all__ = ["AbsentContenders"]

_BEFORE, _AFTER, _AROUND = (
    KINDS.index(kind) for kind in (DecisionKind.BEFORE, DecisionKind.AFTER, DecisionKind.AROUND)
)


_ASCENTS = {TakingKind.RISING: Ascent.RISING, TakingKind.FALLING: Ascent.FALLING}


@dataclass(frozen=True, slots=True)
class _AskedTuples:
    """Rows of decided tuples, each with a case that would take the tuple away.

    `parts` are the rows, side by side; `window_us` is that of the absent unit, `takings` for which
    data a row takes away.
    """

    which: Ints
    tuples: DecidedTuples
    rules: Ints
    window_us: Ints
    takings: Ints
    parts: list[Ints]

    def some(self, chosen: Flags | Ints) -> _AskedTuples:
        """Return some of the rows."""
        return _AskedTuples(
            self.which[chosen],
            self.tuples.some(chosen),
            self.rules[chosen],
            self.window_us[chosen],
            self.takings[chosen],
            [part[chosen] for part in self.parts],
        )


class AbsentContenders:
    """The contenders of all absent units."""

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
        self._refused = RefusedData(plan, contenders)
        self._listed = limits.listed_pairs
        self.cancelling = Timeline(limits)

    def add(self, rows: Ints) -> None:
        """Take rows that came of absent units."""
        self.cancelling.add(*self._entries(rows), _all_of_use)

    def renew_keys(self) -> None:
        """Make the keys of all rows anew."""
        self.cancelling.rewrite(self._entries)

    def _entries(self, rows: Ints) -> tuple[Hashes, Ints, Ints]:
        which, rules = self._plan.seats.rules_of(self._contenders["seat"][rows])
        some, keys = self._conditions.keys(rules, [rows[which]], 1)
        own = rows[which][some]
        return keys, self._contenders["end_us"][own], own

    def left(self, tuples: DecidedTuples, values: TakenValues) -> DecidedTuples:
        """Return the tuples that nothing takes away for all data.

        Of the others `values` notes for which they are taken away.
        """
        left = [DecidedTuples.none()]
        for is_pair in (True, False):
            own = tuples.some((tuples.right >= 0) == is_pair)
            if not len(own):
                continue
            asked = self._asked(own, is_pair=is_pair)
            is_whole = asked.takings == TakingKind.WHOLE
            taken = np.zeros(len(own), np.bool_)
            taken[asked.which[is_whole][self._cancelled(asked.some(is_whole))]] = True
            if not is_whole.all():
                own, taken = self._for_data(own, asked.some(~is_whole), taken, values)
            left.append(own.some(~taken))
        return DecidedTuples.concat(left)

    def _asked(self, tuples: DecidedTuples, *, is_pair: bool) -> _AskedTuples:
        """Return the rows of tuples with the cases that apply to them."""
        contenders, seats = self._contenders, self._contenders["seat"]
        right = seats[tuples.right] if is_pair else np.full(len(tuples), -1, np.int64)
        which, cases = self._plan.cases_of(tuples.decision, seats[tuples.left], right)
        parts: list[Ints] = []
        for side in [tuples.left, tuples.right][: 1 + is_pair]:
            again, rows = contenders.rows_of(side[which])
            own = self._plan.seats["is_deciding"][seats[rows]]
            own &= self._plan.are_beside(cases[again], seats[rows])
            again, rows = again[own], rows[own]
            which, cases = which[again], cases[again]
            parts = [*(part[again] for part in parts), rows]
        rules, window_us, terms, takings = (
            self._plan.cases[name][cases] for name in ("rule", "window_us", "window", "taking")
        )
        own = np.flatnonzero(terms != NO_TERM)
        if len(own):
            said_us = self._conditions.numbers(terms[own], parts[0][own])
            window_us[own] = said_us.astype(np.int64)
        return _AskedTuples(which, tuples.some(which), rules, window_us, takings, parts)

    def _for_data(
        self, tuples: DecidedTuples, asked: _AskedTuples, taken: Flags, values: TakenValues
    ) -> tuple[DecidedTuples, Flags]:
        """Return tuples with all that takes them away for some data, and which are for none."""
        asked = asked.some(~taken[asked.which])
        bars = tuples.bar.copy()
        equal, of_data = ([(np.zeros(0, np.int64), np.zeros(0, np.int64))] for _ in range(2))
        asked, spans = self._stretches(asked)
        for questions, run, places in spans.listed(self._listed):
            fits = self._fit(asked, questions, run, places)
            found, near = asked.some(questions[fits]), run.rows[places[fits]]
            np.maximum.at(bars, found.which, self._heights(found, near))
            for taking, rows in ((TakingKind.EQUAL, equal), (TakingKind.OF_DATA, of_data)):
                own = found.takings == taking
                rows.append((found.which[own], near[own]))
        which, near = (np.concatenate(each) for each in zip(*equal, strict=True))
        slots = self._steps.slots(near)
        own, numbers = values.add(which, *(each[slots] for each in self._contenders.hashes))
        of_values = tuples.taken.copy()
        of_values[own] = numbers
        which, near = (np.concatenate(each) for each in zip(*of_data, strict=True))
        spared: dict[int, DataSet] = {}
        for row, refused in zip(which.tolist(), self._refused.of(near), strict=True):
            known = spared.get(row)
            spared[row] = refused & (values.data(int(of_values[row])) if known is None else known)
        some = [row for row, data in spared.items() if data]
        of_values[some] = values.add_data([spared[row] for row in some])
        taken[[row for row, data in spared.items() if not data]] = True
        needs = self._steps.need_windows(tuples.decision)
        return replace(tuples, bar=bars, taken=of_values), taken | needs & (tuples.height <= bars)

    def _heights(self, asked: _AskedTuples, near: Ints) -> Ints:
        """Return up to where rows raise the bars of tuples."""
        contenders, tuples = self._contenders, asked.tuples
        heights = np.full(len(near), LOWEST)
        for taking, ascent in _ASCENTS.items():
            own = np.flatnonzero(asked.takings == taking)
            if len(own):
                heights[own] = self._steps.of_values(near[own], ascent)
        own = np.flatnonzero(asked.takings == TakingKind.SCORED)
        if len(own):
            parts = [*(part[own] for part in asked.parts), near[own]]
            heights[own] = heights_of(self._conditions.scores(asked.rules[own], parts))
        reaching = asked.takings == TakingKind.REACHING
        is_before = self._kinds(asked) == _BEFORE
        own = np.flatnonzero(reaching & ~is_before)
        heights[own] = contenders["end_us"][near[own]] - tuples.end_us[own]
        own = np.flatnonzero(reaching & is_before)
        heights[own] = -contenders.needed_us(near[own], asked.parts[0][own])
        own = np.flatnonzero(asked.takings == TakingKind.MEETING)
        if len(own):
            late_us = [contenders.late_us(part[own], near[own]) for part in asked.parts]
            heights[own] = -np.maximum.reduce(late_us)
        return heights

    def _cancelled(self, asked: _AskedTuples) -> Ints:
        """Return the places of rows that something there takes away."""
        if not len(asked.which):
            return asked.which
        own = np.arange(len(asked.which))
        asked, spans = self._stretches(replace(asked, which=own))
        own = asked.which

        # What stands between, or before, is most likely what came last.
        is_last = self._kinds(asked) <= _BEFORE
        taken = np.zeros(len(own), np.bool_)
        for at_end in (True, False):
            some = np.flatnonzero(is_last == at_end)
            fits = partial(self._fit, asked.some(some))
            taken[some] = spans.some(some).has(fits, is_last=at_end)
        return own[taken]

    def _stretches(self, asked: _AskedTuples) -> tuple[_AskedTuples, RunSpans]:
        """Return rows that have a key, and where what may take them away stands."""
        own, keys = self._conditions.keys(asked.rules, asked.parts, 0)
        asked = asked.some(own)
        return asked, self.cancelling.between(keys, *self._between(asked))

    def _fit(self, asked: _AskedTuples, questions: Ints, run: SortedRun, places: Ints) -> Flags:
        return self._stand(asked.some(questions), run.rows[places])

    def _kinds(self, asked: _AskedTuples) -> Ints:
        kinds: Ints = self._plan.decisions["kind"][asked.tuples.decision]
        return kinds

    def _between(self, asked: _AskedTuples) -> tuple[Ints, Ints]:
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

    def _stand(self, asked: _AskedTuples, near: Ints) -> Flags:
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
