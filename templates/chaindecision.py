"""What runs over chains are found, by content: equal chains of different queries are one.

A `ChainDecision` reads streams of elements, one for each block of each step, units too.  Conditions
read what a run has taken through `xscl.query.Elements`.  `docs/repetition.md` has the theory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from templates.decision import TupleStream
from templates.givenconstants import GivenDatum, GivenLength, given_lengths, under
from templates.lengths import NO_LENGTH, Length, LongestSum, longest_of
from templates.rundecision import (
    AbsentElement,
    Counting,
    Disjuncts,
    ElementStream,
    FoldValue,
)
from xscl.path import Parameter
from xscl.query import INFINITE_US, Disjunct, Elements, Operand, Residual, Strategy

__all__ = [
    "ChainDecision",
    "ChainLink",
    "DecidedChains",
    "HandedOnStep",
    "chain_look_ups",
]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A step of a chain: what is asked of its first element, and of each.

    `run` is the term under which conditions read its elements.  `window_us` bounds the time from
    the step before, `gap_us` that between neighbours.  `go_on` (WHILE) is asked of an element that
    a run takes next, and ends it: only a repetition that is stepped as a chain has it.
    """

    run: str
    is_repeated: bool
    elements: tuple[ElementStream, ...]
    first: Disjuncts
    each: Disjuncts
    folds: tuple[FoldValue, ...]
    gap_us: int
    window_us: int
    go_on: Disjuncts = (Disjunct(),)


@dataclass(frozen=True, slots=True)
class ChainDecision:
    """One chain under MATCH.

    `documents` are all documents of its streams, each with its keys under PARTITION: none under
    NEXT.  `within_us` bounds the whole; `innermost_us` is for how long the first one is remembered
    where the windows do not say it.  `given` are the parameters in conditions, and those that are
    `lengths`: it stands for a decision `under` each vector of them.  `kept_us` is for how long what
    may decide is remembered.
    """

    strategy: Strategy
    links: tuple[ChainLink, ...]
    absences: tuple[AbsentElement, ...]
    documents: tuple[ElementStream, ...]
    within_us: int
    innermost_us: int
    grace_us: int
    counting: Counting | None = None
    given: tuple[GivenDatum, ...] = ()
    lengths: tuple[GivenLength, ...] = ()
    kept_us: Length = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kept_us", self._kept_us())

    def _kept_us(self) -> Length:
        """Return for how long what may decide is remembered: UNLESS at the beginning looks back.

        Under ANY each operator and each repetition remembers what is before it by its end, so what
        is at the beginning may be as much older for each of them.  Under STRICT and PARTITION what
        is remembered may be met by a first document that comes late, and is as much older: then
        documents between them stand in the way.  It is never nothing: of a clause without a window
        no documents are kept.
        """
        given = {(each.name, each.place): Parameter(each.parameter) for each in self.lengths}
        windows = [
            given.get(("window_us", n), link.window_us) for n, link in enumerate(self.links)
        ][1:]
        innermost = given.get(("innermost_us", -1), self.innermost_us)
        is_bounded = _are_bounds(self.links[0].is_repeated, windows)
        times = 2 if self.is_contiguous else 1
        if self.strategy is Strategy.ANY:
            times = max(1, len(self.links) - 1 + sum(link.is_repeated for link in self.links))
        kept = NO_LENGTH
        for each in times * (windows if is_bounded else [innermost]):
            kept = kept.plus(each)
        before = [
            given.get(("absent", n), absent.window_us)
            for n, absent in enumerate(self.absences)
            if absent.step == 0
        ]
        kept = LongestSum.of([kept.plus(longest_of(before))], 1)
        return kept if kept.always is None else kept.always

    @property
    def retention_us(self) -> int:
        """For how long the first one is remembered: the sum of the windows, if that is known."""
        windows = [link.window_us for link in self.links[1:]]
        if _are_bounds(self.links[0].is_repeated, windows):
            return sum(windows)
        return self.innermost_us

    def under(self, said: Sequence[str]) -> ChainDecision:
        """Return the decision for a vector of what is given."""

        def own(value: T) -> T:
            return under(value, self.given, said)

        found = given_lengths(self.lengths, self.given, said)
        links = tuple(
            replace(
                each,
                gap_us=found.get(("gap_us", n), each.gap_us),
                window_us=found.get(("window_us", n), each.window_us),
                first=own(each.first),
                each=own(each.each),
                folds=own(each.folds),
                go_on=own(each.go_on),
            )
            for n, each in enumerate(self.links)
        )
        absences = tuple(
            replace(each.within(n, found), asked=own(each.asked))
            for n, each in enumerate(self.absences)
        )
        return replace(
            self,
            links=links,
            absences=absences,
            within_us=min(self.within_us, found.get(("within_us", -1), INFINITE_US)),
            innermost_us=found.get(("innermost_us", -1), self.innermost_us),
            given=(),
            lengths=(),
        )

    def lengths_given(self) -> Iterator[str]:
        """Yield the parameters that are lengths."""
        yield from (each.parameter for each in self.lengths)

    def read(self) -> Iterator[ElementStream]:
        """Yield the elements, and what must be absent."""
        for link in self.links:
            yield from link.elements
        for absent in self.absences:
            yield from absent.elements

    @property
    def data(self) -> tuple[str, ...]:
        """The data that all elements of a run say, whatever the step.

        The first one may say more behind them, which then the run says.
        """
        return self.links[-1].elements[0].data

    @property
    def is_contiguous(self) -> bool:
        """Whether a run goes from one document to the next."""
        return self.strategy in (Strategy.PARTITION, Strategy.STRICT)

    @property
    def is_open(self) -> bool:
        """Whether every choice of elements is a run, as soon as it is there: nothing is decided."""
        return self.strategy is Strategy.ANY and self.counting is None

    @property
    def is_partitioned(self) -> bool:
        """Whether it goes to the next document of its key."""
        return self.strategy is Strategy.PARTITION

    @property
    def retained_us(self) -> int:
        """For how long what may decide is remembered, where that is known."""
        assert isinstance(self.kept_us, int)
        return self.kept_us

    def conditions(self) -> Iterator[Disjunct]:
        """Yield all that is asked, of FOLD its values as comparisons."""
        for link in self.links:
            yield from (*link.first, *link.each, *link.go_on)
            for fold in link.folds:
                yield Disjunct(residuals=(Residual(fold.first, "=", fold.following),))
        for absent in self.absences:
            yield from absent.asked


