"""Whether a run of a repetition may take an element, and what it becomes with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from joins.sequences.runconditions import RunConditions
from joins.sequences.runparts import Head, Part, is_remembered
from templates.givenconstants import GivenLengths
from templates.rundecision import RunDecision

__all__ = ["RunSteps"]


_NO_LENGTHS: GivenLengths = {}


class _Lengths(NamedTuple):
    """What bounds a run: from what stands before, in all, and how long that is remembered."""

    window_us: int
    within_us: int
    retention_us: int


class RunSteps:
    """The conditions of one repetition, by the ways in which its runs begin."""

    def __init__(
        self, decision: RunDecision, begins: Sequence[RunConditions], lateness_us: int
    ) -> None:
        self.decision = decision
        self._begins = begins
        self._lateness_us = lateness_us
        self._said = [(each.name, each.place, begins[0].place_of(each)) for each in decision.said]

    def fits(self, head: Head, part: Part) -> bool:
        """Return whether a run may take an element: in time, remembered, and by the conditions."""
        decision, last = self.decision, head.last
        conditions = self._begins[head.begin]
        lengths = self._lengths(head, part)
        if last is not None:
            if last.end_us >= part.start_us:
                return False
            first = head.first
            if part.end_us - first.start_us > lengths.within_us:
                return False
            if not is_remembered(first, part, lengths.retention_us + self._lateness_us):
                return False
            if part.data != conditions.data_of(head):
                return False
            if conditions.same_of(part) != conditions.same_key(head):
                return False
        elif part.end_us - part.start_us > lengths.within_us or not all(conditions.same_of(part)):
            return False
        if head.left is not None and part.end_us - head.left.end_us > lengths.window_us:
            return False
        if head.elements and part.end_us - head.elements[-1].end_us > decision.gap_us:
            return False
        if not conditions.passes(head.left, part):
            return False
        row = conditions.rows(head.left)[0]
        if not conditions.each(conditions.step(head, part, row)):
            return False
        return bool(head.elements) or self._begins_with(head, part)

    def _begins_with(self, head: Head, part: Part) -> bool:
        """Return whether a run may begin with an element, in one of the ways to begin."""
        return any(
            conditions.first(conditions.step(head, part, row))
            for conditions in self._begins
            if head.left is None or conditions.rows(head.left)
            for row in conditions.rows(head.left)
        )

    def _lengths(self, head: Head, part: Part) -> _Lengths:
        """Return the lengths of a run, which may be of the data that it says."""
        own = self.decision
        known = _Lengths(own.window_us, own.within_us, own.retention_us)
        if not self._said:
            return known
        said = self.said_lengths(head, part)
        given = {name: us for (name, _), us in said.items() if name in known._fields}
        return known._replace(**{n: min(getattr(known, n), us) for n, us in given.items()})

    def said_lengths(self, head: Head, part: Part) -> GivenLengths:
        """Return the lengths that a run says which takes an element."""
        if not self._said:
            return _NO_LENGTHS
        said = self._begins[head.begin].said_with(head, part)
        return {(name, number): int(float(said[place])) for name, number, place in self._said}

    def meet(self, one: Part, other: Part) -> bool:
        """Return whether the earlier of two was remembered when the later came."""
        return is_remembered(one, other, self.decision.retention_us + self._lateness_us)

    def longer(self, head: Head, part: Part) -> Head | None:
        """Return a run with one element more, None where WHILE ends it."""
        conditions = self._begins[head.begin]
        step = conditions.step(head, part, conditions.rows(head.left)[0])
        if conditions.go_on is not None and not conditions.go_on(step):
            return None
        folds = {name: tuple(following(step)) for name, _, following in conditions.folds}
        return head.with_one(part, folds)
