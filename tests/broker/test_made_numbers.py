"""Arithmetic and expressions that are held against data: statements that differ in them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np
import pytest
from generators.choosers import RandomChooser
from hypothesis import given
from support.examples import size
from support.kit import parse_case
from support.runners import lines, run_engine, run_oracle

from broker.matching.boxes.solutions import are_moderate, solve
from templates.box import ArithmeticStep
from xscl.arithmetic import CALCULATE
from xscl.path import Literal

COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
}
NUMBERS = (
    st.floats()
    | st.integers(-4, 4).map(float)
    | st.sampled_from([0.1, 1e15, 1e49, 1e51, -1e-49, 1e-51, 5e-324])
)
STEPS = st.tuples(st.sampled_from(["+", "-", "*", "div"]), st.booleans(), NUMBERS)


def calculate(steps: Sequence[tuple[ArithmeticStep, float]], number: float) -> float:
    for step, operand in steps:
        pair = (operand, number) if step.is_turned else (number, operand)
        number = CALCULATE[step.operator](*pair)
    return number


def around(numbers: Sequence[float]) -> list[float]:
    """Return numbers, and their neighbours, up to which a solution is asked for."""
    near = [
        each
        for number in numbers
        for each in (number, np.nextafter(number, -math.inf), np.nextafter(number, math.inf))
    ]
    return [float(each) for each in near if abs(each) <= 1e50]


@given(st.lists(STEPS, min_size=1, max_size=5), st.sampled_from([*COMPARE]), NUMBERS, NUMBERS)
def test_a_number_fits_exactly_between_the_ends(
    made: list[tuple[str, bool, float]], compared: str, other: float, number: float
) -> None:
    steps = [
        (ArithmeticStep(how, Literal(operand), is_turned and how != "div"), operand)
        for how, is_turned, operand in made
    ]
    operands = [np.array([operand]) for _, operand in steps]
    only = [step for step, _ in steps]
    [least], [largest] = solve(only, operands, compared, np.array([other]))
    if not are_moderate(only, operands)[0]:
        assert (least, largest) == (-math.inf, math.inf)
        return
    for tried in around([number, least, largest, 0.0, 1e50, -1e50]):
        holds = COMPARE[compared](calculate(steps, tried), other)
        assert holds == (least <= tried <= largest), tried


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=700))
def test_many_are_solved_as_each_alone(pairs: list[tuple[float, float]]) -> None:
    steps = [ArithmeticStep("*", Literal(1.0)), ArithmeticStep("+", Literal(1.0))]
    factors, others = (np.array(column) for column in zip(*pairs, strict=True))
    terms = factors[::-1].copy()
    least, largest = solve(steps, [factors, terms], ">=", others)
    for i in range(0, len(pairs), 97):
        own = [each[i : i + 1] for each in (factors, terms)]
        assert solve(steps, own, ">=", others[i : i + 1]) == (least[i], largest[i])


CONDITIONS = (
    "b/p - a/p {} {}",
    "{1} {0} b/p - a/p",
    "b/p {} a/p * {}",
    "b/p {} {} * a/p",
    "b/p {} a/p + {}",
    "b/p - {1} {0} -a/p",
    "(a/p + {1}) * b/p {0} b/p div 3",
    "b/p div 2 - 1 {} ({} - a/p) * 3",
    "b/p {} {}",
    "b/p * a/p {} {} div a/p",
    "b/p mod 3 {} {}",
    "a/p {} 2 AND b/p != {}",
    "time(b) - time(a) {} {} * 30000000",
    "time(b) {} time(a) + {} * 10000000",
)
PRICES = ("0", "1", "2", "3", "-1", "0.1", "INF", "-INF", "1e60", "1e-60", "none", "")
DATA = (0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 10.0, 1e55, -1e-55)
SHAPES = (
    "S//i->a FOLLOWED BY {{a/k = b/k AND {}, 1 h}} S//i->b",
    "S//i->a FOLLOWED BY {{a/k = b/k, 1 h}} S//i->b WHERE {}",
    "(S//i->a FOLLOWED BY {{a/k = b/k AND {}, 1 h}} S//i->b)"
    " FOLLOWED BY {{b/k = c/k, 1 h}} S//i->c",
)


def case_of(number: int, *, has_parameters: bool) -> str:
    """Return a case whose statements differ in a number, or in what one is given."""
    choose = RandomChooser(number)
    shape, condition = choose.choice(SHAPES), choose.choice(CONDITIONS)
    compared = choose.choice([*COMPARE])
    data = [choose.choice(DATA) for _ in range(6)]
    parts = []
    if has_parameters:
        parts += ["query q", "    " + shape.format(condition.format(compared, "$n"))]
        parts += [f'parameters q {{"n": {each}}}' for each in dict.fromkeys(data)]
    else:
        for i, each in enumerate(data):
            parts += [f"query q{i}", "    " + shape.format(condition.format(compared, f"({each})"))]
    for i in range(1, 9):
        prices = "".join(f"<p>{choose.choice(PRICES)}</p>" for _ in range(choose.choice([1, 1, 2])))
        seconds = i + 10 * choose.choice([0, 0, 1])
        parts.append(f"document {i} S 00:00:{seconds:02}  <i><k>1</k>{prices}</i>")
    return "\n".join([*parts, "----", ""])


@pytest.mark.parametrize("has_parameters", [True, False])
def test_statements_that_differ_in_a_number_are_right(has_parameters: bool) -> None:
    found = 0
    for number in range(size(16, 40)):
        case = parse_case(case_of(number, has_parameters=has_parameters))
        expected = lines(run_oracle(case))
        assert lines(run_engine(case, "signatures")) == expected, number
        found += len(expected)
    assert found > size(200, 500)


EXPRESSIONS = ("1", "^1", "[0-2]$", "e6?", "n.f", "", "(", "INF|none", "-")


@pytest.mark.parametrize("flags", ["", ", 'i'"])
@pytest.mark.parametrize("shape", SHAPES)
def test_statements_that_differ_in_an_expression_are_right(shape: str, flags: str) -> None:
    parts = ["query q", "    " + shape.format(f"matches(b/p, $x{flags})")]
    parts += [f'parameters q {{"x": "{each}"}}' for each in EXPRESSIONS]
    for i, each in enumerate(EXPRESSIONS):
        if each != "(":
            parts += [f"query q{i}", "    " + shape.format(f"matches(b/p, '{each}'{flags})")]
    parts += ["query r", "    S//i[matches(p, $x)]->a FOLLOWED BY {a/k = b/k, 1 h} S//i->b"]
    parts += [f'parameters r {{"x": "{each}"}}' for each in EXPRESSIONS]
    for i, price in enumerate(PRICES, 1):
        parts.append(f"document {i} S 00:00:{i:02}  <i><k>1</k><p>{price}</p></i>")
    case = parse_case("\n".join([*parts, "----", ""]))
    expected = lines(run_oracle(case))
    assert lines(run_engine(case, "signatures")) == expected
    assert len(expected) > 100