def _are_bounds(begins_with_repetition: bool, windows: Sequence[int | Parameter]) -> bool:
    """Return whether windows say how far apart the first element and the last may be."""
    bounded = (isinstance(each, Parameter) or each < INFINITE_US for each in windows)
    return not begins_with_repetition and all(bounded)


@dataclass(frozen=True, slots=True)
class HandedOnStep:
    """What a query class hands on of a step: the rows of a unit that fit, or its run.

    `stream` is None of a repetition; `keys` are what a tuple carries of its keys.
    """

    stream: TupleStream | None
    begin: Disjunct
    run: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecidedChains:
    """What a query class hands on of chains: tuples of a stream with the terms `carried`.

    Behind them a tuple has `tested_terms`, which are held against data: those of its first unit,
    and as terms `data` what elements say, and `given` the vector of data that the decision is for,
    which is `said`.  `variables` are those of its root and its terms.
    """

    decision: ChainDecision
    steps: tuple[HandedOnStep, ...]
    stream: str
    carried: tuple[str, ...]
    tested_terms: tuple[str, ...]
    variables: tuple[int, ...]
    data: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    said: tuple[str, ...] = ()

    def under(self, said: Sequence[str]) -> DecidedChains:
        """Return what is handed on of the decision for a vector of what is given."""
        steps = tuple(
            replace(each, begin=under(each.begin, self.decision.given, said)) for each in self.steps
        )
        return replace(self, decision=self.decision.under(said), steps=steps, said=tuple(said))

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms of a tuple in order."""
        return (*self.carried, *self.tested_terms)

    @property
    def takes_all(self) -> bool:
        """Whether no more is asked of what is handed on of a run."""
        return all(step.begin == Disjunct() for step in self.steps)

    @property
    def makes_one_tuple(self) -> bool:
        """Whether each run makes one that is told by its elements.

        Of plain units it hands on what these are, and there are no values of FOLD.
        """
        return self.takes_all and all(
            not link.folds
            and (
                step.stream is None
                or [each.stream.name for each in link.elements] == [step.stream.name]
            )
            for step, link in zip(self.steps, self.decision.links, strict=True)
        )

    def begins(self) -> Iterator[TupleStream]:
        """Yield the streams of the unit that runs begin with; none of a repetition."""
        first = self.steps[0].stream
        if first is not None:
            yield first
            yield from (each.stream for each in self.decision.links[0].elements)

    def conditions(self) -> Iterator[Disjunct]:
        """Yield all that is asked of runs."""
        yield from self.decision.conditions()
        yield from (step.begin for step in self.steps)


def chain_look_ups(
    disjuncts: Disjuncts, single: frozenset[str | None]
) -> list[tuple[Operand, Operand]]:
    """Return the equalities of what a run has taken and of candidates that all alternatives have.

    `single` are the runs of which every element binds the same, None for the run at hand.
    """
    found: list[tuple[Operand, Operand]] = []
    if len(disjuncts) != 1 or None not in single:
        return found
    for test in disjuncts[0].tests:
        if test.function != "joins":
            continue
        for left, right in (test.arguments, test.arguments[::-1]):
            if _is_candidate(right) and _is_taken(left, single):
                found.append((left, right))
                break
    return found


def _is_candidate(operand: Operand) -> bool:
    return isinstance(operand, Elements) and operand.run is None and operand.function == "candidate"


def _is_taken(operand: Operand, single: frozenset[str | None]) -> bool:
    """Return whether an operand has values before there is a candidate."""
    if not isinstance(operand, Elements):
        return False
    if operand.run is None:
        return operand.function in ("prev", "first") and operand.otherwise is None
    return operand.run in single and operand.function in ("all", "first", "last")
