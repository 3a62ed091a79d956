"""Complete runs over chains that are only counted: the same rows as of those that are listed."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from dataclasses import replace

import pytest
from generators.choosers import RandomChooser
from generators.column_cases import counted_chain_case
from oracle import number_documents
from support.budgets import UNLIMITED
from support.examples import examples
from support.kernels import needs_kernels
from support.kit import Case, parse_case
from support.runners import lines, run_engine, run_oracle

from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.fanout import FanOut
from joins import CountedEnds
from joins.sequences.lockstep.compilation import compile_loops
from joins.sequences.lockstep.completeruns import CompleteRuns
from joins.sequences.lockstep.ends import HeadEnds

_of_heads = CountedEnds.of_heads.__func__  # type: ignore[attr-defined]


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    needs_kernels()
    compile_loops()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the runs that are not listed."""
    found = Counter[str]()

    def noted(cls: type[CountedEnds], ends: HeadEnds, limit: int | None) -> CountedEnds:
        own: CountedEnds = _of_heads(cls, ends, limit)
        found["runs"] += len(own)
        return own

    monkeypatch.setattr(CountedEnds, "of_heads", classmethod(noted))
    return found


def listed(
    case: Case, patch: pytest.MonkeyPatch, batch_size: int | None, restart: int
) -> list[str]:
    """Return the rows of a case where all runs are listed."""
    with patch.context() as tuples:
        tuples.setattr(FanOut, "uses_of_ends", lambda *_: ())
        return lines(run_engine(case, batch_size=batch_size, restart_after=restart))


