"""The engines find what the cases, written by hand from the semantics, expect."""

from __future__ import annotations

from functools import partial

import pytest
from kit import cases, check
from runners import EngineName, run_engine

ALL = dict(cases())


@pytest.mark.parametrize(
    ("engine", "batch_size"),
    [("mmqjp-views", 1), ("mmqjp-views", None), ("mmqjp", None), ("sequential", None)],
    ids=["views one by one", "views at once", "mmqjp", "sequential"],
)
@pytest.mark.parametrize("name", ALL)
def test_an_engine_finds_what_a_case_expects(
    name: str, engine: EngineName, batch_size: int | None
) -> None:
    check(ALL[name], partial(run_engine, engine=engine, batch_size=batch_size))
