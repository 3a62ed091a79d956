"""Section 3 of the semantics: conditions on positions, and numbers that are positions."""

from __future__ import annotations

import pytest
from support.reading import child, codes, predicate, query

import xscl
from xscl.path import (
    And,
    Exists,
    Not,
    Opaque,
    Parameter,
    Path,
    Position,
)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("3", Position("=", 3.0)),
        ("last()", Position("=", 0.0, of_last=True)),
        ("last() - 1", Position("=", 1.0, of_last=True)),
        ("position() = 2", Position("=", 2.0)),
        ("position() != last()", Position("!=", 0.0, of_last=True)),
        ("2 < position()", Position(">", 2.0)),
        ("last() > position()", Position("<", 0.0, of_last=True)),
        ("position() <= last() - 2", Position("<=", 2.0, of_last=True)),
        ("last() > 3", Position(">", 3.0, is_size=True)),
        ("3 = last()", Position("=", 3.0, is_size=True)),
    ],
)
def test_positions(text: str, meaning: Position) -> None:
    assert predicate(text) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("$n", Position("=", Parameter("n"))),
        ("$n > position()", Position("<", Parameter("n"))),
        ("last() - $n", Position("=", Parameter("n"), of_last=True)),
        ("last() = $n", Position("=", Parameter("n"), is_size=True)),
    ],
)
def test_a_parameter_is_a_position_where_a_number_is(text: str, meaning: Position) -> None:
    found = query(f"S//item[{text}]")
    assert found.blocks[0].path.steps[-1].predicates == (meaning,)
    assert found.parameters == (("n", "number"),)


def test_a_parameter_beside_a_condition_is_no_position() -> None:
    assert predicate("a and $n") == And(
        (Exists(Path((child("a"),))), Opaque("boolean($n)", parameters=(Parameter("n"),)))
    )


def test_positions_stand_beside_other_conditions() -> None:
    found = predicate("position() = 1 and a")
    assert found == And((Position("=", 1.0), Exists(Path((child("a"),)))))


@pytest.mark.parametrize(
    "text",
    ["position() mod 2 = 1", "a = position()", "last() div 2 > sum(a)", "position() = count(../a)"],
)
def test_other_positions_are_opaque_conditions_that_count(text: str) -> None:
    assert predicate(text) == Opaque(text, is_positional=True)


@pytest.mark.parametrize(
    "text", ["count(a)", "last() div 2", "last() * 2 + 1", "1 + 1", "-a", "string-length(a)"]
)
def test_a_number_between_brackets_is_a_position(text: str) -> None:
    assert predicate(text) == Opaque(f"position() = {text}", is_positional=True)


@pytest.mark.parametrize("text", ["$n + 1", "last() + $n", "count(a) - $n", "-$n"])
def test_what_is_calculated_from_a_parameter_is_a_position(text: str) -> None:
    wanted = Opaque(f"position() = {text}", is_positional=True, parameters=(Parameter("n"),))
    assert predicate(text) == wanted


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("last() - 1", "boolean(last() - 1)"),
        ("position() mod 2", "boolean(position() mod 2)"),
    ],
)
def test_a_number_inside_a_condition_is_no_position_but_may_count(text: str, meaning: str) -> None:
    counting = Opaque(meaning, is_positional=True)
    assert predicate(f"not({text})") == Not(counting)
    assert predicate(f"a and {text}") == And((Exists(Path((child("a"),))), counting))


@pytest.mark.parametrize("text", ["a[last() div 2]/..", "count(a[position() mod 2 = 1]) = 1"])
def test_a_position_inside_a_path_of_an_opaque_condition_is_not_that_of_its_context(
    text: str,
) -> None:
    assert predicate(text) == Opaque(text)


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("position()  mod 2=1", "position() mod 2 = 1"),
        ("( last()+$n )", "last() + $n"),
        ("count( a )", "count(a)"),
        ("not((last() - 1)*2)", "not((last() - 1) * 2)"),
    ],
)
def test_a_calculated_position_is_formatted_as_it_is_written(text: str, formatted: str) -> None:
    rendered = xscl.render(f"S//item[{text}]")
    assert rendered.strip() == f"S//item[{formatted}]"
    assert xscl.render(rendered) == rendered
    assert predicate(formatted) == predicate(text)


def test_a_calculated_position_may_not_use_what_xpath_1_lacks() -> None:
    assert codes("S//a[string-length(lower-case(b)) + 1]") == ["XS305"]
