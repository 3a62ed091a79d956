"""What holds of all nodes for a text that is no number is left out, and nothing else."""

from __future__ import annotations

import pytest

from xscl import parse
from xscl.passedbounds import without_bounds
from xscl.query import Query


def without(text: str) -> Query:
    [query] = parse(text, id="q")
    return without_bounds(query, {"x"})


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ("[not(count(k) > $x)]", ""),
        ("[not($x <= sum(k))]", ""),
        ("[not(price * 2 > $x)][2]", "[2]"),
        ("[not(string(k) < $x) and k = $x]", "[k = $x]"),
        ("[e->e[not(count(k) > $x)]]", "[e->e]"),
    ],
)
def test_a_bound_of_a_number_is_left_out_behind_not(asked: str, left: str) -> None:
    [plain] = parse(f"S//a{left}", id="q")
    assert without(f"S//a{asked}").blocks[0].path == plain.blocks[0].path


@pytest.mark.parametrize(
    "asked",
    [
        "[count(k) > $x]",
        "[not(count(k) = $x)]",
        "[not(count(k) > $y)]",
        "[not(count(k) > $x or k)]",
        "[not(k = $x)]",
        "[not(price > $x)]",
        "[not(count(k) > 3)]",
    ],
)
def test_nothing_else_is(asked: str) -> None:
    [query] = parse(f"S//a{asked}", id="q")
    assert without(f"S//a{asked}").blocks == query.blocks
