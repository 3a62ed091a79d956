"""Comparisons are solved for data: what fits is between two numbers, or asked one by one."""

from __future__ import annotations

import math
import random

import pytest
from lxml import etree
from support.examples import some

from xscl.solving import Chain, Solvable, refutes

ROUND = (0.0, -0.0, 1.0, -1.0, 3.0, 0.1, 1 / 3, 19.99, 7e20, 1e-30, 1e50, -1e50)
WILD = (*ROUND, 1e-300, -5e-324, 1e60, 1e300, math.inf, -math.inf)


def solvable(chance: random.Random, numbers: tuple[float, ...]) -> Solvable:
    """Return a comparison whose other side is mostly what the steps make of some number."""
    steps = [chance.choice(["+", "-", "*", "div"]) for _ in range(chance.randint(1, 5))]
    chain = tuple((step, step == "-" and chance.random() < 0.5) for step in steps)
    own = tuple(chance.choice([*numbers, chance.uniform(-99, 99)]) for _ in steps)
    found = Solvable(chain, "=", own, (0.0,)).calculated(chance.choice(ROUND))
    near = math.nextafter(found, chance.choice([math.inf, -math.inf]))
    other = chance.choice([found, found, near, *numbers])
    operator = chance.choice(["<", "<=", "=", ">", ">="])
    return Solvable(chain, operator, own, (0.0 if other != other else other,))


@pytest.mark.parametrize("seed", some(range(400), 40))
def test_a_comparison_holds_of_the_numbers_between_its_ends(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        asked = solvable(chance, ROUND)
        if not asked.is_moderate:
            continue
        least, greatest = asked.ends()
        tried = [*ROUND, chance.uniform(-999, 999)]
        for end in (least, greatest):
            tried += [end, math.nextafter(end, math.inf), math.nextafter(end, -math.inf)]
        tried += [math.copysign(1.7e308, chance.uniform(-1, 1)), chance.uniform(-1, 1) * 1e300]
        tried = [each for each in tried if math.isfinite(each)]
        for number in tried:
            assert asked.holds(number) == (least <= number <= greatest), (asked, number)
        # Whoever else is between two data, one of these lets it through.
        if any(map(asked.holds, tried)):
            assert asked.holds_within(min(tried), max(tried))


@pytest.mark.parametrize("seed", some(range(200), 20))
def test_what_is_calculated_is_what_xpath_calculates(seed: int) -> None:
    chance = random.Random(seed)
    asked, number = solvable(chance, WILD), chance.choice(ROUND)
    text = "$x"
    for i, (step, is_turned) in enumerate(asked.steps):
        text = f"($k{i} {step} {text})" if is_turned else f"({text} {step} $k{i})"
    given = {f"k{i}": each for i, each in enumerate(asked.numbers)}
    holds = etree.XPath(f"{text} {asked.operator} $other")(
        etree.Element("any"), x=number, other=asked.others[0], **given
    )
    assert asked.holds(number) == holds
    assert refutes(asked.written(), number) == (not holds)


def test_several_numbers_stand_on_the_other_side() -> None:
    chain = Chain((("*", False),), "<")
    assert chain.of([2.0, 5.0, math.nan, 9.0]) == Solvable(chain.steps, "<", (2.0,), (9.0,))
    assert chain.of([2.0, math.nan]) is None
    assert chain.of([math.nan, 9.0]) is None
    equal = Chain(chain.steps, "=").of([2.0, 9.0, 5.0, 9.0])
    assert equal == Solvable(chain.steps, "=", (2.0,), (5.0, 9.0))
    assert not equal.is_moderate
    assert [refutes(equal.written(), each) for each in (2.5, 3.0, 4.5)] == [False, True, False]


def test_negative_zero_is_written_down() -> None:
    asked = Solvable((("div", False),), "<", (-0.0,), (0.0,))
    assert not refutes(asked.written(), 1.0)
    assert refutes(asked._replace(numbers=(0.0,)).written(), 1.0)


def test_zeros_of_both_signs_are_told_apart_wherever_they_were_before() -> None:
    chain = Chain((("div", False),), "<")
    written = [found.written for z in (0.0, -0.0) if (found := chain.solved([z, 0.0]))]
    assert written == [
        '[[["div", false]], "<", [0.0], [0.0]]',
        '[[["div", false]], "<", [-0.0], [0.0]]',
    ]
