"""Chains under MATCH ANY that are counted: what is listed is what is counted, however."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from generators.choosers import RandomChooser
from generators.counted_cases import counted_any_case
from support.counted_runs import asked, paths, stream, stream_of_kinds
from support.examples import examples, some
from support.kit import parse_case
from support.runners import lines, run_engine, run_oracle

import xscl
from broker.matching.limits import MatchingLimits
from broker.pipeline.shards import Join
from joins import RunLimits
from joins.sequences.chained.neighbours import Neighbours
from joins.sequences.counting import chains
from joins.sequences.counting.chaingraph import ChainGraph
from joins.sequences.counting.chaintriples import WaysOfThree
from joins.sequences.counting.chainways import WaysByElements, WaysBySteps, chain_ways
from xscl.counting import counts_chain, is_counted

BY_ELEMENTS = [
    "S//a[k->x] FOLLOWED BY {x = y, 9 s} S/*[k->y] FOLLOWED BY {y = z, 9 s} S//a[k->z]",
    "S//a FOLLOWED BY {, 7 s} S/* FOLLOWED BY {, 9 s} S/*",
    "S/*[v->v] FOLLOWED BY {v < w, 9 s} S/*[v->w] FOLLOWED BY {w >= u, 9 s} S/*[v->u]",
    "S/*[v->v]+ {v >= prev(v), 3 s} FOLLOWED BY {last(v) < w, 5 s} S/*[v->w]",
    "S//a[k->x] FOLLOWED BY {x = y, 9 s} S/*[k->y][v->v] FOLLOWED BY {v != 2, 9 s} S/*[v->w]",
    "S/*[v->v] FOLLOWED BY {v <= w} S/*[v->w] WITHIN 9 s",
    "S//a FOLLOWED BY {, 6 s} S/*+ FOLLOWED BY {, 8 s} S/*",
    "S//a FOLLOWED BY {, 9 s} S/*[v->v]+ {v > 0} FOLLOWED BY {, 5 s} S//b+ SAME (//k)",
    "S/*[v->v] FOLLOWED BY {v <= w, 6 s} S/*[v->w] FOLLOWED BY {, 7 s} S/*+ WITHIN 13 s",
]
BY_STEPS = [
    "S//a FOLLOWED BY S/* FOLLOWED BY S//b WITHIN 15 s",
    "S//a FOLLOWED BY S/*+ FOLLOWED BY S//b WITHIN 12 s SAME (//k)",
    "S//a+ FOLLOWED BY S/*+ WITHIN 9 s",
    "S/*[k->x] FOLLOWED BY {x = y} S/*[k->y] FOLLOWED BY {y = z} S//a[k->z] WITHIN 12 s",
    "S//a[v->v] FOLLOWED BY {w > 1} S/*[v->w]+ {w > 1} FOLLOWED BY S/*[v->u] WITHIN 9 s",
    "S//a FOLLOWED BY S//b FOLLOWED BY S/*+ WITHIN 12 s SAME (//k)",
]
OF_THREE = [
    "S/*[v->v] FOLLOWED BY {v <= w} S/*[v->w] FOLLOWED BY {w <= u} S/*[v->u] WITHIN 15 s",
    "S/*[v->v] FOLLOWED BY {v > w} S/*[v->w] FOLLOWED BY {w < u} S/*[v->u] WITHIN 9 s SAME (//k)",
    "S/*[k->x] FOLLOWED BY {x = y} S/*[k->y][v->w] FOLLOWED BY {w >= u} S/*[v->u] WITHIN 9 s",
    "S/*[v->v] FOLLOWED BY {v >= w} S/*[v->w][k->y] FOLLOWED BY {y = z} S//a[k->z] WITHIN 12 s",
    "S/*[k->x] FOLLOWED BY {x = y} S/*[k->y][v->w] FOLLOWED BY {w = u} S/*[v->u] WITHIN 12 s",
]
DRAWN = [
    "S/*[v->v] FOLLOWED BY {v <= w} S/*[v->w] FOLLOWED BY {w <= u} S/*[v->u] FOLLOWED BY S//a"
    " WITHIN 15 s",
    "S/*[v->v] FOLLOWED BY {v <= w} S/*[v->w] FOLLOWED BY {2 * w <= u} S/*[v->u] WITHIN 15 s",
    "S//a FOLLOWED BY {, 9 s} S//b+ FOLLOWED BY {, 9 s} S/*+ {, 2 s}",
    "S/*+ FOLLOWED BY {, 5 s} S//a+ WITHIN 9 s",
    "S//a[v->v] FOLLOWED BY {v <= w, 9 s} S/*[v->w] FOLLOWED BY {, 9 s} S/*+ {, 5 s}",
    "S//a[k->x] FOLLOWED BY {x = y, 9 s} S/*[k->y]+ FOLLOWED BY {, 9 s} S/*",
]
NOT_WRITTEN = [
    "S//a FOLLOWED BY S//b FOLLOWED BY S/*+ WITHIN 12 s SAME (//k)",
    "S//a[v->v] FOLLOWED BY {v <= w, 9 s} S/*[v->w] FOLLOWED BY {, 9 s} S/*+ {, 5 s}",
]
SOURCES = [f"{each} MATCH ANY" for each in (*BY_ELEMENTS, *BY_STEPS, *OF_THREE, *DRAWN)]
SOURCES += NOT_WRITTEN


OF_NEIGHBOURS = [
    "S//a FOLLOWED BY S//b WITHIN 1 h",
    "S//a[k->u] FOLLOWED BY S//b[k->v] FOLLOWED BY {v = w} S//c[k->w] WITHIN 1 h",
    "S//a[k->u] FOLLOWED BY S//b[k->v]+ FOLLOWED BY {last(v) = w} S//c[k->w] WITHIN 1 h",
    "S//a FOLLOWED BY S//b[k->v]+ {v > prev(v) + 1} FOLLOWED BY S//c WITHIN 1 h",
    "S//a->a FOLLOWED BY {time(b) - time(a) > 3 s} S//b->b+ FOLLOWED BY {time(c) > time(b)} S//c->c"
    " WITHIN 1 h",
    "S//a FOLLOWED BY {revision(b) = 0} S//b->b FOLLOWED BY {contains(c, w)} S//c[k->w]->c"
    " WITHIN 1 h",
    "S//a->a FOLLOWED BY {exists(a/k)} S//b->b FOLLOWED BY {b/k = c/k} S//c->c WITHIN 1 h",
    "S//a[k->u] FOLLOWED BY {u = v OR u = 2} S//b[k->v] FOLLOWED BY S//c WITHIN 1 h",
    "S//a->a FOLLOWED BY {a/k = b/m OR time(b) > 3} S//b->b+ FOLLOWED BY S//c WITHIN 1 h",
]
WHERE = [
    ("S//a[k->u] FOLLOWED BY S//b[k->v] FOLLOWED BY S//c[k->w] WITHIN 1 h", "w = v AND u >= 2"),
    ("S//a[k->u] FOLLOWED BY {u = v OR u > v} S//b[k->v] WITHIN 1 h", "v != 'x' AND u > v"),
    ("S//a FOLLOWED BY S//b[k->v]+ FOLLOWED BY S//c[k->w] WITHIN 1 h", "last(v) > w AND w = 0"),
    ("S//b[k->v]+ FOLLOWED BY S//c->c WITHIN 1 h", "last(v) > 0 AND c/k < 1"),
]
OF_MORE = [
    "S//a[k->u] FOLLOWED BY S//b FOLLOWED BY {u = w} S//c[k->w] WITHIN 1 h MATCH ANY",
    "S//a FOLLOWED BY S//b[k->v]+ FOLLOWED BY {v = w} S//c[k->w] WITHIN 1 h MATCH ANY",
    "S//a[k->u] FOLLOWED BY S//b[k->v]+ {v > u} FOLLOWED BY S//c WITHIN 1 h MATCH ANY",
    "S//a FOLLOWED BY S//b[k->v]+ {v > prev(v, 0)} FOLLOWED BY S//c WITHIN 1 h MATCH ANY",
    "S//a FOLLOWED BY S//b[k->v]+ {v > first(v)} FOLLOWED BY S//c WITHIN 1 h MATCH ANY",
    "S//a FOLLOWED BY {dur() > 3 s} S//b FOLLOWED BY S//c WITHIN 1 h MATCH ANY",
    "S//a FOLLOWED BY (S//b | S//c) FOLLOWED BY S//c WITHIN 1 h MATCH ANY",
    "S//a[k->u] FOLLOWED BY S//b FOLLOWED BY S//c[k->w] WITHIN 1 h MATCH ANY WHERE u = w",
    "S//a FOLLOWED BY S//b FOLLOWED BY S//c[k->w]+ WITHIN 1 h MATCH ANY WHERE w = 2",
    "S//a FOLLOWED BY S//b[k->v] FOLLOWED BY S//c WITHIN 1 h MATCH ANY WHERE dur() > 3 s",
    "S//a[k->u] FOLLOWED BY S//b[k->v] FOLLOWED BY S//c WITHIN 1 h MATCH ANY WHERE u = 1 OR v = 2",
    "S//a FOLLOWED BY S//b FOLLOWED BY S//c WITHIN 1 h",
    "S//a FOLLOWED BY S//b+ FOLLOWED BY S//c WITHIN 1 h",
]


@pytest.mark.parametrize("source", OF_NEIGHBOURS)
def test_a_chain_is_counted_whose_conditions_speak_of_neighbours(source: str) -> None:
    documents = "\n".join(
        f"document {n} S 00:00:{5 * n:02}  <{kind}><k>{2 * n % 3}</k></{kind}>"
        for n, kind in enumerate("abc", 1)
    )
    case = asked(
        f"{source} MATCH ANY WINDOW 0 s GRACE 0 s", f"{documents}\ntick 4 01:00:00\n----\n"
    )
    assert counts_chain(case.queries[0])
    assert lines(run_engine(case)) == lines(run_oracle(case))


@pytest.mark.parametrize(("source", "where"), WHERE)
def test_where_is_asked_where_two_elements_meet(source: str, where: str) -> None:
    documents = "".join(
        f"document {n} S 00:00:{5 * n:02}  <{kind}><k>{key}</k></{kind}>\n"
        for n, (kind, key) in enumerate(zip("abcbbc", "222010", strict=True), 1)
    )
    found = []
    for own in (f" WHERE {where}", ""):
        text = f"SELECT <n>{{count()}}</n> FROM {source} MATCH ANY{own} WINDOW 0 s GRACE 0 s"
        case = asked(text, f"{documents}tick 7 01:00:00\n----\n")
        assert counts_chain(case.queries[0])
        found.append(lines(run_engine(case)))
        assert found[-1] == lines(run_oracle(case))
    assert found[0]
    assert found[0] != found[1]


@pytest.mark.parametrize("source", NOT_WRITTEN)
def test_a_chain_that_ends_with_its_one_repetition_is_counted_without_the_clause(
    source: str,
) -> None:
    [query] = xscl.parse(f"{source} WINDOW 0 s GRACE 0 s", id="q")
    assert counts_chain(query)


@pytest.mark.parametrize("source", OF_MORE)
def test_a_chain_is_listed_whose_conditions_speak_of_more(source: str) -> None:
    [query] = xscl.parse(f"{source} WINDOW 0 s GRACE 0 s", id="q")
    assert not is_counted(query)


def test_elements_compared_by_one_number_are_not_held_against_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held: list[object] = []
    monkeypatch.setattr(Neighbours, "may_follow", lambda *_, **__: held.append(1) or True)
    for source in (BY_ELEMENTS[2], BY_ELEMENTS[3]):
        values = "\n".join(f"document {n} S 00:00:{n:02}  <a><v>{n}</v></a>" for n in range(1, 9))
        case = asked(
            f"{source} MATCH ANY WINDOW 0 s HAVING count() < 0 GRACE 0 s", f"{values}\n----\n"
        )
        run_engine(case)
    assert not held


def test_a_chain_of_more_matches_than_can_be_listed_is_counted() -> None:
    own = [f"document {n} S 00:00:{n:02}  <{'abbbb'[n % 5]}/>" for n in range(60)]
    text = "SELECT <n>{count()}</n> FROM S//a FOLLOWED BY S//b+ FOLLOWED BY S//a WITHIN 1 h"
    documents = "\n".join([*own[1:], "tick 60 10:00:00", "----", ""])
    found = run_engine(asked(f"{text} MATCH ANY WINDOW 0 s GRACE 0 s", documents))
    # Of the documents b between two a any may be left out, but not all.
    between = [4 * (11 - first) for first in range(1, 11)]
    assert found[-1].output == f"<n>{sum(2**count - 1 for count in between)}</n>"


@pytest.mark.parametrize("source", some(SOURCES, 9))
def test_listed_are_counted_are_the_paths_of_the_graphs(source: str) -> None:
    documents = stream_of_kinds(0)
    grace = "GRACE 100 s"
    # LIMIT has each match decided, and lets all of them pass.
    listed = run_engine(asked(f"{source} LIMIT 100000 PER 1 h {grace}", documents, 100))
    found = Counter(tuple(each.docid for each in match.documents) for match in listed)
    select = "SELECT <n>{count()}</n> FROM"
    rows = run_engine(asked(f"{select} {source} WINDOW 0 s {grace}", documents, 100))
    assert found
    assert {row.end_us: row.values["count()"] for row in rows} == Counter(
        match.end_us for match in listed
    )
    if "+" in source:
        graphs = run_engine(asked(f"SELECT COMPRESSED FROM {source} {grace}", documents, 100))
        assert Counter(path for match in graphs for path in paths(match)) == found


@pytest.mark.parametrize("source", some(SOURCES, 3))
def test_matches_are_counted_as_they_are_drawn(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = 0
    for seed in range(examples(4)):
        grace = seed % 3 * 3
        # Of the second kind all are of one kind, with twins, and some are later than is allowed.
        documents = stream(seed, 18) if seed % 2 else stream_of_kinds(seed, 18)
        of_one_kind = source.replace("S//b", "S//a") if seed % 2 else source
        case = asked(f"{of_one_kind} WINDOW {seed // 2 % 2 * 5} s GRACE {grace} s", documents)
        counted = lines(run_engine(case, batch_size=5, restart_after=seed % 2 * 9))
        found += len(counted)
        with monkeypatch.context() as drawn:
            drawn.setattr(chains, "chain_ways", lambda *_: None)
            assert counted == lines(run_engine(case, batch_size=18)), seed
    assert found


@pytest.mark.parametrize(
    ("sources", "way"),
    [
        (BY_ELEMENTS, WaysByElements),
        (BY_STEPS, WaysBySteps),
        (OF_THREE, WaysOfThree),
        (DRAWN, None),
    ],
)
def test_each_chain_is_counted_in_its_way(
    sources: list[str], way: type | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []

    def noted(*arguments: object) -> object:
        made.append(chain_ways(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(chains, "chain_ways", noted)
    for source in sources:
        run_engine(asked(f"{source} MATCH ANY WINDOW 0 s", stream_of_kinds(0, 3)))
    assert [type(each) for each in made] == [way or type(None)] * len(sources)


@pytest.mark.parametrize("source", some([BY_ELEMENTS[0], BY_STEPS[1], BY_ELEMENTS[2], DRAWN[1]], 1))
def test_batches_shards_and_what_is_forgotten_do_not_show(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_one_kind = source.replace("S//b", "S//a")
    case = asked(f"{of_one_kind} MATCH ANY WINDOW 5 s GRACE 3 s", stream(3, 70))
    expected = lines(run_engine(case))
    assert expected
    join = Join(case.lateness_us, 2)
    assert (
        lines(run_engine(case, batch_size=7, processors=lambda: join.processor(None))) == expected
    )
    sizes: list[tuple[int, int]] = []
    forget = ChainGraph.forget

    def noted(graph: ChainGraph, before_us: int) -> None:
        before = len(graph)
        forget(graph, before_us)
        sizes.append((before, len(graph)))

    monkeypatch.setattr(ChainGraph, "forget", noted)
    limits = MatchingLimits(runs=RunLimits(swept_parts=5))
    assert lines(run_engine(case, batch_size=1, limits=limits)) == expected
    assert any(after < before for before, after in sizes)


def test_chains_are_counted_as_the_oracle_says() -> None:
    wrong: list[int] = []
    for seed in range(examples(7)):
        case = parse_case(counted_any_case(RandomChooser(seed)))
        cut = random.Random(seed)
        batch_size, restart = cut.randint(1, 3), cut.randint(0, len(case.lines) - 1)
        found = run_engine(case, batch_size=batch_size, restart_after=restart)
        if lines(found) != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong, "cases of counted_any_case(RandomChooser(seed)) with these seeds"


LATE_ELEMENTS = """
lateness 2 s
query q
  SELECT <r>{count()}</r> FROM S//b[k->v2]->v1+ {, 5 s} FOLLOWED BY *//b[p->v6]->v4+
    WITHIN 5 s MATCH ANY WINDOW 5 s BY v4/k GRACE 2 s
document 1 S 00:00:20 arrival=01:00  <a><k>x</k></a>
document 2 S 00:00:12 arrival=01:00  <b><k>x</k><p>1</p></b>
document 3 S 00:00:13 arrival=01:00  <b><k>x</k><p>2</p></b>
document 4 S 00:00:14 arrival=01:00  <b><k>x</k></b>
document 5 S 00:00:21 arrival=01:00  <a><k>y</k></a>
tick 6 00:00:17
document 7 S 00:00:10 arrival=01:00  <b><k>y</k><p>1</p></b>
document 8 S 00:00:15 arrival=01:00  <b><k>y</k><p>3</p></b>
tick 9 00:10:00
----
"""


def test_elements_are_there_as_long_as_a_run_with_them_may_be_taken_up() -> None:
    """A run is remembered by its end, and its first element may be older by another window."""
    case = parse_case(LATE_ELEMENTS.lstrip())
    expected = lines(run_oracle(case))
    assert expected
    for batch_size in (1, 2, 9):
        assert lines(run_engine(case, batch_size=batch_size)) == expected
