"""The indexes find what asking every test one by one finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpath_eval.nodesets import members, node_set
from xpath_eval.testindex import TestIndex, access_tests
from xpath_eval.textindex import TextIndex
from xpath_eval.wordindex import WordIndex
from xscl import patterns
from xscl.functions import compare_literal, holds
from xscl.path import And, Comparison, Literal, Not, Or, Path, PathValue, StringTest

OPERAND = PathValue(Path(()))
FUNCTIONS = ("contains", "starts-with", "ends-with")
OF_WORDS = (*FUNCTIONS, "equals")
WORDS = st.text("ab", max_size=3)


def passes(operator: str, text: str, sought: str) -> bool:
    function, _, flags = operator.partition("/")
    return text == sought if function == "equals" else holds(function, text, sought, flags)


def found_in(index: WordIndex[int] | TextIndex[int], text: str) -> set[int]:
    if isinstance(index, TextIndex):
        return index.found([text])
    found: set[int] = set()
    index.find(text, found)
    return found


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(OF_WORDS), WORDS), max_size=30),
    st.text("abc", max_size=8),
    st.sampled_from([1, 4, 256]),
)
def test_words_are_found_as_by_looking_for_each(
    changes: list[tuple[bool, str, str]], text: str, fresh_min: int
) -> None:
    index = WordIndex[int](fresh_min)
    there: dict[int, tuple[str, str]] = {}
    for number, (is_removal, function, word) in enumerate(changes):
        if is_removal and there:
            index.remove(*there[first := min(there)], first)
            del there[first]
        else:
            index.add(function, word, number)
            there[number] = (function, word)
        expected = {n for n, (f, w) in there.items() if passes(f, text, w)}
        assert found_in(index, text) == expected
    assert len(index) == len({word for _, word in there.values()})


def test_many_words_added_one_by_one_are_all_found() -> None:
    index = WordIndex[int]()
    for number in range(3_000):
        index.add("contains", f"<{number}>", number)
        if number % 100 == 0:
            assert found_in(index, f"<0> <{number}>") == {0, number}
    for number in range(2_900):
        index.remove("contains", f"<{number}>", number)
    assert found_in(index, "<0> <2899> <2900>") == {2900}


def test_words_that_begin_each_other_are_all_found_and_what_stands_before_them_never() -> None:
    index = WordIndex[int]()
    for number in range(3_000):
        index.add("contains", f"nobody {number}", number)
    assert found_in(index, "nobody 2999") == {2, 29, 299, 2999}
    assert found_in(index, "\0" * 3_000 + "nobody 0") == {0}


NEEDING = ["", "a", "^a", "b$", "A|bc", "a.b", "[ab]c", "(", "B +", "x*", "(a|c)b?"]
EACH = ["[ab]", "[b-z]{2}", "^[^a]", ".[A-Z]", "[a-c]{0,300}[B]", ".{3}", ".$"]
"""Expressions that are run on each text, one of them alone."""

SOUGHT = st.one_of(
    st.tuples(st.sampled_from(OF_WORDS), WORDS),
    st.tuples(
        st.sampled_from(["matches", "matches/i", "matches/s", "matches/ix"]),
        st.sampled_from(NEEDING + EACH),
    ),
)


@given(
    st.lists(st.tuples(st.booleans(), SOUGHT), max_size=30), st.text("abcAB\u212a \n", max_size=8)
)
def test_what_is_sought_is_found_as_by_looking_for_each(
    changes: list[tuple[bool, tuple[str, str]]], text: str
) -> None:
    index = TextIndex[int]()
    there: dict[int, tuple[str, str]] = {}
    for number, (is_removal, sought) in enumerate(changes):
        if is_removal and there:
            index.remove(*there[first := min(there)], first)
            del there[first]
        else:
            index.add(*sought, number)
            there[number] = sought
        expected = {n for n, (operator, each) in there.items() if passes(operator, text, each)}
        assert found_in(index, text) == expected
        assert index.has_any([text]) == bool(expected)
        assert bool(index) == bool(there)


@pytest.mark.parametrize("is_made", [False, True])
def test_expressions_whose_automaton_has_no_memory_are_run_one_by_one(
    monkeypatch: pytest.MonkeyPatch, is_made: bool
) -> None:
    if is_made:
        monkeypatch.setattr("re2.Set.Match", lambda self, text: None)
    else:
        monkeypatch.setattr(patterns, "SET_BYTES", 1)
    index = TextIndex[int]()
    for number, sought in enumerate(["[a-z]", "[0-9]", "[A-Z]+[0-9]"]):
        index.add("matches", sought, number)
    assert found_in(index, "A1") == {1, 2}


CONSTANTS = st.one_of(
    st.sampled_from(["", "a", "1", "01", "1.0", "x", " 2 ", "INF"]),
    st.sampled_from([0.0, 1.0, 2.0, -1.5]),
)
CONDITIONS = st.one_of(
    st.builds(
        Comparison,
        st.just(OPERAND),
        st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
        st.builds(Literal, CONSTANTS),
    ),
    st.builds(
        StringTest,
        st.sampled_from(FUNCTIONS),
        st.just(OPERAND),
        st.builds(Literal, st.sampled_from(["", "a", "1"])),
    ),
    st.builds(
        StringTest,
        st.just("matches"),
        st.just(OPERAND),
        st.builds(Literal, st.sampled_from(["", "A", "^[ab]+$", "a|1"])),
        st.sampled_from(["", "i"]),
    ),
)
VALUES = st.lists(
    st.one_of(st.sampled_from(["", "a", "1", "01", "2", "ab", "x", "INF"]), st.just(1.0)),
    max_size=3,
)


@given(st.lists(CONDITIONS, max_size=12), VALUES)
def test_tests_are_decided_as_by_asking_each(
    conditions: list[Comparison | StringTest], values: list[str | float]
) -> None:
    index = TestIndex()
    for number, condition in enumerate(conditions):
        index.add(number, (condition,))
    found = index.find([7], lambda _operand, _node: values)
    expected = {n: [7] for n, condition in enumerate(conditions) if _holds(condition, values)}
    assert found == expected
    assert index.decided == set(range(len(conditions)))
    for number, condition in enumerate(conditions):
        index.remove(number, (condition,))
    assert index.find([7], lambda _operand, _node: values) == {}


def _holds(condition: Comparison | StringTest, values: list[str | float]) -> bool:
    if isinstance(condition, Comparison):
        assert isinstance(condition.right, Literal)
        return compare_literal(values, condition.operator, condition.right.value)
    assert isinstance(condition.argument, Literal)
    sought = condition.argument.value
    return any(holds(condition.function, value, sought, condition.flags) for value in values)


def test_the_most_selective_test_of_a_conjunction_gives_access() -> None:
    contains = StringTest("contains", OPERAND, Literal("a"))
    equal = Comparison(OPERAND, "=", Literal("b"))
    (test,) = access_tests((contains, And((equal, contains))))
    assert (test.kind, test.constant, test.is_all) == ("=", "b", False)


def test_a_disjunction_gives_access_by_all_its_sides_or_by_none() -> None:
    equal = Comparison(OPERAND, "=", Literal("b"))
    assert len(access_tests((Or((equal, equal)),))) == 2
    assert access_tests((Or((equal, Not(equal))),)) == ()


@given(st.sets(st.integers(0, 3_000)))
def test_sets_of_nodes_have_the_nodes_they_were_made_of(nodes: set[int]) -> None:
    assert list(members(node_set(nodes))) == sorted(nodes)
