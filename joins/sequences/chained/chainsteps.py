"""The steps of a chain, compiled: which element a run may take, and where both are looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from joins.memory.durations import UNBOUNDED
from joins.sequences.absentunits import AbsentTuples, Key
from joins.sequences.chained.chainparts import ChainHead
from joins.sequences.runconditions import NO_ELEMENT, DataTests
from joins.sequences.runparts import Part, is_remembered
from templates.chaindecision import ChainDecision, ChainLink, chain_look_ups
from templates.rundecision import (
    AbsentElement,
    Disjuncts,
    RunAtHand,
    RunElement,
    RunReading,
    TermNode,
    Values,
    compile_disjuncts,
    compile_values,
    datum_term,
)

__all__ = ["ChainAbsence", "StepEvaluation"]


class _LookUp:
    """The equalities under which elements are looked up."""

    def __init__(self, disjuncts: Disjuncts, single: frozenset[str | None]) -> None:
        equal = chain_look_ups(disjuncts, single)
        self._lefts = [compile_values(left) for left, _ in equal]
        self._rights = [compile_values(right) for _, right in equal]

    def of_head(self, reading: RunReading) -> list[Key]:
        """Return the values that an element must have one of."""
        return _choices([values(reading) for values in self._lefts])

    def of_element(self, element: RunElement) -> list[Key]:
        """Return the values that an element has."""
        if not self._rights:
            return [()]
        run = RunAtHand((), element, {})
        reading = RunReading({}, element.start_us, element.end_us, run)
        return _choices([values(reading) for values in self._rights])


def _choices(sides: Sequence[Values]) -> list[Key]:
    texts = [[str(value) for value in side if value] for side in sides]
    return [tuple(choice) for choice in product(*texts)]


class StepEvaluation:
    """A step of a chain."""

    def __init__(self, decision: ChainDecision, number: int, lateness_us: int) -> None:
        link = decision.links[number]
        self.link = link
        self.number = number
        self._decision = decision
        self._retention_us = decision.retention_us + lateness_us
        self._first = compile_disjuncts(link.first)
        self._each = compile_disjuncts(link.each)
        self._folds = [
            (each.name, compile_values(each.first), compile_values(each.following))
            for each in link.folds
        ]
        self._keys = {each.block: each.keys for each in link.elements}
        self._said = len(decision.data)
        single = _single(decision.links[:number], link)
        self._looked_up = _LookUp(link.first, single), _LookUp(link.each, single)

    def same(self, part: Part) -> Key | None:
        """Return what an element has in common with others of a run, None where it lacks a key.

        It is the values of SAME, and what all elements say of data.
        """
        element = part.element
        assert element is not None
        found = tuple([element.value(term) for term in self._keys[part.blocks[0]]])
        return (*found, *part.data[: self._said]) if all(found) else None

    # -- places --------------------------------------------------------------------------------

    def places_of(self, part: Part, same: Key, *, is_first: bool) -> list[tuple[str, ...]]:
        """Return the keys under which an element is looked up, as a first one or a further one."""
        assert part.element is not None
        found = self._looked_up[not is_first].of_element(part.element)
        return [(*same, *each) for each in dict.fromkeys(found)]

    def places_for(self, head: ChainHead, before: StepEvaluation) -> list[tuple[str, ...]]:
        """Return the keys of the elements that a run may take in this step.

        `before` is the step where it is: this one, or the one before.
        """
        reading = self.reading(head, before, None)
        found = self._looked_up[before is self].of_head(reading)
        return [(*head.same, *each) for each in dict.fromkeys(found)]

    # -- what may be taken ---------------------------------------------------------------------

    def reading(self, head: ChainHead, before: StepEvaluation, part: Part | None) -> RunReading:
        """Return what conditions of this step read of a run and a candidate."""
        element = None if part is None else part.element
        runs = head.runs if before is self else before.complete(head)
        run = RunAtHand(head, element, head.folds) if before is self else RunAtHand((), element, {})
        end_us = head.part.end_us if part is None else part.end_us
        if self._folds and before is not self:
            folds = self.first_folds(head.first.start_us, head.part.end_us, runs, element)
            run = RunAtHand((), element, folds)
        return RunReading({}, head.first.start_us, end_us, run, runs)

    def complete(self, head: ChainHead) -> dict[str, RunAtHand]:
        """Return the runs of all steps of a run that is in this one."""
        return {**head.runs, self.link.run: RunAtHand(head, None, head.folds)}

    def begun(self, part: Part, same: Key) -> ChainHead | None:
        """Return the run that begins with an element of this step, None where that does not fit."""
        if part.end_us - part.start_us > self._decision.within_us:
            return None
        reading = self.first_reading(part)
        return self.begun_with(part, same, reading) if self._each(reading) else None

    def first_reading(self, part: Part) -> RunReading:
        """Return what conditions of this step read of an element with which a run may begin."""
        run = RunAtHand((), part.element, self.first_folds(0, 0, {}, part.element))
        return RunReading({}, part.start_us, part.end_us, run)

    def begun_with(self, part: Part, same: Key, reading: RunReading) -> ChainHead:
        """Return the run that begins with an element of this step, given what was read of it."""
        folds = self._next_folds(reading)
        return ChainHead(None, part, 0, 1, part, part.start_us, part.docid, same, folds, {})

    def longer(self, head: ChainHead, before: StepEvaluation, part: Part) -> ChainHead | None:
        """Return a run with one element more, in this step; None where that does not fit."""
        last = head.part
        if last.end_us >= part.start_us:
            return None
        if part.end_us - head.first.start_us > self._decision.within_us:
            return None
        is_further = before is self
        left_us = head.left_us if is_further else last.end_us
        if self.number > 0 and part.end_us - left_us > self.link.window_us:
            return None
        if is_further and part.end_us - last.end_us > self.link.gap_us:
            return None
        is_open = self._decision.is_open
        if not is_open and not is_remembered(head.first, part, self._retention_us):
            return None
        reading = self.reading(head, before, part)
        if not is_further and not self._first(reading):
            return None
        return self.longer_with(head, before, part, reading) if self._each(reading) else None

    def longer_with(
        self, head: ChainHead, before: StepEvaluation, part: Part, reading: RunReading
    ) -> ChainHead:
        """Return a run with one element more in this step, given what was read of it."""
        is_further = before is self
        return ChainHead(
            head,
            part,
            self.number,
            head.size + 1 if is_further else 1,
            head.first,
            head.left_us if is_further else head.part.end_us,
            max(head.docid, part.docid),
            head.same,
            self._next_folds(reading),
            reading.runs,
        )

    def until_us(self, head: ChainHead, before: StepEvaluation) -> int:
        """Return when the last element that a run may take in this step may end."""
        is_further = before is self
        left_us = head.left_us if is_further else head.part.end_us
        until_us = min(head.first.start_us + self._decision.within_us, UNBOUNDED)
        if self.number > 0:
            until_us = min(until_us, left_us + self.link.window_us)
        if is_further:
            until_us = min(until_us, head.part.end_us + self.link.gap_us)
        return until_us

    def first_folds(
        self,
        start_us: int,
        end_us: int,
        runs: Mapping[str, RunAtHand],
        first: RunElement | None = None,
    ) -> dict[str, Values]:
        """Return what is folded before the first element: of what stands before the step.

        The `first` element, where it is known, says data.
        """
        if not self._folds:
            return {}
        run = RunAtHand((), NO_ELEMENT if first is None else first, {})
        reading = RunReading({}, start_us, end_us, run, runs)
        return {name: tuple(first(reading)) for name, first, _ in self._folds}

    def _next_folds(self, reading: RunReading) -> dict[str, Values]:
        return {name: tuple(following(reading)) for name, _, following in self._folds}


class ChainAbsence(AbsentTuples):
    """A unit that must be absent before a step of a chain."""

    def __init__(self, decision: ChainDecision, absent: AbsentElement, lateness_us: int) -> None:
        retention_us = absent.window_us if absent.step == 0 else decision.retention_us
        super().__init__(absent, retention_us, lateness_us)
        self._asked = compile_disjuncts(absent.asked)
        self._terms = [link.run for link in decision.links]
        self._of_run = decision.data
        self._tests = DataTests(absent.elements)

    def takes_away(
        self,
        steps: Sequence[Sequence[Part]],
        runs: Mapping[str, RunAtHand],
        same: Key,
        docid: int,
    ) -> bool:
        """Return whether something takes a run away that is decided at a document."""
        place = self.absent.step
        first, right = steps[0][0], steps[place][0] if place else steps[0][-1]
        before = self._before(steps, runs)
        named, data = same[: len(same) - len(self._of_run)], steps[0][0].data
        said = {
            datum_term(datum): TermNode(0, value)
            for datum, value in zip(self._of_run, data, strict=False)
        }
        own = [said[datum_term(datum)].value or "" for datum in self.data]
        for near in self.near(steps, (*named, *own), docid):
            if self._tests and not self._tests.hold(near, said):
                continue
            start_us = min(first.start_us, near.start_us)
            run = RunAtHand((), near.element, {})
            if self._asked(RunReading({}, start_us, right.end_us, run, before)):
                return True
        return False

    def _before(
        self, steps: Sequence[Sequence[Part]], runs: Mapping[str, RunAtHand]
    ) -> dict[str, RunAtHand]:
        """Return what stands before a tuple of the unit: of the step behind, its first element."""
        place = self.absent.step
        if place == 0:
            return {self._terms[0]: runs[self._terms[0]]}
        element = steps[place][0].element
        assert element is not None
        behind = RunAtHand([element], None, {})
        return {**{t: runs[t] for t in self._terms[:place]}, self._terms[place]: behind}


def _single(before: Sequence[ChainLink], own: ChainLink) -> frozenset[str | None]:
    """Return the runs of units that are no alternatives; None is the run at hand."""
    runs: list[str | None] = [link.run for link in before if len(link.elements) == 1]
    return frozenset([*runs, None] if len(own.elements) == 1 else runs)
