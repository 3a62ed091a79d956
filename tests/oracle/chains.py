"""MATCH NEXT, PARTITION and STRICT, by nested loops.

A run over a chain takes one document after another, in a unit or repetition or in the next one.
What is asked of a document is asked of what the run has taken: a tuple of all steps before, and the
elements of the repetition at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from broker.documents.document import Document
from oracle.contender import Around, Contender, follows, is_within, open_tuple, same
from oracle.paths import select
from oracle.runs import Step, Taken
from xscl.query import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    From,
    Node,
    Operator,
    Parameter,
    Repetition,
    Strategy,
    Window,
)
from xscl.sequence import blocks_below

if TYPE_CHECKING:
    from oracle.decided import Decisions

__all__ = ["chains"]


@dataclass(frozen=True, slots=True)
class _State:
    """A run: its step, what stands before that as a tuple, and what it has taken there.

    `before` are the tuples before each step so far, with the first element of the step.
    """

    step: int
    left: Contender | None
    taken: Taken
    all: tuple[Contender, ...] = ()
    before: tuple[tuple[Contender | None, Contender], ...] = ()


def chains(decisions: Decisions, source: From, around: Around) -> list[Contender]:
    """Return the tuples of a from with MATCH NEXT, PARTITION or STRICT."""
    node = source.node
    if isinstance(node, Absence) and node.kind is AbsenceKind.AFTER:
        inner = _Chain(decisions, source, node.operand, around).tuples()
        return decisions.absent_behind(node, inner, around)
    return _Chain(decisions, source, node, around).tuples()


class _Chain:
    def __init__(self, decisions: Decisions, source: From, node: Node, around: Around) -> None:
        self.decisions = decisions
        self.strategy = source.strategy
        self.around = around
        self.steps, self.absences = _steps(node, decisions.rules.length_us)
        self.units = [decisions.contenders(step.unit, around) for step in self.steps]
        self.reach_us = around.reach_us(_sum_of_windows(self.steps))
        read = {block for step in self.steps for block in blocks_below(step.unit)}
        documents = [(d, tree) for block in sorted(read) for d, tree in decisions.read[block]]
        self.documents = list({id(d): (d, tree) for d, tree in documents}.values())

    def tuples(self) -> list[Contender]:
        """Return the decided tuples that no absence takes away."""
        found: list[Contender] = []
        nears = [self.decisions.absent(absence, self.around) for _, absence in self.absences]
        for one in self.units[0]:
            begun = self._taken(_State(0, None, self._empty(0, None)), one)
            for state in () if begun is None else self._runs(begun):
                decided = self._decided(state)
                if decided is not None and not any(
                    self._is_taken_away(decided, state, place, absence, near)
                    for (place, absence), those in zip(self.absences, nears, strict=True)
                    for near in those
                ):
                    found.append(decided)
        asked = [absence.disjuncts for _, absence in self.absences]
        return [self.decisions.with_compared(one, asked) for one in found]

    def _runs(self, state: _State) -> Iterator[_State]:
        """Yield the runs that reach the last step, from one on."""
        if state.step == len(self.steps) - 1:
            yield state
        for longer in self._longer(state):
            yield from self._runs(longer)

    # -- from a document on --------------------------------------------------------------------

    def _longer(self, state: _State) -> list[_State]:
        staying, leaving = self._staying(state), self._leaving(state)
        last = state.all[-1]
        runs = self.decisions.runs
        if self.strategy is not Strategy.NEXT:
            nexts = {id(document) for document in self._nexts(state)}
            fitting = [*staying, *leaving]
            return [longer for one, longer in fitting if id(one.documents[0]) in nexts]
        if self.steps[state.step].repetition is None:
            return _of(runs.first([one for one, _ in leaving], last), leaving)
        those = [one for one, _ in staying]
        free = [
            longer
            for one, longer in leaving
            if not any(follows(one, each) and self._is_there(each, longer) for each in those)
        ]
        return [*_of(runs.first(those, last), staying), *free]

    def _is_there(self, one: Contender, state: _State) -> bool:
        """Return whether a document is there when a run is decided."""
        settled = self.decisions.clock.settled(state.all[-1].end_us)
        if settled is None:
            return True
        return one.position[0] <= max(settled, *(each.position[0] for each in state.all))

    def _staying(self, state: _State) -> list[tuple[Contender, _State]]:
        if self.steps[state.step].repetition is None:
            return []
        units = self.units[state.step]
        return [(one, s) for one in units if (s := self._taken(state, one)) is not None]

    def _leaving(self, state: _State) -> list[tuple[Contender, _State]]:
        step = state.step + 1
        if step == len(self.steps):
            return []
        left = self._joined(state)
        begun = replace(state, step=step, left=left, taken=self._empty(step, left))
        units = self.units[step]
        return [(one, s) for one in units if (s := self._taken(begun, one)) is not None]

    def _empty(self, step: int, left: Contender | None) -> Taken:
        repetition = self.steps[step].repetition
        if repetition is None:
            return Taken(((),), {})
        return Taken(((),), self.decisions.runs.first_folds(repetition, left))

    def _taken(self, state: _State, one: Contender) -> _State | None:
        """Return a run that takes a document in its step, None where that does not fit."""
        first = state.all[0] if state.all else None
        taken = self.decisions.runs.extended(
            state.left,
            state.taken,
            [self.steps[state.step]],
            one,
            self.around,
            first,
            self.reach_us,
        )
        if taken is None:
            return None
        is_first = not state.taken.all
        before = (*state.before, (state.left, one)) if is_first else state.before
        return replace(state, taken=taken, all=(*state.all, one), before=before)

    def _nexts(self, state: _State) -> list[Document]:
        """Return the next documents: of all, or of those that have the key of a run."""
        last = state.all[-1]
        order: list[tuple[tuple[int, int], Document]] = []
        for document, tree in self.documents:
            settled = self.decisions.clock.settled(document.end_us)
            if settled is None or document.start_us <= last.end_us:
                continue
            if self.strategy is Strategy.PARTITION and not all(
                any(
                    node.value == state.all[0].key(key)
                    for node, _ in select(key.path, tree, self.decisions.rules.parameters)
                )
                for key in self.around.keys
            ):
                continue
            at = max(settled, last.position[0], document.docid)
            order.append(((at, document.end_us), document))
        least = min((at for at, _ in order), default=None)
        return [document for at, document in order if at == least]

    # -- what a run is -------------------------------------------------------------------------

    def _joined(self, state: _State) -> Contender:
        """Return all that a run has taken as one tuple."""
        step, runs = self.steps[state.step], self.decisions.runs
        if step.repetition is not None:
            return runs.open(state.left, state.taken, step.repetition, step.disjuncts)
        one = state.taken.all[0]
        if state.left is None:
            return one
        return open_tuple(state.left, one, self.decisions.holding(step.disjuncts, state.left, one))

    def _decided(self, state: _State) -> Contender | None:
        joined = self._joined(state)
        return self.decisions.decided(
            state.all, joined.rows, joined.start_us, joined.end_us, joined.runs
        )

    def _is_taken_away(
        self, one: Contender, state: _State, place: int, absence: Absence, near: Contender
    ) -> bool:
        limit_us = INFINITE_US
        if absence.window is not None:
            limit_us = self.decisions.rules.length_us(absence.window)
        left, right = state.before[place]
        if left is None:
            # UNLESS behind the first unit: the run of that unit stands behind.
            whole = state.before[1][0] if len(state.before) > 1 else one
            assert whole is not None
            in_time = follows(right, near) and is_within(whole.end_us - near.end_us, limit_us)
            reach_us = limit_us
            asked_of = [whole]
        else:
            asked_of = [left, right]
            in_time = follows(near, left) and follows(right, near)
            in_time = in_time and is_within(right.end_us - near.end_us, limit_us)
            reach_us = self.reach_us
        return (
            in_time
            and self.decisions.is_there(near, one)
            and all(self.decisions.meet(reach_us, x, near) for x in (state.all[0], right))
            and same(self.around, one, near)
            and bool(self.decisions.holding(absence.disjuncts, *asked_of, near))
        )


def _of(chosen: Sequence[Contender], fitting: Sequence[tuple[Contender, _State]]) -> list[_State]:
    return [longer for one, longer in fitting if any(one is each for each in chosen)]


def _sum_of_windows(steps: Sequence[Step]) -> int:
    """Return how far apart the ends of a run may be, where a unit and windows say it."""
    if steps[0].repetition is not None:
        return INFINITE_US
    return min(INFINITE_US, sum(step.window_us for step in steps[1:]))


def _steps(
    node: Node, length_us: Callable[[Window | Parameter], int]
) -> tuple[list[Step], list[tuple[int, Absence]]]:
    """Return the steps of a chain, and its absences with the steps behind which they stand."""
    match node:
        case Absence(operand=operand):
            steps, absences = _steps(operand, length_us)
            return steps, [*absences, (len(steps) - 1, node)]
        case Operator(left=left, right=right, disjuncts=disjuncts, window=window):
            steps, absences = _steps(left, length_us)
            (last,), _ = _steps(right, length_us)
            last = replace(last, disjuncts=disjuncts, window_us=length_us(window))
            return [*steps, last], absences
        case Repetition(unit=unit):
            return [Step(unit, node)], []
    return [Step(node, None)], []
