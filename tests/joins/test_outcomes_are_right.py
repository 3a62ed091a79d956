"""Outcomes are right: rows and limits are as the cases and the oracle say, whatever the way."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
from generators.choosers import RandomChooser
from generators.counted_cases import counted_case
from generators.outcome_cases import outcome_case
from support.examples import examples, size, some
from support.kit import CASES, Case, cases, check, parse_case
from support.runners import SOME_ENGINES, EngineName, lines, run_engine, run_oracle

from broker.matching.match import Match
from broker.matching.outcomes import compared
from broker.pipeline.shards import Join

ALL = dict(cases(CASES / "outcomes"))


@pytest.mark.parametrize("name", ALL)
def test_the_engine_gives_what_a_case_expects(name: str) -> None:
    check(ALL[name], run_engine)


@pytest.mark.parametrize("name", ALL)
def test_the_oracle_gives_it_too(name: str) -> None:
    check(ALL[name], run_oracle)


@pytest.mark.parametrize(("name", "restart_after"), some(product(ALL, [1, 3, 5]), 5))
def test_it_gives_it_document_by_document_and_after_a_restart(
    name: str, restart_after: int
) -> None:
    check(ALL[name], partial(run_engine, batch_size=1, restart_after=restart_after))


@pytest.mark.parametrize(("name", "engine"), some(product(ALL, SOME_ENGINES), 4))
def test_every_engine_gives_it(name: str, engine: EngineName) -> None:
    check(ALL[name], partial(run_engine, engine=engine, batch_size=2))


@pytest.mark.parametrize("name", some(ALL, 4))
def test_shards_give_it_too(name: str) -> None:
    def in_shards(case: Case) -> list[Match]:
        join = Join(case.lateness_us, 2)
        return run_engine(case, batch_size=2, processors=lambda: join.processor(None))

    check(ALL[name], in_shards)


@pytest.mark.parametrize("kind", [outcome_case, counted_case])
def test_it_gives_what_the_oracle_gives(kind: Callable[[RandomChooser], str]) -> None:
    wrong: list[int] = []
    for seed in range(size(3, examples(8))):
        case = parse_case(kind(RandomChooser(seed)))
        cut = random.Random(seed)
        batch_size, restart = cut.randint(1, 3), cut.randint(0, len(case.lines) - 1)
        found = run_engine(case, batch_size=batch_size, restart_after=restart)
        if lines(found) != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong, f"cases of {kind.__name__}(RandomChooser(seed)) with these seeds"


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("windows", [("1 h", "20 m"), tuple(f"{n} m" for n in range(10, 40, 3))])
def test_of_many_who_compare_what_a_row_counts_each_has_its_own_rows(
    operator: str, windows: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compared, "BLOCK", 2)
    asked = f"count() {operator} $n AND avg(a/p) >= $m AND count() < 9"
    of_whom = "\n".join(
        f'parameters q {{"n": {n}, "m": {m}, "w": "{w}"}}'
        for n, m, w in product((1, 2, 3), (0, 6), windows)
    )
    items = "\n".join(
        f"document {n} S {at}  <i><k>{key}</k><p>{p}</p></i>"
        for n, (at, key, p) in enumerate(
            [
                ("12:00", "x", 4),
                ("12:10", "x", 8),
                ("12:20", "y", 6),
                ("12:21", "x", "-"),
                ("13:05", "x", 1),
                ("13:06", "y", 9),
                ("13:06", "x", 9),
            ],
            1,
        )
    )
    case = parse_case(
        f"query q\n    S//i->a WINDOW $w BY a/k HAVING {asked} GRACE 0 s\n{of_whom}\n\n{items}\n"
        "tick 8 23:00\n----\n"
    )
    found = run_engine(case)
    assert found
    assert lines(found) == lines(run_oracle(case))
