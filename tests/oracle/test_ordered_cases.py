"""The oracle is right: it decides as cases expect that were worked by hand in the semantics."""

from __future__ import annotations

import pytest
from support.kit import CASES, cases, check
from support.runners import run_oracle

ALL = dict(cases(CASES / "ordered"))


@pytest.mark.parametrize("name", ALL)
def test_the_oracle_decides_as_a_case_expects(name: str) -> None:
    check(ALL[name], run_oracle)
