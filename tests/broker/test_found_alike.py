"""Queries in an equal form are spelled together, and say what each says alone."""

from __future__ import annotations

import random
from itertools import chain

from support.examples import size

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery

FROM = "S//i->a[x->u][y->v] FOLLOWED BY {u = w, 1 h} S//i->b[x->w]"
TEXTS = {
    "all": f"FROM {FROM}",
    "again": f"FROM {FROM}",
    "first": f"SELECT a FROM {FROM}",
    "built": f"SELECT <o n='{{count(a/y)}}'>{{b/x}}{{dur()}}</o> FROM {FROM}",
    "but p": "S//i->a[x->u][y->v] FOLLOWED BY {u = w AND u != 'p', 1 h} S//i->b[x->w]",
    "but q": "S//i->a[x->u][y->v] FOLLOWED BY {u = w AND u != 'q', 1 h} S//i->b[x->w]",
    "fewer matches": "S//i->a[x->u][y->v] FOLLOWED BY {u = w, 4 s} S//i->b[x->w]",
    "shown": f"SELECT v FROM {FROM}",
    "shown again": f"SELECT v FROM {FROM}",
}


def lines(queries: list[str], chance: random.Random) -> list[str]:
    """Return the match lines of queries over documents, those of each query in a row."""
    given = [(name, xscl.parse(TEXTS[name], id=name)[0]) for name in queries]
    engine = Engine([RegisteredQuery(query) for _, query in given], lateness_us=0)
    stream = [document(number, chance) for number in range(1, 41)]
    texts = {each.docid: each.xml for each in stream}
    found = chain.from_iterable(
        engine.process(
            engine.evaluate(stream[start : start + 20]), lambda ids: {i: texts[i] for i in ids}
        ).matches
        for start in (0, 20)
    )
    return [match.line for match in sorted(found, key=lambda match: (match.query, match))]


def document(number: int, chance: random.Random) -> Document:
    """Return an item with some values of few."""
    values = "".join(f"<{name}>{chance.choice('pqrs')}</{name}>" for name in "xy" for _ in range(2))
    time_us = number * 1_000_000
    xml = f"<i>{values}</i>".encode()
    return Document(number, "S", str(number), time_us, time_us, time_us, time_us - 1_000_000, xml)


def test_together_agrees_with_alone() -> None:
    for seed in range(size(1, 3)):
        together = lines([*TEXTS], random.Random(seed))
        alone = [line for name in sorted(TEXTS) for line in lines([name], random.Random(seed))]
        assert together == alone
        assert len(together) > 10 * len(TEXTS)
