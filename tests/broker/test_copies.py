"""Matches that copy whole documents are those that are made one by one."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest
from support.budget_runs import MINUTE_US, Running, Way
from support.budgets import UNLIMITED
from support.examples import is_searching

from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.costs.budget import Budget
from broker.matching.limits import DEFAULT_MATCHING_LIMITS

NEAR = "FROM S//i->a FOLLOWED BY {a/@k = b/@k, %s} S//i->b"
QUERIES = {
    "all": "SELECT * " + NEAR % "1 h",
    "same": "SELECT * " + NEAR % "1 h",
    "short": "SELECT * " + NEAR % "5 m",
    "roots": "SELECT a, b " + NEAR % "1 h",
    "within": "SELECT * FROM S//i/t->a JOIN {a = b, 20 m} S//i/t->b",
    "built": "SELECT <o>{b/t}{dur()}</o> " + NEAR % "20 m",
    "next": "SELECT * FROM S//i->a NEXT {a/@k = b/@k, 1 h} S//i->b GRACE 0 s",
    "silent": "SELECT * FROM S//i->a NOT FOLLOWED BY {a/@k = b/@k, 7 m} S//i->b GRACE 0 s",
    "run": "SELECT * FROM S//i->a FOLLOWED BY {, 5 m} S//i->b+ {, 3 m}",
    "told": "SELECT * " + NEAR % "8 m" + " PUBLISH told",
    "after": "SELECT * FROM told//i->a FOLLOWED BY {a/@k = b/@k, 4 m} S//i->b",
}
BUDGETS = [
    UNLIMITED,
    replace(UNLIMITED, bytes_per_document=9_000),
    replace(UNLIMITED, bytes_per_document=2_500),
    replace(UNLIMITED, output_bytes_per_1000_documents=20_000),
    replace(UNLIMITED, matches_per_document=7, matches_per_1000_documents=150),
]


def documents(seed: int, *, odd: int) -> list[Document]:
    """Return documents; one in `odd` has its attribute in quotes that no serialiser writes."""
    random_, quotes = random.Random(seed), random.Random(seed)
    watermark_us, found = FIRST_WATERMARK_US, []
    for docid in range(1, 61):
        quote = "'" if odd and quotes.randrange(odd) == 0 else '"'
        texts = "".join(f"<t>{random_.randrange(9)}&amp;</t>" for _ in range(random_.randrange(3)))
        kind, more = random_.choice("xxxy"), "é\\" * random_.choice((0, 0, 30))
        xml = f"<i k={quote}{kind}{quote}>{texts}<n/>{more}</i>"
        time_us = (docid + random_.randint(-2, 2)) * MINUTE_US
        times = (time_us, time_us, time_us, watermark_us)
        found.append(Document(docid, "S", str(docid), *times, xml.encode()))
        watermark_us = max(watermark_us, time_us)
    return found


CASES = product(range(12 if is_searching() else 1), enumerate(BUDGETS))
"""Of each budget other documents, in batches of either size by turns."""


@pytest.mark.parametrize(("seed", "budget"), [(s + i, b) for s, (i, b) in CASES], ids=str)
def test_copies_agree_with_matches_made_one_by_one(seed: int, budget: Budget) -> None:
    runs = []
    for odd, made_bytes in ((1, 1 << 24), (0, 1), (4, 1 << 24)):
        way = Way(limits=replace(DEFAULT_MATCHING_LIMITS, made_bytes=made_bytes))
        running = Running(QUERIES, budget, way).feed(documents(seed, odd=odd), (60, 9)[seed % 2])
        pauses = {each.query: (each.docid, each.reason) for each in running.pauses}
        runs.append((sorted(running.lines), pauses, sorted(running.spent)))
    one_by_one, copied, mixed = runs
    assert copied == one_by_one
    assert mixed == one_by_one
    assert one_by_one[0]
    assert bool(one_by_one[1]) is (budget != UNLIMITED)
