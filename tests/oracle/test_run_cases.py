"""The oracle is right: it finds the runs that were worked by hand in the semantics."""

from __future__ import annotations

import pytest
from support.kit import CASES, cases, check, parse_case
from support.runners import run_oracle

ALL = dict((*cases(CASES / "runs"), *cases(CASES / "match")))


@pytest.mark.parametrize("name", ALL)
def test_the_oracle_finds_the_runs_that_a_case_expects(name: str) -> None:
    check(ALL[name], run_oracle)


def test_under_any_every_choice_of_elements_is_a_run() -> None:
    text = next(text for name, text in ALL.items() if "P1:" in name)
    case = parse_case(text.replace("MATCH NEXT GRACE 0 s", "MATCH ANY"))
    found = [match for match in run_oracle(case) if match.query == "q1"]
    assert len(found) == 68
