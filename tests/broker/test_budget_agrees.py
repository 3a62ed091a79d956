"""A query is paused at the same document, for the same reason, however documents are joined."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from support.budget_runs import MINUTE_US, Running, Way
from support.budgets import UNLIMITED
from support.examples import is_searching, some

from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.costs.budget import Budget, Pause, Spent
from joins.shards import driver as sharded
from joins.shards.orders import Answer, Order

LANG = "S//i->a FOLLOWED BY {a/lang = b/lang, %s} S//i->b"
QUERIES = {
    "bomb": LANG % "1 d",
    "short": LANG % "8 m",
    "both": "S//i->a JOIN {a/lang = b/lang AND a/t = b/t, 1 d} S//i->b",
    "two": "S//i->a JOIN {a/lang = b/lang AND a/c = b/c, 30 m} S//i->b",
    "tags": "S//i->a JOIN {a/c = b/c, 20 m} R//i->b",
    "product": "S//i->a JOIN {a/t != b/t, 12 m} R//i->b",
    "nested": f"({LANG % '6 m'}) FOLLOWED BY {{b/t = c/t, 1 d}} S//i->c",
    "late": "(S//i->a FOLLOWED BY {a/t = b/t, 1 d} S//i->b)"
    " FOLLOWED BY {b/lang = c/lang, 1 d} S//i->c",
    "pairs": "SELECT * FROM S//i->a FOLLOWED BY {a/c = b/c, 5 m} R//i->b PUBLISH pairs",
    "reader": "pairs//i->p JOIN {p/lang = q/lang, 10 m} S//i->q",
    "either": "S//i->a JOIN {a/t = b/t OR a/lang = b/lang, 25 m} R//i->b",
}
WAYS = [
    (Way(), 1),
    (Way(), 7),
    (Way(shards=2), 40),
    (Way(shards=5), 9),
]


def documents(seed: int, count: int = 40) -> list[Document]:
    """Return documents with several tags, of two streams; some have no language, some are late."""
    random_, watermark_us, found = random.Random(seed), FIRST_WATERMARK_US, []
    for docid in range(1, count + 1):
        lang = random_.choice(["", "de", *["en"] * 6])
        tags = "".join(f"<c>{random_.randrange(6)}</c>" for _ in range(random_.randrange(4)))
        xml = f"<i><lang>{lang}</lang>{tags}<t>{random_.randrange(count)}</t></i>"
        time_us = (docid + random_.randint(-3, 3)) * MINUTE_US
        times = (time_us, time_us, time_us, watermark_us)
        found.append(Document(docid, random_.choice("SSR"), str(docid), *times, xml.encode()))
        watermark_us = max(watermark_us, time_us)
    return found


def paused(running: Running) -> dict[str, tuple[int, str]]:
    return {pause.query: (pause.docid, pause.reason) for pause in running.pauses}


@cache
def at_once(most: int) -> Running:
    return Running(QUERIES, replace(UNLIMITED, pairs_per_document=most)).feed(documents(most), 40)


@pytest.mark.parametrize(
    ("way", "batch", "most"),
    some([(*way, most) for way, most in product(WAYS, [4, 9])], 1),
    ids=str,
)
def test_shards_and_batches_pause_alike(way: Way, batch: int, most: int) -> None:
    expected = at_once(most)
    found = Running(QUERIES, replace(UNLIMITED, pairs_per_document=most), way)
    found.feed(documents(most), batch)
    assert paused(found) == paused(expected)
    assert sorted(found.lines) == sorted(expected.lines)
    assert {"bomb", "either"} <= paused(found).keys() < QUERIES.keys()


@pytest.mark.parametrize("way", [Way(), Way(shards=3)], ids=str)
def test_a_restart_does_not_move_a_pause(way: Way) -> None:
    stream, budget, expected = documents(9), replace(UNLIMITED, pairs_per_document=9), at_once(9)
    for after in some((12, 24), 1):
        found = Running(QUERIES, budget, way).feed(stream[:after], 6)
        found.restart(stream[:after]).feed(stream, 6, after)
        assert paused(found) == paused(expected)
        assert sorted(found.lines) == sorted(expected.lines)


@pytest.mark.parametrize("way", [Way(), Way(shards=2)], ids=str)
def test_other_queries_do_not_move_a_pause_nor_change_what_is_said_of_it(way: Way) -> None:
    stream, budget = documents(3), replace(UNLIMITED, pairs_per_document=9)
    points = dict.fromkeys(["short", "tags", "two"], 15)
    renamed = {
        f"other {name}": text.replace("a/", "x/").replace("->a", "->x")
        for name, text in QUERIES.items()
        if name not in ("pairs", "reader")
    }
    all_ = Running({**renamed, **QUERIES}, budget, way, points).feed(stream, 10)
    for name in ("bomb", "short", "tags", "two", "nested", "product"):
        alone = Running({name: QUERIES[name]}, budget, points=points).feed(stream, 40)
        assert paused(all_).get(name) == paused(alone).get(name)
        assert all_.of(name) == alone.of(name)


def test_what_is_said_of_a_pause_does_not_depend_on_what_a_batch_has() -> None:
    """Inner tuples that count may be of batches before; and one document breaks two bounds."""
    stream, text = documents(6), {"late": QUERIES["late"], "nested": QUERIES["nested"]}
    for pairs in (0, 5):
        budget = replace(UNLIMITED, matches_per_1000_documents=24, pairs_per_document=pairs)
        found = [paused(Running(text, budget).feed(stream, batch)) for batch in (1, 7, 40)]
        assert found[0] == found[1] == found[2]
        assert any("those of inner operators" in reason for _, reason in found[0].values())


def test_documents_before_a_registration_do_not_count() -> None:
    stream, budget = documents(4), replace(UNLIMITED, pairs_per_document=6)
    texts = {"early": QUERIES["bomb"], "late": QUERIES["bomb"]}
    found = [
        paused(Running(texts, budget, way, {"late": 18}).feed(stream, 7))
        for way in (Way(), Way(shards=2))
    ]
    assert found[0] == found[1]
    assert found[0]["early"][0] < 18 + 6 < found[0]["late"][0]


def test_of_value_joins_that_make_as_many_pairs_the_first_by_its_name_is_told() -> None:
    one = documents(1)[0]
    stream = [
        replace(
            one,
            docid=n,
            stream="S",
            key=str(n),
            start_us=n,
            end_us=n,
            xml=b"<i><lang>en</lang><c>x</c></i>",
        )
        for n in range(1, 16)
    ]
    text, budget = {"two": QUERIES["two"]}, replace(UNLIMITED, pairs_per_document=9)
    first = {"tags": QUERIES["pairs"], "bomb": QUERIES["bomb"]}
    reasons = {
        paused(Running(texts, budget, way).feed(stream, 5))["two"]
        for texts in (text, {**text, **first}, {**first, **text})
        for way in (Way(), Way(shards=2))
    }
    [(_, reason)] = reasons
    assert "by `a/c = b/c`" in reason


WINDOWS = (("long", "1 d"), ("short", "5 m"))


def in_minutes(contents: list[tuple[int, str]]) -> list[Document]:
    """Return documents of some minutes, with these contents."""
    one = replace(documents(1)[0], stream="S")
    return [
        replace(
            one,
            docid=n,
            key=str(n),
            start_us=minute * MINUTE_US,
            end_us=minute * MINUTE_US,
            xml=f"<i>{content}</i>".encode(),
        )
        for n, (minute, content) in enumerate(contents, 1)
    ]


@pytest.mark.parametrize("way", [Way(), Way(shards=2), Way("mmqjp")], ids=str)
def test_an_empty_value_beside_others_makes_no_pair(way: Way) -> None:
    far = [(10 * n, "<c/><c>x</c>") for n in range(20)]
    near = [(200, f"<c/><c>{n}</c>") for n in range(20)]
    stream = in_minutes([*far, *near, (201, "<c/><c>x</c><c>7</c>")])
    texts = {name: f"S//i->a FOLLOWED BY {{a/c = b/c, {w}}} S//i->b" for name, w in WINDOWS}
    found = Running(texts, replace(UNLIMITED, pairs_per_document=10), way).feed(stream, len(stream))
    assert {name: docid for name, (docid, _) in paused(found).items()} == {"long": 12}
    assert [position for name, position, _ in found.lines if name == "short"] == [41]


WITHOUT_TITLE = [("en", "")] * 25
"""They join nothing by the title, so they are no pairs by the language either."""

OF_ONE_TITLE = [(f"lang{n}", "x") for n in range(12)]
"""They are 24 pairs by the title, and none by the language."""


@pytest.mark.parametrize("way", [Way(), Way(shards=2), Way("mmqjp")], ids=str)
def test_an_instance_with_an_empty_value_is_no_pair_by_the_other_value_joins(way: Way) -> None:
    values = [*WITHOUT_TITLE, *OF_ONE_TITLE, *[("en", "x")] * 2]
    stream = in_minutes(
        [(n, f"<lang>{lang}</lang><t>{t}</t>") for n, (lang, t) in enumerate(values)]
    )
    text, budget = {"both": QUERIES["both"]}, replace(UNLIMITED, pairs_per_document=15)
    found = Running(text, budget, way).feed(stream, 7)
    assert paused(found) == {}
    assert [position for _, position, _ in found.lines] == [len(stream)] * 2


class Listening:
    """Counts the tuples that shards answer with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tuples = 0
        ask = sharded.ShardedProcessor._ask

        def listen(processor: sharded.ShardedProcessor, orders: list[Order]) -> list[Answer]:
            answers = ask(processor, orders)
            self.tuples += sum(len(answer.tuples.classes) for answer in answers)
            return answers

        monkeypatch.setattr(sharded.ShardedProcessor, "_ask", listen)


