"""The engines find what the cases, written by hand from the semantics, expect."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
from support.examples import some
from support.kit import cases, check, parse_case
from support.runners import DEFAULT_ENGINE, ENGINES, EngineName, run_engine, run_oracle

ALL = dict(cases())


def cases_of(*files: str) -> list[str]:
    return [name for name in ALL if name.split(":")[0] in files]


@pytest.mark.parametrize("name", ALL)
def test_the_engine_finds_what_a_case_expects(name: str) -> None:
    check(ALL[name], run_engine)


@pytest.mark.parametrize(
    "name",
    some(
        cases_of(
            "time",
            "lateness",
            "nested",
            "publish",
            "registration",
            "alternatives",
            "conditions",
            "clauses",
            "units",
        ),
        10,
    ),
)
def test_the_engine_finds_it_document_by_document(name: str) -> None:
    check(ALL[name], partial(run_engine, batch_size=1))


def test_the_witnesses_that_a_match_lists_are_its_first_ones() -> None:
    case = parse_case(
        ALL["value_joins: A match lists its first thousand witnesses and counts the rest"]
    )
    [expected] = run_oracle(case)
    [found] = run_engine(case)
    assert found.witnesses == expected.witnesses


@pytest.mark.parametrize(
    ("name", "engine"),
    some(
        product(
            cases_of("nested", "alternatives", "conditions", "clauses", "units", "worked_example"),
            [engine for engine in ENGINES if engine != DEFAULT_ENGINE],
        ),
        7,
    ),
)
def test_every_engine_finds_what_a_case_of_joins_expects(name: str, engine: EngineName) -> None:
    check(ALL[name], partial(run_engine, engine=engine))
