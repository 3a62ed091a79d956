"""The language's own functions and comparisons agree with the oracle's, which asks elementpath."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import xscl.functions
from oracle.values import OPERATORS, apply, compare_operands, passes

TEXTS = st.text(alphabet=" \t\nabcXYZéßİΣ,;#-.$\\(10+eEINF٣", max_size=8)
MARKS = st.sampled_from([",", " ", "#", "", "a", "ab", ";-"])
NUMBERS = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 2.5, 100.0])
URL_PARTS = "http: https: // / www. WWW. a.org B u:p@ @ :80 : ?q #f . mailto: x  \n"
NUMERAL_TEXTS = (
    "1|1.0|+1|-1|1e0|1E-2|.5|5.|.|INF|-INF|+INF|NaN|infinity|nan|0x1|1_0|١|1,0|one|-0|0|"
    " 1 |\u00a01|1\n"
)
NUMERALS = st.sampled_from(NUMERAL_TEXTS.split("|"))
PATTERNS = st.sampled_from(
    [",", r",\s*", r"\s+", "[a-c]", "^a", "b$", "(a)(b)?", r"\d", r"\.", "a|b", "[^a-z]", ".", "x*"]
)
REPLACEMENTS = st.sampled_from(["", "-", "$1", "<$0>", "$1$2", r"\$", "$11", "$", r"\x"])


@pytest.mark.parametrize("function", ["string", "normalize-space", "lower-case", "upper-case"])
@given(text=TEXTS)
def test_functions_of_a_string(function: str, text: str) -> None:
    assert list(xscl.functions.apply(function, [[text]])) == apply(function, [[text]])


@pytest.mark.parametrize("function", ["substring-before", "substring-after", "concat"])
@given(text=TEXTS, mark=MARKS)
def test_functions_of_two_strings(function: str, text: str, mark: str) -> None:
    arguments = [[text], [mark]]
    assert list(xscl.functions.apply(function, arguments)) == apply(function, arguments)


@given(text=TEXTS, source=TEXTS, target=TEXTS)
def test_translate(text: str, source: str, target: str) -> None:
    arguments = [[text], [source], [target]]
    assert list(xscl.functions.apply("translate", arguments)) == apply("translate", arguments)


@given(text=TEXTS, start=NUMBERS, length=st.none() | NUMBERS)
def test_substring(text: str, start: float, length: float | None) -> None:
    arguments = [[text], [start]] if length is None else [[text], [start], [length]]
    assert list(xscl.functions.apply("substring", arguments)) == apply("substring", arguments)


# Of groups elementpath gives what they matched too; XPath gives what stands between matches.
@given(text=TEXTS, pattern=PATTERNS.filter(lambda pattern: "(" not in pattern))
def test_tokenize(text: str, pattern: str) -> None:
    arguments = [[text], [pattern]]
    assert list(xscl.functions.apply("tokenize", arguments)) == apply("tokenize", arguments)


@given(text=TEXTS, pattern=PATTERNS, replacement=REPLACEMENTS)
def test_replace(text: str, pattern: str, replacement: str) -> None:
    # A number without its group stands for nothing; elementpath leaves it as it is, and takes
    # backslashes of the text for escapes.
    assume("\\" not in text and ("(" in pattern or "1" not in replacement))
    arguments = [[text], [pattern], [replacement]]
    assert list(xscl.functions.apply("replace", arguments)) == apply("replace", arguments)


@pytest.mark.parametrize("function", ["contains", "starts-with", "ends-with", "matches"])
@given(text=TEXTS, argument=PATTERNS)
def test_string_tests(function: str, text: str, argument: str) -> None:
    assert xscl.functions.holds(function, text, argument) == passes(function, text, argument)


@given(
    url=st.builds(
        "".join,
        st.lists(
            st.sampled_from(URL_PARTS.split(" ")),
            max_size=7,
        ),
    )
)
@example(url="https://www.Example.com:8080/a@b?c")
def test_host(url: str) -> None:
    assert list(xscl.functions.apply("host", [[url]])) == apply("host", [[url]])


@pytest.mark.parametrize("comparison", OPERATORS)
@given(left=st.lists(NUMERALS, max_size=2), right=st.lists(NUMERALS, max_size=2))
def test_comparisons_of_strings(comparison: str, left: list[str], right: list[str]) -> None:
    expected = compare_operands(left, comparison, right, with_number=False)
    assert xscl.functions.compare(left, comparison, right) == expected


@pytest.mark.parametrize("comparison", OPERATORS)
@given(left=st.lists(NUMERALS, max_size=2), right=NUMBERS)
def test_comparisons_with_a_number(comparison: str, left: list[str], right: float) -> None:
    expected = compare_operands(left, comparison, [right], with_number=True)
    assert xscl.functions.compare(left, comparison, [right]) == expected
    turned = compare_operands([right], comparison, left, with_number=True)
    assert xscl.functions.compare([right], comparison, left) == turned
