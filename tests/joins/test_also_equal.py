"""Pairs that differ where all classes of their anchor want equal values are not looked at."""

from __future__ import annotations

import random

import pytest

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import MatchingLimits
from joins.signature.limits import SignatureLimits

BOTH = "S//i->a FOLLOWED BY {a/author = b/author AND a/feed = b/feed, INF} S//i->b"
ONE = "S//i->a FOLLOWED BY {a/author = b/author, INF} S//i->b"
COUNT = 40


def signatures(feeds: list[str], texts: list[str], pairs_min: int) -> tuple[int, list[str]]:
    """Return how many signatures are seen of items of one author in some feeds, and the matches."""
    limits = MatchingLimits(join=SignatureLimits(also_equal=pairs_min))
    queries = [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(texts)]
    engine = Engine([*map(RegisteredQuery, queries)], lateness_us=0, limits=limits)
    stream = []
    for docid, feed in enumerate(feeds, 1):
        xml = f"<i><author>one</author>{feed}</i>"
        times = (docid * 1_000_000,) * 3
        stream.append(Document(docid, "S", str(docid), *times, times[0] - 1, xml.encode()))
    found: list[str] = []
    for start in range(0, len(stream), 8):
        witnesses = engine.evaluate(stream[start : start + 8])
        step = engine.process(witnesses, lambda ids: {i: stream[i - 1].xml for i in ids})
        found += [match.line for match in step.matches]
    return engine.figures()["signatures"], found


def test_of_two_conditions_one_that_does_not_hold_spares_the_pair() -> None:
    feeds = [f"<feed>feed {i}</feed>" for i in range(COUNT)]
    assert signatures(feeds, [BOTH], 0) == (0, [])
    assert signatures(feeds, [BOTH], 10**9) == (1, [])
    some, found = signatures(feeds, [BOTH, ONE], 0)
    assert (some, len(found)) == (1, COUNT * (COUNT - 1) // 2)


@pytest.mark.parametrize("seed", range(8))
def test_it_changes_no_match(seed: int) -> None:
    chance = random.Random(seed)
    one = ["<feed>a</feed>", "<feed>b</feed>", "<feed></feed>", "", "<feed>a</feed><feed>b</feed>"]
    feeds = [chance.choice(one) for _ in range(COUNT)]
    texts = [BOTH, BOTH.replace("FOLLOWED BY", "JOIN")][: 1 + seed % 2]
    _, found = signatures(feeds, texts, 0)
    assert found == signatures(feeds, texts, 10**9)[1]
    assert found
