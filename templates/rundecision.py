"""What runs are found, by content: equal repetitions of different queries are one.

A `RunDecision` reads streams of elements, one for each block of its unit, and streams of what
stands before it.  Conditions read the terms of what stands before, and elements through
`xscl.query.Elements`.  `docs/repetition.md` has the theory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from templates.decision import TupleStream
from templates.givenconstants import GivenDatum, GivenLength, GivenLengths, given_lengths, under
from templates.hadtests import HadTest
from xscl.comparison import Call, operand_terms, operands_below
from xscl.evaluation import StepReading, Values, compile_conjunction, compile_operand
from xscl.functions import spell
from xscl.path import Parameter
from xscl.query import Disjunct, Elements, Operand, Residual
from xscl.runvalues import (
    GrowingRun,
    Run,
    RunAtHand,
    RunElement,
    RunReading,
    TermNode,
    Totals,
    UnboundError,
)

__all__ = [
    "AbsentElement",
    "Begin",
    "CountedKey",
    "Counting",
    "DecidedRuns",
    "Disjuncts",
    "ElementStream",
    "FoldValue",
    "GrowingRun",
    "Run",
    "RunAtHand",
    "RunDecision",
    "RunElement",
    "RunReading",
    "StepReading",
    "TermNode",
    "Test",
    "Totals",
    "Values",
    "compile_disjuncts",
    "compile_keys",
    "compile_values",
    "datum_term",
    "look_ups",
]

Disjuncts = tuple[Disjunct, ...]

Test = Callable[[StepReading], bool]


@dataclass(frozen=True, slots=True)
class FoldValue:
    """A value of FOLD: what it is at first, and with each element."""

    name: str
    first: Operand
    following: Operand

    @property
    def begins_with_data(self) -> bool:
        """Whether what it is at first is read of data that the first element says."""
        return any(isinstance(each, Elements) for each in operands_below(self.first))


@dataclass(frozen=True, slots=True)
class Begin:
    """One way in which runs begin, and what is asked of their elements.

    `left` are the tuples before it, None where a from begins with the repetition; `first` is asked
    of the first element besides `each`, and `absent` of the tuples of each absent unit.
    """

    left: TupleStream | None
    first: Disjunct
    each: tuple[Disjunct, ...]
    go_on: tuple[Disjunct, ...] | None
    folds: tuple[FoldValue, ...]
    left_keys: tuple[str, ...]
    absent: tuple[Disjuncts, ...] = ()

    def under(self, given: Sequence[GivenDatum], said: Sequence[str]) -> Begin:
        """Return the way to begin with a vector of what is given."""
        asked = self.first, self.each, self.go_on, self.folds, self.absent
        first, each, go_on, folds, absent = under(asked, given, said)
        return Begin(self.left, first, each, go_on, folds, self.left_keys, absent)


@dataclass(frozen=True, slots=True)
class ElementStream:
    """The tuples of a block of the unit; `keys` are their terms that all have in common (SAME).

    Some keys are equal to `given` data: tuples that nobody gave theirs are none.  Elements say a
    datum of each of `data`, as values of the keys of their stream: all of a run say the same.  They
    are asked what `had` says beside data that a run says, under the names of `datum_term`.
    """

    block: int
    stream: TupleStream
    keys: tuple[str, ...]
    given: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    had: tuple[HadTest, ...] = ()


@dataclass(frozen=True, slots=True)
class AbsentElement:
    """A unit that must be absent before a step, and what is asked of its tuples.

    What stands before a repetition is step 0; what is asked then depends on how it begins.
    """

    step: int
    elements: tuple[ElementStream, ...]
    asked: Disjuncts
    window_us: int

    def within(self, place: int, found: GivenLengths) -> AbsentElement:
        """Return the unit, at some place, with the window that is given."""
        given_us = found.get(("absent", place))
        return self if given_us is None else replace(self, window_us=given_us)


@dataclass(frozen=True, slots=True)
class CountedKey:
    """What counted runs are told apart by: an operand of what stands before, or of elements.

    In a chain these are the elements of a `block`.
    """

    operand: Operand
    is_of_elements: bool
    block: int | None = None


@dataclass(frozen=True, slots=True)
class Counting:
    """How the runs of a repetition, or of a chain, are counted, and not listed.

    They are of documents behind `point`.  `visible` are for each block the variables that a match
    shows, that of the root first.  With `has_steps` they are handed on as graphs, one for each key
    of SAME, else as numbers, told apart by `keys`.  By some keys of SAME, those at the places
    `data`, they are told apart besides: these are held against data.
    """

    point: int
    visible: tuple[tuple[int, tuple[str, ...]], ...]
    has_steps: bool
    keys: tuple[CountedKey, ...] = ()
    data: tuple[int, ...] = ()

    def data_of(self, same: tuple[str, ...]) -> tuple[str, ...]:
        """Return the values of SAME that are held against data, of all values of SAME."""
        return tuple([same[place] for place in self.data])


@dataclass(frozen=True, slots=True)
class RunDecision:
    """One repetition.

    `is_next` says that an element is the next one that fits, else it is any that fits.  `gap_us`
    bounds the time between neighbours, `window_us` that from what stands before, `within_us` the
    whole; `retention_us` is for how long the first document is remembered.  `run` is the term under
    which runs are read.  Where something must be absent, or runs are counted, they
    are decided behind FOLLOWED BY too.  What stands before says a datum of each of `had`, as values
    of the keys of its streams: those that elements say as well are the first of both.  `given` are
    the parameters in conditions, and those that are `lengths`: it stands for a decision `under`
    each vector of them.  Lengths that are `said` are data that a run says, and no bounds here.
    """

    is_next: bool
    begins: tuple[Begin, ...]
    elements: tuple[ElementStream, ...]
    gap_us: int
    window_us: int
    within_us: int
    retention_us: int
    grace_us: int
    run: str = ""
    absences: tuple[AbsentElement, ...] = ()
    counting: Counting | None = None
    had: tuple[str, ...] = ()
    given: tuple[GivenDatum, ...] = ()
    lengths: tuple[GivenLength, ...] = ()
    said: tuple[GivenLength, ...] = ()

    def under(self, said: Sequence[str]) -> RunDecision:
        """Return the decision for a vector of what is given."""
        given = self.given
        found = given_lengths(self.lengths, given, said)
        own = {name: us for (name, place), us in found.items() if place < 0}
        lengths: dict[str, Any] = {name: min(getattr(self, name), us) for name, us in own.items()}
        begins = tuple([each.under(given, said) for each in self.begins])
        absences = tuple([each.within(n, found) for n, each in enumerate(self.absences)])
        return replace(self, begins=begins, absences=absences, given=(), lengths=(), **lengths)

    def lengths_given(self) -> Iterator[str]:
        """Yield the parameters that are lengths."""
        yield from (each.parameter for each in self.lengths)

    @property
    def kept_us(self) -> int | Parameter:
        """For how long what may decide is remembered, which may be given."""
        given = (*self.lengths, *self.said)
        own = (each.parameter for each in given if each.name == "retention_us")
        return next(map(Parameter, own), self.retained_us)

    @property
    def is_kept_as_said(self) -> bool:
        """Whether runs say for how long they are remembered."""
        return any(each.name == "retention_us" for each in self.said)

    def read(self) -> Iterator[ElementStream]:
        """Yield the elements, and what must be absent."""
        yield from self.elements
        for absent in self.absences:
            yield from absent.elements

    @property
    def data(self) -> tuple[str, ...]:
        """The data that elements say."""
        return self.elements[0].data

    @property
    def speaks_of_data(self) -> bool:
        """Whether elements say data, or are asked something beside them."""
        return any(each.data or each.had for each in self.elements)

    @property
    def known(self) -> int:
        """How many of the data that elements say what stands before says, too."""
        return sum(datum in self.data for datum in self.had)

    @property
    def retained_us(self) -> int:
        """For how long what may decide is remembered."""
        return self.retention_us

    @property
    def is_open(self) -> bool:
        """Whether nothing is decided: every choice of elements is a run, as soon as it is there."""
        return not (self.is_next or self.absences or self.counting is not None)

    @property
    def is_leading(self) -> bool:
        """Whether nothing stands before the runs."""
        return self.begins[0].left is None

    @property
    def speaks_of_neighbours(self) -> bool:
        """Whether what is asked of an element speaks of it, the one before, and what stands before.

        Then runs that begin alike are the paths of a graph.
        """
        asked = (
            below
            for begin in self.begins
            for disjunct in begin.each
            for operand in disjunct.operands()
            for below in operands_below(operand)
        )
        return not any(begin.folds or begin.go_on for begin in self.begins) and all(
            each.run is not None or each.function in ("candidate", "prev")
            for each in asked
            if isinstance(each, Elements)
        )

    @property
    def reads_left(self) -> bool:
        """Whether what is asked of every element speaks of what stands before."""
        operands = [o for begin in self.begins for d in begin.each for o in d.operands()]
        below = [each for operand in operands for each in operands_below(operand)]
        return any(operand_terms(each) for each in operands) or any(
            isinstance(each, Call) and each.function in ("start", "dur") for each in below
        )

    def conditions(self) -> Iterator[Disjunct]:
        """Yield all that is asked, of FOLD its values as comparisons."""
        for begin in self.begins:
            yield from (begin.first, *begin.each, *(begin.go_on or ()))
            yield from (each for asked in begin.absent for each in asked)
            for fold in begin.folds:
                yield Disjunct(residuals=(Residual(fold.first, "=", fold.following),))

    def streams(self) -> set[str]:
        """Return the names of all streams that are read."""
        lefts = (each.left.name for each in self.begins if each.left is not None)
        return {*lefts, *(each.stream.name for each in self.elements)}


@dataclass(frozen=True, slots=True)
class DecidedRuns:
    """What a query class hands on of runs: tuples of a stream, each with its run as a value.

    A tuple has the terms `carried`, of `left` or of the run: `run` itself, and the values of its
    `keys`.  Behind them it has `tested_terms`, which are held against data: those of `left`, and as
    terms `data` what elements say, and `given` the vector of data that the decision is for, which
    is `said`.  `variables` are those of its root and its terms.
    """

    decision: RunDecision
    left: TupleStream | None
    first: Disjunct
    stream: str
    carried: tuple[str, ...]
    tested_terms: tuple[str, ...]
    variables: tuple[int, ...]
    run: str
    keys: tuple[str, ...]
    data: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    def under(self, said: Sequence[str]) -> DecidedRuns:
        """Return what is handed on of the decision for a vector of what is given."""
        given = self.decision.given
        first = under(self.first, given, said)
        return replace(self, decision=self.decision.under(said), first=first, said=tuple(said))

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms of a tuple in order."""
        return (*self.carried, *self.tested_terms)

    def begins(self) -> Iterator[TupleStream]:
        """Yield the streams of what stands before the runs."""
        for left in (self.left, *(begin.left for begin in self.decision.begins)):
            if left is not None:
                yield left

    def conditions(self) -> Iterator[Disjunct]:
        """Yield all that is asked of runs."""
        yield from self.decision.conditions()


