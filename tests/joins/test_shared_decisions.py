"""Assignments that are decided together get what each of them would get alone."""

from __future__ import annotations

import random

import pytest
from generators.choosers import RandomChooser
from generators.shared_cases import STATEMENTS, shared_case
from support.examples import examples, size
from support.kit import parse_case
from support.runners import lines, run_engine, run_oracle
from support.tiny_limits import TINY

import xscl
from templates.compiler import compile_query
from templates.prepared import is_prepared, may_be_prepared
from xpath_eval.catalog import PatternCatalog


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_statements_of_these_cases_are_decided_together(text: str) -> None:
    [query] = xscl.parse(text.replace("W}", "5 s}"), id="q")
    assert may_be_prepared(query)
    assert is_prepared(compile_query(query, 0, PatternCatalog(), {}))


def test_they_get_what_the_oracle_says() -> None:
    wrong: list[int] = []
    for seed in range(size(3, examples(6))):
        case = parse_case(shared_case(RandomChooser(seed)))
        cut = random.Random(seed)
        batch_size, restart = cut.randint(1, 5), cut.randint(0, len(case.lines) - 1)
        found = [
            run_engine(case, batch_size=batch_size, restart_after=restart),
            run_engine(case, limits=TINY),
        ]
        if any(lines(each) != lines(run_oracle(case)) for each in found):
            wrong.append(seed)
    assert not wrong
