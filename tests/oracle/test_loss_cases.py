"""The oracle is right: it infers what was lost as cases expect that were worked by hand."""

from __future__ import annotations

import pytest
from support.kit import CASES, cases, check
from support.runners import run_oracle

ALL = dict(cases(CASES / "lossy"))


@pytest.mark.parametrize("name", ALL)
def test_the_oracle_infers_as_a_case_expects(name: str) -> None:
    check(ALL[name], run_oracle)
