"""What two elements of a chain that stand next to each other say of themselves.

Of what is asked of an element, what speaks of it and of the one before it is held against these
two.  All else is left out: what fails here is no pair of any run, what holds may be none either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import NamedTuple

from joins.memory.durations import UNBOUNDED
from joins.sequences.absentunits import Key
from joins.sequences.chained.chainparts import ChainHead
from joins.sequences.runparts import Part, is_remembered
from templates.chaindecision import ChainDecision, chain_look_ups
from templates.nearconditions import (
    NOTHING_ASKED,
    applying_to_first,
    first_near,
    further_near,
    of_one,
)
from templates.neighbours import ComparedSides, compile_sides, read_term
from templates.rundecision import (
    Disjuncts,
    RunAtHand,
    RunReading,
    Values,
    compile_disjuncts,
    compile_values,
)

__all__ = ["Neighbours", "are_remembered"]


class Neighbours:
    """What a step asks of an element and the one before it, which is of the step or the last one.

    `is_further` says of which.  `is_all` says that nothing else is asked of any element of the
    step, but for times.  `key_terms` are the terms of each equality of both, None of what is none.
    With `asks_alike` a first element is asked alone what a further one is.
    """

    def __init__(self, decision: ChainDecision, number: int) -> None:
        link = decision.links[number]
        self.is_repeated = link.is_repeated
        self._before = decision.links[number - 1] if number else None
        self._longest_us = (
            min(link.window_us, decision.within_us),
            min(link.gap_us, link.window_us if number else UNBOUNDED, decision.within_us),
        )
        first = first_near(link.first, self._before)
        each = first_near(link.each, self._before)
        further = further_near(link.each)
        self._first = _tests(first, each)
        self._further = _tests(further)
        self.is_all = (first, each, further) == (
            link.first,
            applying_to_first(link.each),
            link.each if link.is_repeated else further,
        )
        single = [b.run for b in (self._before,) if b is not None and len(b.elements) == 1]
        equal = chain_look_ups(
            first, frozenset([*single, None] if len(link.elements) == 1 else single)
        )
        # Of a repetition before it, all elements are asked: then nothing is looked up.
        is_plain = self._before is not None and not self._before.is_repeated
        self._keys = [
            (compile_values(left), compile_values(right)) for left, right in equal if is_plain
        ]
        self.key_terms = [(read_term(left), read_term(right)) for left, right in equal if is_plain]
        of_first, of_each, of_further = map(of_one, (first, each, further))
        pairs = (*of_first.pairs, *of_each.pairs), of_further.pairs
        are_plain = (
            not (of_first.has_more or of_each.has_more or of_each.joins)
            and of_first.joins == len(self._keys),
            not (of_further.has_more or of_further.joins),
        )
        self._is_looked_up = (are_plain[0] and not pairs[0], are_plain[1] and not pairs[1])
        runs = None if self._before is None else self._before.run, None
        compared = [
            compile_sides(own[0], run) if is_plain and len(own) == 1 else None
            for own, run, is_plain in zip(pairs, runs, are_plain, strict=True)
        ]
        self._compared = compared[0] if self._before is not None else None, compared[1]
        self._own = _tests(of_first.own, of_each.own), _tests(of_further.own)
        owns = [each for each in (of_first.own, of_each.own) if each != NOTHING_ASKED]
        self.asks_alike = owns == [each for each in (of_further.own,) if each != NOTHING_ASKED]

    def longest_us(self, *, is_further: bool) -> int:
        """Return how far apart both may end."""
        return self._longest_us[is_further]

    def keys_of_one(self, part: Part, *, is_further: bool) -> list[Key]:
        """Return the values under which what stands before is looked up."""
        if is_further or not self._keys:
            return [()]
        reading = self._reading(part, None, is_further=False)
        return _choices(left(reading) for left, _ in self._keys)

    def keys_of_other(self, part: Part, *, is_further: bool) -> list[Key]:
        """Return the values that what stands before an element must have one of."""
        if is_further or not self._keys:
            return [()]
        reading = self.alone(part)
        return _choices(right(reading) for _, right in self._keys)

    @property
    def has_keys(self) -> bool:
        """Whether an element must have something in common with the last one of the step before."""
        return bool(self._keys)

    def is_looked_up(self, *, is_further: bool) -> bool:
        """Return whether nothing is asked of both but what they must have in common."""
        return self._is_looked_up[is_further]

    def compared(self, *, is_further: bool) -> ComparedSides | None:
        """Return the one comparison of numbers that is asked of both besides, if it is all."""
        return self._compared[is_further]

    def takes(self, part: Part, *, is_further: bool) -> bool:
        """Return whether an element meets what is asked of it alone."""
        tests = self.own_tests(is_further=is_further)
        if not tests:
            return True
        reading = self.alone(part)
        return all(test(reading) for test in tests)

    def own_tests(self, *, is_further: bool) -> Sequence[Callable[[RunReading], bool]]:
        """Return what tells whether an element meets what is asked of it alone."""
        return self._own[is_further]

    @staticmethod
    def alone(part: Part) -> RunReading:
        """Return an element as conditions read it that speak of it alone."""
        return RunReading({}, part.start_us, part.end_us, RunAtHand((), part.element, {}))

    def may_follow(self, one: Part, other: Part, *, is_further: bool) -> bool:
        """Return whether an element may come behind another, as far as both say."""
        tests = self._further if is_further else self._first
        if not tests:
            return True
        reading = self._reading(one, other, is_further=is_further)
        return all(test(reading) for test in tests)

    def _reading(self, one: Part, other: Part | None, *, is_further: bool) -> RunReading:
        assert one.element is not None
        end_us = one.end_us if other is None else other.end_us
        candidate = None if other is None else other.element
        before = RunAtHand((one.element,), None, {})
        if is_further or self._before is None:
            return RunReading({}, one.start_us, end_us, RunAtHand((one.element,), candidate, {}))
        run = RunAtHand((), candidate, {})
        return RunReading({}, one.start_us, end_us, run, {self._before.run: before})


def _tests(*asked: Disjuncts) -> list[Callable[[RunReading], bool]]:
    """Return what tells whether conditions hold, of the ones that ask something."""
    return [compile_disjuncts(each) for each in asked if each != NOTHING_ASKED]


def _choices(sides: Iterable[Values]) -> list[Key]:
    texts = [[str(value) for value in side if value] for side in sides]
    return list(dict.fromkeys(tuple(choice) for choice in product(*texts)))


class _LeftSide(NamedTuple):
    """What stands before an element, as section 1.1 asks for it."""

    position: tuple[int, int, str]
    end_us: int
    watermark_us: int


def are_remembered(
    head: ChainHead, longer: ChainHead, decision: ChainDecision, lateness_us: int
) -> bool:
    """Return whether an operator's operands were remembered with each other (section 1.1).

    An operator has on its left all that stands before the step; a run that nothing precedes has
    its first element.
    """
    link, part = decision.links[longer.step], longer.part
    if not longer.step:
        return is_remembered(head.first, part, decision.within_us + lateness_us)
    window_us = link.window_us if link.window_us < UNBOUNDED else decision.within_us
    if part.docid > head.docid:
        return longer.left_us >= part.watermark_us - window_us - lateness_us
    parts = [part for step in longer.steps()[: longer.step] for part in step]
    newest = max(parts, key=lambda each: each.position)
    left = _LeftSide(newest.position, parts[-1].end_us, newest.watermark_us)
    return is_remembered(left, part, window_us + lateness_us)
