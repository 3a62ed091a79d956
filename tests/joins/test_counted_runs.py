"""Counted runs: what is listed is what is counted is what a graph has for paths."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from itertools import product

import pytest
from lxml import etree
from support.counted_runs import paths, stream_of_kinds
from support.examples import examples, some
from support.kit import Case, parse_case
from support.runners import lines, run_engine, run_oracle

from broker.matching.limits import MatchingLimits
from broker.pipeline.shards import Join
from joins import RunLimits
from joins.sequences.counting.drawnruns import DrawnRuns
from joins.sequences.counting.lanes import RunLane
from joins.sequences.repeated.rungraph import RunGraph
from templates.rungraphs import CountedRuns, PathGraph, union

RISING = "S//A[v->v]+ {v > prev(v)} WITHIN 1 h"

SOURCES = [
    "S//a[v->v]+ {v >= prev(v)} WITHIN 30 s",
    "S//a->a+ WITHIN 12 s",
    "S//a[k->k][v->v]+ {v != prev(v) AND k = prev(k), 9 s} WITHIN 20 s",
    "S//b[k->k] FOLLOWED BY {, 20 s} S//a->a+",
    "S//b[v->w] FOLLOWED BY {v > w, 20 s} S//a[v->v]+ {v >= prev(v)}",
    "S//b[v->w] FOLLOWED BY {, 20 s} S//a[v->v]+ {v > w}",
    "S//c FOLLOWED BY {, 9 s} S//b FOLLOWED BY {, 20 s} S//a+",
    "S//*[v->v]+ {v > prev(v)} WITHIN 20 s SAME (//k)",
]


def rising(count: int) -> str:
    own = [f"document {n} S 00:00:{n:02}  <A><v>{n}</v></A>" for n in range(1, count + 1)]
    return "\n".join([*own, f"tick {count + 1} 10:00:00", "----", ""])


def asked(statement: str, documents: str) -> Case:
    return parse_case(f"query q\n    {statement}\n\nlateness 100 s\n{documents}")


@pytest.mark.parametrize(("seed", "source"), some(product(range(3), SOURCES), 8))
def test_listed_are_counted_are_the_paths_of_the_graphs(source: str, seed: int) -> None:
    documents = stream_of_kinds(seed)
    grace = "GRACE 100 s"
    # LIMIT has each match decided, and lets all of them pass.
    listed = run_engine(asked(f"{source} LIMIT 100000 PER 1 h {grace}", documents))
    runs = Counter(tuple(each.docid for each in match.documents) for match in listed)
    ends = Counter(match.end_us for match in listed)
    select = "SELECT <n>{count()}</n> FROM"
    rows = run_engine(asked(f"{select} {source} WINDOW 0 s {grace}", documents))
    graphs = run_engine(asked(f"SELECT COMPRESSED FROM {source} {grace}", documents))
    assert runs
    assert {row.end_us: row.values["count()"] for row in rows} == ends
    assert Counter(path for match in graphs for path in paths(match)) == runs


@pytest.mark.parametrize(
    "source",
    some([*SOURCES, "S//a[v->v]+ {first(v) > 1 AND v >= prev(v)} WITHIN 30 s GRACE 0 s"], 3),
)
def test_ways_are_counted_as_they_are_drawn(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _, grace = source.partition(" GRACE")
    text = f"SELECT <n>{{count()}}</n> FROM {source} WINDOW 0 s" + (
        f" GRACE{grace}" if grace else ""
    )
    found = 0
    for seed in range(examples(4)):
        case = asked(text, stream_of_kinds(seed, 18))
        counted = lines(run_engine(case, batch_size=5))
        found += len(counted)
        with monkeypatch.context() as drawn:
            drawn.setattr(DrawnRuns, "are_matches", lambda *_: False)
            assert counted == lines(run_engine(case, batch_size=18)), seed
    assert found


def test_of_forty_rising_values_all_runs_are_counted_and_drawn() -> None:
    documents = rising(40)
    text = f"query n\n    SELECT <n>{{count()}}</n> FROM {RISING} WINDOW 0 s GRACE 0 s\n"
    text += f"query g\n    SELECT COMPRESSED FROM {RISING} GRACE 0 s\n\n{documents}"
    found = run_engine(parse_case(text))
    rows = [match for match in found if match.query == "n"]
    assert [row.output for row in rows[-1:]] == ["<n>549755813888</n>"]
    assert sum(int(row.values["count()"]) for row in rows) == 1099511627775
    last = etree.fromstring([match for match in found if match.query == "g"][-1].output)
    assert last.get("count") == "549755813888"
    assert (len(last.findall("document")), len(last.findall("step"))) == (40, 780)


def test_from_2_to_the_63_on_a_count_is_a_double() -> None:
    own = [f"document {n} S {n // 60:02}:{n % 60:02}  <A/>" for n in range(1, 67)]
    text = "query q\n    SELECT COMPRESSED FROM S//A+ WITHIN 9 h GRACE 0 s\n\n"
    found = run_engine(parse_case("\n".join([text, *own, "tick 67 20:00:00", "----", ""])))
    counts = [etree.fromstring(match.output).get("count") for match in found]
    assert counts[62] == str(2**62)
    assert counts[63:] == ["9.223372036854776E18", "1.8446744073709552E19", "3.6893488147419103E19"]


def test_any_number_of_runs_can_be_handed_on() -> None:
    """Python itself writes no decimal number of more than 4,300 digits."""
    runs = CountedRuns(4**10_000, ("a",))
    assert CountedRuns.read(runs.spell()) == runs


@pytest.mark.parametrize("lateness", [0, 17, 18])
def test_a_time_has_one_graph_however_late(lateness: int) -> None:
    """What comes later than the lateness has none: whether its time had one is forgotten then."""
    seconds = (29, 11, 24, 11, 30)
    own = [f"document {n} S 00:00:{second}  <a/>" for n, second in enumerate(seconds, 1)]
    documents = "\n".join([*own, "tick 6 10:00:00", "----", ""])
    statement = "SELECT COMPRESSED FROM S//a+ WITHIN 3 s GRACE 0 s"
    case = parse_case(f"query q\n    {statement}\n\nlateness {lateness} s\n{documents}")
    graphs = run_engine(case, batch_size=1)
    assert lines(graphs) == lines(run_oracle(case))
    ends = [match.end_us // 1_000_000 % 60 for match in graphs]
    assert sorted(ends) == (
        [29, 30] if lateness == 0 else [24, 29, 30] if lateness == 17 else [11, 24, 29, 30]
    )


@pytest.mark.parametrize("source", SOURCES[3:6])
def test_batches_restarts_and_shards_give_the_same(source: str) -> None:
    case = asked(f"SELECT COMPRESSED FROM {source} GRACE 3 s", stream_of_kinds(7))
    expected = run_engine(case)
    assert expected
    join = Join(case.lateness_us, 2)
    for run in (
        partial(run_engine, batch_size=1, restart_after=5),
        partial(run_engine, batch_size=3, restart_after=9),
        partial(run_engine, batch_size=2, processors=lambda: join.processor(None)),
    ):
        assert run(case) == expected


def looked_through(
    source: str, state: type, sweep: str, monkeypatch: pytest.MonkeyPatch
) -> list[object]:
    """Return what is looked through for use while fifty documents come, one by one."""
    found: list[object] = []
    plain = getattr(state, sweep)

    def noted(*given: object) -> object:
        found.append(given[0])
        return plain(*given)

    monkeypatch.setattr(state, sweep, noted)
    lines = [
        f"document {n} S {n // 60:02}:{n % 60:02}  <a><k>{n}</k><v>{n}</v></a>"
        for n in range(1, 51)
    ]
    case = parse_case("\n".join([f"query q\n    {source}\n", *lines, "----", ""]))
    run_engine(case, batch_size=1, limits=MatchingLimits(runs=RunLimits(swept_parts=10)))
    return found


@pytest.mark.parametrize(
    ("source", "state", "sweep"),
    [
        ("SELECT COMPRESSED FROM S//a+ WITHIN 1 h SAME (//k) GRACE 0 s", RunLane, "forget"),
        ("S//a[v->v]+ {v >= prev(v)} WITHIN 1 h SAME (//k)", RunGraph, "__len__"),
    ],
)
def test_what_is_kept_is_looked_through_once_it_is_twice_as_much(
    source: str, state: type, sweep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0 < len(looked_through(source, state, sweep, monkeypatch)) < 150


def test_what_nothing_comes_behind_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "S//a[v->w] FOLLOWED BY {, 5 s} S//k[.->v]+ {v < w} GRACE 0 s"
    select = f"SELECT COMPRESSED FROM {source}"
    lanes = looked_through(select, RunLane, "forget", monkeypatch)
    assert len(set(map(id, lanes))) > 35


def words(graph: PathGraph[str]) -> list[str]:
    """Return what each path of a graph spells, in order."""
    found: list[str] = []
    waiting = [(node, "") for node in graph.first]
    while waiting:
        node, word = waiting.pop()
        word += graph.labels[node]
        waiting += [(each, word) for each in graph.behind[node]]
        if not graph.behind[node]:
            found.append(word)
    return sorted(found)


@pytest.mark.parametrize("seed", range(60))
def test_a_graph_spells_the_same_runs_in_each_of_its_forms(seed: int) -> None:
    chance = random.Random(seed)
    size = chance.randint(1, 7)
    labels = (*(chance.choice("ab") for _ in range(size - 1)), "z")
    behind = [
        tuple(sorted(chance.sample(range(n + 1, size), chance.randint(1, min(3, size - n - 1)))))
        for n in range(size - 1)
    ]
    first = tuple(sorted(chance.sample(range(size), chance.randint(1, size))))
    graph = PathGraph(labels, (*behind, ()), first)
    runs = sorted(set(words(graph)))
    plain = graph.deterministic()
    assert words(plain) == words(plain.minimal()) == words(union([graph, plain])) == runs
    assert plain.count() == plain.minimal().count() == len(runs)
    with_a = plain.through([label == "a" for label in plain.labels])
    assert words(with_a) == [run for run in runs if "a" in run]


@pytest.mark.parametrize("batch_size", [1, 3, 11])
@pytest.mark.parametrize(
    ("times", "names", "pauses"),
    [
        # Three within four seconds, of which two are at one time; another stands before.
        ((1, 2, 4, 6, 6, 7), "jijiii", {}),
        # The second of three comes last.
        ((1, 2, 4, 9, 3), "jiixi", {"q": 5}),
        # What stands before comes last.
        ((2, 3, 4, 9, 1), "iiixj", {"q": 5}),
    ],
)
def test_a_statement_is_paused_where_a_run_is_too_long(
    times: tuple[int, ...], names: str, pauses: dict[str, int], batch_size: int
) -> None:
    statement = "S//j FOLLOWED BY {, 4 s} S//i+ {, 6 s} WINDOW 4 s HAVING count() > 0 GRACE 0 s"
    documents = [
        f"document {n} S 00:00:{time:02}  <{name}/>"
        for n, (time, name) in enumerate(zip(times, names, strict=True), 1)
    ]
    text = [f"query q\n    {statement}\n", *documents, "tick 9 01:00:00", "----", ""]
    case = parse_case("\n".join(text))
    paused: dict[str, int] = {}
    limits = MatchingLimits(runs=RunLimits(elements=2))
    run_engine(case, batch_size=batch_size, limits=limits, paused=paused)
    assert paused == pauses