def test_rows_of_counted_runs_are_those_of_listed_ones(
    monkeypatch: pytest.MonkeyPatch, counted: Counter[str]
) -> None:
    wrong: list[int] = []
    for seed in range(examples(8)):
        case = parse_case(counted_chain_case(RandomChooser(seed)))
        chance = random.Random(seed)
        batch = chance.choice([1, 2, 3, 5, None])
        restart = chance.choice([0, 0, len(case.lines) // 2])
        found = lines(run_engine(case, batch_size=batch, restart_after=restart))
        if found != listed(case, monkeypatch, batch, restart):
            wrong.append(seed)
    assert not wrong, "cases of counted_chain_case(RandomChooser(seed)) with these seeds"
    assert counted["runs"] > 20


def test_rows_of_counted_runs_are_as_the_oracle_says() -> None:
    wrong: list[int] = []
    for seed in range(1_000, 1_000 + examples(4)):
        case = parse_case(counted_chain_case(RandomChooser(seed)))
        found = lines(run_engine(case, batch_size=random.Random(seed).choice([1, 3])))
        if found != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong, "cases of counted_chain_case(RandomChooser(seed)) with these seeds"


ROWS = "WINDOW {} s HAVING count() > 0 GRACE 0 s"
RISING = "SELECT <n>{count()}</n> FROM S//a[p->p]+ {p > prev(p)} MATCH NEXT "
BESIDE = "SELECT <n>{count()}</n> FROM S//a[p->p]+ FOLLOWED BY S//b WITHIN 1 h MATCH STRICT "


def asked(statement: str, *texts: str) -> Case:
    """Return a case of one statement, and documents at the times that stand before them."""
    documents = []
    for number, text in enumerate(texts, 1):
        time, _, xml = text.partition(" ")
        documents.append(f"document {number} S 00:00:{int(time):02}  {xml}")
    tick = f"tick {len(texts) + 1} 10:00:00"
    text = "\n".join([f"query q\n    {statement}\n\nlateness 20 s", *documents, tick, "----", ""])
    return parse_case(text)


TRIED = {
    "twins": (
        RISING + ROWS.format(0),
        ("10 <a><p>1</p><p>2</p></a>", "11 <a><p>3</p></a>", "12 <a><p>4</p></a>"),
        3,
    ),
    "ties": (
        RISING + ROWS.format(0),
        ("10 <a><p>1</p></a>", "11 <a><p>2</p></a>", "11 <a><p>3</p></a>", "12 <a><p>4</p></a>"),
        10,
    ),
    "a late element": (
        RISING + ROWS.format(0),
        ("10 <a><p>1</p></a>", "14 <a><p>4</p></a>", "12 <a><p>2</p></a>", "16 <a><p>9</p></a>"),
        10,
    ),
    "one end, decided at two documents": (
        RISING + ROWS.format(0),
        ("10 <a><p>1</p></a>", "12 <a><p>2</p></a>", "14 <a><p>9</p></a>", "12 <a><p>3</p></a>"),
        8,
    ),
    "a longer window": (
        BESIDE + ROWS.format(4),
        ("10 <a><p>1</p></a>", "11 <a><p>2</p></a>", "12 <b/>", "13 <a><p>3</p></a>", "14 <b/>"),
        3,
    ),
    "two clauses": (
        "SELECT <n>{count()}</n> FROM S//a[p->p]+ FOLLOWED BY {q = 1 OR q < 9} S//b[q->q]"
        f" WITHIN 1 h MATCH NEXT {ROWS.format(0)}",
        ("10 <a><p>1</p></a>", "11 <b><q>1</q></b>"),
        0,
    ),
    "WHERE": (
        "SELECT <n>{count()}</n> FROM S//a[p->p]+ WITHIN 1 h MATCH NEXT WHERE last(p) > 1 "
        + ROWS.format(0),
        ("10 <a><p>1</p></a>", "11 <a><p>2</p></a>"),
        0,
    ),
}
"""A statement, its documents, and how many of its runs are not listed."""


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("batch", [1, 2, None])
def test_what_was_tried_against_counting_is_right(
    name: str, batch: int | None, counted: Counter[str]
) -> None:
    statement, documents, runs = TRIED[name]
    case = asked(statement, *documents)
    expected = lines(run_oracle(case))
    assert lines(run_engine(case, batch_size=batch)) == expected
    assert expected
    assert counted["runs"] == runs


def test_each_statement_has_the_runs_of_documents_behind_its_point(counted: Counter[str]) -> None:
    text = RISING + ROWS.format(0)
    case = asked(text, "10 <a><p>1</p></a>", "11 <a><p>2</p></a>", "12 <a><p>3</p></a>")
    queries = [replace(query, id=name) for query in case.queries for name in ("q", "r", "s")]
    case = replace(case, queries=queries, registered={"r": 1, "s": 2})
    found = run_engine(case, batch_size=2)
    assert lines(found) == lines(run_oracle(case))
    assert counted["runs"] > 0
    shown = [(row.query, row.output) for row in found]
    assert shown[-3:] == [("q", "<n>3</n>"), ("r", "<n>2</n>"), ("s", "<n>1</n>")]


def test_runs_are_listed_for_all_where_one_statement_shows_them(counted: Counter[str]) -> None:
    text = RISING + ROWS.format(0)
    case = asked(text, "10 <a><p>1</p></a>", "11 <a><p>2</p></a>", "12 <a><p>3</p></a>")
    [other] = asked("FROM S//a[p->p]+ {p > prev(p)} MATCH NEXT GRACE 0 s").queries
    case = replace(case, queries=[*case.queries, replace(other, id="r")])
    assert lines(run_engine(case, batch_size=2)) == lines(run_oracle(case))
    assert not counted["runs"]


def test_a_row_shows_its_runs_in_one_order_whatever_that_of_the_heads(
    monkeypatch: pytest.MonkeyPatch, counted: Counter[str]
) -> None:
    statement, documents, _ = TRIED["ties"]
    case = asked(statement, *documents)
    expected = lines(run_oracle(case))
    ends = CompleteRuns._ends
    for turned in (slice(None), slice(None, None, -1)):
        with monkeypatch.context() as patch:
            patch.setattr(CompleteRuns, "_ends", lambda self, heads, t=turned: ends(self, heads[t]))
            assert lines(run_engine(case)) == expected
    assert counted["runs"]


def paused(case: Case, nbytes: int) -> list[int]:
    """Return the documents at which statements are paused of which one may read so many bytes."""
    documents = number_documents(case.lines)
    budget = replace(UNLIMITED, bytes_per_document=nbytes)
    queries = [RegisteredQuery(query) for query in case.queries]
    engine = Engine(queries, lateness_us=case.lateness_us, budget=budget)
    xml = {each.docid: each.xml for each in documents}
    step = engine.process(engine.evaluate(documents), lambda docids: {d: xml[d] for d in docids})
    return [pause.docid for pause in step.pauses]


def test_a_counted_run_is_charged_as_its_tuple(
    monkeypatch: pytest.MonkeyPatch, counted: Counter[str]
) -> None:
    values = ["1", "x y", 'a "quotation"', "back\\slash", "für", "雪", "\U0001f600", "", "-12.50"]
    documents = [f"{n + 10} <a><p>{value}</p></a>" for n, value in enumerate(values)]
    source = "S//a[p->p]+ FOLLOWED BY S//b WITHIN 1 h SAME (/*/@k) MATCH STRICT"
    statement = f"SELECT <n>{{count()}}</n> FROM {source} {ROWS.format(0)}"
    documents = [each.replace("<a>", "<a k='ö'>") for each in documents]
    case = asked(statement, *documents, "40 <b k='ö'/>", "41 <b k='ö'/>")
    found = bisect_left(range(50_000), 1, key=lambda nbytes: not paused(case, nbytes))
    assert counted["runs"]
    assert found > 9_000
    monkeypatch.setattr(FanOut, "uses_of_ends", lambda *_: ())
    assert paused(case, found) == []
    assert paused(case, found - 1) == [11]
