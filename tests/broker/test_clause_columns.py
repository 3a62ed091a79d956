"""What is read of many clauses at once: lists in columns, rows as numbers, clauses by number.

*Agrees*: queries of which most have gone, and whose clauses had numbers, find what they find alone.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.boxes.lists import GrowingLists
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.fewuses import distinct_rows
from broker.matching.queries.registration import SetChange
from xscl import parse

MINUTE_US = 60_000_000


def test_lists_in_columns_are_what_was_added() -> None:
    chance, lists, added = random.Random(1), GrowingLists(3), list[list[tuple[int, ...]]]()
    for _ in range(20):
        for _ in range(chance.choice((0, 1, 30))):
            rows = [(chance.randrange(9), len(added), -1) for _ in range(chance.randrange(4))]
            lists.append(rows)
            added.append(rows)
        asked = [chance.randrange(len(added)) for _ in range(chance.randrange(9) if added else 0)]
        own, places, columns = lists.taken(np.array(asked, np.int64))
        found = list(zip(own.tolist(), places.tolist(), zip(*columns, strict=True), strict=True))
        wanted = [(i, k, row) for i, n in enumerate(asked) for k, row in enumerate(added[n])]
        assert found == wanted


@pytest.mark.parametrize("far", [0, 1 << 40], ids=["near", "too far apart for one number"])
def test_different_rows_are_found_in_order(far: int) -> None:
    chance = random.Random(far)
    rows = [tuple(chance.choice((-1, 0, 7, far)) for _ in "abc") for _ in range(200)]
    for some in (rows, rows[:1], []):
        columns = [np.array([row[k] for row in some], np.int64) for k in range(3)]
        distinct, inverse = distinct_rows(columns)
        found = [tuple(int(column[i]) for column in distinct) for i in range(len(distinct[0]))]
        assert found == sorted(set(some))
        assert [found[i] for i in inverse.tolist()] == some


def statement(number: int) -> str:
    """Return one of many statements of three blocks, each with streams of its own."""
    left, right, last = (f"f{number // n % 6}" for n in (1, 6, 36))
    inner = f"S//i->a FOLLOWED BY {{a/{left} = b/{right}, {number % 7 + 1} m}} S//i->b"
    if number % 2:
        inner = inner.replace(",", " AND a/f0 != b/f1,")
    return f"({inner}) FOLLOWED BY {{b/{last} = c/f{number % 5}, 9 m}} S//i->c"


def documents(first: int, count: int) -> list[Document]:
    """Return documents of few values."""
    found = []
    for docid in range(first, first + count):
        chance = random.Random(docid)
        fields = "".join(f"<f{k}>{chance.randrange(12)}</f{k}>" for k in range(6))
        end_us = docid * MINUTE_US // 4
        times = (end_us, end_us, end_us, max(FIRST_WATERMARK_US, end_us - 1))
        found.append(Document(docid, "S", str(docid), *times, f"<i>{fields}</i>".encode()))
    return found


XML = {each.docid: each.xml for each in documents(1, 100)}


def silent(number: int) -> str:
    """Return a statement that finds nothing."""
    inner = f"S//i->a FOLLOWED BY {{a/g{number} = b/g{number}, 1 m}} S//i->b"
    return f"({inner}) FOLLOWED BY {{b/f0 = c/f0, 9 m}} S//i->c"


def registered(numbers: Sequence[int], point: int) -> list[RegisteredQuery]:
    """Return statements with a registration point."""
    return [RegisteredQuery(parse(statement(n), id=f"q{n}")[0], point) for n in numbers]


def matches(engine: Engine, some: list[Document]) -> list[tuple[str, str]]:
    """Return the matches of documents, by query and id."""
    step = engine.process(engine.evaluate(some), lambda docids: {n: XML[n] for n in docids})
    assert not step.pauses
    return [(match.query, match.id) for match in step.matches]


def test_statements_find_the_same_where_most_have_gone() -> None:
    """Numbers of the clauses that have had tuples are given anew when most of them are gone."""
    stays = range(0, 400, 40)
    engine, found = Engine(registered(stays, 0), lateness_us=0), list[tuple[str, str]]()
    for round_ in range(5):
        last = round_ * 20
        others = [n for n in range(round_, 400, 5) if n not in stays]
        assert engine.follow(SetChange(registered(others, last)))
        found += matches(engine, documents(last + 1, 20))
        assert engine.follow(SetChange(gone=[f"q{n}" for n in others]))
    own = [each for each in found if each[0] in {f"q{n}" for n in stays}]
    alone = matches(Engine(registered(stays, 0), lateness_us=0), documents(1, 100))
    assert sorted(own) == sorted(alone)
    assert own
    assert len(found) > len(own)


def test_what_has_the_number_of_another_is_read_by_its_own_clause() -> None:
    """Numbers of uses are given again when many have gone, most of which have had no tuple."""
    engine = Engine(registered(range(20), 0), lateness_us=0)
    quiet = [RegisteredQuery(parse(silent(n), id=f"s{n}")[0], 0) for n in range(600)]
    assert engine.follow(SetChange(quiet))
    first = matches(engine, documents(1, 20))
    gone = [*(each.query.id for each in quiet), *(f"q{n}" for n in range(10))]
    assert engine.follow(SetChange(gone=gone))
    matches(engine, documents(21, 1))
    others = registered(range(20, 400), 21)
    assert engine.follow(SetChange(others))
    found = matches(engine, documents(22, 40))
    alone = Engine([*registered(range(10, 20), 0), *others], lateness_us=0)
    expected = [matches(alone, documents(*each)) for each in ((1, 20), (21, 1), (22, 40))]
    assert sorted(each for each in first if each[0] not in gone) == sorted(expected[0])
    assert sorted(found) == sorted(expected[2])
    assert found
