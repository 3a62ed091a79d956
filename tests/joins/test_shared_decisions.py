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
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import MatchingLimits
from joins import RunLimits
from templates.compiler import compile_query
from templates.prepared import is_prepared, may_be_prepared
from xpath_eval.catalog import PatternCatalog

FOUND = "S//a[k = 'x' or k = $key]"
"""What is handed on for each who asks for it."""


@pytest.mark.parametrize("text", STATEMENTS)
def test_the_statements_of_these_cases_are_decided_together(text: str) -> None:
    [query] = xscl.parse(text.replace("W}", "5 s}"), id="q")
    assert may_be_prepared(query)
    assert is_prepared(compile_query(query, 0, PatternCatalog(), {}))


@pytest.mark.parametrize(
    ("text", "runs", "heads"),
    [
        ("S//a FOLLOWED BY {, 9 s} S//b[not(k = $key)]+", 8, 1),
        ("S//a FOLLOWED BY {, 9 s} S//b[not(k = $key)]->u+ {count() < 4}", 8, 1),
        ("S//a NEXT {, 9 s} (S//b[not(k = $key)] | S//b[k = 'no'])+", 2, 3),
        ("S//a FOLLOWED BY {, 9 s} S//b[not(k = $key)]+ MATCH NEXT", 2, 4),
        ("S//a FOLLOWED BY {, 9 s} S//b->u+ {u/k != prev(u/k, $key)  OR u/k = 'x'}", 8, 1),
        ("S//a[not(k = $key)] NEXT {, 9 s} S//b->u+ {u/k = prev(u/k, 'x') OR u/k = $key}", 2, 3),
        (f"{FOUND} NEXT {{, 9 s}} S//b->u+ {{u/k = prev(u/k, 'x') OR u/k = $key}}", 2, 3),
        (f"{FOUND} NEXT {{, 9 s}} S//b[k->x]+ {{x = prev(x, 'x') OR x = $key}}", 2, 2),
        (f"{FOUND} FOLLOWED BY {{, 9 s}} S//b[k->x]+ {{count() < 4 OR x = $key}} MATCH NEXT", 2, 2),
        (f"{FOUND} FOLLOWED BY {{, 9 s}} S//b->u+ {{count() < 4 OR u/k = $key}} MATCH NEXT", 2, 2),
        (f"{FOUND} FOLLOWED BY {{, 9 s}} S//b->u+ {{u/k = prev(u/k, 'x') OR u/k = $key}}", 8, 1),
        (f"{FOUND} FOLLOWED BY {{, 9 s}} S//b->u+ {{count() < 4 OR u/k = $key}}", 8, 1),
    ],
)
def test_runs_of_one_assignment_are_not_too_many_because_of_others(
    text: str, runs: int, heads: int
) -> None:
    given = "".join(f'parameters q {{"key": "{n}"}}\n' for n in range(6))
    documents = "".join(
        f"document {n} S 00:00:1{n} <{name}><k>x</k></{name}>\n"
        for n, name in enumerate("aabbb", 1)
    )
    case = parse_case(f"query q\n    {text} GRACE 0 s\n{given}\n{documents}tick 9 00:10:00\n----\n")
    found = [
        len(run_engine(case, batch_size=size, limits=MatchingLimits(runs=limits)))
        for size, limits in (
            (1, RunLimits(runs=runs, heads=heads)),
            (None, RunLimits(runs=runs, heads=heads)),
            (None, RunLimits()),
        )
    ]
    assert len(set(found)) == 1
    assert found[0] > 6 * runs


def test_runs_of_a_vector_go_with_the_last_who_asks_for_it() -> None:
    [query] = xscl.parse("S//a NEXT {, 9 s} S//b[p->y]+ {y > prev(y) * $x}", id="q")
    engine = Engine([RegisteredQuery(query, 0, ({"x": 1.0}, {"x": 2.0}))], lateness_us=0)
    engine.process(engine.evaluate([]), lambda _: {})
    decided = [engine.figures()["decisions"]]
    for given in (2.0, 1.0):
        engine.queries.unassign("q", {"x": given})
        engine.process(engine.evaluate([]), lambda _: {})
        decided.append(engine.figures()["decisions"])
    assert decided == [2, 1, 0]


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
