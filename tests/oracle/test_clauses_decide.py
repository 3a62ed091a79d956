"""The generated cases try the whole language: each clause decides which matches there are."""

from __future__ import annotations

from collections import Counter

import pytest
from generators.clause_coverage import CLAUSES, Coverage
from generators.strategies import FOCI, random_case
from histories.clauses import HISTORY_CLAUSES, decided
from histories.history import history_matches, parse_history
from histories.strategies import random_history
from support.examples import some
from support.kit import parse_case
from support.runners import run_oracle

TELLING = (
    (782, "term"),
    (19, "empty"),
    (489, "condition"),
    (20000, "function"),
    (30001, "function"),
    (10005, "function"),
    (10004, "function"),
    (10038, "parameter"),
    (20069, "unjoined"),
    (20010, "function"),
    (10048, "nested"),
    (20008, "function"),
    (10003, "function"),
    (10031, "residual"),
    (20013, "function"),
    (30022, "condition"),
    (10009, "function"),
    (10015, "condition"),
    (10027, "condition"),
    (10037, "position"),
    (10040, "parameter"),
    (10074, "function"),
    (10183, "parameter"),
    (10389, "residual"),
    (20005, "function"),
    (20043, "or"),
    (20105, "residual"),
    (30026, "condition"),
    (10001, "function"),
    (10007, "function"),
    (10020, "condition"),
    (10022, "condition"),
    (10026, "condition"),
    (10044, "or"),
    (10056, "late"),
    (10057, "stream"),
    (10063, "namespace"),
    (10071, "crowd"),
    (10091, "condition"),
    (10094, "condition"),
    (10095, "condition"),
    (10096, "condition"),
    (10101, "residual"),
    (10118, "publish"),
    (10124, "late"),
    (10132, "key"),
    (10150, "function"),
    (10175, "residual"),
    (10187, "or"),
    (10204, "key"),
    (10295, "function"),
    (10344, "late"),
    (10445, "function"),
    (10480, "nested"),
    (10001, "term"),
    (10004, "term"),
    (10014, "term"),
    (10001, "clause"),
    (10002, "clause"),
    (10006, "clause"),
    (10014, "clause"),
)
"""Seeds of cases in which each clause decides, with what they are about."""

CASES_MAX = 600
"""So many others are tried for clauses that decide nothing in those, once generators change."""

HISTORIES_MAX = 600

TELLING_HISTORIES = (1, 2, 4, 6, 13, 17, 253)
"""Seeds of histories in which each clause of registration decides."""


@pytest.mark.slow
def test_every_clause_decides_in_a_generated_case() -> None:
    coverage = Coverage()
    undecided = wanted = some(CLAUSES, 15)
    others = [(seed, FOCI[seed % len(FOCI)]) for seed in range(CASES_MAX)]
    for seed, focus in (*TELLING, *others):
        case = parse_case(random_case(seed, [focus], wild=0))
        coverage.add(case, run_oracle(case), undecided)
        undecided = [clause for clause in wanted if not coverage.decides[clause.name]]
        if not undecided:
            return
    assert [clause.name for clause in undecided] == []


@pytest.mark.slow
def test_every_clause_of_registration_decides_in_a_generated_history() -> None:
    found: Counter[str] = Counter()
    undecided = [*HISTORY_CLAUSES]
    for seed in (*TELLING_HISTORIES, *range(HISTORIES_MAX)):
        history = parse_history(random_history(seed))
        found += decided(history, history_matches(history), undecided)
        undecided = [clause for clause in HISTORY_CLAUSES if not found[clause.name]]
        if not undecided:
            return
    assert [clause.name for clause in undecided] == []
