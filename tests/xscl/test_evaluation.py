"""Conditions on tuples: operands, arithmetic, times, choices and tests (sections 4 and 13.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from support.reading import operator

from xscl.comparison import FIRST_TIME, LAST_TIME, TIME_BETWEEN
from xscl.evaluation import compile_condition, compile_operand, optional_values
from xscl.query import Call, Operand, PathFrom, VariableValue, operand_terms, term

SECOND = 1_000_000


@dataclass(frozen=True)
class Tuple:
    """Values of terms, and the interval of a tuple."""

    values: Mapping[str, str]
    start_us: int = 0
    end_us: int = 0
    parameters: Mapping[str, str | float | int] = field(default_factory=dict)

    def value(self, name: str) -> str:
        return self.values[name]


def condition(text: str):  # type: ignore[no-untyped-def]
    """Return what a predicate over the variables `x` and `y` comes to."""
    [disjunct] = operator(f"S//a->x FOLLOWED BY {{{text}, 1 h}} S//b->y").disjuncts
    return compile_condition(disjunct.residuals, disjunct.tests)


@pytest.mark.parametrize(
    ("text", "x", "y", "holds"),
    [
        ("x * 2 <= y", "2", "4", True),
        ("x * 2 < y", "2", "4", False),
        ("x + y = 6", "2", "4", True),
        ("x - y = -2", "2", " 4 ", True),
        ("-x > y", "-5", "4", True),
        ("x div y = 0.5", "2", "4", True),
        ("x mod y = -1", "-5", "2", True),
        ("x mod y = 1", "5", "-2", True),
        ("x div 0 > 1e300", "1", "", True),
        ("x div 0 = x div 0", "0", "", False),
        ("x mod 0 != 1", "1", "", False),
        ("x + 1 != y", "one", "2", False),
        ("x + 1 = y", "1", "2.0", True),
        ("contains(x, y)", "harbour", "arb", True),
        ("contains(x, lower-case(y))", "harbour", "ARB", True),
        ("starts-with(x, y)", "harbour", "arb", False),
        ("ends-with(tokenize(x, ','), y)", "a,b", "a", True),
        ("matches(x, y, 'i')", "harbour", "^H", True),
        ("matches(x, y)", "harbour", "(", False),
        ("if (x > 3) then x else 3 < y", "1", "4", True),
        ("if (x = y) then 1 else 2 = 2", "", "", True),
        ("if (x = y OR x < 2) then x else y = '1'", "1", "4", True),
        ("exists(host(x))", "http://a.org/", "", True),
        ("empty(host(x))", "nothing", "", True),
    ],
)
def test_a_condition_holds_of_values(text: str, x: str, y: str, holds: bool) -> None:
    assert condition(text)(Tuple({"x": x, "y": y})) is holds


def test_times_are_numbers_of_microseconds() -> None:
    late = Tuple({"time(x)": "1000000", "time(y)": "5000000"}, SECOND, 5 * SECOND)
    for text in ("dur() = 4 s", "start() = 1 s", "end() = 5 s", "time(y) - time(x) > 3999 ms"):
        assert condition(text)(late)
    assert not condition("dur() < 4 s")(late)


def test_parameters_are_values_of_their_types() -> None:
    given = Tuple({"x": "2"}, 0, SECOND, {"d": SECOND, "n": 2.0, "t": "2"})
    for text in ("dur() <= $d", "x <= $n", "x + $n = 4", "contains(x, $t)"):
        assert condition(text)(given)


def test_an_optional_path_has_all_its_values_or_none() -> None:
    [disjunct] = operator("S//a->x FOLLOWED BY {exists(x/c), 1 h} S//b").disjuncts
    [[path]] = [test.arguments for test in disjunct.tests]
    assert isinstance(path, PathFrom)
    holds = compile_condition((), disjunct.tests)
    assert holds(Tuple({term(path): optional_values(["a", ""])}))
    assert not holds(Tuple({term(path): optional_values([])}))
    assert compile_operand(path)(Tuple({term(path): optional_values(["ä", "'"])})) == ["ä", "'"]


def test_what_is_asked_for_its_time_is_not_read() -> None:
    time = Call("time", (VariableValue("x"),))
    terms: tuple[Operand, ...] = operand_terms(Call("-", (time, VariableValue("y"))))
    assert terms == (time, VariableValue("y"))


def test_arithmetic_of_what_is_no_number_is_none() -> None:
    [value] = compile_operand(Call("-", (VariableValue("x"),)))(Tuple({"x": "one"}))
    assert isinstance(value, float)
    assert math.isnan(value)


def test_the_time_between_documents_is_exact_where_times_are_no_doubles() -> None:
    starts, ends = (
        tuple(Call(function, (VariableValue(name),)) for name in "ab")
        for function in ("start", "time")
    )
    first, last = Call(FIRST_TIME, starts), Call(LAST_TIME, ends)
    late = 1 << 53
    times = {"start(a)": late + 2, "start(b)": late + 1, "time(a)": late + 4, "time(b)": late + 2}
    known = Tuple({name: str(time) for name, time in times.items()})
    assert compile_operand(Call(TIME_BETWEEN, (first, last)))(known) == (3.0,)
    assert compile_operand(first)(known) == (float(late + 1),)
