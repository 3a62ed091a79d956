"""Decisions are right: what is next and what is absent is as the cases and the oracle say."""

from __future__ import annotations

import random
from functools import partial

import pytest
from generators.choosers import RandomChooser
from generators.ordered_cases import ordered_case
from support.examples import examples
from support.kit import CASES, cases, check, parse_case
from support.runners import lines, run_engine, run_oracle

ALL = dict(cases(CASES / "ordered"))


@pytest.mark.parametrize("name", ALL)
def test_the_engine_decides_as_a_case_expects(name: str) -> None:
    check(ALL[name], run_engine)


@pytest.mark.parametrize("name", ALL)
def test_it_decides_so_document_by_document_and_after_a_restart(name: str) -> None:
    check(ALL[name], partial(run_engine, batch_size=1, restart_after=2))


def test_it_decides_as_the_oracle_does() -> None:
    wrong: list[int] = []
    for seed in range(examples(12)):
        case = parse_case(ordered_case(RandomChooser(seed)))
        cut = random.Random(seed)
        batch_size, restart = cut.randint(1, 3), cut.randint(0, len(case.lines) - 1)
        if lines(run_engine(case, batch_size=batch_size, restart_after=restart)) != lines(
            run_oracle(case)
        ):
            wrong.append(seed)
    assert not wrong, "cases of ordered_case(RandomChooser(seed)) with these seeds"
