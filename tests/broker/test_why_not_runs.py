"""Why documents are no run: the first one that a run cannot take, and what stands in between."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import oracle
import pytest
from support.kit import document, us

import xscl
from broker.documents.document import DocumentLine
from broker.matching.engine import Engine
from broker.matching.limits import MatchingLimits
from broker.whynot import Reason, Surroundings, why_not
from joins import RunLimits

QUOTES = [
    document("S", 1, "<a><k>x</k></a>"),
    document("S", 2, "<b><k>x</k><p>3</p></b>"),
    document("S", 3, "<b><k>x</k><p>5</p></b>"),
    document("S", 4, "<b><k>x</k><p>4</p></b>"),
    document("S", 5, "<b><k>y</k><p>6</p></b>"),
    document("S", 6, "<c><k>x</k></c>"),
    document("S", 7, "<z/>"),
]
RISING = "S//a NEXT {, 1 h} S//b[p->p]+ {p > prev(p)} GRACE 0 s"
CHAIN = "S//a FOLLOWED BY S//b[p->p]+ {p > prev(p)} FOLLOWED BY S//c WITHIN 1 h"


def ask(
    query: str, take: Sequence[int], lines: Sequence[DocumentLine] = QUOTES, *, alone: bool = False
) -> Reason:
    [parsed] = xscl.parse(query, id="q")
    documents = oracle.number_documents(list(lines))
    around = None if alone else Surroundings(documents)
    return why_not(parsed, [documents[n - 1] for n in take], lateness_us=us("1 d"), around=around)


def only_failure(reason: Reason) -> str:
    assert not reason.holds
    [failure] = reason.failures()
    return failure.text


@pytest.mark.parametrize(
    ("query", "take", "text"),
    [
        (RISING, [1, 2, 3, 4], "the run ended at 4: `p > prev(p)` is 4 > 5"),
        (RISING, [1, 3], "document 2 came first (S 2"),
        (
            "S//a NEXT {, 2 min} S//b[p->p]+ GRACE 0 s",
            [1, 2, 3, 4],
            "the run ended at 4: it is 3 minutes behind document 1, 2 minutes allowed",
        ),
        (
            "S//a FOLLOWED BY {, 1 h} S//b[p->p]+ {, 1 min}",
            [1, 2, 4],
            "the run ended at 4: it is 2 minutes behind document 2, 1 minute allowed",
        ),
        (
            "S//b[p->p]+ WITHIN 1 min",
            [2, 3, 4],
            "the run ended at 4: it is 2 minutes from document 2 on, WITHIN, 1 minute allowed",
        ),
        (
            "S//b[p->p]+ WITHIN 1 h SAME (//k)",
            [3, 5],
            "the run ended at 5: SAME: its key is 'y', that of the run is 'x'",
        ),
        (
            "S//a NEXT {, 1 h} S//b[p->p]+ WHILE {p >= prev(p, 0)} GRACE 0 s",
            [1, 2, 3, 4],
            "the run ended at 4: `p >= prev(p, 0)` is 4 >= 5",
        ),
        (
            "S//a NEXT {, 1 h} S//b[p->p]+ {p > prev(p)} WHERE avg(p) > 4 GRACE 0 s",
            [1, 2, 3],
            "the run ended at 3: WHERE keeps the run out: `avg(p) > 4` is 4 > 4",
        ),
        (
            "S//a NEXT {, 1 h} S//b[p->p]+ FOLD {s = 0 THEN s + p} WHERE s > 8 GRACE 0 s",
            [1, 2, 3],
            "the run ended at 3: WHERE keeps the run out: `s > 8` is 8 > 8",
        ),
        (
            "S//b[p->p]+ {count() < 2 AND p < 9} WITHIN 1 h",
            [2, 3, 4],
            "the run ended at 4: `count() < 2` is 2 < 2",
        ),
        (
            "S//a[k->x] NEXT {x = y, 1 h} S//b[k->y]+ GRACE 0 s",
            [1, 5],
            "document 5 cannot stand behind document 1: `x = y` is 'x' = 'y'",
        ),
        (f"{CHAIN} MATCH STRICT GRACE 0 s", [1, 2, 3, 6], "document 4 stands in between"),
        (f"{CHAIN} SAME (//k) MATCH PARTITION GRACE 0 s", [1, 2, 3, 6], "document 4 stands in"),
        (CHAIN, [1, 2, 4, 3, 6], "the run ended at 4: `p > prev(p)` is 4 > 5"),
        (RISING, [1], "q has 2 units, and 1 given"),
    ],
)
def test_what_keeps_documents_from_being_a_run(query: str, take: list[int], text: str) -> None:
    assert only_failure(ask(query, take)).startswith(text)


@pytest.mark.parametrize(
    ("query", "take"),
    [
        (RISING, [1, 2, 3]),
        (CHAIN, [1, 2, 5, 6]),
        (f"{CHAIN} MATCH NEXT GRACE 0 s", [1, 2, 3, 5, 6]),
        ("S//b[p->p]+ {p > prev(p)} FOLLOWED BY {, 1 h} S//b[p->q]+ {q < last(p)}", [3, 4]),
    ],
)
def test_documents_that_are_a_run_match(query: str, take: list[int]) -> None:
    found = ask(query, take)
    assert found.holds
    assert not list(found.failures())


def test_of_documents_alone_it_is_not_known_what_was_next() -> None:
    assert "decided by documents in between" in ask(RISING, [1, 3], alone=True).text
    assert "4 > 5" in only_failure(ask(RISING, [1, 3, 4], alone=True))


def test_more_elements_than_have_runs_that_can_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = MatchingLimits(runs=RunLimits(runs=100))
    monkeypatch.setattr("broker.whynot.surroundings.Engine", partial(Engine, limits=limits))
    lines = [document("S", n, f"<b><p>{n}</p></b>") for n in range(1, 31)]
    assert ask("S//b[p->p]+ {p > prev(p)} WITHIN 1 h", range(1, 31), lines).holds
    lines[-1] = document("S", 30, "<b><p>7</p></b>")
    found = ask("S//b[p->p]+ {p > prev(p)} WITHIN 1 h", range(1, 31), lines)
    assert only_failure(found) == "the run ended at 30: `p > prev(p)` is 7 > 29"
