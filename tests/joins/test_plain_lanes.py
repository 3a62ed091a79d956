"""Runs that are counted without a step between two elements: the same as where steps are drawn."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.counted_runs import SOURCES, all_asked, asked, stream
from support.examples import examples, some
from support.runners import lines, run_engine

import xscl
from broker.matching.limits import MatchingLimits
from joins import RunLimits
from joins.sequences.counting.plain import PlainLane
from joins.sequences.counting.plainruns import PlainRuns
from joins.sequences.counting.spread import PlainElement
from joins.sequences.counting.sums import SumByKey, asked_of
from templates.compiler import compile_query
from templates.neighbours import compile_neighbours
from templates.rundecision import DecidedRuns
from xpath_eval.catalog import PatternCatalog

ROWS = ["WINDOW 0 s", "WINDOW 3 s HAVING count() > 3"]


@pytest.mark.parametrize("rows", ROWS)
def test_runs_are_counted_as_they_are_drawn(rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: Counter[str] = Counter()
    sources = {f"q{number}": source for number, source in enumerate(some(SOURCES, 3))}
    for seed in range(examples(2)):
        counting = f"{rows} GRACE {random.Random(seed).choice([0, 0, 3])} s"
        texts = {
            q: f"SELECT <n>{{count()}}</n> FROM {own} {counting}" for q, own in sources.items()
        }
        case = all_asked(texts, stream(seed))
        counted = run_engine(case, batch_size=random.Random(seed).choice([1, 3, 20]))
        found.update(match.query for match in counted)
        with monkeypatch.context() as drawn:
            drawn.setattr(PlainRuns, "of", lambda *_: None)
            assert lines(counted) == lines(run_engine(case, batch_size=20)), seed
    assert found.keys() == sources.keys()


@pytest.mark.parametrize(
    ("source", "have_lanes"),
    [("S//a[v->v]+ {v > prev(v), 9 s}", True), ("S//b NEXT {, 9 s} S//a+", False)],
)
def test_runs_before_which_nothing_stands_have_lanes(source: str, have_lanes: bool) -> None:
    [query] = xscl.parse(f"SELECT <n>{{count()}}</n> FROM {source} WINDOW 0 s", id="q")
    [alternative] = compile_query(query, 0, PatternCatalog(), {}, 1)
    [decided] = [each.query_class.decided for each in alternative.clauses if each.deciding]
    assert isinstance(decided, DecidedRuns)
    assert (compile_neighbours(decided.decision.begins[0]) is not None) == have_lanes


@pytest.mark.parametrize("source", [SOURCES[0], SOURCES[8]])
def test_restarts_do_not_show(source: str) -> None:
    case = asked(f"SELECT <n>{{count()}}</n> FROM {source} WINDOW 2 s GRACE 1 s", stream(5, 30))
    expected = run_engine(case)
    assert expected
    assert run_engine(case, batch_size=2, restart_after=15) == expected


def test_a_late_element_changes_what_later_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are kept up to date with what came late, and lanes are not drawn for that."""
    drawn: list[object] = []
    monkeypatch.setattr(PlainRuns, "leave", lambda *_: drawn.append(1) or [])
    documents = [
        f"document {n} S 00:00:{second}  <a><v>{v}</v></a>"
        for n, (second, v) in enumerate([(10, 1), (12, 3), (14, 5), (11, 2), (13, 4)], 1)
    ]
    text = "\n".join([*documents, "tick 6 10:00:00", "----", ""])
    for asked_for in ("{v > prev(v), 9 s}", "{v > prev(v)} WITHIN 9 s", "WITHIN 9 s"):
        statement = f"SELECT <n>{{count()}}</n> FROM S//a[v->v]+ {asked_for} WINDOW 0 s GRACE 0 s"
        rows = run_engine(asked(statement, text))
        counts = [(row.decided, row.end_us // 1_000_000 % 60, row.output) for row in rows]
        assert counts == [
            (2, 10, "<n>1</n>"),
            (3, 12, "<n>2</n>"),
            (4, 11, "<n>2</n>"),
            (5, 13, "<n>8</n>"),
            (6, 14, "<n>16</n>"),
        ]
    assert not drawn


def test_what_was_never_remembered_together_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[object] = []
    plain = PlainRuns.leave
    monkeypatch.setattr(PlainRuns, "leave", lambda own, key: left.append(1) or plain(own, key))
    own = [(10, 1), (12, 2), (59, 3), (14, 4), (15, 5)]
    documents = [f"document {n} S 00:00:{s}  <a><v>{v}</v></a>" for n, (s, v) in enumerate(own, 1)]
    text = "\n".join([*documents, "tick 6 10:00:00", "----", ""])
    statement = "SELECT <n>{count()}</n> FROM S//a[v->v]+ WITHIN 9 s WINDOW 0 s GRACE 0 s"
    rows = run_engine(asked(statement, text))
    assert left
    monkeypatch.setattr(PlainRuns, "of", lambda *_: None)
    assert rows == run_engine(asked(statement, text))


@pytest.mark.parametrize("source", some(SOURCES[:16], 3))
def test_the_newest_of_runs_in_disorder_is_found_without_them(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the grace documents come in any order: rows stand where all their documents say."""
    known: Counter[bool] = Counter()
    newest = PlainLane._newest_before

    def noted(self: PlainLane, own: PlainElement) -> PlainElement | None:
        found = newest(self, own)
        known[found is not None and found is not own] += 1
        return found

    for seed in range(examples(3)):
        chance = random.Random(seed)
        seconds = [10 + n // 2 + chance.randrange(5) for n in range(30)]
        documents = [
            f"document {n} S 00:00:{second}  <a><v>{chance.randrange(5)}</v><w>2</w><k>x</k></a>"
            for n, second in enumerate(seconds, 1)
        ]
        text = "\n".join([*documents, "tick 31 10:00:00", "----", ""])
        statement = f"SELECT <n>{{count()}}</n> FROM {source} WINDOW 0 s GRACE 5 s"
        case, batch = asked(statement, text, lateness=8), chance.choice([1, 5, 40])
        with monkeypatch.context() as asking:
            asking.setattr(PlainLane, "_newest_before", noted)
            found = run_engine(case, batch_size=batch)
        with monkeypatch.context() as looking:
            looking.setattr(PlainLane, "_newest_before", lambda *_: None)
            assert found == run_engine(case), seed
    # Where two numbers of an element are compared, or not all begin, runs are looked at.
    assert known[True] or "w" in source or "prev(v, " in source


def test_a_count_of_too_many_bits_pauses_the_statement() -> None:
    documents = [f"document {n} S 00:00:{n:02}  <a/>" for n in range(1, 31)]
    text = "\n".join([*documents, "tick 31 10:00:00", "----", ""])
    statement = "SELECT <n>{count()}</n> FROM S//a+ WITHIN 1 h WINDOW 0 s GRACE 0 s"
    limits = MatchingLimits(runs=RunLimits(bits=20))
    rows = run_engine(asked(statement, text), limits=limits)
    assert [row.output for row in rows][-1] == f"<n>{2**19}</n>"


@pytest.mark.parametrize("asked_for", ["", "{v != prev(v)}"])
def test_a_long_way_through_short_windows_is_no_long_run(asked_for: str) -> None:
    """Of ten elements within three seconds each, no run has more than four."""
    documents = [f"document {n} S 00:00:{n:02}  <a><v>{n}</v></a>" for n in range(1, 11)]
    text = "\n".join([*documents, "tick 31 10:00:00", "----", ""])
    source = f"S//a[v->v]+ {asked_for} WITHIN 3 s"
    statement = f"SELECT <n>{{count()}}</n> FROM {source} WINDOW 0 s GRACE 0 s"
    limits = MatchingLimits(runs=RunLimits(elements=5))
    assert len(run_engine(asked(statement, text), limits=limits)) == 10


def test_documents_are_found_out_when_a_row_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[object] = []
    plain = PlainLane._on_paths
    monkeypatch.setattr(
        PlainLane, "_on_paths", lambda *given: asked_for.append(given) or plain(*given)
    )
    statement = "SELECT <n>{{count()}}</n> FROM S//a+ WITHIN 1 h WINDOW 0 s HAVING {} GRACE 0 s"
    documents = [f"document {n} S 00:00:{n:02}  <a/>" for n in range(1, 31)]
    text = "\n".join([*documents, "tick 31 10:00:00", "----", ""])
    assert run_engine(asked(statement.format("count() < 0"), text)) == []
    assert not asked_for
    (row,) = run_engine(asked(statement.format(f"count() = {2**20}"), text))
    assert [each.docid for each in row.documents] == [*range(1, 22)]
    assert len(asked_for) == 1


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("of_next", [True, False])
def test_sums_by_key_add_up_what_fits(operator: str, of_next: bool) -> None:
    chance = random.Random(3)
    compare = {
        "<": float.__lt__,
        "<=": float.__le__,
        ">": float.__gt__,
        ">=": float.__ge__,
    }[operator]
    sums, held = SumByKey(), list[tuple[float, int]]()
    asked_for = asked_of(operator, of_next=of_next)
    for _ in range(2_000):
        if held and chance.randrange(3) == 0:
            sums.take(*held.pop(chance.randrange(len(held))))
        else:
            held.append((float(chance.randrange(400)), chance.choice([1, 2**70])))
            sums.add(*held[-1])
        one = float(chance.randrange(400))
        fits = [n for key, n in held if (compare(one, key) if of_next else compare(key, one))]
        assert asked_for(sums, one) == sum(fits)
    assert sums.total == sum(n for _, n in held)
