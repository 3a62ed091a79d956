"""Rules are right: tables are read and written as serial evaluation does, however it is cut."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import pytest
from generators.choosers import RandomChooser
from generators.rule_cases import rule_case
from support.examples import examples, size, some
from support.kit import CASES, cases, check, parse_case
from support.rules import Left, run_oracle, run_tables
from support.runners import lines

from broker.pipeline.shards import Join
from broker.tables.locks import Granularity, Scheduler
from broker.tables.transactions import Schedule

ALL = dict(cases(CASES / "tables"))


def _check(text: str, runner: Callable[..., Left]) -> None:
    case = parse_case(text)
    left = runner(case)
    check(text, lambda _: left.matches)
    assert left.texts() == case.rows


@pytest.mark.parametrize("name", ALL)
def test_serial_evaluation_gives_what_a_case_expects(name: str) -> None:
    _check(ALL[name], run_oracle)


@pytest.mark.parametrize("name", ALL)
def test_an_engine_gives_what_a_case_expects(name: str) -> None:
    _check(ALL[name], run_tables)


@pytest.mark.parametrize("name", some(ALL, 8))
def test_it_does_so_document_by_document_and_after_every_restart(name: str) -> None:
    case = parse_case(ALL[name])
    cut = run_tables(case, batch_size=1, restarts=range(1, len(case.lines)))
    whole = run_tables(case)
    assert (lines(cut.matches), cut.rows) == (lines(whole.matches), whole.rows)


def _cut(seed: int) -> tuple[int, list[int], Schedule]:
    """Return a size of batches, restarts and a schedule."""
    cut = random.Random(seed)
    schedule = Schedule(cut.choice(list(Scheduler)), cut.choice(list(Granularity)))
    return cut.randint(1, 4), [cut.randint(0, 12) for _ in range(cut.randint(0, 2))], schedule


@cache
def _document_by_document(seed: int) -> Left:
    return run_tables(parse_case(rule_case(RandomChooser(seed))), batch_size=1)


def test_rules_do_what_serial_evaluation_does() -> None:
    wrong: list[int] = []
    for seed in range(size(3, examples(6))):
        case = parse_case(rule_case(RandomChooser(seed)))
        batch_size, restarts, schedule = _cut(seed)
        restarts = [each for each in restarts if each < len(case.lines)]
        left = run_tables(case, batch_size=batch_size, restarts=restarts, schedule=schedule)
        right = run_oracle(case)
        if (lines(left.matches), left.rows) != (lines(right.matches), right.rows):
            wrong.append(seed)
    assert not wrong, "cases of rule_case(RandomChooser(seed)) with these seeds"


@pytest.mark.parametrize("scheduler", Scheduler)
@pytest.mark.parametrize("granularity", Granularity)
def test_schedules_leave_the_same(scheduler: Scheduler, granularity: Granularity) -> None:
    wrong: list[int] = []
    for seed in range(size(1, examples(3))):
        case = parse_case(rule_case(RandomChooser(seed)))
        one = run_tables(case, schedule=Schedule(scheduler, granularity))
        other = _document_by_document(seed)
        if (lines(one.matches), one.rows) != (lines(other.matches), other.rows):
            wrong.append(seed)
    assert not wrong, "cases of rule_case(RandomChooser(seed)) with these seeds"


def test_shards_leave_the_same() -> None:
    wrong: list[int] = []
    for seed in range(examples(1)):
        case = parse_case(rule_case(RandomChooser(seed)))
        join = Join(case.lateness_us, 3)
        one = run_tables(case, batch_size=3, processors=lambda join=join: join.processor(None))
        other = _document_by_document(seed)
        if (lines(one.matches), one.rows) != (lines(other.matches), other.rows):
            wrong.append(seed)
    assert not wrong, "cases of rule_case(RandomChooser(seed)) with these seeds"
