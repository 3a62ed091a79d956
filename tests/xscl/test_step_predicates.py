"""Section 3 of the semantics: what stands between the brackets of a step, but for positions."""

from __future__ import annotations

import pytest
from support.reading import OWN, block, child, codes, predicate, value

import xscl
from xscl.path import (
    And,
    Comparison,
    Exists,
    FunctionValue,
    Literal,
    Not,
    Or,
    Path,
    Position,
    StringTest,
)


def test_any_number_of_predicates_stand_on_a_step_in_their_order() -> None:
    assert block("S//a[b][2][c = 'd']").path.steps[0].predicates == (
        Exists(Path((child("b"),))),
        Position("=", 2.0),
        Comparison(value("c"), "=", Literal("d")),
    )


def test_and_or_not_and_parentheses() -> None:
    a, b, c = (Exists(Path((child(name),))) for name in "abc")
    assert predicate("a and b or c") == Or((And((a, b)), c))
    assert predicate("a and (b or c)") == And((a, Or((b, c))))
    assert predicate("a and (b and c)") == And((a, b, c))
    assert predicate("not(a or b)") == Not(Or((a, b)))


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_comparisons_with_a_literal(operator: str) -> None:
    assert predicate(f"a/b {operator} 'x'") == Comparison(value("a", "b"), operator, Literal("x"))
    assert predicate(f"a {operator} -1.5") == Comparison(value("a"), operator, Literal(-1.5))


@pytest.mark.parametrize(
    ("written", "meaning"), [("=", "="), ("!=", "!="), ("<", ">"), (">=", "<=")]
)
def test_a_literal_on_the_left_is_turned_around(written: str, meaning: str) -> None:
    assert predicate(f"3 {written} a") == Comparison(value("a"), meaning, Literal(3.0))


@pytest.mark.parametrize("function", ["contains", "starts-with", "ends-with", "matches"])
def test_string_tests(function: str) -> None:
    assert predicate(f"{function}(a, 'x')") == StringTest(function, value("a"), Literal("x"))
    assert predicate(f"{function}(., 'x')") == StringTest(function, OWN, Literal("x"))


def test_matches_takes_flags() -> None:
    assert predicate("matches(a, 'x', 'i')") == StringTest("matches", value("a"), Literal("x"), "i")


@pytest.mark.parametrize("function", ["normalize-space", "lower-case", "upper-case", "host"])
def test_functions_of_a_path_are_compared_with_a_literal(function: str) -> None:
    call = FunctionValue(function, (value("a"),))
    assert predicate(f"{function}(a) = 'x'") == Comparison(call, "=", Literal("x"))
    assert predicate(f"contains({function}(a), 'x')") == StringTest("contains", call, Literal("x"))


def test_string_length_is_a_number_of_the_path_or_of_the_node_itself() -> None:
    assert predicate("string-length(a) > 3") == Comparison(
        FunctionValue("string-length", (value("a"),)), ">", Literal(3.0)
    )
    assert predicate("string-length() > 3") == Comparison(
        FunctionValue("string-length", (OWN,)), ">", Literal(3.0)
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("lower-case(a) = b", "XS305"),
        ("ends-with(a, b)", "XS305"),
        ("frobnicate(a)", "XS301"),
        ("containz(a, 'b')", "XS301"),
        ("contains(a)", "XS302"),
        ("not(a, b)", "XS302"),
        ("matches(a, '[')", "XS306"),
        (r"matches(a, '(b)\1')", "XS306"),
        ("matches(a, 'b{2000}')", "XS306"),
        ("replace(a, 'x*', '') = 'b'", "XS306"),
        ("count('x') = 1", "XS311"),
        ("sum($p) > 1", "XS311"),
        ("count(b | string(c)) = 1", "XS311"),
        ("('x')[1]", "XS311"),
        ("count('x'/b) = 1", "XS311"),
        ("local-name(b = c) = 'd'", "XS311"),
        ("b[name(1) = 'c']", "XS311"),
    ],
)
def test_what_is_neither_the_fragment_nor_xpath_1_is_an_error(text: str, code: str) -> None:
    assert codes(f"S//item[{text}]") == [code]


def test_a_misspelt_function_comes_with_the_nearest_one() -> None:
    _, [found] = xscl.check("S//item[containz(a, 'b')]")
    assert found.hint == "did you mean `contains`?"


def test_a_predicate_needs_a_step() -> None:
    assert codes("S[a]") == ["XS114"]
