"""All decisions over their timelines, batch by batch.

    rows       come of streams, and become contenders (`contenders`)
    rights     enter at the document from which they count: the one that settles their end, or
               their own where that is later; till then they wait, by end
    pairs      are looked at once each, in the batch in which they are decided (`pairs`)
    alone      tuples of one operand wait until their end is settled
    absent     is asked when a tuple is decided, of what is there by then (`absence`)

Decisions of one stratum advance together, all in the same columns: a thousand decisions cost what
their rows do.  Section 1.1 of the semantics is asked of any two that are held together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from joins.memory.durations import UNBOUNDED
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.ordering import order_by
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags
from joins.memory.tupletable import TupleTable
from joins.sequences.absence import AbsentContenders
from joins.sequences.batch import DecidingBatch
from joins.sequences.clock import WatermarkSteps
from joins.sequences.conditions import RuleConditions
from joins.sequences.contenders import DONE, Contenders, StreamRows
from joins.sequences.decidedtuples import DecidedTuples
from joins.sequences.pairs import ContenderPairs
from joins.sequences.planning.outputs import ClassOutputs
from joins.sequences.planning.plan import KINDS, Plan
from joins.sequences.planning.seats import Role
from joins.sequences.takenvalues import TakenValues
from joins.sequences.waiting import Waiting
from templates.decision import DecisionKind

__all__ = ["Evaluation"]

_NEXT, _BEFORE, _SETTLED = (
    KINDS.index(kind) for kind in (DecisionKind.NEXT, DecisionKind.BEFORE, DecisionKind.SETTLED)
)

_WIDENING = 4
"""Under how many times as many windows as in the round before it is asked in the next."""


class Evaluation:
    """The contenders of all decisions of a plan, and what waits to be decided."""

    def __init__(
        self, plan: Plan, lateness_us: int, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS
    ) -> None:
        self.plan = plan
        self._contenders = Contenders(plan, lateness_us)
        self._conditions = RuleConditions(plan, self._contenders)
        self._pairs = ContenderPairs(plan, self._contenders, self._conditions, limits)
        self._absence = AbsentContenders(
            plan, self._contenders, self._conditions, self._pairs.steps, limits
        )
        self._came: dict[int, list[StreamRows]] = defaultdict(list)
        self._rows_bytes = limits.sub_batch_bytes
        self._waiting: dict[int, Waiting] = defaultdict(Waiting)
        self._swept = self._contenders_min = limits.contenders

    def __len__(self) -> int:
        return len(self._contenders)

    @property
    def waiting(self) -> int:
        """How many contenders wait until they are settled."""
        return sum(map(len, self._waiting.values()))

    def add(self, rows: StreamRows, stratum: int) -> None:
        """Take rows that decisions of a stratum read."""
        self._came[stratum].append(rows)

    def move(self) -> None:
        """Follow decisions that have moved to another stratum."""
        waiting = [each.take(np.iinfo(np.int64).max) for each in self._waiting.values()]
        self._waiting.clear()
        for times_us, rows in waiting:
            decisions = self.plan.seats["decision"][self._contenders["seat"][rows]]
            strata = self.plan.strata(decisions)
            for stratum in np.unique(strata).tolist():
                own = strata == stratum
                self._waiting[stratum].add(times_us[own], rows[own])

    def renew_keys(self) -> None:
        """Have rows be found by other words."""
        self._pairs.renew_keys()
        self._absence.renew_keys()

    # -- a batch -------------------------------------------------------------------------------

    def decide(self, stratum: int, batch: DecidingBatch) -> DecidedTuples:
        """Return what decisions of a stratum decide in the batch; their contenders are there."""
        clock = batch.clock
        if self._conditions.renew_words():
            self.renew_keys()
        parts = StreamRows.together(self._came.pop(stratum, []), self._rows_bytes)
        came = [self._contenders.add(rows, stratum) for rows in parts]
        rows = np.concatenate([np.zeros(0, np.int64), *came])
        seats = self._contenders["seat"][rows]
        roles, decisions = (self.plan.seats[name][seats] for name in ("role", "decision"))
        kinds = self.plan.decisions["kind"][decisions]
        self._absence.add(rows[roles == Role.ABSENT])
        is_left = roles == Role.LEFT
        self._wait(stratum, rows[~is_left & (roles == Role.RIGHT) | is_left & (kinds > _NEXT)])
        settled = self._settled(stratum, clock)
        if not len(rows) and not len(settled):
            return DecidedTuples.none()
        is_right = self.plan.seats["role"][self._contenders["seat"][settled]] == Role.RIGHT
        pairs = self._pairs.decide(rows[is_left & (kinds <= _NEXT)], settled[is_right], batch)
        alone = settled[~is_right]
        is_graded = self._of_decisions("grade_count", alone) > 0
        whole = self._alone(alone[~is_graded])
        left = self._absence.left(DecidedTuples.concat([pairs, whole]), batch.taken)
        return DecidedTuples.concat([left, *self._graded(alone[is_graded], stratum, batch)])

    def _wait(self, stratum: int, rows: Ints) -> None:
        """Have rows wait until they are settled: all of a right one, the first of one alone."""
        contenders = self._contenders
        decisions = self.plan.seats["decision"][contenders["seat"][rows]]
        is_right = self.plan.seats["role"][contenders["seat"][rows]] == Role.RIGHT
        length_us = contenders["end_us"][rows] - contenders["start_us"][rows]
        waits = is_right | (
            (contenders["contender"][rows] == rows)
            & (length_us <= self.plan.decisions["within_us"][decisions])
        )
        rows, decisions, is_right = rows[waits], decisions[waits], is_right[waits]
        until_us = self._until_us(rows, self._grades(rows))
        ends_us = np.where(is_right, contenders["end_us"][rows], until_us)
        self._waiting[stratum].add(ends_us + self.plan.decisions["grace_us"][decisions], rows)

    def _of_decisions(self, name: str, rows: Ints) -> Ints:
        decisions = self.plan.seats["decision"][self._contenders["seat"][rows]]
        column: Ints = self.plan.decisions[name][decisions]
        return column

    def _grades(self, rows: Ints) -> Ints:
        """Return the decisions of contenders, of graded ones the grade that comes next."""
        decisions = self.plan.seats["decision"][self._contenders["seat"][rows]]
        first, count = (self.plan.decisions[name][decisions] for name in ("grades", "grade_count"))
        grades: Ints = np.where(count > 0, first + self._contenders["grade"][rows], decisions)
        return grades

    def _until_us(self, rows: Ints, decisions: Ints) -> Ints:
        """Return the ends of the tuples that contenders alone become."""
        contenders = self._contenders
        kinds, window_us, within_us = (
            self.plan.decisions[name][decisions] for name in ("kind", "window_us", "within_us")
        )
        start_us, end_us = contenders["start_us"][rows], contenders["end_us"][rows]
        until_us = np.minimum(end_us + window_us, start_us + within_us)
        is_own = (kinds == _BEFORE) | (kinds == _SETTLED)
        return np.where(is_own, end_us, np.minimum(until_us, UNBOUNDED))

    def _settled(self, stratum: int, clock: WatermarkSteps) -> Ints:
        """Return the rows that count from documents of the batch on, in no order."""
        times_us, rows = self._waiting[stratum].take(clock.newest_us)
        at = np.maximum(clock.settling(times_us), self._contenders["docid"][rows])
        self._contenders["counts_from"][rows] = at
        return rows

    def _alone(self, rows: Ints) -> DecidedTuples:
        """Return the tuples that contenders alone become."""
        decisions = self.plan.seats["decision"][self._contenders["seat"][rows]]
        at = self._contenders["counts_from"][rows]
        return DecidedTuples.alone(decisions, rows, self._until_us(rows, decisions), at)

    def _graded(self, rows: Ints, stratum: int, batch: DecidingBatch) -> Iterator[DecidedTuples]:
        """Yield the tuples that contenders become, each for one window after the other.

        What takes a contender away under a window does so under all that are longer.  So it is
        asked under more and more windows at a time, until one is not over, or has something in it.
        """
        contenders, rows, width = self._contenders, np.sort(rows), 1
        clock = batch.clock
        while len(rows):
            next_grades = self._grades(rows)
            remaining = self._of_decisions("grade_count", rows) - contenders["grade"][rows]
            asked = np.minimum(remaining, width)
            which, grades = np.repeat(np.arange(len(rows)), asked), ranges(next_grades, asked)
            until_us = self._until_us(rows[which], grades)
            times_us = until_us + self.plan.decisions["grace_us"][grades]
            is_over = times_us < clock.newest_us
            over = np.bincount(which[is_over], minlength=len(rows))
            contenders["grade"][rows] += over.astype(np.int32)
            own = rows[which[is_over]]
            at = np.maximum(clock.settling(times_us[is_over]), contenders["docid"][own])
            tuples = DecidedTuples.alone(grades[is_over], own, until_us[is_over], at)
            left = self._absence.left(tuples, batch.taken)
            yield left.some(self.plan.decisions["is_used"][left.decision])
            kept = np.bincount(np.searchsorted(rows, left.left), minlength=len(rows))
            is_alone = kept == over
            waits = is_alone & (over < asked)
            ahead_us = times_us[np.minimum(np.cumsum(asked) - asked + over, len(times_us) - 1)]
            self._waiting[stratum].add(ahead_us[waits], rows[waits])
            is_done = ~is_alone | (over == remaining)
            contenders["grade"][rows[is_done]] = DONE
            rows = rows[~is_done & (over == asked)]
            width *= _WIDENING

    # -- what is handed on ---------------------------------------------------------------------

    def rows(self, tuples: DecidedTuples, classes: ClassOutputs, taken: TakenValues) -> TupleTable:
        """Return the rows of decided tuples that classes hand on; `taken` are the batch's."""
        which, at = classes.of_decisions(self.plan.decisions["whole"][tuples.decision])
        which, at, left = self._of_seats(tuples.left, which, at, classes.left)
        is_pair = classes.right[at] >= 0
        single, pairs = np.flatnonzero(~is_pair), np.flatnonzero(is_pair)
        again, both, right = self._of_seats(tuples.right[which], pairs, at[pairs], classes.right)
        start_us, end_us = self._contenders["start_us"][left[again]], tuples.end_us[which[again]]
        sides = [left[again], right]
        fits = self._conditions.hold(classes.rules[both], sides, start_us, end_us)
        rows = np.concatenate([single, again[fits]])
        rights = np.concatenate([np.full(len(single), -1, np.int64), right[fits]])
        order = order_by(classes.numbers[at[rows]], tuples.docid[which[rows]])
        rows, rights = rows[order], rights[order]
        numbers = classes.numbers[at[rows]]
        found = self._table(tuples.some(which[rows]), numbers, left[rows], rights)
        return replace(found, taken=taken.texts(tuples.taken[which[rows]]))

    def _of_seats(
        self, contenders: Ints, which: Ints, at: Ints, seats: Ints
    ) -> tuple[Ints, Ints, Ints]:
        """Return the rows that contenders have in the seats of classes, each behind its numbers."""
        again, rows = self._contenders.rows_of(contenders[which])
        which, at = which[again], at[again]
        own = self._contenders["seat"][rows] == seats[at]
        return which[own], at[own], rows[own]

    def _table(self, tuples: DecidedTuples, classes: Ints, left: Ints, right: Ints) -> TupleTable:
        contenders = self._contenders
        is_pair = right >= 0
        second = np.where(is_pair, right, left)
        depth, watermark_us = (
            np.maximum(contenders[name][left], contenders[name][second])
            for name in ("depth", "watermark_us")
        )
        grace_us = self.plan.decisions["grace_us"][tuples.decision]
        decided = [
            tuples.docid,
            1 + depth.astype(np.int64),
            np.maximum(tuples.end_us + grace_us, watermark_us),
            tuples.end_us,
        ]
        return TupleTable(
            classes,
            contenders["instance"][left],
            np.where(is_pair, contenders["instance"][second], 0),
            self._pairs.steps.spans_us(tuples.decision, tuples.height),
            is_pair.astype(np.int64),
            np.array([0, 1, 3], np.int64),
            np.zeros(3, np.int64),
            np.stack(decided, axis=1),
            self._pairs.steps.bars(tuples.decision, tuples.bar),
        )

    # -- what is kept --------------------------------------------------------------------------

    def evict(self, horizon_us: int) -> None:
        """Forget, once there are enough, what nothing can be decided with any more.

        What waits is kept: its end is not settled.
        """
        if len(self) <= self._swept:
            return
        of_use = self._of_use(horizon_us)
        numbers = np.where(of_use, np.cumsum(of_use) - 1, -1)
        pairs = self._pairs
        timelines = [pairs.lefts, pairs.rights, pairs.served.rights]
        for timeline in (*timelines, self._absence.cancelling):
            timeline.renumber(lambda rows: of_use[rows], numbers)
        pairs.served.renumber(of_use, numbers)
        pairs.spared.renumber(numbers)
        for waiting in self._waiting.values():
            waiting.renumber(numbers)
        self._contenders.keep(of_use, numbers)
        self._conditions.forget_sets()
        self._swept = max(self._contenders_min, 2 * len(self))

    def _of_use(self, horizon_us: int) -> Flags:
        contenders = self._contenders
        decisions = self.plan.seats["decision"][contenders["seat"]]
        retention_us = self.plan.decisions["retention_us"][decisions]
        of_use: Flags = contenders["end_us"] >= horizon_us - retention_us
        of_use |= retention_us >= UNBOUNDED
        of_use &= contenders["grade"][contenders["contender"]] != DONE
        for waiting in self._waiting.values():
            waits = np.zeros(len(contenders), np.bool_)
            waits[contenders["contender"][waiting.rows()]] = True
            of_use |= waits[contenders["contender"]]
        of_use &= self.plan.decisions["is_used"][decisions]
        return of_use
