"""What `or` joins, as data: tests of several values of which one must hold, in one text.

`[author = $x or price < 5]` asks for a value of the first operand that is `$x`, or for one of the
second below 5.  Who looks for it has one text that says both, and an index of such texts finds
those of which a test holds (`xpath_eval.textindex`).  What `and` joins below it holds together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import Any, NamedTuple

from xscl.arithmetic import COMPARE
from xscl.calculations import CALCULATED, Calculation, Framed, passes_calculated
from xscl.excerpttests import Excerpted
from xscl.functions import holds, spell, to_double
from xscl.path import Parameter, XPathFrame
from xscl.texttests import IN_NO_TEXT, TEXT_TESTS
from xscl.xpath1calls import given_text
from xscl.xpath1numbers import as_number

__all__ = [
    "OTHER_NUMBER",
    "DataForm",
    "Disjunction",
    "OperandTest",
    "Together",
    "holds_of",
    "read_disjunction",
]

OTHER_NUMBER = "another number than"
"""The operator of a test that a value is a number, and not equal to one: `!=` with a number."""

_quoted = json.encoder.encode_basestring_ascii

_INEQUALITIES = frozenset(("<", "<=", ">", ">="))


class DataForm(Enum):
    """What data are held against a value as, and so must be what a parameter is given.

    A string, or a number by a bound; a number as `spell_number` writes it, or a string; the same of
    what nothing but itself is compared with; the number that XPath 1.0 reads in them.  Where not
    even one that is none may be compared, this needs a number.
    """

    PLAIN = "plain"
    SPELLED = "spelled"
    AS_GIVEN = "as given"
    XPATH_NUMBER = "number of XPath 1.0"
    XPATH_NUMBER_ONLY = "number of XPath 1.0 that is one"

    def read(self, given: Any, operator: str) -> Any:
        """Return what a parameter is given as a test with an operator reads it."""
        if self in (DataForm.PLAIN, DataForm.SPELLED, DataForm.AS_GIVEN):
            return given
        number = as_number(given if isinstance(given, str) else float(given))
        if operator in _INEQUALITIES:
            return number
        # No number is equal to what is none.
        return spell(number) if number == number else IN_NO_TEXT


class OperandTest(NamedTuple):
    """`operator data` of an operand, which is at a place among several; the only one is at -1.

    Operators are those of texts, inequalities, `=` with a number, `!=` with a string,
    `OTHER_NUMBER`, and `CALCULATED`.
    """

    place: int
    operator: str
    data: str | float | Parameter | XPathFrame | Calculation | Framed | Excerpted
    form: DataForm = DataForm.PLAIN

    @property
    def is_of_strings(self) -> bool:
        """Whether a parameter here must be given a string."""
        is_text = self.operator in TEXT_TESTS or self.operator == "!="
        return is_text and self.form is DataForm.PLAIN

    @property
    def is_constant(self) -> bool:
        """Whether its data are written out."""
        if isinstance(self.data, (Calculation, Framed, Excerpted)):
            return not any(self.data.parameters())
        return isinstance(self.data, (str, float))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters, but for those that a text is made of."""
        if isinstance(self.data, (Calculation, Framed, Excerpted)):
            return tuple(self.data.parameters())
        return (self.data,) if isinstance(self.data, Parameter) else ()

    def spelled(self, values: Mapping[str, Any]) -> str:
        """Return the test with the value that its parameter has, as JSON."""
        place, operator, data, form = self
        given: Any = data
        if isinstance(data, (Calculation, Framed, Excerpted)):
            given = data.text(values)
        elif isinstance(data, Parameter):
            given = values[data.name]
            if form is not DataForm.PLAIN:
                given = form.read(given, operator)
        elif isinstance(data, XPathFrame):
            given = given_text(data, values)
        if operator in TEXT_TESTS or operator in ("!=", CALCULATED):
            return f'[{place}, "{operator}", {_quoted(str(given))}]'
        number = to_double(given) + 0.0
        return f'[{place}, "{operator}", {number if isfinite(number) else json.dumps(number)}]'


