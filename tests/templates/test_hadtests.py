"""Tests whose data an operand has hold of a value as the boxes say that have such data."""

from __future__ import annotations

import pytest

import xscl
from broker.matching.boxes.soughtwords import SoughtWords
from templates.box import NONE_OF, OTHER_NUMBER, SPAN, Formula
from templates.box import Test as BoxTest
from templates.compiler import compile_query
from templates.decision import Decided, Decision
from templates.givendata import parameters_of, text_by
from templates.hadtests import had_values, passes
from templates.rule import Rule
from xpath_eval.catalog import PatternCatalog
from xscl.disjunctions import DataForm, Disjunction, OperandTest, Together
from xscl.evaluation import optional_values
from xscl.path import Parameter, XPathFrame
from xscl.query import Call
from xscl.texttests import NEGATED

X, Y = Parameter("x"), Parameter("y")

DOUBLED = '[[["*", false]], ">", [2.0], [5.0]]'
"""What is written of `x * 2 > 5`."""

EITHER = Disjunction(
    (
        OperandTest(0, "equals", X),
        Together((OperandTest(0, "!=", X),), (OperandTest(1, "equals", X),)),
    )
)


def decision_of(text: str) -> Decision:
    [query] = xscl.parse(text, id="q")
    decided = compile_query(query, 0, PatternCatalog(), {})[0].root.query_class.decided
    assert isinstance(decided, Decided)
    return decided.decision


@pytest.mark.parametrize(
    ("test", "value", "given", "holds"),
    [
        (BoxTest(SPAN, "<", X), "2", "3", True),
        (BoxTest(SPAN, "<", X), "3", "3", False),
        (BoxTest(SPAN, "<=", X), "3.0", 3.0, True),
        (BoxTest(SPAN, ">", X), "4", "3", True),
        (BoxTest(SPAN, ">", X), "x", "3", False),
        (BoxTest(SPAN, ">=", X), "3", "x", False),
        (BoxTest(SPAN, "!=", X), "a", "b", True),
        (BoxTest(SPAN, "!=", X), "a", "a", False),
        (BoxTest(SPAN, "!=", X, is_of_several=True), optional_values(["a", "a"]), "a", False),
        (BoxTest(SPAN, "!=", X, is_of_several=True), optional_values(["a", "b"]), "a", True),
        (BoxTest(SPAN, OTHER_NUMBER, X), "3.0", 3.0, False),
        (BoxTest(SPAN, OTHER_NUMBER, X), "3.5", 3.0, True),
        (BoxTest(SPAN, OTHER_NUMBER, X), "several", 3.0, True),
        (BoxTest(SPAN, OTHER_NUMBER, X), "several", "none", True),
        (BoxTest(SPAN, "contains", X), "storm", "tor", True),
        (BoxTest(SPAN, "matches/i", X), "storm", "^ST", True),
        (BoxTest(SPAN, "matches", X), "storm", "(", False),
        (BoxTest(SPAN, "equals", X), "storm", "tor", False),
        (BoxTest(SPAN, "equals", X, form=DataForm.XPATH_NUMBER), "3", "3.0", True),
        (BoxTest(SPAN, NEGATED + "refuted", X), DOUBLED, "3", True),
        (BoxTest(SPAN, NEGATED + "refuted", X), DOUBLED, 2.0, False),
    ],
)
def test_a_value_passes_a_test(test: BoxTest, value: str, given: str | float, holds: bool) -> None:
    assert passes(test)(value, {"x": given}) is holds


@pytest.mark.parametrize("data", ["", "a", "ab", "b", "x"])
@pytest.mark.parametrize("texts", [[], [""], ["a"], ["ab", "b"], ["\x01a", "\x02a"], ["\x01b"]])
@pytest.mark.parametrize("operator", ["contains", "starts-with", "ends-with", "equals", "either"])
def test_what_is_looked_for_in_texts_is_found_as_in_boxes(
    operator: str, texts: list[str], data: str
) -> None:
    test = BoxTest(SPAN, operator, EITHER if operator == "either" else X, is_of_several=True)
    words = SoughtWords(operator, is_of_several=True)
    words.add_all([text_by(test)({"x": data})])
    value = optional_values(texts)
    found = bool(words.found(value))
    assert passes(test)(value, {"x": data}) is found
    assert passes(test._replace(operator=NEGATED + operator))(value, {"x": data}) is not found


