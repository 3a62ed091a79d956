"""Compiled code is kept as long as all that it is made of stays the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from templates.compiling import _stamp

LOOP = """
PLACE = {place}

def inner(values):
    return [value {operator} PLACE for value in values]

def loop(values):
    return called(values)
"""


def stamp(place: int, operator: str) -> str:
    names: dict[str, Any] = {}
    exec(LOOP.format(place=place, operator=operator), names)
    names["called"] = SimpleNamespace(py_func=names["inner"])
    return _stamp(names["loop"])


def test_code_is_of_what_a_loop_calls_and_of_the_numbers_that_this_names() -> None:
    assert stamp(1, "+") == stamp(1, "+")
    assert len({stamp(1, "+"), stamp(2, "+"), stamp(1, "-")}) == 3
