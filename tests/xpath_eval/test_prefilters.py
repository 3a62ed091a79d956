"""What prefilters let through: the constants of all who share a node."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import partial
from itertools import product

import pytest

from xpath_eval.prefilters import AdmissionTest, Constants
from xscl.functions import compare_literal, holds
from xscl.path import FunctionValue, Path, PathValue
from xscl.prefilters import CHAINED, Prefilter
from xscl.solving import BESIDE, Chain

OPERAND = PathValue(Path(()))
OPERATORS = (
    "<",
    "<=",
    ">",
    ">=",
    "=",
    "!=",
    "contains",
    "starts-with",
    "ends-with",
    "matches",
    "matches/i",
)
NUMBERS = (-1.0, 0.0, -0.0, 1.5, 7.0, "3", "x")
WORDS = ("a", "ab", "b", "", "ba")
EXPRESSIONS = ("^A", "b$|x", "[0-9]+", "(", "a.?b", "INF")
VALUES = ("", "a", "xaby", "ba", "-3", "0", " 1.5 ", "2", "7", "8", "NaN", "INF", "x")


def _values(value: str, _operand: object) -> list[str]:
    return [value]


def fulfils(value: str, operator: str, constant: str | float) -> bool:
    """Return whether a value fulfils a condition, as XPath says."""
    if operator in OPERATORS[:6]:
        return compare_literal([value], operator, constant)
    assert isinstance(constant, str)
    function, _, flags = operator.partition("/")
    return holds(function, value, constant, flags)


@pytest.mark.parametrize(
    ("operator", "is_of_numbers"), [*((each, False) for each in OPERATORS), ("!=", True)]
)
def test_some_constant_lets_a_value_through_whichever_come_and_go(
    operator: str, is_of_numbers: bool
) -> None:
    prefilter = Prefilter((OPERAND,), operator, is_of_numbers)
    chance = random.Random(operator)
    kinds: dict[str, Sequence[str | float]] = {"!=": WORDS, "=": NUMBERS[:5]}
    kinds |= dict.fromkeys(["matches", "matches/i"], EXPRESSIONS)
    words = kinds.get(operator, NUMBERS if operator[0] in "<>" else WORDS)
    words = NUMBERS[:5] if is_of_numbers else words
    constants, present, test = Constants.of(prefilter), [chance.choice(words)], None
    constants.add(present[0])
    test = AdmissionTest(prefilter)
    for _ in range(120):
        if len(present) > 1 and chance.random() < 0.5:
            constants.remove(present.pop(chance.randrange(len(present))))
        else:
            present.append(chance.choice(words))
            constants.add(present[-1])
        test.follow(constants.admission)
        assert all(constants.admission.covers(each) for each in present)
        for value in VALUES:
            wanted = any(fulfils(value, operator, each) for each in present)
            # A word that nobody has any more is let through for a while.
            assert wanted <= test.holds(partial(_values, value))
            if operator in OPERATORS[:6]:
                assert wanted == test.holds(partial(_values, value))
    test.follow(None)
    assert not any(test.holds(partial(_values, value)) for value in VALUES)
    for each in present:
        constants.remove(each)
    assert not constants


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_a_bound_that_holds_of_none_lets_through_where_there_is_no_number(operator: str) -> None:
    prefilter = Prefilter((OPERAND,), operator, holds_of_none=True)
    constants, test = Constants.of(prefilter), AdmissionTest(prefilter)
    for constant in (2.0, 5.0):
        constants.add(constant)
    test.follow(constants.admission)
    for texts in ([], ["x"], ["1", "2"], ["2", "3"], ["5", "x", "4"], ["6", "5"], ["1", "6"]):
        numbers = [float(each) for each in texts if each != "x"]
        some = [{n for n in numbers if not compare_literal([n], operator, c)} for c in (2.0, 5.0)]
        assert test.holds(lambda _, texts=texts: texts) == (not all(some))


def test_words_that_are_gone_go_when_they_are_most() -> None:
    constants = Constants.of(Prefilter((OPERAND,), "contains"))
    for number in range(10):
        constants.add(f"word {number}")
    first = constants.admission
    for number in range(5):
        assert not constants.remove(f"word {number}")
    assert not constants.add("word 3")
    assert constants.admission is first
    for number in (3, 5):
        constants.remove(f"word {number}")
    assert constants.admission.all == {f"word {number}" for number in range(6, 10)}
    assert constants.admission != first


def test_a_negated_one_is_let_through_where_a_word_is_not_and_with_two_words_everywhere() -> None:
    prefilter = Prefilter((OPERAND,), "contains", is_negated=True)
    constants, test = Constants.of(prefilter), AdmissionTest(prefilter)
    constants.add("a")
    test.follow(constants.admission)
    holds_of = [test.holds(lambda _, texts=texts: texts) for texts in ([], ["b"], ["b", "ca"])]
    assert holds_of == [True, True, False]
    assert not constants.admission.covers("b")
    constants.add("b")
    test.follow(constants.admission)
    assert test.holds(lambda _: ["a"])
    assert constants.admission.covers("anything")
    test.follow(None)
    assert not test.holds(lambda _: [])


def test_the_least_and_the_greatest_of_numbers_within_arithmetic_let_a_node_through() -> None:
    chance = random.Random(1)
    for operator in ("<", "<=", "=", ">", ">="):
        chain = Chain((("*", False), ("+", False)), operator)
        prefilter = Prefilter((FunctionValue(BESIDE, ()),), CHAINED, chain=chain)
        constants, present = Constants.of(prefilter), [2.0]
        constants.add(2.0)
        test = AdmissionTest(prefilter)
        for _ in range(60):
            if len(present) > 1 and chance.random() < 0.5:
                constants.remove(present.pop(chance.randrange(len(present))))
            else:
                present.append(chance.choice([-3.0, 0.0, 0.5, 2.0, 7.0]))
                constants.add(present[-1])
            test.follow(constants.admission)
            assert all(constants.admission.covers(each) for each in present)
            for numbers in product([-1.0, 0.0, 3.0, math.nan], [0.0, 1e-3], [-2.0, 1.0, 6.0]):
                asked = chain.of(numbers)
                wanted = asked is not None and any(map(asked.holds, present))
                let_through = test.holds(partial(_numbers, numbers))
                assert wanted <= let_through
                if operator != "=" or len(set(present)) == 1:
                    assert wanted == let_through
        assert test.holds(partial(_numbers, (1e60, 0.0, 1.0))), "what is not solved is asked"
        test.follow(None)
        assert not test.holds(partial(_numbers, (1.0, 0.0, 1.0)))


def _numbers(numbers: tuple[float, ...], _operand: object) -> tuple[float, ...]:
    return numbers
