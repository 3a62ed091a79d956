"""Statements with LOSS in engines and brokers: what the oracle infers, however it comes about."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from generators.choosers import RandomChooser
from generators.loss_cases import given_case, loss_case
from support.ending_broker import run_broker
from support.examples import examples, is_searching, size, some
from support.kit import CASES, Case, cases, check, parse_case
from support.runners import DEFAULT_ENGINE, ENGINES, EngineName, lines, run_engine, run_oracle

import xscl
from broker.matching.match import Match

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


# Those of the suite are the engine of a running broker, and have matches.
@pytest.mark.parametrize("seed", searched() if is_searching() else (15, 19, 31))
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


@pytest.mark.parametrize("seed", range(size(10, examples(20))))
def test_an_assignment_finds_what_the_statement_finds_with_its_values_written_out(
    seed: int,
) -> None:
    case = parse_case(given_case(RandomChooser(4_033 + seed)))
    found = run_engine(case)
    for values in case.assignments.get("q", []):
        own = [match for match in found if match.parameters == values]
        assert told(own) == told(run_engine(with_written_out(case, values)))


def with_written_out(case: Case, values: dict[str, Any]) -> Case:
    """Return a case of a query in which values stand in the place of parameters."""
    [query] = case.queries

    def written(found: re.Match[str]) -> str:
        value = values[found[1]]
        return f"'{value}'" if isinstance(value, str) else f"{value:g}"

    text = re.sub(r"\$(\w+)", written, query.text)
    return replace(case, queries=xscl.parse(text, id="q"), assignments={})


def told(matches: Iterable[Match]) -> list[dict[str, Any]]:
    """Return what match lines say but for who has asked."""
    found = [json.loads(line) for line in lines(matches)]
    told = [{k: v for k, v in each.items() if k not in ("id", "parameters")} for each in found]
    return sorted(told, key=json.dumps)
