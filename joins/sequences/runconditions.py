"""What a way to begin a repetition asks of what stands before, and of each element."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from joins.sequences.absentunits import AbsentTuples
from joins.sequences.runparts import Head, Part, PartRow
from templates.rundecision import (
    Begin,
    RunAtHand,
    RunDecision,
    RunReading,
    compile_disjuncts,
    compile_values,
    look_ups,
)

__all__ = ["Key", "RunConditions"]

Key = tuple[str, ...]
"""Values under which an element is looked up."""


class RunConditions:
    """What one way to begin asks, compiled; its rows of what stands before are of one stream."""

    def __init__(self, begin: Begin, decision: RunDecision) -> None:
        self.begin = begin
        self.first = compile_disjuncts((begin.first,))
        self.each = compile_disjuncts(begin.each)
        self.absent = [compile_disjuncts(each) for each in begin.absent]
        self.go_on = None if begin.go_on is None else compile_disjuncts(begin.go_on)
        self.folds = [
            (each.name, compile_values(each.first), compile_values(each.following))
            for each in begin.folds
        ]
        self.keys = {each.block: each.keys for each in decision.elements}
        self._run, self._gap_us = decision.run, decision.gap_us
        # What another block of the unit does not bind is not asked of its elements.
        equal = look_ups(begin.each) if len(decision.elements) == 1 else []
        self._lefts = [compile_values(left) for left, _ in equal]
        self._rights = [compile_values(right) for _, right in equal]

    def rows(self, left: Part | None) -> list[PartRow]:
        """Return the rows of what stands before."""
        if self.begin.left is None:
            return [PartRow({})]
        assert left is not None
        return left.rows.get(self.begin.left.name, [])

    def same_key(self, head: Head) -> Key | None:
        """Return the values of SAME of a run so far, None where any are right."""
        last = head.last
        if last is None:
            return None
        if head.elements:
            assert last.element is not None
            terms = self.keys[last.blocks[0]]
            return tuple(last.element.value(term) for term in terms)
        row = self.rows(last)[0].terms
        return tuple(row[term].value or "" for term in self.begin.left_keys)

    def look_up_keys(self, head: Head) -> list[Key]:
        """Return the values, those of SAME among them, under which a run's next element stands."""
        same = self.same_key(head) or ()
        if not all(same):
            return []
        return [(*same, *key) for key in self.keys_of_head(head)]

    def keys_of_head(self, head: Head) -> list[Key]:
        """Return the values under which the next element of a run is looked up."""
        reading = self.step(head, None, self.rows(head.left)[0])
        sides = [[v for v in values(reading) if v] for values in self._lefts]
        return [tuple(map(str, choice)) for choice in product(*sides)]

    def keys_of_element(self, part: Part) -> list[Key]:
        """Return the values under which an element is looked up."""
        run = RunAtHand((), part.element, {})
        reading = RunReading({}, part.start_us, part.end_us, run)
        sides = [[v for v in values(reading) if v] for values in self._rights]
        return [tuple(map(str, choice)) for choice in product(*sides)]

    def first_folds(self, left: Part | None) -> dict[str, tuple[Any, ...]]:
        """Return what is folded of a run without elements."""
        if not self.folds:
            return {}
        start_us, end_us = (0, 0) if left is None else (left.start_us, left.end_us)
        reading = RunReading(self.rows(left)[0].terms, start_us, end_us, RunAtHand((), None, {}))
        return {name: tuple(first(reading)) for name, first, _ in self.folds}

    def step(self, head: Head, candidate: Part | None, row: PartRow) -> RunReading:
        """Return what conditions read of a run and a candidate."""
        last = head.last if candidate is None else candidate
        first = head.first if head.elements or head.left is not None else last
        run = RunAtHand(head.before, None if candidate is None else candidate.element, head.folds)
        assert first is not None
        assert last is not None
        return RunReading(row.terms, first.start_us, last.end_us, run)

    def are_neighbours(self, row: PartRow, start_us: int, one: Part, other: Part) -> bool:
        """Return whether one element may come behind another, as far as these two say.

        `row` and `start_us` are of what the run begins with.
        """
        if other.end_us - one.end_us > self._gap_us:
            return False
        assert one.element is not None
        run = RunAtHand((one.element,), other.element, {})
        return self.each(RunReading(row.terms, start_us, other.end_us, run))

    def takes_away(self, head: Head, units: Sequence[AbsentTuples], docid: int) -> bool:
        """Return whether a unit that must be absent stands before a run, as known at a document."""
        left = head.left
        if left is None:
            return False
        first, terms = head.elements[0], self.rows(left)[0].terms
        assert first.element is not None
        runs = {self._run: RunAtHand([first.element], None, {})}
        same = self.same_key(head) or ()
        for unit, asked in zip(units, self.absent, strict=True):
            for near in unit.near(((left,), head.elements), same, docid):
                run = RunAtHand((), near.element, {})
                start_us = min(left.start_us, near.start_us)
                if asked(RunReading(terms, start_us, first.end_us, run, runs)):
                    return True
        return False
