"""Similar titles of the recorded news are those that brute force finds."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from support.budgets import UNLIMITED
from support.examples import size
from support.similar_news import (
    KEPT,
    LATENESS_US,
    QUERY,
    RECORDED,
    THRESHOLDS,
    Pair,
    digest,
    news,
    similar_pairs,
)

import xscl
from broker.matching.engine import Engine, RegisteredQuery

BATCH = 1_000


@pytest.mark.slow
def test_recorded_titles_are_as_similar_as_brute_force_says() -> None:
    count = size(2_500, RECORDED)
    documents = news(count)
    (query,) = xscl.parse(QUERY % "$least", id="q")
    assignments = tuple(xscl.assignment(query, {"least": float(t)}) for t in THRESHOLDS)
    registered = RegisteredQuery(query, assignments=assignments)
    engine = Engine([registered], lateness_us=LATENESS_US, budget=UNLIMITED)
    xml = {document.docid: document.xml for document in documents}
    found: dict[str, list[Pair]] = defaultdict(list)
    for start in range(0, len(documents), BATCH):
        witnesses = engine.evaluate(documents[start : start + BATCH])
        for match in engine.process(witnesses, lambda docids: {d: xml[d] for d in docids}).matches:
            line = json.loads(match.line)
            first, second = (document["docid"] for document in line["documents"])
            found[str(line["parameters"]["least"])].append((first, second))
    expected = similar_pairs(documents, THRESHOLDS)
    assert {threshold: sorted(pairs) for threshold, pairs in found.items()} == expected
    if count == RECORDED:
        assert {each: (len(pairs), digest(pairs)) for each, pairs in expected.items()} == KEPT
