"""Tests of values whose data an operand has: they are asked of rows beside each other.

Whoever asks for a tuple of the operand has its value for a datum.  So what is held against the
datum is held against that value, and nobody need say who asks (`docs/decided.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from templates.box import NONE_OF, OTHER_NUMBER, SPARED, TAKEN, Place, Test
from templates.givendata import given_by, parameters_of, text_by
from xscl.arithmetic import COMPARE
from xscl.disjunctions import DataForm, holds_of, read_disjunction
from xscl.evaluation import Condition, Reading, values_of_optional
from xscl.functions import holds, to_double
from xscl.path import Parameter
from xscl.pattern import INEQUALITIES
from xscl.prefilters import spell_number, values_by_place
from xscl.solving import refutes
from xscl.texttests import EITHER, NEGATED, REFUTED, TEXT_TESTS

__all__ = ["GivenReading", "HadTest", "HadValue", "given_values", "had_values", "passes"]


class HadValue(NamedTuple):
    """A term that has the value of a parameter, a number by its spelling."""

    parameter: str
    term: str
    is_number: bool

    def read(self, reading: Reading) -> str | float:
        """Return what the parameter would be given."""
        value = reading.value(self.term)
        return float(value) if self.is_number else value


@dataclass(frozen=True, slots=True)
class GivenReading:
    """Rows with terms whose values stand for the parameters of the conditions that read them."""

    rows: Reading
    given: tuple[HadValue, ...]

    @property
    def start_us(self) -> int:
        """The start of their interval."""
        return self.rows.start_us

    @property
    def end_us(self) -> int:
        """The end of their interval."""
        return self.rows.end_us

    @property
    def parameters(self) -> Mapping[str, str | float | int]:
        """The values of parameters."""
        return {each.parameter: each.read(self.rows) for each in self.given}

    def value(self, name: str) -> str:
        """Return the value of a term."""
        return self.rows.value(name)


class HadTest(NamedTuple):
    """A test of the value of a term, for whose parameters other terms have the values."""

    term: str
    test: Test
    given: tuple[HadValue, ...]

    @property
    def comparison(self) -> tuple[str, str, str] | None:
        """The test as a comparison of two terms, None where it is none."""
        _, operator, data, is_of_several, form = self.test
        is_plain = isinstance(data, Parameter) and form is DataForm.PLAIN and not is_of_several
        if not is_plain or operator not in ("!=", *INEQUALITIES):
            return None
        [given] = self.given
        return self.term, operator, given.term

    def condition(self) -> Condition:
        """Return what tells whether it holds of rows."""
        holds_of_value = passes(self.test)
        return lambda reading: holds_of_value(
            reading.value(self.term), {each.parameter: each.read(reading) for each in self.given}
        )


def had_values(test: Test, terms: Mapping[str, str]) -> tuple[HadValue, ...] | None:
    """Return what stands for the data of a test among terms that are equal to data, by datum.

    It is None where not all of them are there, or the text is not that the test is asked of: what
    stands beside the values of a document is not handed on.
    """
    if not test.is_given or test.operator in (NONE_OF, SPARED) or not isinstance(test.place, Place):
        return None
    if test.reads_shared_text:
        return None
    return given_values(parameters_of(test), terms)


def given_values(names: Iterable[str], terms: Mapping[str, str]) -> tuple[HadValue, ...] | None:
    """Return what stands for parameters among terms that are equal to data; None of no names."""
    found: list[HadValue] = []
    for name in sorted(names):
        as_number = Test(TAKEN, "=", Parameter(name), form=DataForm.SPELLED).datum
        own = next((datum for datum in (name, as_number) if datum in terms), None)
        if own is None:
            return None
        found.append(HadValue(name, terms[own], is_number=own != name))
    return tuple(found) or None


def passes(test: Test) -> Callable[[str, Mapping[str, Any]], bool]:
    """Return what tells whether a value passes a test under values of parameters, as boxes do."""
    operator, is_of_several = test.operator, test.is_of_several
    if operator in INEQUALITIES:
        given, compare = given_by(test), COMPARE[operator]
        return lambda value, values: compare(to_double(value), to_double(given(values)))
    is_negated, read = operator.startswith(NEGATED), text_by(test)
    has = _finding(operator.removeprefix(NEGATED))

    def found(value: str, values: Mapping[str, Any]) -> bool:
        texts = [*map(str, values_of_optional(value))] if is_of_several else [value]
        return has(texts, read(values)) is not is_negated

    return found


def _finding(operator: str) -> Callable[[list[str], str], bool]:
    """Return what tells whether some text has what is looked for by an operator."""
    match operator:
        case "equals":
            return lambda texts, datum: datum in texts
        case "!=":
            return lambda texts, datum: any(text != datum for text in texts)
        case _ if operator == OTHER_NUMBER:
            return lambda texts, datum: any(_is_other(to_double(text), datum) for text in texts)
        case _ if operator == EITHER:
            return lambda texts, datum: holds_of(read_disjunction(datum), values_by_place(texts))
        case _ if operator == REFUTED:
            return lambda texts, datum: any(refutes(text, to_double(datum)) for text in texts)
    assert operator in TEXT_TESTS
    function, _, flags = operator.partition("/")
    return lambda texts, datum: any(holds(function, text, datum, flags) for text in texts)


def _is_other(number: float, datum: str) -> bool:
    """Return whether a number is not the one that a datum spells, which nothing that is none is."""
    return number != number or spell_number(number) != datum
