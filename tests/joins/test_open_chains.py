"""Chains under MATCH ANY: nothing is listed before it is complete, and all is found."""

from __future__ import annotations

import random
from itertools import product

import pytest
from generators.choosers import RandomChooser
from generators.run_cases import open_chain_case
from support.examples import examples, some
from support.kit import Case, parse_case
from support.runners import lines, run_engine, run_oracle

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.matching.stepresult import StepResult
from broker.pipeline.shards import Join
from joins import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.sequences.chained.anychains import AnyChainEvaluation

DAY_US = 86_400_000_000
CHAIN = "S//a FOLLOWED BY S//b+ FOLLOWED BY S//c WITHIN 1 h MATCH ANY"


def steps(
    text: str, kinds: list[str], limits: MatchingLimits = DEFAULT_MATCHING_LIMITS
) -> list[StepResult]:
    """Return what is found with each document, a second behind the one before."""
    [query] = xscl.parse(text, id="q")
    assert query.is_open_chain
    engine = Engine([RegisteredQuery(query)], lateness_us=DAY_US, limits=limits)
    found = []
    xml: dict[int, bytes] = {}
    for n, kind in enumerate(kinds, 1):
        at = n * 1_000_000
        one = Document(n, "S", str(n), at, at, at, at - 1, f"<{kind}/>".encode())
        xml[n] = one.xml
        found.append(engine.process(engine.evaluate([one]), lambda _: xml))
    return found


@pytest.mark.parametrize("text", [CHAIN, CHAIN.replace("b+", "b+ {exists(b)}")])
def test_choices_that_are_not_complete_cost_nothing_of_the_budget(text: str) -> None:
    found = steps(text.replace("S//b+", "S//b->b+"), ["a", *["b"] * 60, "d"])
    assert not any(each.matches or each.pauses for each in found)


def test_a_document_that_completes_too_many_pauses_the_statement_and_makes_none() -> None:
    found = steps(CHAIN, ["a", *["b"] * 14, "c", "c"])
    assert [each.docid for step in found for each in step.pauses] == [16]
    assert not any(each.matches for each in found)


def test_matches_are_found_with_their_last_document() -> None:
    found = steps(CHAIN, ["a", "b", "b", "c", "c"])
    assert [len(each.matches) for each in found] == [0, 0, 0, 3, 3]


def test_open_chains_are_as_the_oracle_says() -> None:
    wrong: list[int] = []
    for seed in range(examples(8)):
        case = parse_case(open_chain_case(RandomChooser(seed)))
        cut = random.Random(seed)
        batch_size, restart = cut.randint(1, 3), cut.randint(0, len(case.lines) - 1)
        found = run_engine(case, batch_size=batch_size, restart_after=restart)
        if lines(found) != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong, "cases of open_chain_case(RandomChooser(seed)) with these seeds"


def test_runs_that_are_counted_pause_where_they_do_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(case: Case, runs: int, batch_size: int) -> list[str]:
        limits = MatchingLimits(runs=RunLimits(runs=runs))
        return lines(run_engine(case, batch_size=batch_size, limits=limits))

    paused = 0
    for seed in range(130, 130 + examples(9)):
        case = parse_case(open_chain_case(RandomChooser(seed)))
        runs, batch_size = seed % 2, 1 + seed % 3
        counted = found(case, runs, batch_size)
        paused += counted != found(case, 10_000, batch_size)
        with monkeypatch.context() as one_by_one:
            one_by_one.setattr(AnyChainEvaluation, "_counted_from_us", lambda *_: UNBOUNDED)
            assert counted == found(case, runs, batch_size), seed
    assert paused


COMPLETED = (
    "S//a FOLLOWED BY S//b FOLLOWED BY S//c WITHIN 1 h MATCH ANY",
    "S//a FOLLOWED BY {, 9 s} S//b+ {count() < 2} FOLLOWED BY {, 5 s} S//c MATCH ANY",
    "S//a FOLLOWED BY S//b+ {, 4 s} FOLLOWED BY S//c WITHIN 12 s MATCH ANY",
    "S//a->x FOLLOWED BY S//b->y FOLLOWED BY S//c->z WITHIN 8 s MATCH ANY",
)


@pytest.mark.parametrize(("text", "runs"), some(product(COMPLETED, [1, 4, 20]), 3))
def test_a_chain_is_paused_with_the_first_document_that_completes_too_many(
    text: str, runs: int
) -> None:
    kinds = random.Random(runs).choices("abbc", k=16)
    free = [len(step.matches) for step in steps(text, kinds)]
    too_many = [n for n, count in enumerate(free, 1) if count > runs]
    limits = MatchingLimits(runs=RunLimits(runs=runs))
    found = steps(text, kinds, limits)
    assert [each.docid for step in found for each in step.pauses] == too_many[:1]
    given = free[: too_many[0] - 1] if too_many else free
    assert [len(step.matches) for step in found][: len(given)] == given


def test_documents_with_two_values_in_common_are_one_choice() -> None:
    text = "S//a->a FOLLOWED BY {a/k = b/k} S//b->b FOLLOWED BY {b/k = c/k} S//c->c WITHIN 1 h"
    [query] = xscl.parse(f"{text} MATCH ANY", id="q")
    limits = MatchingLimits(runs=RunLimits(runs=1))
    engine = Engine([RegisteredQuery(query)], lateness_us=DAY_US, limits=limits)
    documents = [
        Document(n, "S", str(n), n, n, n, n - 1, f"<{k}><k>x</k><k>y</k></{k}>".encode())
        for n, k in enumerate("abc", 1)
    ]
    xml = {document.docid: document.xml for document in documents}
    found = engine.process(engine.evaluate(documents), lambda _: xml)
    assert len(found.matches) == 1
    assert not found.pauses


LATE = """
lateness 1 m
query q
    S//a[k->x] FOLLOWED BY {x = y, 30 s} S//b[k->y][p->p]+ {p >= prev(p)}
        FOLLOWED BY {z = x, 30 s} S//c[k->z] MATCH ANY

document 1 S 00:00:09  <c><k>u</k></c>
document 2 S 00:00:03  <b><k>u</k><p>1</p></b>
document 3 S 00:00:05  <b><k>v</k><p>1</p></b>
document 4 S 00:00:04  <b><k>u</k><p>2</p></b>
document 5 S 00:00:01  <a><k>u</k></a>
document 6 S 00:00:02  <b><k>u</k><p>0</p></b>
document 7 S 00:00:00  <a><k>u</k></a>
document 8 S 00:00:10  <c><k>u</k></c>
----
"""


@pytest.mark.parametrize("batch_size", [1, 3, 8])
def test_what_comes_late_completes_what_was_there(batch_size: int) -> None:
    case = parse_case(LATE)
    found = lines(run_engine(case, batch_size=batch_size))
    assert found == lines(run_oracle(case))
    assert len(found) == 40


def test_shards_find_them_too() -> None:
    def in_shards(case: Case) -> list[str]:
        join = Join(case.lateness_us, 2)
        return lines(run_engine(case, batch_size=2, processors=lambda: join.processor(None)))

    case = parse_case(LATE)
    assert in_shards(case) == lines(run_oracle(case))
