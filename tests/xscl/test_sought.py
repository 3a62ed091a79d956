"""Conditions that find data: bounds, and what must differ, where nothing else says the data."""

from __future__ import annotations

import pytest

import xscl
from xscl import constants
from xscl.path import And, Or, Path
from xscl.sought import as_sought


def path_of(block: str) -> Path:
    [query] = xscl.parse(f"{block}->b", id="q")
    return query.blocks[0].path


@pytest.mark.parametrize(
    "asked",
    ["p > $n", "k != $k", "p * 2 <= $n", "count(p) >= $n", "p > $n and k", "@p < $n", "e[p > $n]"],
)
def test_a_bound_finds_data_as_a_combination_of_one_condition_does(asked: str) -> None:
    path = path_of(f"S//b[{asked}]")
    [condition] = as_sought(path, {"k"}, ()).steps[0].predicates
    assert condition != path.steps[0].predicates[0]
    found = condition.conditions[0] if isinstance(condition, And) else condition
    assert isinstance(found, Or)
    held = constants.tested_parameter(found, {"k"})
    assert held is not None
    assert held[0].operator == "either"


@pytest.mark.parametrize(
    "asked",
    [
        "k = $k",
        "contains(k, $k)",
        "not(p > $n)",
        "p > 3",
        "p->v > $n",
        "k = $k][p > $k",
    ],
)
def test_what_finds_data_anyhow_or_has_no_such_form_stays_as_it_is(asked: str) -> None:
    path = path_of(f"S//b[{asked}]")
    assert as_sought(path, {"k"}, ()) == path


def test_what_is_had_is_not_looked_for() -> None:
    path = path_of("S//b[p > $n]")
    assert as_sought(path, (), {"n"}) == path