def test_a_query_that_explodes_is_paused_before_shards_list_its_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = documents(1)[0]
    xml = b"<i><lang>en</lang></i>"
    stream = [
        replace(one, docid=n, stream="S", key=str(n), start_us=n, end_us=n, xml=xml)
        for n in range(1, 401)
    ]
    listening = Listening(monkeypatch)
    budget = replace(UNLIMITED, pairs_per_document=10)
    found = Running({"bomb": QUERIES["bomb"]}, budget, Way(shards=2)).feed(stream, 400)
    assert paused(found)["bomb"][0] == 12
    assert listening.tuples == len(found.lines) == 55, "those of documents 1 to 11"


def test_pairs_that_only_who_is_over_the_budget_has_are_not_listed_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = documents(1)[0]
    stream = [
        replace(one, docid=n, stream="S", key=str(n), start_us=n, end_us=n, xml=xml.encode())
        for n in range(1, 101)
        for xml in [f"<i><lang>en</lang><t>{1 + (n % 40 == 0)}</t></i>"]
    ]
    # One class, in which each has documents of its own.
    texts = {
        name: f"S//i[t > {least}]->a FOLLOWED BY {{a/lang = b/lang, 1 d}} S//i->b"
        for name, least in (("bomb", 0), ("rare", 1))
    }
    listening = Listening(monkeypatch)
    budget = replace(UNLIMITED, pairs_per_document=10)
    found = Running(texts, budget, Way(shards=2)).feed(stream, 100)
    assert {query: docid for query, (docid, _) in paused(found).items()} == {"bomb": 12}
    assert len(found.of("bomb")) == 55
    assert len(found.of("rare")) == 60 + 20
    assert listening.tuples == len(found.lines)


