"""Values of parameters as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xscl
from broker.registry.parameters import parameter, parameters, spell_parameters


@pytest.mark.parametrize(
    "value", ["INF", "inf", "nan", "infinity", "1_0", "0x10", "1e999", "٣", " 5"]
)
def test_only_what_a_query_reads_as_a_number_is_one(value: str) -> None:
    assert parameter(f"who={value}") == ("who", value)


def test_a_window_without_a_bound_can_be_given() -> None:
    [query] = xscl.parse("S FOLLOWED BY {, $within} T", id="q")
    name, value = parameter("within=INF")
    assert xscl.assignment(query, {name: value}) == xscl.assignment(query, {"within": "INF"})


@pytest.mark.parametrize("value", ["'42'", '"42"'])
def test_a_string_of_digits_is_written_in_quotes(value: str) -> None:
    assert parameter(f"isbn={value}") == ("isbn", "42")


@given(st.text() | st.floats(allow_nan=False, allow_infinity=False))
def test_what_is_spelled_is_read_as_the_same_value(value: str | float) -> None:
    [query] = xscl.parse("S//a[b = $who]", id="q")
    assignment = xscl.assignment(query, {"who": value})
    assert xscl.assignment(query, parameters(spell_parameters(query, assignment))) == assignment
