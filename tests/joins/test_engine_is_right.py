"""The engine is right: on generated cases it finds what the oracle finds, to the letter."""

from __future__ import annotations

import pytest
from generators.strategies import case_texts, random_case
from hypothesis import HealthCheck, given, settings
from support.examples import examples
from support.kit import parse_case
from support.runners import ENGINES, EngineName, lines, run_engine, run_oracle, seed_with_joins


@settings(
    max_examples=examples(7),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(text=case_texts())
def test_the_engine_finds_what_the_oracle_finds(text: str) -> None:
    case = parse_case(text)
    assert lines(run_engine(case)) == lines(run_oracle(case))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_finds_the_joins_that_the_oracle_finds(engine: EngineName) -> None:
    wrong: list[int] = []
    for seed in map(seed_with_joins, range(examples(1))):
        case = parse_case(random_case(seed))
        if lines(run_engine(case, engine)) != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong, "look at them with: python benchmarks/oracle_run.py --cases 1 --seed SEED"
