"""Runs are bounded where they are found: nothing that explodes is listed, and others go on."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
from support.budget_runs import Running, Way, run, stream
from support.budgets import UNLIMITED
from support.examples import some

from broker.matching.limits import MatchingLimits
from joins import RunLimits

EVERY = "S//i->a+ WITHIN 50 h"
OTHER = "S//i->a JOIN {a/t = b/t, 2 h} S//i->b"

MANY = stream([f"<t>{i % 5}</t>" for i in range(60)])


@pytest.mark.parametrize("batch", [7, 60])
def test_a_statement_of_every_choice_is_paused_before_they_are_listed(
    batch: int,
) -> None:
    few = Way(limits=MatchingLimits(runs=RunLimits(runs=100)))
    found = run({"every": EVERY, "other": OTHER}, UNLIMITED, MANY, batch, few)
    [pause] = found.pauses
    # With each document come twice as many runs as with the one before.
    assert (pause.query, pause.docid) == ("every", (100).bit_length() + 1)
    assert "more than 100 runs" in pause.reason
    assert max(docid for name, docid, _ in found.lines if name == "every") < pause.docid
    free = run({"other": OTHER}, UNLIMITED, MANY, batch)
    assert [each for each in found.lines if each[0] == "other"] == free.lines


FOLDED = {"above": "S//i[t->t]+ {t > avg(t) OR t = first(t)} WITHIN 50 h", "other": OTHER}
DIGITS = stream([f"<t>{t}</t>" for t in (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9)])


@cache
def free_runs() -> Running:
    return run(FOLDED, UNLIMITED, DIGITS)


@pytest.mark.parametrize(("runs", "batch"), some(product([1, 5, 100], [1, 7, 60]), 3))
def test_runs_of_aggregates_are_paused_at_the_document_that_makes_too_many(
    batch: int, runs: int
) -> None:
    free = free_runs()
    assert free.pauses == []
    counts = free.counts("above")
    few = Way(limits=MatchingLimits(runs=RunLimits(runs=runs)))
    found = run(FOLDED, UNLIMITED, DIGITS, batch, few)
    [pause] = found.pauses
    assert pause.docid == min(docid for docid, count in counts.items() if count > runs)
    assert found.of("above") == free.of("above", pause.docid)
    assert found.of("other") == free.of("other")


def test_a_run_that_grows_too_long_pauses_its_statement() -> None:
    short = Way(limits=MatchingLimits(runs=RunLimits(elements=6)))
    statement = "S//i[t = '0']->a NEXT {, 9 h} S//i[t != '0']->b+ GRACE 0 s"
    [pause] = run({"long": statement}, UNLIMITED, MANY, 20, short).pauses
    assert pause.docid == 9


@pytest.mark.parametrize("batch", [7, 60])
def test_who_counts_what_explodes_gets_an_answer(batch: int) -> None:
    counts = "SELECT <n>{count()}</n> FROM S//i+ WITHIN 50 h WINDOW 0 s GRACE 0 s"
    found = run({"counts": counts, "other": OTHER}, UNLIMITED, MANY, batch)
    assert found.pauses == []
    # The last document has no successor that settles its time.
    assert [docid for name, docid, _ in found.lines if name == "counts"] == [*range(2, 61)]
    last = [line for name, _, line in found.lines if name == "counts"][-1]
    assert "<n>2.8823037615171174E17</n>" in last


@pytest.mark.parametrize("batch", [7, 60])
def test_a_graph_of_too_many_steps_pauses_its_statement(batch: int) -> None:
    few = Way(limits=MatchingLimits(runs=RunLimits(steps=100)))
    drawn = "SELECT COMPRESSED FROM S//i+ WITHIN 50 h GRACE 0 s"
    found = run({"drawn": drawn, "other": OTHER}, UNLIMITED, MANY, batch, few)
    [pause] = found.pauses
    # 15 elements have 105 steps; they are drawn when the 16th document settles the last of them.
    assert (pause.query, pause.docid) == ("drawn", 16)
    assert "steps" in pause.reason
    assert max(docid for name, docid, _ in found.lines if name == "drawn") == 15
    free = run({"other": OTHER}, UNLIMITED, MANY, batch)
    assert [each for each in found.lines if each[0] == "other"] == free.lines