KINDS: dict[str, str | dict[str, str]] = {
    "block": "S//i[t->t][c->c] WHERE t > 3",
    "join": "S//i[t->t]->a JOIN {a/lang = b/lang, 8 m} R//i[c->c]->b",
    "nested": f"({LANG % '6 m'}) FOLLOWED BY {{b/t = c/t, 9 m}} S//i[c->t]->c",
    "alternatives": "S//i[t->t]->a JOIN {a/t = b/t OR a/c = b/c, 9 m} R//i[t->s]->b",
    "followed": "S//i[t->t] FOLLOWED BY {, 8 m} S//i->b",
    "next": "S//i[t->t] NEXT {, 8 m} S//i[c->c]->b",
    "unless": "S//i[t->t]->a FOLLOWED BY {a/lang = b/lang, 8 m} S//i->b UNLESS {b/t = n/t} R//i->n",
    "not": "S//i[t->t]->a NOT FOLLOWED BY {a/t = b/t, 8 m} S//i->b",
    "runs": "S//i[t->t] FOLLOWED BY {, 2 m} S//i[c->c]->b+",
    "runs of a key": "S//i[t->t]->a NEXT {, 3 m} S//i[c->c]->b+ {b/t > 3} SAME (/*/lang)",
    "counted": "SELECT <n>{count()}</n> FROM S//i[t->t]->a NEXT {, 3 m} S//i->b+ WINDOW 9 m",
    "chain": "S//i[t->t]->a FOLLOWED BY {, 9 m} R//i[c->c]->b+ MATCH NEXT",
    "strict": "S//i[t->t]->a FOLLOWED BY {, 9 m} S//i[c->c]->b MATCH STRICT",
    "partition": "S//i[t->t] FOLLOWED BY S//i[c->c] WITHIN 9 m SAME (/*/lang) MATCH PARTITION",
    "similar": "S//i[t->t]->a JOIN {similar(a/lang, b/lang) >= 0.5, 8 m} R//i[c->c]->b",
    "table": {
        "seen": "CREATE TABLE seen (id KEY, n DEFAULT 0)",
        "own": "S//i[t->t][c->c]->a WHERE seen[t].n < 9 GRACE 0 s"
        " ON MATCH SET seen[t].n = seen[t].n + 1",
    },
    "published": {
        "makes": "SELECT <i><t>{t}</t><u>{b}</u></i> FROM S//i[t->t] NEXT {, 8 m} S//i->b"
        " PUBLISH P",
        "own": "P//i[t->t]->a FOLLOWED BY {, 9 m} P//i[u->u]->b",
    },
    "limit": "S//i[t->t]->a FOLLOWED BY {, 8 m} S//i[c->c]->b LIMIT 2 PER 9 m BY c",
    "given": "S//i[t > c * $x]->a FOLLOWED BY {a/lang = b/lang, 8 m} S//i[c->c]->b",
    "held": "S//i[t->t]->a FOLLOWED BY {t > c + $x, 8 m} S//i[c->c]->b NEXT {, 9 m} S//i->d",
}
"""Statements that read values, and nodes of which they read none; of some there are two."""

