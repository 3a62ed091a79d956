"""Sections 4 and 5 of the semantics, as values: comparisons, and functions of strings."""

from __future__ import annotations

import math

import elementpath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from xscl.functions import apply, compare, derive, holds, host, to_double
from xscl.path import Literal
from xscl.query import Call, VariableValue

X = VariableValue("x")


@pytest.mark.parametrize(
    ("left", "operator", "right", "holds_so"),
    [
        (["a"], "=", ["a"], True),
        (["1.0"], "=", ["1"], False),
        (["1.0"], "=", [1.0], True),
        ([1.0], "=", ["1.0"], True),
        (["a"], "!=", ["b"], True),
        (["1.0"], "!=", [1.0], False),
        (["a"], "!=", [1.0], False),
        (["10"], ">", ["9"], True),
        (["b"], ">", ["a"], False),
        ([" 1e1 "], ">=", [10.0], True),
        (["NaN"], "!=", [1.0], False),
        (["INF"], ">", ["1e308"], True),
        ([], "=", ["a"], False),
        (["a", "b"], "=", ["b", "c"], True),
        (["a", "b"], "!=", ["a"], True),
        (["A"], "=", ["a"], False),
        ([" a"], "=", ["a"], False),
        (["1_0"], "=", [10.0], False),
        (["١"], "=", [1.0], False),
        (["infinity"], ">", [1.0], False),
    ],
)
def test_comparisons_are_general_and_typed_by_section_4(
    left: list[str | float], operator: str, right: list[str | float], holds_so: bool
) -> None:
    assert compare(left, operator, right) is holds_so


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        ("string", ["x"], ["x"]),
        ("string", [1.0], ["1"]),
        ("normalize-space", ["  a\t\n b "], ["a b"]),
        ("normalize-space", ["\u00a0a"], ["\u00a0a"]),
        ("lower-case", ["ÄB"], ["äb"]),
        ("upper-case", ["äb"], ["ÄB"]),
        ("translate", ["bar", "abc", "AB"], ["BAr"]),
        ("translate", ["aaa", "aa", "xy"], ["xxx"]),
        ("substring", ["motor car", 6.0], [" car"]),
        ("substring", ["metadata", 4.0, 3.0], ["ada"]),
        ("substring", ["12345", 1.5, 2.6], ["234"]),
        ("substring", ["12345", 0.0, 3.0], ["12"]),
        ("substring", ["12345", math.nan, 3.0], [""]),
        ("substring", ["12345", 1e308, 1e308], [""]),
        ("substring", ["12345", -1e308, math.inf], ["12345"]),
        ("substring", ["12345", -3.0, 5.0], ["1"]),
        ("substring", ["12345", "x"], [""]),
        ("substring-before", ["tattoo", "attoo"], ["t"]),
        ("substring-before", ["tattoo", "z"], [""]),
        ("substring-after", ["tattoo", "tat"], ["too"]),
        ("substring-after", ["tattoo", ""], ["tattoo"]),
        ("concat", ["a", "b", 3.0], ["ab3"]),
        ("replace", ["abracadabra", "bra", "*"], ["a*cada*"]),
        ("replace", ["abracadabra", "a(.)", "a$1$1"], ["abbraccaddabbra"]),
        ("replace", ["a", "(a)", "$1$9\\$"], ["a$"]),
        ("replace", ["ABA", "a", "x", "i"], ["xBx"]),
        ("replace", ["a", "[", "x"], []),
        ("replace", ["a", "a", "\\n"], []),
        ("tokenize", ["a, b,c", ",\\s*"], ["a", "b", "c"]),
        ("tokenize", ["", ","], []),
        ("tokenize", [",a,", ","], ["", "a", ""]),
        ("string-length", ["añb"], [3.0]),
    ],
)
def test_functions_of_xpath(
    function: str, arguments: list[str | float], result: list[str | float]
) -> None:
    assert list(apply(function, [[each] for each in arguments])) == result


_TEXTS = st.text(alphabet="ab ,.-\t", max_size=12)


