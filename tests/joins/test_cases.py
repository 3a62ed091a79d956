"""The engines find what the cases, written by hand from the semantics, expect."""

from __future__ import annotations

from functools import partial

import pytest
from kit import cases, check
from runners import ENGINES, EngineName, run_engine

ALL = dict(cases())


@pytest.mark.parametrize("batch_size", [1, None], ids=["one by one", "at once"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ALL)
def test_an_engine_finds_what_a_case_expects(
    name: str, engine: EngineName, batch_size: int | None
) -> None:
    check(ALL[name], partial(run_engine, engine=engine, batch_size=batch_size))