COMPARING = {
    **{
        f"{s} beside {other}": f"{s}//i->a JOIN {{a = b, 2 m}} {other}//i->b"
        for s, other in ("SR", "PS")
    },
    "nodes": "S//i[t->x][c->y]->a JOIN {x = y, 2 m} R//i[t->z][c->w]->b WHERE w != x AND y != z",
    "more": "P//i[t->x]->a FOLLOWED BY {, 1 m} S//i[t->y]->b+ {b != 'x' AND y != x}",
    "whole": "S//i[t->t]->a FOLLOWED BY {, 8 m} S//i->b NEXT {b != c, 9 m} S//i->c WHERE a != t",
}
"""Statements that compare the values of all of these nodes."""


def spent_and_paused(
    texts: dict[str, str], budget: Budget, name: str
) -> tuple[list[Spent], list[Pause]]:
    given = {each: [{"x": 0}] for each, text in texts.items() if "$x" in text}
    found = Running(texts, budget, given=given).feed(documents(1), 40)
    return [[each for each in both if each.query == name] for both in (found.spent, found.pauses)]


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_another_statement_compares_cost_nothing(kind: str) -> None:
    own = KINDS[kind] if isinstance(KINDS[kind], dict) else {"own": KINDS[kind]}
    counted_by = "output_bytes_per_1000_documents"
    counted = replace(UNLIMITED, **{counted_by: 1 << 40})
    spent, _ = alone = spent_and_paused(own, counted, "own")
    assert alone == spent_and_paused(own | COMPARING, counted, "own")
    most = sum(each.nbytes for each in spent) * 2 // 3
    bounds = ({counted_by: most}, {"bytes_per_document": 1_000})
    for bound in bounds if is_searching() else [bounds[[*KINDS].index(kind) % 2]]:
        budget = replace(UNLIMITED, **bound)
        alone, beside = (spent_and_paused(each, budget, "own") for each in (own, own | COMPARING))
        assert alone == beside
        assert alone[1] or counted_by not in bound
