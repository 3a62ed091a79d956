"""What subscriptions differ in: tests of values in a tuple against data, the **box** of each.

An operator hands on the values that its box tests, and those of the operators below it, so the box
of the root has the tests of all of them, and one stream of inner tuples serves all assignments
(RUMOR's channel; Hong 2009, chapter 5).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import lru_cache
from math import isfinite, isnan
from typing import Any, NamedTuple

from templates.elementnumbers import calculate
from xscl.comparison import INSTANTS, REVISION
from xscl.disjunctions import OTHER_NUMBER, DataForm, Disjunction
from xscl.excerpttests import Excerpted
from xscl.functions import to_double
from xscl.path import Parameter, XPathFrame
from xscl.pattern import Constant
from xscl.query import Call, Operand, Term, term
from xscl.texttests import NEGATED, TEXT_TESTS
from xscl.xpath1numbers import as_number

__all__ = [
    "BAR",
    "DURATION",
    "NONE_OF",
    "OTHER_NUMBER",
    "SPAN",
    "SPARED",
    "TAKEN",
    "WINDOW",
    "ArithmeticStep",
    "Computed",
    "Data",
    "Excluded",
    "Formula",
    "FoundBy",
    "GivenKind",
    "Instant",
    "JointData",
    "Made",
    "Measured",
    "MustBe",
    "Number",
    "Place",
    "Solution",
    "Terms",
    "Test",
    "TestedPlace",
    "is_of_document",
    "place_at",
    "terms_tested",
]


class Place(NamedTuple):
    """Where a value of a tuple is: at a meta-variable, or at a position of one side's instance.

    `meta` is -1 in the second case: the side is a tuple of the operator below, and carries it.
    """

    side: int
    meta: int
    position: int = 0


@lru_cache(maxsize=4_096)
def place_at(side: int, meta: int, position: int = 0) -> Place:
    """Return a place; equal ones are one object, for there are few of them, in many clauses."""
    return Place(side, meta, position)


SPAN = Place(-1, -1)
"""The smallest window that holds a tuple, in microseconds."""


WINDOW = Place(-2, -1)
"""The window for which an absence was decided, in microseconds."""


BAR = Place(-3, -1)
"""The bar of a decided tuple: up to where its left was served before, or it is taken away."""


TAKEN = Place(-4, -1)
"""The values for which a decided tuple is taken away (`docs/decided.md`)."""


DURATION = Place(-5, -1)
"""How long the interval of a tuple is, in microseconds."""


class FoundBy(NamedTuple):
    """What a tuple was found by: some of the strings that a box asks for, by their numbers.

    Behind those that values must equal stand those that tests look for in texts.
    """

    numbers: tuple[int, ...]

    def text(self, asked: Sequence[str]) -> str:
        """Return one string as it is, several as one text."""
        found = [asked[number] for number in self.numbers]
        return found[0] if len(found) == 1 else json.dumps(found)


class Excluded(IntEnum):
    """How a value is compared with one that is excluded.

    As a text, as one of several that a text stands for, or as a number.
    """

    STRING = 0
    ONE_OF_SEVERAL = 1
    NUMBER = 2


NONE_OF = "none of"
"""The operator of a test that data are none of several values."""


SPARED = "spared"
"""The operator of a test that data are some of those that a tuple is for, where it says any."""


class Measured(NamedTuple):
    """A number of a tuple that is worked out of it: a measure of the sets of two of its values.

    `left_set` and `right_set` are calls of `words` and the like, of the variable `.`.  The number
    is compared by `operator` alone: a double stands for it (`xscl.measures.comparable`).
    """

    measure: str
    left: Place
    left_set: Call
    right: Place
    right_set: Call
    operator: str


class Instant(NamedTuple):
    """A time of one side's document: the end of its interval, or the start."""

    side: int
    is_end: bool


Terms = tuple[tuple[str, Place | Instant], ...]
"""Where the terms of an operand are."""


class Computed(NamedTuple):
    """A number of a tuple that arithmetic makes of values, and of times."""

    operand: Operand
    terms: Terms


class Made(NamedTuple):
    """A text of a tuple that functions of strings make of its values, and of data."""

    operand: Operand


class ArithmeticStep(NamedTuple):
    """`x operator operand`, or `operand - x` where it `is_turned`: arithmetic around data `x`."""

    operator: str
    operand: Operand
    is_turned: bool = False


class Solution(NamedTuple):
    """An end of the numbers `x` with which a tuple passes a comparison: the least, or the largest.

    The comparison is `steps(x) operator other`; no step divides by `x`, so its numbers are all
    between two (`broker.matching.boxes.solutions`).  One that `is_handed_on` is a value of the
    tuple: else it is solved again above, of values that are.
    """

    steps: tuple[ArithmeticStep, ...]
    operator: str
    other: Operand
    terms: Terms
    is_least: bool
    is_handed_on: bool = False


def is_of_document(read: Term) -> bool:
    """Return whether something is read of a document, and not of one of its nodes."""
    return isinstance(read, Call) and (read.function in INSTANTS or read.function == REVISION)


class Formula(NamedTuple):
    """Data that are calculated of other data, parameters among them: `$x * 2`."""

    operand: Operand

    def number(self, values: Mapping[str, Any]) -> float:
        """Return what it comes to under an assignment."""
        return float(calculate(self.operand, lambda read: to_double(values[term(read)[1:]])))


@dataclass(frozen=True, slots=True)
class JointData:
    """The data of several tests that each hold a value equal to them, as one datum."""

    tests: tuple[Test, ...]


Data = Constant | float | Formula | Disjunction | XPathFrame | JointData
"""What is held against a tuple, whatever the tuple is."""

