"""Ends of runs that are only counted become no tuples, and rows are what they were."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import product

import pytest
from support.budget_runs import Way, run, stream
from support.budgets import UNLIMITED
from support.counted_runs import asked
from support.counted_runs import stream as events
from support.examples import examples, is_searching, some
from support.runners import lines, run_engine

import xscl
from broker.matching.costs.budget import Budget
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.outcomes.asking import Asking
from broker.matching.outcomes.countedpieces import CountedPiece
from broker.matching.outcomes.rows import RowSource
from templates.rungraphs import CountedRuns

ROWS = (
    "SELECT <n>{{count()}}</n> FROM S//i[t->t]+ {{t > prev(t)}} WITHIN {within} h WINDOW {long}"
    " HAVING count() >= {least} GRACE 0 s"
)
OWN = stream([f"<t>{(17 * n * n + 3) % 23}</t>" for n in range(60)])


@pytest.mark.parametrize("count", [1, 15, 16, 255, 256, 2**4_000 - 1, 2**4_000])
def test_the_size_of_a_number_of_runs_is_that_of_its_text(count: int) -> None:
    plain, told_apart = CountedRuns(count, ()), CountedRuns(count, ("a",))
    assert plain.size == len(plain.spell())
    assert told_apart.size == len(told_apart.spell())


@pytest.mark.parametrize(("batch", "most"), some(product([1, 7, 60], [5, 17]), 3))
def test_an_end_counts_as_a_match_whatever_the_batch(batch: int, most: int) -> None:
    text = ROWS.format(within=9, long="0 s", least=3)
    free = run({"counts": text}, UNLIMITED, OWN, 60)
    assert free.pauses == []
    few = run({"counts": text}, Budget(matches_per_1000_documents=most), OWN, batch, Way())
    [pause] = few.pauses
    # Each document but the last is an end, decided with the next one.
    assert pause.docid == most + 2
    assert few.of("counts") == free.of("counts", pause.docid)


NUMBERS = (1, 2, 5, 9, 30, 100, 1_000, 2_000, 5_000, 70_000)


@cache
def _rows_of_each(long: str) -> list[tuple[int, int, str]]:
    """Return the rows that a statement of each number has alone."""
    expected = []
    for number in NUMBERS:
        [alone] = xscl.parse(ROWS.format(within=9, long=long, least=number), id="q")
        expected += [(number, *row) for row in _rows(RegisteredQuery(alone), 60)]
    return expected


TRIED = [(1, "0 s"), (7, "2 h"), (60, "0 s")]


@pytest.mark.parametrize(
    ("batch", "long"), product([1, 7, 60], ["0 s", "2 h"]) if is_searching() else TRIED
)
def test_subscriptions_to_counted_runs_have_the_rows_of_their_numbers(
    batch: int, long: str
) -> None:
    [query] = xscl.parse(ROWS.format(within=9, long=long, least="$least"), id="q")
    given = tuple({"least": float(number)} for number in NUMBERS)
    found = _rows(RegisteredQuery(query, assignments=given), batch)
    expected = _rows_of_each(long)
    with_numbers = [
        (number, docid, output)
        for docid, output in dict.fromkeys(found)
        for number in NUMBERS
        if _count(output) >= number
    ]
    assert sorted(with_numbers) == sorted(expected)
    assert len(found) == len(expected)


HAVING = ("", "HAVING count() >= 3", "HAVING 2 != count()")
MORE = ("GRACE 0 s", "GRACE 2 s", "GRACE 0 s LIMIT 2 PER 9 s")


@pytest.mark.parametrize(("having", "more"), some(product(HAVING, MORE), 4))
def test_ends_in_order_have_the_rows_that_others_have(
    having: str, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: Counter[bool] = Counter()
    in_order = RowSource._is_in_order

    def noted(self: RowSource, piece: CountedPiece, asking: Asking) -> bool:
        found = in_order(self, piece, asking)
        taken[found] += 1
        return found

    limit, grace = more.partition(" LIMIT")[2], more.partition(" LIMIT")[0]
    clauses = f"WINDOW 0 s {having} {f'LIMIT{limit} ' if limit else ''}{grace}"
    # Of batches of each size one.
    for seed in range(examples(6)) if is_searching() else (0, 1, 5):
        statement = f"SELECT <n>{{count()}}</n> FROM S//a[v->v]+ {{v > prev(v), 5 s}} {clauses}"
        case = asked(statement, events(seed, 24), lateness=2)
        batch = random.Random(seed).choice([1, 4, 24])
        with monkeypatch.context() as counting:
            counting.setattr(RowSource, "_is_in_order", noted)
            found = lines(run_engine(case, batch_size=batch))
        with monkeypatch.context() as alone:
            alone.setattr(RowSource, "_is_in_order", lambda *_: False)
            assert found == lines(run_engine(case)), seed
    assert taken[True]
    assert taken[False]


def _count(output: str) -> float:
    return float(output.removeprefix("<n>").removesuffix("</n>"))


def _rows(registered: RegisteredQuery, batch: int) -> Sequence[tuple[int, str]]:
    engine = Engine([registered], lateness_us=0)
    xml = {each.docid: each.xml for each in OWN}
    found = []
    for start in range(0, len(OWN), batch):
        part = engine.evaluate(OWN[start : start + batch])
        step = engine.process(part, lambda docids: {docid: xml[docid] for docid in docids})
        found += [(match.position, json.loads(match.line)["output"]) for match in step.matches]
    return found
