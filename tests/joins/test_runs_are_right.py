"""Runs are right: what is repeated is as the cases and the oracle say."""

from __future__ import annotations

import pytest
from support.kit import CASES, cases, check
from support.runners import run_engine

ALL = dict(cases(CASES / "runs"))


@pytest.mark.parametrize("name", ALL)
def test_the_engine_finds_the_runs_that_a_case_expects(name: str) -> None:
    check(ALL[name], run_engine)