@pytest.mark.parametrize(
    ("test", "names"),
    [
        (BoxTest(SPAN, "<", X), {"x"}),
        (BoxTest(SPAN, "<", Formula(Call("+", (X, Y)))), {"x", "y"}),
        (BoxTest(SPAN, "equals", XPathFrame("concat($v1, $v2)", (X, Y))), {"x", "y"}),
        (BoxTest(SPAN, "either", EITHER), {"x"}),
        (
            BoxTest(
                SPAN, "either", Disjunction((OperandTest(0, "equals", XPathFrame("$v1", (Y,))),))
            ),
            {"y"},
        ),
        (BoxTest(SPAN, "<", 3.0), set[str]()),
    ],
)
def test_all_parameters_of_a_test_are_its_own(test: BoxTest, names: set[str]) -> None:
    assert set(parameters_of(test)) == names


def test_an_operand_has_all_data_of_a_test_or_it_is_none_of_its() -> None:
    test = BoxTest(SPAN, "<", Formula(Call("+", (X, Y))))
    had = had_values(test, {"x": "a", "y (spelled)": "b"})
    assert had is not None
    assert [(each.term, each.is_number) for each in had] == [("a", False), ("b", True)]
    assert had_values(test, {"x": "a"}) is None
    assert had_values(BoxTest(SPAN, "<", 3.0), {"x": "a"}) is None


def test_strings_that_differ_and_bounds_are_compared_in_columns() -> None:
    decision = decision_of("S//a[k = $k][n = $n] NEXT {, 1 h} S//b[k != $k][n > $n][not(m = $k)]")
    [fit] = decision.fits
    rule = Rule(fit.asked)
    assert [(left, operator, right) for left, operator, right in rule.comparisons] == [
        ("$0@1", 1, "$k@0"),
        ("$1@1", 4, "$n (spelled)@0"),
    ]
    assert rule.condition is not None
    assert decision.had == (("k", "n (spelled)"), ())
    assert fit.left.keys == ("$k@0", "$n (spelled)@0")
    assert fit.right.keys == ()


def test_equal_values_are_looked_up_also_where_they_are_empty() -> None:
    decision = decision_of("S//a[k = $k] NEXT {, 1 h} S//b[k = $k][m = $m] UNLESS S//c[k = $k]")
    [fit] = decision.fits
    [case] = decision.absences[0].cases
    assert (fit.asked.joins, fit.asked.same) == ((), (("$k@0", "$k@1"),))
    assert case.asked.same == (("$k@0", "$k@2"),)
    assert fit.right.keys == ("$m@1",)
    assert decision.had == (("k",), ())


def test_nothing_is_taken_for_data_that_the_operand_has() -> None:
    text = "S//a[k = $k] NEXT {, 1 h} S//b UNLESS S//c[k = $k][m != $k] UNLESS S//c[n = $n]"
    [query] = xscl.parse(text, id="q")
    [alternative] = compile_query(query, 0, PatternCatalog(), {})
    taken = [test.data for test in alternative.root.box if test.operator == NONE_OF]
    assert taken == [Parameter("n")]


def test_pairs_that_do_not_compete_are_looked_up_by_what_is_equal_alone() -> None:
    decision = decision_of(
        "S//a[k = $k][m = $m] FOLLOWED BY {, 1 h} S//b[k = $k][m != $m] UNLESS S//c"
    )
    [fit] = decision.fits
    assert (fit.asked.same, fit.asked.had) == ((("$k@0", "$k@1"),), ())
    assert (fit.left.keys, decision.had) == (("$k@0",), (("k",), ()))
