"""Matches of keys that have too few for a row are set aside: rows are as if all had been made."""

from __future__ import annotations

import random

import pytest
from support.examples import size, some

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.outcomes import aside, asidehits
from broker.matching.outcomes.aside import SetAside, counted_aggregates

SECOND_US = 1_000_000
LATENESS_US = 30 * SECOND_US
STATEMENTS = {
    "burst": "FROM S//i->a WINDOW 60 s BY a/k HAVING count(distinct a/f) >= 3"
    " LIMIT 1 PER 100 s BY a/k GRACE 5 s",
    "paths": "FROM S//i->a WINDOW 40 s BY a/k HAVING count() > 1 AND sum(a/p) < 9 GRACE 0 s",
    "values": "FROM S//i->a WINDOW 40 s BY a/k HAVING count(a/p) >= 2.5 GRACE 0 s",
    "two keys": "FROM S//i->a WINDOW 50 s BY a/k, a/f HAVING count() = 2 GRACE 0 s",
    "no key": "FROM S//i->a WINDOW 20 s HAVING count() >= 6 GRACE 0 s",
    "either": "FROM S//i->a WINDOW 60 s BY a/k"
    " HAVING count() >= 4 OR (count(a/f) = 3 AND sum(a/p) > 1) GRACE 0 s",
    "tuples": "FROM S//i->a[k->k][f->f] WINDOW 60 s BY k HAVING count(distinct f) >= 2 GRACE 0 s",
    "join": "FROM S//i->a FOLLOWED BY {a/k = b/k, 30 s} S//i->b"
    " WINDOW 60 s BY a/k HAVING count() >= 3 GRACE 0 s",
    "alternatives": "FROM (S//i->a | T//i->b) WINDOW 60 s HAVING count(a/f) >= 3 GRACE 0 s",
}


def statement(name: str) -> str:
    """Return a statement that shows what its rows are of."""
    return f"SELECT <n>{{count()}}</n> {STATEMENTS[name]}"


def documents(chance: random.Random, count: int) -> list[Document]:
    """Return documents with few keys or many, some late; some have no key, some several."""
    found: list[Document] = []
    at_us = newest_us = 0
    keys = chance.choice(["vw", "vwxyz", "abcdefghijklmnop"])
    for number in range(1, count + 1):
        at_us += chance.choice([0, 1, 4]) * SECOND_US
        end_us = max(0, at_us - chance.choice([0] * 6 + [3, 20, 50, 90]) * SECOND_US)
        inner = "".join(
            f"<{name}>{value}</{name}>"
            for name, values, most in (("k", keys, 2), ("f", "fghx", 2), ("p", "123", 3))
            for value in chance.choices(values, k=chance.choice([0, 1, 1, 1, most]))
        )
        stream = chance.choice("SSST")
        xml = f"<i>{inner}</i>".encode()
        document = Document(number, stream, str(number), end_us, end_us, at_us, newest_us, xml)
        found.append(document)
        newest_us = max(newest_us, end_us)
    return found


def lines(queries: list[RegisteredQuery], found: list[Document], batch: int) -> list[str]:
    """Return the rows that are found, batch by batch."""
    engine = Engine(queries, lateness_us=LATENESS_US)
    xml = {document.docid: document.xml for document in found}
    rows: list[str] = []
    for start in range(0, len(found), batch):
        step = engine.process(
            engine.evaluate(found[start : start + batch]), lambda ids: {i: xml[i] for i in ids}
        )
        rows += [row.line for row in step.matches]
    return sorted(rows)


