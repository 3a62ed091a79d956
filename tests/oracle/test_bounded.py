"""A case that asks too much of the oracle is left out, and no other."""

from __future__ import annotations

import pytest
from support.bounded import TooLargeError, bounded
from support.kit import parse_case
from support.runners import run_oracle

CASE = """query q
    S//a JOIN {, 1 h} S//a
document 1 S 12:00  <i><a/><a/></i>
document 2 S 12:10  <i><a/></i>
----
"""


def test_pairs_of_nested_loops_are_counted() -> None:
    case = parse_case(CASE)
    with bounded(9):
        assert run_oracle(case)
    with pytest.raises(TooLargeError), bounded(8):
        run_oracle(case)


def test_what_one_run_looks_at_is_not_counted_in_the_next() -> None:
    case = parse_case(CASE)
    for _ in range(2):
        with bounded(9):
            assert run_oracle(case)


def test_elements_that_a_run_could_take_are_counted() -> None:
    documents = "".join(f"document {n} S 12:0{n}  <a/>\n" for n in range(1, 4))
    case = parse_case(f"query q\n    S//a+ WITHIN 1 h\n{documents}----\n")
    # Three begin; behind each of the 7 runs all three are tried.
    with bounded(looks_max=24):
        assert len(run_oracle(case)) == 7
    with pytest.raises(TooLargeError), bounded(looks_max=23):
        run_oracle(case)


def test_tuples_of_operators_are_counted() -> None:
    case = parse_case(CASE)
    with bounded(tuples_max=4):
        assert run_oracle(case)
    with pytest.raises(TooLargeError), bounded(tuples_max=3):
        run_oracle(case)
