"""Runs are right: what is repeated is as the cases and the oracle say."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest
from generators.choosers import RandomChooser
from generators.run_cases import run_case
from support.examples import examples, some
from support.kit import CASES, Case, cases, check, parse_case
from support.runners import lines, run_engine, run_oracle
from support.tiny_limits import matching

from broker.matching.limits import DEFAULT_MATCHING_LIMITS
from broker.matching.match import Match
from broker.pipeline.shards import Join
from joins.budget.limits import RunLimits
from joins.memory.limits import MemoryLimits

ALL = dict((*cases(CASES / "runs"), *cases(CASES / "match")))


@pytest.mark.parametrize("name", ALL)
def test_the_engine_finds_the_runs_that_a_case_expects(name: str) -> None:
    check(ALL[name], run_engine)


@pytest.mark.parametrize("name", some(ALL, 5))
def test_it_finds_them_document_by_document_and_after_a_restart(name: str) -> None:
    check(ALL[name], partial(run_engine, batch_size=1, restart_after=3))


@pytest.mark.parametrize("named", ["C4", "P1", "P3", "P4"])
def test_shards_find_them_too(named: str) -> None:
    def in_shards(case: Case) -> list[Match]:
        join = Join(case.lateness_us, 2)
        return run_engine(case, batch_size=2, processors=lambda: join.processor(None))

    for text in (text for name, text in ALL.items() if named in name):
        check(text, in_shards)


def test_runs_are_found_after_documents_of_many_other_shapes() -> None:
    kinds = [*"abb", *(f"c{n}" for n in range(40)), *"abb"]
    queries = [
        "query q",
        "    S//a FOLLOWED BY {, 3 m} S//b+",
        "query r",
        "    S//* JOIN {, 1 s} S//*",
    ]
    documents = [f"document {n} S 00:{n:02}  <{kind}/>" for n, kind in enumerate(kinds, 1)]
    case = parse_case("\n".join(["lateness 1 s", *queries, "", *documents, "----", ""]))
    limits = matching(MemoryLimits(shapes_kept=0, evicted_rows=1))
    found = lines(run_engine(case, batch_size=1, limits=limits))
    assert found == lines(run_oracle(case)) != []


def test_witnesses_have_what_any_alternative_compares_with_what_must_be_absent() -> None:
    """Only what the first alternative bound was a witness."""
    query = "(S//a | S//b[p->p]) NEXT {, 3 s} S//c+ UNLESS {p = n/k} S//n->n WITHIN 5 s"
    documents = [
        f"document {n} S 00:00:1{n}  {xml}"
        for n, xml in enumerate(["<b><p>2</p></b>", "<n><k>3</k></n>", "<c/>"])
    ]
    text = "\n".join(["lateness 5 s", "query q", f"    {query}", "", *documents, "tick 4 01:00:00"])
    case = parse_case(f"{text}\n----\n")
    found = run_engine(case)
    assert lines(found) == lines(run_oracle(case))
    assert [list(witness) for match in found for witness in match.witnesses] == [["p"]]


def test_it_finds_runs_as_the_oracle_does() -> None:
    wrong: list[int] = []
    for seed in range(examples(4)):
        case = parse_case(run_case(RandomChooser(seed)))
        cut = random.Random(seed)
        batch_size, restart = cut.randint(1, 3), cut.randint(0, len(case.lines) - 1)
        if lines(run_engine(case, batch_size=batch_size, restart_after=restart)) != lines(
            run_oracle(case)
        ):
            wrong.append(seed)
    assert not wrong, "cases of run_case(RandomChooser(seed)) with these seeds"


@pytest.mark.parametrize("how", ["MATCH STRICT", "SAME (/*/k) MATCH PARTITION"])
@pytest.mark.parametrize("in_columns", [True, False])
@pytest.mark.parametrize(("batch", "after"), [(1, 0), (None, 3)])
def test_what_stands_between_is_kept_for_a_first_document_that_comes_late(
    how: str, in_columns: bool, batch: int | None, after: int
) -> None:
    """Document 2 is remembered when document 4 comes; document 1 was not, and stands between."""
    text = f"""
lateness 0 s
query q
    S//a FOLLOWED BY S//b WITHIN 6 s {how} GRACE 0 s

document 1 S 00:00:43  <x><k>1</k></x>
document 2 S 00:00:46  <b><k>1</k></b>
document 3 S 00:00:51  <x><k>1</k></x>
document 4 S 00:00:41  <a><k>1</k></a>
document 5 S 00:02:41  <x><k>2</k></x>
----
"""
    limits = replace(DEFAULT_MATCHING_LIMITS, runs=RunLimits(swept_parts=0, in_columns=in_columns))
    check(text, partial(run_engine, batch_size=batch, restart_after=after, limits=limits))
    between = text.replace("00:00:43", "00:00:40").replace("----", "----\nq  4 2")
    check(between, partial(run_engine, batch_size=batch, restart_after=after, limits=limits))
