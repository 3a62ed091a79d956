"""Conditions with constants that are data say what they said."""

from __future__ import annotations

import math

import hypothesis.strategies as st
from hypothesis import given

from xpath_eval.textindex import TextIndex
from xscl.constants import admitted_constant
from xscl.evaluation import optional_values
from xscl.functions import compare_literal, holds, spell
from xscl.path import (
    ANY,
    And,
    Axis,
    Comparison,
    Condition,
    FunctionValue,
    Literal,
    NodeTest,
    Not,
    Or,
    Path,
    PathValue,
    Step,
    StringTest,
)
from xscl.prefilters import ValuesKind, spell_number, values_of

OPERANDS = [PathValue(Path(())), PathValue(Path((Step(Axis.CHILD, NodeTest(ANY)),)))]
FUNCTION = FunctionValue("lower-case", (OPERANDS[0],))
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
        case Comparison(operand, operator, Literal(constant)):
            return compare_literal(values[operand], operator, constant)
        case StringTest(function, operand, Literal(constant)):
            return any(holds(function, each, constant) for each in values[operand])
    raise AssertionError(condition)


@given(st.lists(TESTS | COMPARISONS, min_size=2, max_size=4), TEXTS, TEXTS)
def test_what_is_asked_with_or_is_one_text_that_is_looked_for(
    conditions: list[Condition], own: list[str], below: list[str]
) -> None:
    values: dict[object, list[str]] = {OPERANDS[0]: own, OPERANDS[1]: below}
    values[FUNCTION] = [each.lower() for each in own]
    asked = Or(tuple(conditions))
    found = admitted_constant(asked)
    assert found is not None
    prefilter, text = found
    assert isinstance(text, str)
    index = TextIndex[str]()
    index.add(prefilter.operator, text, "who")
    texts = [*map(spell, values_of(prefilter.operands, values.__getitem__))]
    met: set[str] = set()
    for each in texts:
        index.find(each, met)
    assert bool(met) == any(map(index.has_any, texts)) == is_true(asked, values)
    index.remove(prefilter.operator, text, "who")
    assert not len(index)
    negated = admitted_constant(Not(asked))
    assert negated == (prefilter._replace(is_negated=True), text)
    assert negated[0].values.of(values.__getitem__) == (optional_values(texts),)


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
        Not(Not(contains)),
        Not(Comparison(OPERANDS[0], "<", Literal(math.inf))),
        Or((contains, Not(less))),
        Or((contains, And((less, less)))),
        null,
    ):
        assert admitted_constant(each) is None
