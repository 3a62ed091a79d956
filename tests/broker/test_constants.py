"""Numbers and words that are written out in blocks are data, and nobody can tell.

*Agrees*: each statement finds, and is paused for, what it finds and is paused for without the
others, over shards, and where such constants are filters.  That all of it is right says the oracle
(`tests/joins`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.budget_runs import Running, Way
from support.budgets import UNLIMITED
from support.examples import is_searching, size, some
from support.matching_broker import DAY_US, MatchingBroker
from support.written_out import condition, documents

import xscl
from broker.documents.document import Document, DocumentLine
from broker.matching.boxes.points import Points
from broker.matching.costs.budget import Budget
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.match import Match
from broker.matching.mrules import MRule
from broker.pipeline.limits import PipelineLimits
from broker.pipeline.snapshot import Snapshot
from broker.registry.queries import QueryState

SHAPES = (
    "S//i%s->a",
    "S//r[w != 'q']/i%s->a WHERE a/p < 5",
    "S//r%s//i->a",
    "S//i%s->a FOLLOWED BY {a/k = b/k, 9 m} S//i->b",
    "S//i->a FOLLOWED BY {a/k = b/k, 9 m} S//i%s->b",
    "S//i%s->a FOLLOWED BY {a/k = b/k, 9 m} S//i%s->b",
    "S//i%s->a JOIN {a/k = b/k, 9 m} S//i->b",
    "S//i%s->a JOIN {, 4 m} S//i->b",
    "(S//i%s->a FOLLOWED BY {a/k = b/k, 9 m} S//i->b) FOLLOWED BY {b/k = c/k, 9 m} S//i%s->c",
    "S//i%s->a NEXT {a/k = b/k, 9 m} S//i->b",
    "S//r%s/i->a NOT FOLLOWED BY {a/k = b/k, 4 m} S//i->b",
    "S//r->r/i%s NEXT {r/i/k = b/k, 9 m} S//i%s->b WHERE b/p < 4",
    "S//i%s->a FOLLOWED BY {a/k = b/k, 9 m} S//i->b UNLESS {c/k = a/k AND c/p < 3} S//i%s->c",
    "S//i->a FOLLOWED BY {a/k = b/k, 9 m} S//i->b UNLESS S//i%s WITHIN 9 m",
    "(S//i%s->a | S//j%s->a) JOIN {a/k = b/k OR a/p < b/p, 9 m} S//i->b",
)
BUDGETS = (
    replace(UNLIMITED, pairs_per_document=4),
    replace(UNLIMITED, pairs_per_document=9),
    replace(UNLIMITED, matches_per_1000_documents=12),
    UNLIMITED,
)


def statements(seed: int, count: int) -> dict[str, str]:
    """Return statements of few shapes, with constants of their own."""
    chance = random.Random(seed)
    shapes = [chance.choice(SHAPES) for _ in range(3)]
    found = {}
    for number in range(count):
        shape = chance.choice(shapes)
        found[f"q{number}"] = shape % tuple(condition(chance) for _ in range(shape.count("%s")))
    return found


def paused(running: Running) -> dict[str, tuple[int, str]]:
    return {pause.query: (pause.docid, pause.reason) for pause in running.pauses}


CASES = [(seed, budget) for seed, budget in product(range(60), BUDGETS)]


@pytest.mark.parametrize(("seed", "budget"), some(CASES, 4), ids=str)
def test_no_statement_minds_the_others(seed: int, budget: Budget) -> None:
    texts, stream = statements(seed, 24), documents(seed)
    points = {name: seed % 2 * int(name[1:]) for name in texts}
    found = Running(texts, budget, Way(shards=1 + seed % 3), points).feed(stream, 7)
    for name, text in some(texts.items(), 6):
        alone = Running({name: text}, budget, points=points).feed(stream, 40)
        assert paused(found).get(name) == paused(alone).get(name), text
        assert found.of(name) == alone.of(name), text


@pytest.mark.parametrize("seed", range(200) if is_searching() else (0, 101))
def test_as_filters_they_find_the_same(seed: int) -> None:
    texts, stream = statements(seed, size(36, 500)), documents(seed)
    expected = Running(texts, UNLIMITED, Way(without=(MRule.C_SEQ,))).feed(stream, 40)
    for shards in (1, 2):
        found = Running(texts, UNLIMITED, Way(shards=shards)).feed(stream, [3, 40][seed % 2])
        assert sorted(found.lines) == sorted(expected.lines)
    assert len(found.lines) > 100


@pytest.mark.parametrize(("seed", "budget"), some(CASES, 2), ids=str)
def test_a_restart_changes_nothing(seed: int, budget: Budget) -> None:
    texts, stream = statements(seed, 24), documents(seed)
    once = Running(texts, budget).feed(stream, 20)
    again = Running(texts, budget).feed(stream[:20], 20)
    again.restart(stream[:20]).feed(stream, 20, 20)
    assert paused(again) == paused(once)
    assert sorted(again.lines) == sorted(once.lines)


def live(
    texts: dict[str, str], lines: list[DocumentLine], directory: Path, files: int
) -> list[str]:
    """Take documents while statements come and go; restart now and then where there are files."""
    directory.mkdir()

    def begin() -> MatchingBroker:
        limits = PipelineLimits(file_documents=files or 1)
        snapshot = Snapshot(directory / "state", limits=limits) if files else None
        return MatchingBroker(directory, lateness_us=DAY_US, snapshot=snapshot)

    broker, chance = begin(), random.Random(len(texts))
    queries = [each for name, text in texts.items() for each in xscl.parse(text, id=name)]
    chance.shuffle(queries)
    waiting, present = iter(queries), list[xscl.Query]()
    for start in range(0, len(lines), 3):
        for query in [each for each, _ in zip(waiting, range(4), strict=False)]:
            broker.register(query)
            present.append(query)
        if len(present) > 6:
            gone = present.pop(chance.randrange(len(present)))
            broker.set_state(gone, QueryState.REMOVED)
        broker.take(lines[start : start + 3])
        if files and start % 2:
            broker.close()
            broker = begin()
    found = broker.found()
    broker.close()
    return found


@pytest.mark.parametrize("seed", some(range(40), 1))
def test_statements_come_and_go_and_the_broker_restarts(seed: int, tmp_path: Path) -> None:
    texts = statements(seed, 30)
    stream = documents(seed, 24)
    lines = [DocumentLine("S", each.xml, each.end_us) for each in stream]
    expected = live(texts, lines, tmp_path / "undisturbed", 0)
    assert expected
    for files in (1, 4):
        assert live(texts, lines, tmp_path / str(files), files) == expected


def engine(*texts: str) -> Engine:
    queries = [each for i, text in enumerate(texts) for each in xscl.parse(text, id=f"q{i}")]
    return Engine(list(map(RegisteredQuery, queries)), lateness_us=0)


def seen(running: Engine, *bodies: str) -> Iterator[bool]:
    """Yield of each document whether evaluation finds anything in it."""
    for body in bodies:
        document = replace(documents(1, 1)[0], xml=f"<i>{body}</i>".encode())
        [nodes] = running.evaluate([document]).column("nodes").to_pylist()
        yield bool(nodes)


def test_they_are_one_class_and_documents_that_none_wants_are_not_seen() -> None:
    running = engine(
        *(f"S//i[p < {n}]->a" for n in (3, 7, 5)), *(f"S//i[w = 1][p < {n}]" for n in "39")
    )
    assert len(running.queries.fan_out.classes()) == 2
    assert [*seen(running, "<p>6.9</p>", "<p>7</p>", "<p>x</p>", "", "<p>8</p><w>1</w>")] == [
        True,
        False,
        False,
        False,
        True,
    ]
    words = engine(*(f"S//i[contains(p, '{word}')]" for word in ("ab", "c")))
    assert len(words.queries.fan_out.classes()) == 1
    assert [*seen(words, "<p>xabx</p>", "<p>a b</p>", "<p>c</p>")] == [True, False, True]
    others = engine("S//i[p != 'x']")
    assert [*seen(others, "<p>x</p>", "<p>x</p><p>y</p>", "")] == [False, True, False]


FIRST = "S//i%s->a NEXT {a/k = b/k, 9 m} S//i->b"


def classes(*texts: str) -> int:
    return len(engine(*texts).queries.fan_out.classes())


@pytest.mark.parametrize(
    "text",
    [
        FIRST,
        f"{FIRST} WHERE b/p < 4",
        f"{FIRST} UNLESS {{a/k = c/k}} S//j->c",
        "S//i%s->a NOT FOLLOWED BY {a/k = b/k, 9 m} S//i->b",
        "S//i%s->a FOLLOWED BY {a/k = b/k, 9 m} S//i->b UNLESS {a/k = c/k} S//j->c",
    ],
)
@pytest.mark.parametrize("condition", ["[p < %d]", "[contains(w, 'x%d')]"])
def test_of_a_first_block_they_are_one_decision(text: str, condition: str) -> None:
    assert classes(*(text % condition % n for n in range(5))) == classes(text % condition % 0)


@pytest.mark.parametrize(
    "text",
    [FIRST % "[w = '%d']", "S//i->a NEXT {a/k = b/k, 9 m} S//i[p < %d]->b", FIRST % "[p != %d]"],
)
def test_what_competes_and_what_stands_below_a_node_is_decided_apart(text: str) -> None:
    assert classes(*(text % n for n in range(5))) > classes(text % 0)


def test_a_choice_of_nodes_is_decided_by_the_paths_that_its_statement_has() -> None:
    stream = [
        replace(each, xml=f"<r><i>{body}</i></r>".encode())
        for each, body in zip(
            documents(1),
            ["<c><w>a</w><p>1</p></c><c><w>b</w><p>2</p></c>", "<p>2</p>", "<p>1</p>", "", ""],
            strict=False,
        )
    ]
    text = "S//i->a[c->c[w = '%s']] NEXT {c/p = b/p, 1 d} S//i->b GRACE 0 s"
    texts = {w: text % w for w in "ab"}
    found = Running(texts, UNLIMITED).feed(stream, 2)
    matches = [Match.read(line) for w in "ab" for line in found.of(w)]
    assert [[each.docid for each in match.documents] for match in matches] == [[1, 3], [1, 2]]


@pytest.mark.parametrize(
    ("text", "unwanted"),
    [
        ("count(p) > %s", "<p>1</p><p>1</p>"),
        ("p * 2 < %s", "<p>4</p>"),
        ("p[. < %s]", "<p>7</p>"),
        ("c[@k and contains(p, '%s')]", "<c k=''><p>4</p></c><c><p>3</p></c>"),
        ("not(p > %s)", "<p>8</p>"),
        ("not(c[p < %s]/k)", "<c><p>1</p><k/></c>"),
        ("sum(p) = %s or c[p = '3']", "<p>1</p>"),
        ("p mod %s > count(k) + p", "<p>1</p>"),
        ("p != count(p) * %s", "<k>1</k>"),
    ],
)
def test_wherever_it_stands_they_are_one_class(text: str, unwanted: str) -> None:
    running = engine(*(f"S//i[{text % number}]->a" for number in (3, 7, 5)))
    assert len(running.queries.fan_out.classes()) == 1
    assert [*seen(running, unwanted)] == [False]
    strings = engine(*(f"S//i[c[p = '{number}'][k = '{-number}']]->a" for number in (3, 7, 5)))
    assert len(strings.queries.fan_out.classes()) == 1


def test_a_plan_changes_with_what_is_let_through_and_with_nothing_else() -> None:
    running = engine("S//i[p < 3]")
    queries, first = running.queries, running.plan
    [more] = xscl.parse("S//i[p < 2]", id="more")
    queries.add(RegisteredQuery(more))
    assert running.plan == first
    [wide] = xscl.parse("S//i[p < 9]", id="wide")
    queries.add(RegisteredQuery(wide))
    assert running.plan.version != first.version
    assert [*seen(running, "<p>8</p>")] == [True]
    queries.remove("wide")
    assert running.plan == first
    assert running.plan.version == first.version
    for query_id in ("more", "q0"):
        queries.remove(query_id)
    assert running.plan.admitted == ()


PRICES = (50, 50, 1, 50, 1, 50, 50, 50)
"""Of documents of one language."""


CHEAPER = {
    name: f"S//i[p < {price}]->a FOLLOWED BY {{a/lang = b/lang, 1 d}} S//i->b"
    for name, price in (("many", 100), ("few", 10))
}


def priced(shards: int, *names: str) -> Running:
    """Return what runs where a document may make four pairs."""
    budget = replace(UNLIMITED, pairs_per_document=4)
    return Running({name: CHEAPER[name] for name in names}, budget, Way(shards=shards))


def stream_of_prices() -> list[Document]:
    return [
        replace(each, xml=f"<i><lang>en</lang><p>{price}</p></i>".encode())
        for each, price in zip(documents(1), PRICES, strict=False)
    ]


@pytest.mark.parametrize("shards", [1, 2])
def test_a_statement_is_not_paused_for_documents_that_another_wants(shards: int) -> None:
    """The sixth document meets five others, of which one statement wants two."""
    found = priced(shards, "many", "few").feed(stream_of_prices(), 3)
    alone = priced(shards, "few").feed(stream_of_prices(), 3)
    assert paused(found).keys() == {"many"}
    assert found.of("few") == alone.of("few") != []


@pytest.mark.parametrize("shards", [1, 2])
def test_pairs_that_only_a_paused_statement_wants_are_not_listed(shards: int) -> None:
    found = priced(shards, "many", "few")
    fan_out, listed = found.engine.queries.fan_out, list[tuple[int, int]]()
    expand = fan_out.expand

    def listen(points: Points, *others: Any) -> Any:
        listed.extend(zip(points.tuples.left.tolist(), points.tuples.right.tolist(), strict=True))
        return expand(points, *others)

    fan_out.expand = listen  # type: ignore[method-assign]
    found.feed(stream_of_prices(), len(PRICES))
    assert {pause.query: pause.docid for pause in found.pauses} == {"many": 6}
    assert sorted(pair for pair in listed if pair[1] > 5) == [
        (cheap, later) for cheap in (3, 5) for later in (6, 7, 8)
    ]


def test_data_of_one_side_leaves_the_other_as_selective_as_it_is() -> None:
    """What differs on both sides stays a filter on one: most pairs of all would be nobody's."""
    both = engine(*(f"S//i[p < {n}]->a JOIN {{a/k = b/k, 1 h}} S//i[w < {n}]->b" for n in (3, 7)))
    assert len(both.queries.fan_out.classes()) == 2
    one = engine(*(f"S//i[p < {n}]->a JOIN {{a/k = b/k, 1 h}} S//i[w < 3]->b" for n in (3, 7)))
    assert len(one.queries.fan_out.classes()) == 1