def datum_term(datum: str) -> str:
    """Return the term under which tests of elements read a datum that a run says."""
    return f"${datum}"


def compile_disjuncts(disjuncts: tuple[Disjunct, ...]) -> Test:
    """Return what tells whether one of some conjunctions holds."""
    if disjuncts == (Disjunct(),):
        return lambda reading: True
    tests = list(map(compile_conjunction, disjuncts))
    if len(tests) == 1:
        return tests[0]
    return lambda reading: any(test(reading) for test in tests)


def compile_values(operand: Operand) -> Callable[[StepReading], Values]:
    """Return what gives the values of an operand: none where it is not bound."""
    of = compile_operand(operand)

    def values(reading: StepReading) -> Values:
        try:
            return of(reading)
        except UnboundError:
            return ()

    return values


def compile_keys(operand: Operand) -> Callable[[StepReading], list[str]]:
    """Return what gives the texts of the values of an operand, each once."""
    of = compile_values(operand)
    return lambda reading: list(dict.fromkeys(map(spell, of(reading))))


def look_ups(*predicates: tuple[Disjunct, ...]) -> list[tuple[Operand, Operand]]:
    """Return the equalities of left operands and candidates that all alternatives have."""
    found: list[tuple[Operand, Operand]] = []
    for disjuncts in predicates:
        if len(disjuncts) != 1:
            continue
        for test in disjuncts[0].tests:
            if test.function != "joins":
                continue
            for left, right in (test.arguments, test.arguments[::-1]):
                if _is_candidate(right) and not any(
                    isinstance(each, Elements) for each in operands_below(left)
                ):
                    found.append((left, right))
                    break
    return found


def _is_candidate(operand: Operand) -> bool:
    return isinstance(operand, Elements) and operand.run is None and operand.function == "candidate"
