"""Decisions are right: what is next and what is absent is as the cases and the oracle say."""

from __future__ import annotations

import random
from functools import partial

import pytest
from generators.choosers import RandomChooser
from generators.ordered_cases import ordered_case
from support.examples import examples, some
from support.kit import CASES, Case, cases, check, parse_case
from support.runners import ENGINES, EngineName, lines, run_engine, run_oracle
from support.tiny_limits import TINY

from broker.matching.match import Match
from broker.pipeline.shards import Join

ALL = dict(cases(CASES / "ordered"))


@pytest.mark.parametrize("name", ALL)
def test_the_engine_decides_as_a_case_expects(name: str) -> None:
    check(ALL[name], run_engine)


@pytest.mark.parametrize("name", some(ALL, 3))
def test_it_decides_so_document_by_document_and_after_a_restart(name: str) -> None:
    check(ALL[name], partial(run_engine, batch_size=1, restart_after=2))


@pytest.mark.parametrize("name", some(ALL, 1))
def test_shards_decide_so_too(name: str) -> None:
    def in_shards(case: Case) -> list[Match]:
        join = Join(case.lateness_us, 2)
        return run_engine(case, batch_size=2, processors=lambda: join.processor(None))

    check(ALL[name], in_shards)


@pytest.mark.parametrize("name", some(ALL, 3))
def test_it_decides_so_in_pieces(name: str) -> None:
    check(ALL[name], partial(run_engine, batch_size=3, limits=TINY))


def test_what_is_left_of_a_left_stays_when_others_are_forgotten() -> None:
    text = next(text for name, text in ALL.items() if "What is left of a left" in name)
    check(text, partial(run_engine, batch_size=1, limits=TINY))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_decides_so(engine: EngineName) -> None:
    name = next(name for name in ALL if "Misplaced" in name)
    check(ALL[name], partial(run_engine, engine=engine))


def test_it_decides_as_the_oracle_does() -> None:
    wrong: list[int] = []
    for seed in range(examples(3)):
        case = parse_case(ordered_case(RandomChooser(seed)))
        cut = random.Random(seed)
        batch_size, restart = cut.randint(1, 3), cut.randint(0, len(case.lines) - 1)
        found = [
            run_engine(case, batch_size=batch_size, restart_after=restart),
            run_engine(case, batch_size=2 * batch_size, limits=TINY),
        ]
        expected = lines(run_oracle(case))
        if any(lines(each) != expected for each in found):
            wrong.append(seed)
    assert not wrong, "cases of ordered_case(RandomChooser(seed)) with these seeds"
