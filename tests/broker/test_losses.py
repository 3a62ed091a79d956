"""Statements with LOSS in engines and brokers: what the oracle infers, however it comes about."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest
from generators.choosers import RandomChooser
from generators.loss_cases import loss_case
from support.ending_broker import run_broker
from support.examples import examples, size, some
from support.kit import CASES, cases, check, parse_case
from support.runners import DEFAULT_ENGINE, ENGINES, EngineName, lines, run_engine, run_oracle

ALL = dict(cases(CASES / "lossy"))


def searched() -> list[int]:
    return list(range(size(2, examples(3))))


@pytest.mark.parametrize("name", ALL)
def test_the_engine_infers_as_a_case_expects(name: str) -> None:
    check(ALL[name], run_engine)


@pytest.mark.parametrize(
    ("name", "engine"), some(product(ALL, [e for e in ENGINES if e != DEFAULT_ENGINE]), 3)
)
def test_every_engine_infers_as_a_case_expects(name: str, engine: EngineName) -> None:
    check(ALL[name], lambda case: run_engine(case, engine))


@pytest.mark.parametrize("seed", searched())
def test_batches_and_restarts_change_nothing(seed: int) -> None:
    case = parse_case(loss_case(RandomChooser(seed)))
    expected = lines(run_oracle(case))
    engine = ENGINES[seed % len(ENGINES)]
    for batch_size, restart in ((1, 0), (3, 4), (None, len(case.lines) // 2)):
        found = run_engine(case, engine, batch_size=batch_size, restart_after=restart)
        assert lines(found) == expected


@pytest.mark.parametrize("seed", searched())
def test_a_broker_that_ends_now_and_then_infers_what_the_oracle_does(
    seed: int, tmp_path: Path
) -> None:
    case = parse_case(loss_case(RandomChooser(2_000 + seed)))
    found = run_broker(case, tmp_path, random.Random(seed))
    assert found == sorted(lines(run_oracle(case)))
