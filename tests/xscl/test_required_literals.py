"""Each text that an expression fits contains one of the literals that it needs."""

from __future__ import annotations

import string
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given

from xscl.functions import holds
from xscl.patterns import compile_pattern
from xscl.requiredliterals import required_literals

PIECES = ["a", "b", "c", "ab", "K", "[", "]", "[ab]", "[^a]", "[a-c-[b]]", "(", ")", "(?:", "|"]
PIECES += [".", "*", "+", "?", "??", "{2}", "{0,1}", "{0}?", "{,2}", "^", "$", "}", "-", " ", "é"]
PIECES += [r"\d", r"\.", r"\(", r"\\", r"\p{Lu}", r"\n", r"\i", r"\Q", r"\A", "[)]", r"[\]]", "\n"]
PATTERNS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
TEXTS = st.text("abcABk\u212aéÉ.()1] \\\n}-", max_size=8)
FLAGS = st.sets(st.sampled_from("smix")).map("".join)


def has_one(text: str, pattern: str, flags: str) -> bool:
    literals = required_literals(pattern, flags)
    text = text.casefold() if "i" in flags else text
    return not literals or any(each in text for each in literals)


@given(PATTERNS, TEXTS, FLAGS)
def test_a_text_that_fits_has_one(pattern: str, text: str, flags: str) -> None:
    if holds("matches", text, pattern, flags):
        assert has_one(text, pattern, flags)


@given(st.lists(st.text("abK{}-", min_size=1), min_size=1).map("|".join), TEXTS, FLAGS)
def test_a_text_that_fits_an_alternative_has_one(pattern: str, text: str, flags: str) -> None:
    if holds("matches", text, pattern, flags):
        assert has_one(text, pattern, flags)


def test_letters_that_flag_i_takes_for_one_fold_to_it() -> None:
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]))
    letters = string.ascii_lowercase
    found = [each[0] for each in compile_pattern("|".join(letters), "i").found(everything)]
    assert len(found) > 2 * len(letters)
    for letter in letters:
        same = [each for each in found if holds("matches", each, letter, "i")]
        assert {each.casefold() for each in same} == {letter}


@pytest.mark.parametrize(
    ("pattern", "flags", "literals"),
    [
        ("[Ss]torm surge?s", "", {"torm surg"}),
        ("storm|flood", "", {"storm", "flood"}),
        ("(storm|flood)s? in", "", {"storm", "flood"}),
        ("(storm|flood)+", "", {"storm", "flood"}),
        ("(storm|flood)? in", "", {" in"}),
        (r"^www\.bbc\.(co|com)$", "", {"www.bbc."}),
        (r"(^|\W)BBC(\W|$)", "i", {"bbc"}),
        ("zoë", "i", {"zo"}),
        ("a b c", "x", {"abc"}),
        ("a{2}b{0}c", "", {"a"}),
        ("[a-z]+", "", set()),
        (".*", "", set()),
        ("storm|", "", set()),
        (r"\Qstorm", "", set()),
    ],
)
def test_literals_are_as_long_as_can_be(pattern: str, flags: str, literals: set[str]) -> None:
    assert required_literals(pattern, flags) == literals