Number = Measured | Computed | Solution
"""A number that is no value of a node, and made of a tuple where it is asked for."""

TestedPlace = Place | Number | FoundBy | Made
"""What an operator hands on for boxes above, and for joins."""


class GivenKind(Enum):
    """What a parameter is given, where it is something else than mostly.

    A number where it may be a string, or a text in which XPath reads none where a number is held
    against it.
    """

    NUMBER = "number"
    NO_NUMBER = "no number"


class MustBe(Enum):
    """What a parameter is given: a string; a number, or a length; or what XPath reads as one."""

    STRING = 0
    NUMBER = 1
    READ_AS_NUMBER = 2

    def fits(self, given: object) -> bool:
        """Return whether something may be given."""
        if not isinstance(given, str):
            return self is not MustBe.STRING
        if self is MustBe.READ_AS_NUMBER:
            return isfinite(as_number(given))
        return self is MustBe.STRING

    def kind_of(self, given: object) -> GivenKind | None:
        """Return the kind of what does not fit, if all of that kind are given alike."""
        if self is MustBe.STRING:
            return GivenKind.NUMBER
        if self is MustBe.NUMBER or not isinstance(given, str):
            return None
        return GivenKind.NO_NUMBER if isnan(as_number(given)) else None


class Test(NamedTuple):
    """`place operator data`: see `xscl.pattern.DataTest`."""

    place: Place | Number
    operator: str
    data: Data
    is_of_several: bool = False
    form: DataForm = DataForm.PLAIN

    @property
    def looks_in_texts(self) -> bool:
        """Whether it holds of a text that has its data in it: a word, or one of several numbers."""
        return self.operator in TEXT_TESTS or (self.operator == "=" and self.is_of_several)

    @property
    def is_asked(self) -> bool:
        """Whether it says nothing of a tuple that could be looked up, so that each datum is asked.

        What is said of a decided tuple is no matter of a datum that could be asked before.
        """
        is_equal = self.operator == "=" and not self.is_of_several
        is_of_decided = self.operator in (NONE_OF, SPARED) or self.place in (BAR, WINDOW)
        return not (is_equal or self.looks_in_texts or is_of_decided)

    @property
    def reads_shared_text(self) -> bool:
        """Whether it is asked of a text that stands beside the values of a document."""
        data = self.data.data() if isinstance(self.data, Disjunction) else ()
        is_looked_for = self.looks_in_texts and self.operator != "="
        return is_looked_for and any(isinstance(e, Excerpted) and e.leads_upwards for e in data)

    def of_found(self, place: Place) -> Test:
        """Return the test of what a tuple was found by, which is handed on at a place."""
        form = self.form
        if form is DataForm.PLAIN and self.is_asked:
            is_text = self.operator == "!=" or self.operator.startswith(NEGATED)
            form = DataForm.PLAIN if is_text else DataForm.AS_GIVEN
        elif form is DataForm.PLAIN and self.operator == "=":
            form = DataForm.SPELLED
        return Test(place, "=", self.data, form=form)

    @property
    def is_given(self) -> bool:
        """Whether its data are those of an assignment."""
        return not isinstance(self.data, (str, float, int))

    @property
    def excludes(self) -> bool:
        """Whether it holds of all values, or numbers, but one."""
        return self.operator in ("!=", OTHER_NUMBER)

    @property
    def excluded_kind(self) -> Excluded:
        """What it holds of, where it excludes one."""
        if self.operator == OTHER_NUMBER:
            return Excluded.NUMBER
        return Excluded.ONE_OF_SEVERAL if self.is_of_several else Excluded.STRING

    @property
    def datum(self) -> str | None:
        """What its data are called where one value is equal to them; None where none is.

        Equal names are of equal texts under an assignment.
        """
        if not self.is_given or self.operator != "=" or self.is_of_several:
            return None
        name = self.data.name if isinstance(self.data, Parameter) else repr(self.data)
        return name if self.form is DataForm.PLAIN else f"{name} ({self.form.value})"

    def typed(self) -> Iterator[tuple[str, MustBe]]:
        """Yield the parameters of whose values something is asked, each with what it is."""
        if isinstance(self.data, JointData):
            yield from (each for test in self.data.tests for each in test.typed())
        elif isinstance(self.data, Disjunction):
            given = self.data.parameters()
            yield from ((each.name, MustBe.STRING) for each, test in given if test.is_of_strings)
        elif isinstance(self.data, Parameter) and self.is_of_strings:
            yield self.data.name, MustBe.STRING
        elif isinstance(self.data, Parameter) and self.is_of_numbers:
            is_read = self.form is DataForm.XPATH_NUMBER_ONLY
            yield self.data.name, MustBe.READ_AS_NUMBER if is_read else MustBe.NUMBER

    @property
    def is_of_strings(self) -> bool:
        """Whether a parameter here must be given a string."""
        if self.form is not DataForm.PLAIN or (self.operator == "=" and self.is_of_several):
            return False
        operator = self.operator.removeprefix(NEGATED)
        return self.place != WINDOW and operator in ("=", "!=", NONE_OF, *TEXT_TESTS)

    @property
    def is_of_numbers(self) -> bool:
        """Whether a parameter here must be given a number, a length of time, or a text of one."""
        return self.place == BAR or self.form is DataForm.XPATH_NUMBER_ONLY


def terms_tested(tested: Sequence[TestedPlace]) -> tuple[str, ...]:
    """Return what the values at tested places are called in tuples; no block has such a name."""
    return _numbered_terms(len(tested))


@lru_cache(maxsize=256)
def _numbered_terms(count: int) -> tuple[str, ...]:
    return tuple([f"${i}" for i in range(count)])
