"""What `or` joins, as data: tests of several values of which one must hold, in one text.

`[author = $x or price < 5]` asks for a value of the first operand that is `$x`, or for one of the
second below 5.  Who looks for it has one text that says both, and an index of such texts finds
those of which a test holds (`xpath_eval.textindex`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import Any, NamedTuple

from xscl.functions import spell, to_double
from xscl.path import Parameter, XPathFrame
from xscl.texttests import IN_NO_TEXT, TEXT_TESTS
from xscl.xpath1calls import given_text
from xscl.xpath1numbers import as_number

__all__ = ["OTHER_NUMBER", "DataForm", "Disjunction", "OperandTest", "read_disjunction"]

OTHER_NUMBER = "another number than"
"""The operator of a test that a value is a number, and not equal to one: `!=` with a number."""

_quoted = json.encoder.encode_basestring_ascii

_INEQUALITIES = frozenset(("<", "<=", ">", ">="))


class DataForm(Enum):
    """What data are held against a value as, and so must be what a parameter is given.

    A string, or a number by a bound; a number as `spell_number` writes it; the number that XPath
    1.0 reads in them.  Where not even one that is none may be compared, this needs a number.
    """

    PLAIN = "plain"
    SPELLED = "spelled"
    XPATH_NUMBER = "number of XPath 1.0"
    XPATH_NUMBER_ONLY = "number of XPath 1.0 that is one"

    def read(self, given: Any, operator: str) -> Any:
        """Return what a parameter is given as a test with an operator reads it."""
        if self in (DataForm.PLAIN, DataForm.SPELLED):
            return given
        number = as_number(given if isinstance(given, str) else float(given))
        if operator in _INEQUALITIES:
            return number
        # No number is equal to what is none.
        return spell(number) if number == number else IN_NO_TEXT


class OperandTest(NamedTuple):
    """`operator data` of an operand, which is at a place among several; the only one is at -1.

    Operators are those of texts, inequalities, `=` with a number, `!=` with a string, and
    `OTHER_NUMBER`.
    """

    place: int
    operator: str
    data: str | float | Parameter | XPathFrame
    form: DataForm = DataForm.PLAIN

    @property
    def is_of_strings(self) -> bool:
        """Whether a parameter here must be given a string."""
        is_text = self.operator in TEXT_TESTS or self.operator == "!="
        return is_text and self.form is DataForm.PLAIN

    def spelled(self, values: Mapping[str, Any]) -> str:
        """Return the test with the value that its parameter has, as JSON."""
        place, operator, data, form = self
        given: Any = data
        if isinstance(data, Parameter):
            given = values[data.name]
            if form is not DataForm.PLAIN:
                given = form.read(given, operator)
        elif isinstance(data, XPathFrame):
            given = given_text(data, values)
        if operator in TEXT_TESTS or operator == "!=":
            return f'[{place}, "{operator}", {_quoted(str(given))}]'
        number = to_double(given) + 0.0
        return f'[{place}, "{operator}", {number if isfinite(number) else json.dumps(number)}]'


@dataclass(frozen=True, slots=True)
class Disjunction:
    """Tests of which one must hold; some have parameters for their data."""

    tests: tuple[OperandTest, ...]

    @property
    def is_constant(self) -> bool:
        """Whether all data are written out."""
        return all(isinstance(test.data, (str, float)) for test in self.tests)

    def parameters(self) -> Iterator[tuple[Parameter, OperandTest]]:
        """Yield the parameters, each with the test that it is in."""
        for test in self.tests:
            if isinstance(test.data, Parameter):
                yield test.data, test

    def text(self, values: Mapping[str, Any]) -> str:
        """Return the tests with the values of parameters, as a text that equal ones have.

        >>> Disjunction((OperandTest(0, "<", 5.0), OperandTest(1, "equals", "x"))).text({})
        '[[0, "<", 5.0], [1, "equals", "x"]]'
        """
        spelled = [test.spelled(values) for test in self.tests]
        return f"[{', '.join(sorted({*spelled}) if len(spelled) > 1 else spelled)}]"


def read_disjunction(text: str) -> list[tuple[int, str, str | float]]:
    """Return the tests of a disjunction: the place of the operand, the operator and the data.

    What is in no text has none: boxes that exclude nothing have it.
    """
    if text == IN_NO_TEXT:
        return []
    return [(place, operator, data) for place, operator, data in json.loads(text)]