class Together(NamedTuple):
    """Tests that must all hold, while some others hold of nothing.

    Who looks for them is found by the first one.
    """

    all_of: tuple[OperandTest, ...]
    none_of: tuple[OperandTest, ...] = ()

    def spelled(self, values: Mapping[str, Any]) -> str:
        """Return the tests with the values of parameters, as JSON."""
        sides = (", ".join(test.spelled(values) for test in side) for side in self)
        return "[[{}], [{}]]".format(*sides)


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Tests, and such that must hold together, of which one must; some data are parameters."""

    tests: tuple[OperandTest | Together, ...]

    @property
    def is_constant(self) -> bool:
        """Whether all data are written out."""
        return all(test.is_constant for each in self.tests for test in _each(each))

    @property
    def is_found(self) -> bool:
        """Whether an index finds who looks for it; else each is asked."""
        return not any(_each(each)[0].operator == CALCULATED for each in self.tests)

    @property
    def is_narrow(self) -> bool:
        """Whether an index finds who looks for it, and not by a bound, or by what must differ."""
        broad = (CALCULATED, OTHER_NUMBER, "!=", *_INEQUALITIES)
        return not all(_each(each)[0].operator in broad for each in self.tests)

    def parameters(self) -> Iterator[tuple[Parameter, OperandTest]]:
        """Yield the parameters, each with the test that it is in."""
        for each in self.tests:
            for test in _each(each):
                yield from ((parameter, test) for parameter in test.parameters)

    def data(self) -> Iterator[object]:
        """Yield what its tests hold values against."""
        return (test.data for each in self.tests for test in _each(each))

    def text(self, values: Mapping[str, Any]) -> str:
        """Return the tests with the values of parameters, as a text that equal ones have.

        >>> below, named = OperandTest(0, "<", 5.0), OperandTest(1, "equals", "x")
        >>> Disjunction((below, named)).text({})
        '[[0, "<", 5.0], [1, "equals", "x"]]'
        >>> Disjunction((Together((below,), (named,)),)).text({})
        '[[[[0, "<", 5.0]], [[1, "equals", "x"]]]]'
        """
        spelled = [test.spelled(values) for test in self.tests]
        return f"[{', '.join(sorted({*spelled}) if len(spelled) > 1 else spelled)}]"


def _each(test: OperandTest | Together) -> tuple[OperandTest, ...]:
    return (test,) if isinstance(test, OperandTest) else (*test.all_of, *test.none_of)


def read_disjunction(text: str) -> list[OperandTest | Together]:
    """Return the tests of a disjunction.

    What is in no text has none: boxes that exclude nothing have it.
    """
    return [] if text == IN_NO_TEXT else [*map(_read, json.loads(text))]


def _read(each: list[Any]) -> OperandTest | Together:
    if isinstance(each[0], int):
        return OperandTest(*each)
    return Together(*(tuple(OperandTest(*test) for test in side) for side in each))


def holds_of(tests: Iterable[OperandTest | Together], texts: Mapping[int, Sequence[str]]) -> bool:
    """Return whether a disjunction that was read holds of the values of operands, by place."""
    return any(
        _is_passed(each, texts)
        if isinstance(each, OperandTest)
        else all(_is_passed(test, texts) for test in each.all_of)
        and not any(_is_passed(test, texts) for test in each.none_of)
        for each in tests
    )


def _is_passed(test: OperandTest, texts: Mapping[int, Sequence[str]]) -> bool:
    """Return whether some value of the operand passes a test, as `TextIndex` finds it."""
    operator, data = test.operator, test.data
    values = texts.get(test.place, ())
    if isinstance(data, str):
        match operator:
            case "equals":
                return data in values
            case "!=":
                return any(value != data for value in values)
            case _ if operator == CALCULATED:
                return any(passes_calculated(value, data) for value in values)
        function, _, flags = operator.partition("/")
        return any(holds(function, value, data, flags) for value in values)
    assert isinstance(data, float)
    if operator == OTHER_NUMBER:
        return any(n == n and n != data == data for n in map(to_double, values))
    compare = COMPARE[operator]
    return any(compare(to_double(value), data) for value in values)
