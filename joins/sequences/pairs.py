"""Pairs of a left and a right contender, in the order in which they are decided.

    a left that comes    looks at the rights that count by then: of a NEXT, the first to end
    a right that enters  looks at the lefts that are there, right after right as they enter

So each pair is looked at once, in the batch in which it is decided.  A left of a NEXT takes the
pairs that are decided first, of these the ones that end first, and is done.  Rights that enter are
taken some at a time, so that no more is listed than has to be: between two that are decided at
different places a left that is done is looked at no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from joins.memory.durations import UNBOUNDED
from joins.memory.instancetable import Hashes
from joins.memory.limits import MemoryLimits
from joins.memory.ordering import order_by
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.batch import DecidingBatch
from joins.sequences.clock import WatermarkSteps
from joins.sequences.conditions import RuleConditions
from joins.sequences.contenders import DONE, Contenders
from joins.sequences.decidedtuples import DecidedTuples
from joins.sequences.planning.ascents import Ascent
from joins.sequences.planning.plan import KINDS, Plan
from joins.sequences.served import Served
from joins.sequences.steps import LOWEST, PairHeights, heights_of
from joins.sequences.takenvalues import SparedData
from joins.sequences.timeline import RunSpans, SortedRun, Timeline
from templates.decision import DecisionKind

__all__ = ["ContenderPairs"]

_CALL_COST = 64
"""How many times as much as to list a pair it costs to call a condition for it."""

_NEXT = KINDS.index(DecisionKind.NEXT)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Rows under the keys of rules."""

    rows: Ints
    rules: Ints
    keys: Hashes

    def __len__(self) -> int:
        return len(self.rows)

    def some(self, chosen: Flags | Ints | slice) -> _Entries:
        """Return some of the entries."""
        return _Entries(self.rows[chosen], self.rules[chosen], self.keys[chosen])


@dataclass(frozen=True, slots=True)
class _Questions:
    """Entries that ask for what ends between two times and counts from `until` at the latest."""

    entries: _Entries
    first_us: Ints
    last_us: Ints
    until: Ints

    def some(self, chosen: Flags) -> _Questions:
        """Return some of the questions."""
        return _Questions(
            self.entries.some(chosen),
            self.first_us[chosen],
            self.last_us[chosen],
            self.until[chosen],
        )


@dataclass(frozen=True, slots=True)
class _Portions:
    """Rights in the order of entering: up to where they are taken together.

    `ends` are how many lefts there are up to each; `firsts` are the rights that enter at another
    place, or time, than the one before.
    """

    ends: Ints
    firsts: Ints

    @classmethod
    def of(cls, counts: Ints, *places: Ints) -> _Portions:
        """Return rights that have so many lefts each, and enter at some places."""
        is_next = np.logical_or.reduce([column[1:] != column[:-1] for column in places])
        return cls(np.cumsum(counts), np.flatnonzero(is_next) + 1)

    def stop(self, start: int, most: int) -> int:
        """Return up to where rights have so many lefts, about: those of one place are together."""
        before = int(self.ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(self.ends, before + most, "right")))
        at = int(np.searchsorted(self.firsts, stop))
        return int(self.firsts[at]) if at < len(self.firsts) else len(self.ends)


