"""Two documents with many equal nodes pause the queries that see both, before any are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.budget_runs import Running, Way, run, stream
from support.budgets import UNLIMITED
from support.examples import some

from broker.documents.document import Document
from broker.matching.boxes.points import Points
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget
from broker.matching.fanout import FanOut
from broker.matching.limits import MatchingLimits
from joins.budget.skew import Skew, skew_of
from joins.shards.limits import ShardLimits
from joins.signature.limits import SignatureLimits

MINUTE_US = 60_000_000
ONE = "S//i->a FOLLOWED BY {a/c = b/c, 1 h} S//i->b"
TWO = "S//i->a FOLLOWED BY {a/c = b/c AND a/k = b/k, 1 h} S//i->b"
OTHERS = {
    "title": "S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b",
    "rare": "S//i->a FOLLOWED BY {a/c = b/c AND a/rare = b/rare, 1 h} S//i->b",
    "short": "S//i->a FOLLOWED BY {a/c = b/c, 59 s} S//i->b",
}
WAYS = [Way(), Way(shards=3)]


def titled(bodies: Sequence[str]) -> list[Document]:
    """Return documents of a minute each, all with one title."""
    return stream([f"<t>x</t>{body}" for body in bodies])


def poisoned(count: int) -> list[Document]:
    """Return innocent documents, and three with many equal nodes among them; one has others."""
    same, few = "<c>same</c>" * count, "<c>same</c><c>few</c>"
    other = "<c>other</c>" * count
    return titled([few, few, same, few, other, same, few, same, "<c>few</c>"])


def by_query(found: Running) -> dict[str, tuple[int, str]]:
    return {pause.query: (pause.docid, pause.reason) for pause in found.pauses}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.shards} shards")
@pytest.mark.parametrize("batch", [1, 9])
def test_a_poison_pair_pauses_who_sees_it_and_disturbs_nobody_else(way: Way, batch: int) -> None:
    documents, texts = poisoned(9), {"one": ONE, **OTHERS}
    free = run(texts, UNLIMITED, documents)
    found = run(texts, replace(UNLIMITED, pairs_per_document=20), documents, batch, way)
    [pause] = found.pauses
    assert (pause.query, pause.docid) == ("one", 6)
    assert pause.reason == (
        "document 6 and one other have the same values so often that their equal nodes by"
        " `a/c = b/c` combine in more than 20 (budget.pairs_per_document) ways; join on something"
        " that a document has once, or a few times"
    )
    assert found.of("one") == free.of("one", before=6) != []
    for other in OTHERS:
        assert found.of(other) == free.of(other)
    assert found.of("title") != []


def test_ten_thousand_equal_nodes_pause_a_query_and_the_stream_goes_on() -> None:
    documents, texts = poisoned(10_000), {"one": ONE, "two": TWO, **OTHERS}
    found = run(texts, DEFAULT_BUDGET, documents)
    assert by_query(found).keys() == {"one"}
    assert len({docid for name, docid, _ in found.lines if name == "title"}) == 8


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.shards} shards")
def test_value_joins_multiply(way: Way) -> None:
    both = "".join(f"<c>{i}</c><k>{i}</k>" for i in range(6))
    few = "<c>x</c><k>x</k>"
    documents = titled([few, few, both, both, both])
    free = run({"two": TWO}, UNLIMITED, documents)
    for most, docid in ((72, 9), (71, 5), (36, 5), (35, 4)):
        for batch in some((5, 1), 1):
            budget = replace(UNLIMITED, pairs_per_document=most)
            found = run({"two": TWO}, budget, documents, batch, way)
            assert [pause.docid for pause in found.pauses] == [docid] * (docid < 9)
            assert found.of("two") == free.of("two", before=docid) != []
            if docid == 5:
                [pause] = found.pauses
                assert pause.reason.startswith(f"document 5 has more than {most} witness tuples")


ENTRIES = "S//e->a[./t->t][./l->l] FOLLOWED BY {t = u AND l = m, 1 h} S//e->b[./t->u][./l->m]"


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.shards} shards")
def test_equal_nodes_that_do_not_belong_together_do_not_count(way: Way) -> None:
    entries = "".join(f"<e><t>{i}</t><l>{i}</l></e>" for i in range(10))
    documents = titled([entries, entries])
    for most, count in ((10, 0), (9, 1)):
        budget = replace(UNLIMITED, pairs_per_document=most)
        found = run({"entries": ENTRIES}, budget, documents, 1, way)
        assert len(found.pauses) == count, "100 combinations are 10 tuples"


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.shards} shards")
def test_twenty_shared_categories_are_twenty_witnesses(way: Way) -> None:
    categories = "".join(f"<c>{i}</c>" for i in range(20))
    found = run({"one": ONE}, DEFAULT_BUDGET, titled([categories, categories]), way=way)
    assert found.pauses == []
    [line] = found.of("one")
    assert line == run({"one": ONE}, UNLIMITED, titled([categories, categories])).of("one")[0]


@pytest.mark.parametrize("restart_after", [2, 3, 5])
def test_a_restart_pauses_at_the_same_pair(restart_after: int) -> None:
    documents, budget = poisoned(9), replace(UNLIMITED, pairs_per_document=20)
    [expected] = run({"one": ONE}, budget, documents).pauses
    running = Running({"one": ONE}, budget).feed(documents[:restart_after], 3)
    running.restart(documents[:restart_after]).feed(documents, 2, restart_after)
    assert running.pauses == [expected]


def test_a_query_that_came_after_one_of_two_documents_does_not_mind_them() -> None:
    points = {"early": 0, "late": 3, "later": 6}
    texts, budget = dict.fromkeys(points, ONE), Budget(0, 0, 20, 0)
    for way in WAYS:
        found = Running(texts, budget, way, points).feed(poisoned(9), 9)
        assert {pause.query: pause.docid for pause in found.pauses} == {"early": 6, "late": 8}


def test_a_pair_is_even_if_there_is_nothing_to_join() -> None:
    assert skew_of([1_000_000, 0], 10) is Skew.EVEN
    assert skew_of([11, 1], 10) is Skew.SKEWED
    assert skew_of([4, 4], 10) is Skew.UNCERTAIN
    assert skew_of([10, 10, 10], 10) is Skew.SKEWED


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.shards} shards")
def test_many_documents_of_equal_nodes_are_joined_in_portions_until_they_pause(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each pair is within the budget; the third document is not, and nothing behind it is listed.
    join = SignatureLimits(tuples=2_000)
    limits = MatchingLimits(join=join, tuples=1_000)
    way = replace(way, limits=limits, shard_limits=ShardLimits(shard=join, listed_tuples=2_000))
    listed = Counter[int]()
    expand = FanOut.expand

    def listen(fan_out: FanOut, points: Points, *others: Any) -> Any:
        listed.update(np.maximum(points.tuples.left, points.tuples.right).tolist())
        return expand(fan_out, points, *others)

    monkeypatch.setattr(FanOut, "expand", listen)
    documents = titled(["<c>same</c>" * 30] * 40)
    texts = {"one": ONE, "title": OTHERS["title"]}
    found = run(texts, replace(UNLIMITED, pairs_per_document=1_000), documents, 40, way)
    [pause] = found.pauses
    assert (pause.query, pause.docid) == ("one", 3)
    assert len(found.of("one")) == 1
    assert len(found.of("title")) == 40 * 39 // 2
    assert listed.total() < 10_000, "of 702,000"
