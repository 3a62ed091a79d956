"""Conditions with constants that are data say what they said."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

from xpath_eval.textindex import TextIndex
from xscl import parse
from xscl.constants import admitted_constant
from xscl.evaluation import optional_values
from xscl.functions import compare_literal, holds, spell
from xscl.path import (
    ANY,
    And,
    Axis,
    Comparison,
    Condition,
    Exists,
    FunctionValue,
    Literal,
    NodeTest,
    Not,
    Or,
    Path,
    PathValue,
    Position,
    Step,
    StringTest,
)
from xscl.prefilters import ValuesKind, spell_number, values_of

OPERANDS = [PathValue(Path(())), PathValue(Path((Step(Axis.CHILD, NodeTest(ANY)),)))]
FUNCTION = FunctionValue("lower-case", (OPERANDS[0],))
LENGTH = FunctionValue("string-length", (OPERANDS[1],))
WORDS = st.text("ab.^$\\|[(?-\n\x01", max_size=3)
TESTS = st.one_of(
    st.builds(Comparison, st.sampled_from([*OPERANDS, FUNCTION]), st.just("="), WORDS.map(Literal)),
    st.builds(
        StringTest,
        st.sampled_from(["contains", "starts-with", "ends-with"]),
        st.sampled_from([*OPERANDS, FUNCTION]),
        WORDS.map(Literal),
    ),
    st.builds(
        StringTest,
        st.just("matches"),
        st.just(OPERANDS[0]),
        st.sampled_from(["a|b", "^a", "b$", ".", ""]).map(Literal),
    ),
)
COMPARISONS = st.builds(
    Comparison,
    st.sampled_from([*OPERANDS, FUNCTION]),
    st.sampled_from(["<", "<=", ">", ">=", "=", "!="]),
    st.sampled_from([Literal(1.0), Literal(-0.0), Literal("a"), Literal("2")]),
)
TEXTS = st.lists(
    st.text("abAB.^$\\|[(?-\n", max_size=4) | st.sampled_from(["0", " 1.0", "2", "INF", "NaN"]),
    max_size=2,
)


def is_true(condition: Condition, values: dict[object, list[str]]) -> bool:
    match condition:
        case Or(conditions):
            return any(is_true(each, values) for each in conditions)
        case And(conditions):
            return all(is_true(each, values) for each in conditions)
        case Not(inner):
            return not is_true(inner, values)
        case Exists(path):
            return bool(values[PathValue(path)])
        case Comparison(operand, operator, Literal(constant)):
            return compare_literal(values[operand], operator, constant)
        case StringTest(function, operand, Literal(constant)):
            return any(holds(function, each, constant) for each in values[operand])
    raise AssertionError(condition)


def read(own: list[str], below: list[str]) -> dict[object, list[str]]:
    """Return the values of operands where these are the values of the two paths."""
    values: dict[object, list[str]] = {OPERANDS[0]: own, OPERANDS[1]: below}
    values[FUNCTION] = [each.lower() for each in own]
    values[LENGTH] = [str(len(each)) for each in below]
    return values


@given(st.lists(TESTS | COMPARISONS, min_size=2, max_size=4), TEXTS, TEXTS)
def test_what_is_asked_with_or_is_one_text_that_is_looked_for(
    conditions: list[Condition], own: list[str], below: list[str]
) -> None:
    values = read(own, below)
    asked = Or(tuple(conditions))
    found = admitted_constant(asked)
    assert found is not None
    prefilter, text = found
    assert isinstance(text, str)
    texts = [*map(spell, values_of(prefilter.operands, values.__getitem__))]
    assert finds(prefilter.operator, text, texts) == is_true(asked, values)
    negated = admitted_constant(Not(asked))
    assert negated == (prefilter._replace(is_negated=True), text)
    assert negated[0].values.of(values.__getitem__) == (optional_values(texts),)


def finds(operator: str, text: str, texts: list[str]) -> bool:
    """Return whether who looks for a text is found, and nobody is left once it is gone."""
    index = TextIndex[str]()
    index.add(operator, text, "who")
    met = index.found(texts)
    assert index.has_any(texts) == bool(met)
    index.remove(operator, text, "who")
    assert not len(index)
    return bool(met)


COMBINED = st.recursive(
    TESTS | COMPARISONS | st.just(Exists(OPERANDS[1].path)),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: And(tuple(each))),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: Or(tuple(each))),
    ),
    max_leaves=5,
)


@given(st.lists(COMBINED, min_size=2, max_size=3), TESTS, TEXTS, TEXTS)
def test_what_is_combined_is_one_text_that_is_looked_for_or_must_not_be_there(
    conditions: list[Condition], test: Condition, own: list[str], below: list[str]
) -> None:
    values = read(own, below)
    asked = Or((And((test, conditions[0])), *conditions[1:]))
    found = admitted_constant(asked)
    assert found is not None
    prefilter, text = found
    assert isinstance(text, str)
    texts = [*map(spell, values_of(prefilter.operands, values.__getitem__))]
    is_found = finds(prefilter.operator, text, texts)
    assert is_found == (is_true(asked, values) != prefilter.is_negated)
    # A node without values must be one that has the condition, or none.
    assert prefilter.is_negated or texts or not is_true(asked, values)


NUMBERS = st.lists(
    st.sampled_from(["0", "-0", " 1.0", "1", "2", "x", "", "NaN", "INF"]), max_size=3
)


@given(NUMBERS, st.sampled_from([0.0, -0.0, 1.0, 2.0]))
def test_a_number_differs_from_the_only_one_or_there_are_several(
    texts: list[str], number: float
) -> None:
    found = admitted_constant(Comparison(OPERANDS[0], "!=", Literal(number)))
    assert found is not None
    values = found[0].values
    assert values.kind is ValuesKind.ONLY
    only = values.of(lambda _: texts)
    assert any(each != spell_number(number) for each in only) == compare_literal(
        texts, "!=", number
    )


@given(NUMBERS, st.sampled_from(["<", "<=", ">", ">="]), st.sampled_from([0.0, -0.0, 1.0, -1.0]))
def test_no_number_is_within_a_bound_or_there_is_none(
    texts: list[str], operator: str, bound: float
) -> None:
    asked = Comparison(OPERANDS[0], operator, Literal(bound))
    found = admitted_constant(Not(asked))
    assert found is not None
    prefilter, constant = found
    [nearest] = prefilter.values.of(lambda _: texts)
    is_beyond = compare_literal([nearest], prefilter.operator, constant)
    assert is_beyond != compare_literal(texts, operator, bound)


def test_what_is_asked_otherwise_is_a_filter() -> None:
    contains = StringTest("contains", OPERANDS[0], Literal("a"))
    less = Comparison(OPERANDS[0], "<", Literal(1.0))
    null = StringTest("matches", OPERANDS[0], Literal("[\0a]"))
    for each in (
        Not(Comparison(OPERANDS[0], "<", Literal(math.inf))),
        Or((contains, Position("=", 1.0))),
        Or((contains, And(tuple(Or((less, Not(contains))) for _ in range(6))))),
        Or((Exists(OPERANDS[1].path), Not(Exists(OPERANDS[0].path)))),
        null,
    ):
        assert admitted_constant(each) is None


@pytest.mark.parametrize(
    ("asked", "steps"),
    [
        ("p > vat * 3", ["*"]),
        ("3 div vat <= p", ["div"]),
        ("p > vat div 3 + 1", ["+"]),
        ("(1 + vat) * vat > p mod 3", ["+", "*"]),
        ("p > vat mod 3", None),
        ("p > vat div 3", None),
        ("p != vat * 3", None),
    ],
)
def test_what_can_be_solved_for_a_constant_is(asked: str, steps: list[str] | None) -> None:
    (query,) = parse(f"S//i[{asked}]")
    found = admitted_constant(query.blocks[0].path.steps[0].predicates[0])
    assert found is not None
    prefilter, _ = found
    assert (prefilter.chain and [step for step, _ in prefilter.chain.steps]) == steps