@given(_TEXTS, _TEXTS, st.integers(-3, 9), st.integers(-3, 9))
def test_functions_agree_with_elementpath(text: str, other: str, start: int, length: int) -> None:
    calls: list[tuple[str, list[str | float]]] = [
        ("normalize-space", [text]),
        ("upper-case", [text]),
        # elementpath lets the last of repeated characters count, XPath the first.
        ("translate", [text, ".-ab", "xy"]),
        # elementpath rounds halves to even, XPath up: halves are in the table above.
        ("substring", [text, start + 0.25, length - 0.25]),
        ("substring", [text, start + 0.75]),
        ("substring-before", [text, other]),
        ("substring-after", [text, other]),
        ("concat", [text, other]),
        ("tokenize", [text, "[,.]"]),
        ("replace", [text, "[ab]+", "($0)"]),
        ("string-length", [text]),
    ]
    root = etree.Element("none")
    for function, arguments in calls:
        names = [f"$v{index}" for index in range(len(arguments))]
        variables = {name[1:]: value for name, value in zip(names, arguments, strict=True)}
        expected = elementpath.select(root, f"{function}({', '.join(names)})", variables=variables)
        wanted = expected if isinstance(expected, list) else [expected]
        assert list(apply(function, [[each] for each in arguments])) == wanted


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://www.Example.org/a", "example.org"),
        ("http://example.org:8080/?q#f", "example.org"),
        ("https://user:secret@News.Example.org", "news.example.org"),
        ("  https://a.b ", "a.b"),
        ("//a.b/c", None),
        ("/a.b/c", None),
        ("x//a.b/c", None),
        ("ftp://[::1]/x", "::1"),
        ("example.org", None),
        ("mailto:ann@example.org", None),
        ("urn:isbn:1", None),
        ("", None),
        ("https://", None),
        ("http://[bad", None),
    ],
)
def test_host_is_the_host_name_without_www_or_nothing(url: str, name: str | None) -> None:
    assert host(url) == name
    assert apply("host", [[url]]) == (() if name is None else (name,))


@given(st.text())
def test_host_never_fails(text: str) -> None:
    found = host(f"http://{text}")
    assert found is None or found


def test_functions_map_over_sequences() -> None:
    tokens = Call("tokenize", (X, Literal(",")))
    assert derive(Call("upper-case", (tokens,)), "a,b") == ("A", "B")
    assert derive(Call("concat", (tokens, Literal("!"))), "a,b") == ("a!", "b!")
    assert derive(X, "a") == ("a",)
    assert derive(Call("host", (X,)), "no url") == ()


@pytest.mark.parametrize(
    ("function", "value", "argument", "flags", "result"),
    [
        ("contains", "abc", "b", "", True),
        ("contains", "abc", "", "", True),
        ("starts-with", "abc", "ab", "", True),
        ("ends-with", "abc", "bc", "", True),
        ("ends-with", "abc", "ab", "", False),
        ("matches", "abracadabra", "bra", "", True),
        ("matches", "abracadabra", "^a.*a$", "", True),
        ("matches", "abracadabra", "^bra", "", False),
        ("matches", "ABBA", "b+", "i", True),
        ("matches", "helloworld", "hello world", "x", True),
        ("matches", "x", "[a-z-[x]]", "", False),
        ("matches", "é", "\\p{L}", "", True),
        ("matches", "x", "(", "", False),
    ],
)
def test_string_tests(function: str, value: str, argument: str, flags: str, result: bool) -> None:
    assert holds(function, value, argument, flags) is result


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|aa)+$", "(.*a){20}$", "a*a*a*a*b"])
def test_no_regular_expression_takes_more_time_than_the_text_is_long(expression: str) -> None:
    assert holds("matches", "a" * 20_000 + "!", f"^{expression}", "") is False
    assert apply("tokenize", [[" " * 50_000], [r"\s*,\s*"]]) == (" " * 50_000,)


@pytest.mark.parametrize(
    ("expression", "text", "is_found"),
    [
        (r"^\d$", "\u0663", True),
        (r"^\w$", "\u00e9", True),
        (r"^\w$", "-", False),
        (r"^\W\S\D$", "-ab", True),
        (r"^\s$", "\u00a0", False),
        (r"^[\w-[a]]+$", "b\u00e9", True),
        (r"^\i\c*$", "a-b", True),
        ("a$", "a\n", False),
        ("a.b", "a\nb", False),
    ],
)
def test_classes_are_those_of_xpath(expression: str, text: str, is_found: bool) -> None:
    assert holds("matches", text, expression) is is_found


@pytest.mark.parametrize(
    ("expression", "flags", "text", "is_found"),
    [
        ("a.b", "s", "a\nb", True),
        ("^b$", "m", "a\nb\nc", True),
        (r"\p{Lu}", "i", "a", False),
        ("a", "q", "a", False),
    ],
)
def test_flags_are_those_of_xpath(expression: str, flags: str, text: str, is_found: bool) -> None:
    assert holds("matches", text, expression, flags) is is_found


@given(st.text(max_size=20), st.text(max_size=20), st.text("smix", max_size=2))
def test_any_text_is_a_regular_expression_or_none_and_never_fails(
    expression: str, text: str, flags: str
) -> None:
    assert holds("matches", text, expression, flags) in (True, False)
    assert len(apply("replace", [[text], [expression], ["$0"], [flags]])) < 2
    assert len(apply("tokenize", [["\ud800" + text], [expression], [flags]])) < 30


@given(st.floats(allow_nan=False))
def test_doubles_are_read_as_they_are_written(number: float) -> None:
    text = {"inf": "INF", "-inf": "-INF"}.get(repr(number), repr(number))
    assert to_double(text) == number