@pytest.mark.parametrize("name", some(STATEMENTS, 3))
def test_rows_are_those_of_matches_that_are_all_made(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    [query] = xscl.parse(statement(name), id="q")
    assert counted_aggregates(query)
    rows = 0
    for seed in range(size(2, 60)):
        chance = random.Random(f"{name} {seed}")
        found = documents(chance, 60)
        batch = chance.choice([1, 5, 20])
        with monkeypatch.context() as changed:
            changed.setattr(aside, "HELD_MIN", chance.choice([1, 8, 1_000]))
            own = lines([RegisteredQuery(query)], found, batch)
        with monkeypatch.context() as changed:
            changed.setattr(asidehits, "counted_aggregates", lambda _: None)
            assert own == lines([RegisteredQuery(query)], found, 20), seed
        rows += len(own)
    assert rows


def test_each_assignment_has_the_rows_that_it_has_alone() -> None:
    text = "S//i->a WINDOW $long BY a/k HAVING count(a/f) >= $least GRACE 0 s"
    [query] = xscl.parse(text, id="q")
    given = [
        {"long": long * SECOND_US, "least": float(least)}
        for long in (20, 50)
        for least in (1, 2, 4)
    ]
    found = documents(random.Random(3), 60)
    together = lines([RegisteredQuery(query, 0, tuple(given))], found, 7)
    alone = [
        line for each in given for line in lines([RegisteredQuery(query, 0, (each,))], found, 9)
    ]
    assert together == sorted(alone)


@pytest.mark.parametrize(
    "having",
    [
        "count() >= 1",
        "count() < 5",
        "count() != 5",
        "sum(a/p) >= 5",
        "count() >= 5 OR sum(a/p) >= 5",
        "count(distinct lower-case(a/f)) >= 5",
        "count() >= count(a/f)",
    ],
)
def test_nothing_is_set_aside_where_a_row_may_have_few(having: str) -> None:
    [query] = xscl.parse(f"S//i->a WINDOW 1 h BY a/k HAVING {having} GRACE 0 s", id="q")
    assert counted_aggregates(query) is None


def test_rows_over_runs_that_are_counted_are_not_set_aside() -> None:
    text = "S//i+ WITHIN 20 s WINDOW 0 s HAVING count() >= 3 GRACE 0 s"
    [query] = xscl.parse(text, id="q")
    [free] = xscl.parse(text.replace("3 GRACE", "1 GRACE"), id="q")
    found = documents(random.Random(1), 30)
    # Ids are of the text of the statement.
    own, more = (
        {line.partition(", ")[2] for line in lines([RegisteredQuery(each)], found, 7)}
        for each in (query, free)
    )
    assert own
    assert own < more


def test_what_was_set_aside_has_a_row_with_runs_that_are_counted() -> None:
    # A run with a key that is empty is a match as others are; the rest are only counted.
    runs = "FROM S//i SAME (//k) MATCH STRICT WINDOW 20 s HAVING count() %s GRACE 2 s"
    texts = [f"SELECT <n>{{count()}}</n> {runs % having}" for having in (">= 2", "< 2")]
    queries = [xscl.parse(text, id=f"q{number}")[0] for number, text in enumerate(texts)]
    both = [RegisteredQuery(query) for query in queries]
    keys = ["<k/><k>x</k>", "<k>x</k>", "<k>x</k>", "", "<k/><k>y</k>", "<k>y</k>", "<k>y</k>"]
    found = []
    for number, own in enumerate(keys, 1):
        times_us = [9 * SECOND_US * each for each in (number, number, number, number - 1)]
        xml = f"<i>{own}</i>".encode()
        found.append(Document(number, "S", str(number), *times_us, xml))
    alone = sorted(line for each in both for line in lines([each], found, 40))
    assert {line.partition('"query": "')[2][:2] for line in alone} == {"q0", "q1"}
    for batch in (1, 3):
        assert lines(both, found, batch) == alone


def test_entries_come_back_in_their_order_and_what_is_old_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aside, "HELD_MIN", 4)
    held: SetAside[str] = SetAside()
    held._held_max = 4
    held.begin("one")
    assert [held.add(("a",), 2, 10, 0), held.add(("b",), 1, 20, 1), held.add(("a",), 1, 30, 2)] == [
        2,
        1,
        3,
    ]
    held.begin("two")
    assert [held.add(("a",), 3, 5, 0), held.add(("c",), 1, 15, 1)] == [6, 1]
    assert held.pop(("c",)) == [("two", 1)]
    held.forget(10)
    assert held.add(("a",), 1, 40, 7) == 4
    assert held.pop(("a",)) == [("one", 0), ("one", 2), ("one", 7)]
    assert held.pop(("b",)) == [("one", 1)]
    assert not len(held)