class ContenderPairs:
    """The left and the right contenders of all decisions that have both."""

    def __init__(
        self, plan: Plan, contenders: Contenders, conditions: RuleConditions, limits: MemoryLimits
    ) -> None:
        self._plan = plan
        self._contenders = contenders
        self._conditions = conditions
        self._listed = limits.listed_pairs
        self.lefts, self.rights = Timeline(limits), Timeline(limits)
        self.steps = PairHeights(plan, contenders)
        self.served = Served(plan, contenders, conditions, self.steps, limits)
        self.spared = SparedData(plan, contenders, conditions)

    def __len__(self) -> int:
        return len(self.lefts) + len(self.rights)

    def decide(self, lefts: Ints, rights: Ints, batch: DecidingBatch) -> DecidedTuples:
        """Return the pairs that are decided in the batch.

        `lefts` are the rows that came, and `rights` the ones that enter, whose `counts_from` says
        where.
        """
        clock = batch.clock
        self.spared.begin(batch.taken)
        enter, come = self._entries(rights, 1), self._entries(lefts, 0)
        ends_us = self._contenders["end_us"]
        self.rights.add(enter.keys, ends_us[enter.rows], enter.rows, self.are_open)
        self.served.come(come.rows, self._of_decision("window_us", come.rows))
        found = self._ahead(come, clock)
        come = come.some(self.are_open(come.rows))
        self.lefts.add(come.keys, ends_us[come.rows], come.rows, self.are_open)
        first_new = int(lefts.min()) if len(lefts) else len(self._contenders)
        return DecidedTuples.concat([found, *self._behind(enter, first_new, clock)])

    def renew_keys(self) -> None:
        """Make the keys of all rows anew."""
        for half, timeline in enumerate((self.lefts, self.rights)):
            timeline.rewrite(partial(self._entry_columns, half=half))

    def _entry_columns(self, rows: Ints, half: int) -> tuple[Hashes, Ints, Ints]:
        entries = self._entries(rows, half)
        return entries.keys, self._contenders["end_us"][entries.rows], entries.rows

    def are_open(self, rows: Ints) -> Flags:
        """Return which rows are of contenders that have not been decided for good."""
        done: Flags = self._contenders["grade"][self._contenders["contender"][rows]] == DONE
        return ~done

    def _entries(self, rows: Ints, half: int) -> _Entries:
        which, rules = self._plan.seats.rules_of(self._contenders["seat"][rows])
        some, keys = self._conditions.keys(rules, [rows[which]], half)
        return _Entries(rows[which][some], rules[some], keys)

    def _of_decision(self, name: str, rows: Ints) -> Ints:
        decisions = self._plan.seats["decision"][self._contenders["seat"][rows]]
        column: Ints = self._plan.decisions[name][decisions]
        return column

    # -- lefts that come -----------------------------------------------------------------------

    def _ahead(self, come: _Entries, clock: WatermarkSteps) -> DecidedTuples:
        """Have lefts that came look at the rights that count already."""
        if not len(come):
            return DecidedTuples.none()
        contenders, rows = self._contenders, come.rows
        first_us, docid = contenders["end_us"][rows] + 1, contenders["docid"][rows]
        # What counts by then is settled by then.
        settled_us = clock.newest_through(docid) - self._of_decision("grace_us", rows) - 1
        last_us = np.minimum.reduce(
            [
                settled_us,
                first_us - 1 + self._of_decision("window_us", rows),
                contenders["start_us"][rows] + self._of_decision("within_us", rows),
            ]
        )
        asked = _Questions(come, first_us, last_us, np.maximum(docid, clock.before))
        asked = asked.some(first_us <= last_us)
        is_next = self._of_decision("kind", asked.entries.rows) == _NEXT
        is_served = self.served.are_served(asked.entries.rows)
        is_served |= self._of_decision("is_sparing", asked.entries.rows) > 0
        return DecidedTuples.concat(
            [
                self._every(asked.some(~is_next)),
                self._first(asked.some(is_next & ~is_served)),
                self._nexts(self._every(asked.some(is_served))),
            ]
        )

    def _first(self, asked: _Questions) -> DecidedTuples:
        """Return the pairs of each left that end first; these lefts are done."""
        if not len(asked.entries):
            return DecidedTuples.none()
        ends_us = self._spans(asked).first(partial(self._fit_ahead, asked), UNBOUNDED)
        lefts, which = np.unique(
            self._contenders["contender"][asked.entries.rows], return_inverse=True
        )
        least_us = np.full(len(lefts), UNBOUNDED, np.int64)
        np.minimum.at(least_us, which, ends_us)
        self._contenders["grade"][lefts[least_us < UNBOUNDED]] = DONE
        at = least_us[which]
        return self._every(replace(asked, first_us=at, last_us=at).some(at < UNBOUNDED))

    def _every(self, asked: _Questions) -> DecidedTuples:
        """Return all pairs that are asked for."""
        if not len(asked.entries):
            return DecidedTuples.none()
        found = [DecidedTuples.none()]
        for questions, run, places in self._spans(asked).listed(self._listed):
            fitting = self._fit_ahead(asked, questions, run, places)
            lefts, rights = asked.entries.rows[questions[fitting]], run.rows[places[fitting]]
            rules = asked.entries.rules[questions[fitting]]
            found.append(self._tuples(rules, lefts, rights, self._contenders["docid"][lefts]))
        return DecidedTuples.concat(found).distinct()

    def _spans(self, asked: _Questions) -> RunSpans:
        return self.rights.between(asked.entries.keys, asked.first_us, asked.last_us)

    def _fit_ahead(self, asked: _Questions, questions: Ints, run: SortedRun, places: Ints) -> Flags:
        rights = run.rows[places]
        fits = self._contenders["counts_from"][rights] <= asked.until[questions]
        self._fit(asked.entries.some(questions), rights, fits, is_left=True)
        return fits

    # -- rights that enter ---------------------------------------------------------------------

    def _behind(
        self, enter: _Entries, first_new: int, clock: WatermarkSteps
    ) -> Iterator[DecidedTuples]:
        """Have rights that enter look at the lefts that are there, in the order of entering."""
        if not len(enter):
            return
        contenders = self._contenders
        enter = enter.some(
            order_by(contenders["counts_from"][enter.rows], contenders["end_us"][enter.rows])
        )
        self.served.enter(enter.rows, enter.rules, enter.keys)
        # To list a pair in vain costs less than to call a condition for it.
        is_called = self._plan.asked.has_conditions(enter.rules)
        most = self._listed // _CALL_COST if is_called else self._listed
        spans, portions = self._lefts_before(enter)
        start = 0
        while start < len(enter):
            stop = portions.stop(start, most)
            some = slice(start, stop)
            yield self._taken(enter.some(some), spans.some(some), first_new, clock)
            start = stop
            if self.lefts.sweep(self.are_open):
                enter, start = enter.some(slice(stop, None)), 0
                spans, portions = self._lefts_before(enter)

    def _lefts_before(self, enter: _Entries) -> tuple[RunSpans, _Portions]:
        """Return where the lefts stand that rights may follow, and how the rights are portioned."""
        end_us, start_us = (self._contenders[n][enter.rows] for n in ("end_us", "start_us"))
        first_us = end_us - self._of_decision("window_us", enter.rows)
        served_us = self.served.served_until_us(enter.rows, enter.rules, enter.keys)
        first_us = np.maximum(first_us, served_us)
        spans = self.lefts.between(enter.keys, first_us, start_us - 1)
        places = (self._contenders[name][enter.rows] for name in ("counts_from", "end_us"))
        return spans, _Portions.of(spans.counts(), *places)

    def _taken(
        self, enter: _Entries, spans: RunSpans, first_new: int, clock: WatermarkSteps
    ) -> DecidedTuples:
        """Return the pairs of some rights; lefts of a NEXT that have one are done."""
        contenders, found = self._contenders, [DecidedTuples.none()]
        for questions, run, places in spans.listed(UNBOUNDED):
            lefts = run.rows[places]
            fits = self.are_open(lefts)
            run.wasted += len(lefts) - int(np.count_nonzero(fits))
            from_docid = contenders["counts_from"][enter.rows[questions]]
            docid = contenders["docid"][lefts]
            # A left that came in the batch has looked ahead at what counted by then.
            fits &= (lefts < first_new) | (from_docid > np.maximum(docid, clock.before))
            self._fit(enter.some(questions), lefts, fits, is_left=False)
            rights = enter.rows[questions[fits]]
            decided_at = np.maximum(from_docid, docid)[fits]
            rules = enter.rules[questions[fits]]
            found.append(self._tuples(rules, lefts[fits], rights, decided_at))
        pairs = DecidedTuples.concat(found)
        is_next = self._plan.decisions["kind"][pairs.decision] == _NEXT
        nexts = self._nexts(pairs.some(is_next))
        return DecidedTuples.concat([pairs.some(~is_next), nexts]).distinct()

    def _nexts(self, pairs: DecidedTuples) -> DecidedTuples:
        """Return the first pairs of lefts, or of their groups; these lefts are done, or served."""
        is_sparing = self._plan.decisions["is_sparing"][pairs.decision]
        if is_sparing.any():
            spared = self.spared.nexts(pairs.some(is_sparing))
            return DecidedTuples.concat([spared, self._nexts(pairs.some(~is_sparing))])
        groups = self._conditions.groups(pairs.right)
        bars = np.full(len(pairs), LOWEST)
        own = np.flatnonzero(self.served.are_served(pairs.left))
        bars[own] = self.served.bars(pairs.left[own], (groups[0][own], groups[1][own]))
        nexts = pairs.above(groups, bars)
        is_served = self.served.are_served(nexts.left)
        self._contenders["grade"][nexts.left[~is_served]] = DONE
        served = nexts.some(is_served)
        groups = self._conditions.groups(served.right)
        self.served.serve(served.left, groups, served.height)
        return nexts

    # -- pairs ---------------------------------------------------------------------------------

    def _fit(self, entries: _Entries, others: Ints, fits: Flags, *, is_left: bool) -> None:
        """Leave out the pairs of rows, one of them of an entry, that do not fit."""
        contenders = self._contenders
        own = np.flatnonzero(fits)
        rules, here, there = entries.rules[own], entries.rows[own], others[own]
        left, right = (here, there) if is_left else (there, here)
        start_us, end_us = contenders["start_us"], contenders["end_us"]
        holds = end_us[left] < start_us[right]
        holds &= end_us[right] - start_us[left] <= self._of_decision("within_us", left)
        holds &= contenders.meet(left, right, self._of_decision("window_us", left))
        begin_us = np.minimum(start_us[left], start_us[right])
        stop_us = np.maximum(end_us[left], end_us[right])
        some = np.flatnonzero(holds)
        holds[some] = self._conditions.hold(
            rules[some], [left[some], right[some]], begin_us[some], stop_us[some]
        )
        fits[own] = holds

    def _tuples(self, rules: Ints, left: Ints, right: Ints, docid: Ints) -> DecidedTuples:
        contenders = self._contenders
        decisions = self._plan.seats["decision"][contenders["seat"][left]]
        owners = contenders["contender"]
        end_us = contenders["end_us"][right]
        heights = self.steps.of_pairs(left, right)
        own = np.flatnonzero(self.steps.ascents(left) == Ascent.SCORED)
        if len(own):
            scores = self._conditions.scores(rules[own], [left[own], right[own]])
            heights[own] = heights_of(scores)
        bars = np.full(len(left), LOWEST)
        taken = self.spared.numbers(decisions, right)
        return DecidedTuples(
            decisions, owners[left], owners[right], end_us, docid, heights, bars, taken
        )
