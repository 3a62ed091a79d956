"""Runs as values: what a tuple carries of a repetition, and what operands are of its elements.

A tuple carries a complete run as one text (`Run.spell`), with everything that is asked of it: the
block of each element, its times, the node and value of each term.  Conditions of a run that goes on
read the same elements one by one.

Runs overlap: an element of a long one is in hundreds of others.  So the text has a line for each
element, which is spelled once and read once, whatever runs it is in.
"""

from __future__ import annotations

import functools
import json
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from xscl.functions import Atom, to_double

__all__ = [
    "Atoms",
    "GrowingRun",
    "Run",
    "RunAtHand",
    "RunElement",
    "RunReading",
    "Totals",
    "UnboundError",
    "aggregate",
    "read_run",
    "shown_value",
]

Atoms = Sequence[Atom]
"""Values."""


class UnboundError(Exception):
    """A value rests on a variable that the tuple does not bind."""


class TermNode(NamedTuple):
    """The node of a term, and its value."""

    node: int
    value: str | None


@dataclass(slots=True)
class RunElement:
    """One element: its block, its times, and what its terms are bound to.

    Data that it `said` are read as terms, and are no part of its text.  It never changes, once
    made.
    """

    block: int
    start_us: int
    end_us: int
    terms: Mapping[str, TermNode]
    said: Mapping[str, TermNode] = field(default_factory=dict, compare=False)
    _spelled: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """No values: they have been filled in."""
        return {}

    def value(self, name: str) -> str:
        """Return the value of a term; raise `UnboundError` where the element has none."""
        found = self.terms.get(name) or self.said.get(name)
        if found is None or found.value is None:
            raise UnboundError
        return found.value

    def spell(self) -> str:
        """Return the element as a line of a text."""
        if self._spelled is None:
            terms = {name: list(bound) for name, bound in self.terms.items()}
            self._spelled = json.dumps([self.block, self.start_us, self.end_us, terms])
        return self._spelled


class RunAtHand(NamedTuple):
    """A run that may go on: its elements so far, the candidate, and the values of FOLD."""

    before: Sequence[RunElement]
    candidate: RunElement | None
    folds: Mapping[str, Atoms]


_NO_RUNS: Mapping[str, RunAtHand] = {}


class RunReading(NamedTuple):
    """A run, as conditions read it: what stands beside it, and the run at hand.

    `terms` are what stands before a repetition, or of a chain what plain units are bound to where
    a tuple is complete; `runs` are those of a chain's other steps, by their terms.
    """

    terms: Mapping[str, TermNode]
    start_us: int
    end_us: int
    run: RunAtHand
    runs: Mapping[str, RunAtHand] = _NO_RUNS

    @property
    def parameters(self) -> Mapping[str, Any]:
        """No values: they have been filled in."""
        return {}

    def value(self, name: str) -> str:
        """Return the value of a term."""
        value = self.terms[name].value
        assert value is not None
        return value


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is complete, with its values of FOLD."""

    elements: tuple[RunElement, ...]
    folds: Mapping[str, Atoms]

    def spell(self) -> str:
        """Return the run as a text: a line for its values of FOLD, and one for each element."""
        # A measure is a fraction.
        folds = json.dumps({name: list(v) for name, v in self.folds.items()}, default=float)
        return "\n".join([folds, *[one.spell() for one in self.elements]])

    def at_hand(self) -> RunAtHand:
        """Return the run as conditions read it."""
        return RunAtHand(self.elements, None, self.folds)


@functools.lru_cache(maxsize=512)
def read_run(text: str) -> Run:
    """Return the run that `Run.spell` wrote."""
    folds, *elements = text.split("\n")
    return Run((*map(_read_element, elements),), json.loads(folds))


@functools.lru_cache(maxsize=65_536)
def _read_element(line: str) -> RunElement:
    block, start_us, end_us, terms = json.loads(line)
    return RunElement(block, start_us, end_us, {t: TermNode(*b) for t, b in terms.items()})


@dataclass(slots=True)
class Totals:
    """What aggregates are of the values of some elements, in order; they never change, once made.

    `least` and `greatest` are NaN where a value is no number, or there is none.
    """

    count: int = 0
    sum: float = 0.0
    least: float = math.nan
    greatest: float = math.nan

    def with_more(
        self, of: Callable[[RunElement], Atoms], elements: Iterable[RunElement]
    ) -> Totals:
        """Return the totals with the values of further elements, where these bind any."""
        count, total, least, greatest = self.count, self.sum, self.least, self.greatest
        for element in elements:
            try:
                values = of(element)
            except UnboundError:
                continue
            for number in map(to_double, values):
                is_first, is_nan = count == 0, number != number
                least = number if is_first or is_nan or number < least else least
                greatest = number if is_first or is_nan or number > greatest else greatest
                count, total = count + 1, total + number
        return Totals(count, total, least, greatest)


class GrowingRun(Sequence[RunElement]):
    """The elements of a run that goes on, which know their totals."""

    __slots__ = ()

    @abstractmethod
    def totals(self, of: Callable[[RunElement], Atoms]) -> Totals:
        """Return the totals of the values that a function gives of each element."""


def aggregate(
    function: str, of: Callable[[RunElement], Atoms], elements: Sequence[RunElement]
) -> Atoms:
    """Return an aggregate of the values of all elements that bind what it is of.

    Sums are taken from the first element to the last: rounding depends on it.
    """
    if function == "all":
        return _all(of, elements)
    if isinstance(elements, GrowingRun):
        totals = elements.totals(of)
    else:
        totals = Totals().with_more(of, elements)
    if function == "count":
        return (float(totals.count),)
    if function == "sum":
        return (totals.sum,)
    if not totals.count:
        raise UnboundError
    if function == "avg":
        return (totals.sum / totals.count,)
    return (totals.least if function == "min" else totals.greatest,)


def _all(of: Callable[[RunElement], Atoms], elements: Sequence[RunElement]) -> Atoms:
    values: list[Atom] = []
    is_bound = False
    for one in elements:
        try:
            values += of(one)
            is_bound = True
        except UnboundError:
            continue
    if not is_bound:
        raise UnboundError
    return values


def shown_value(values: Atoms) -> Any:
    """Return a value of FOLD as a match line shows it: a list where it is not one value.

    What is no finite number stands as its text.
    """
    numbers = [v if isinstance(v, str) else float(v) for v in values]
    shown = [str(v) if isinstance(v, float) and not math.isfinite(v) else v for v in numbers]
    return shown[0] if len(shown) == 1 else shown
