"""Statements that decide over the same operands count and hand these on together: nobody can tell.

*Agrees*: each finds, spends, and is paused for what it does over operands of its own.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest
from support.budget_runs import Running, Way, documents
from support.budgets import UNLIMITED
from support.examples import size, some

from broker.matching.costs.budget import Budget
from broker.matching.limits import DEFAULT_MATCHING_LIMITS
from broker.matching.queries.registration import SetChange

INNER = "(S//i->a FOLLOWED BY {a/lang = b/lang AND a/t < b/t, %s} S//i->b)"
TEXTS = (
    "S//i[t->t] FOLLOWED BY {u > t + %(n)s, 30 m} S//i[t->u] SAME (//lang) MATCH PARTITION",
    "S//i[t->t]+ {t > prev(t) AND first(t) > %(n)s} FOLLOWED BY {, 9 m} S//i->b MATCH NEXT",
    "S//i[t < %(n)s]->a FOLLOWED BY {b/t > prev(b/t, a/t), 9 m} S//i->b+ WITHIN 9 m",
    "S//i[t < %(n)s]->a NEXT {a/lang = b/lang AND b/t > a/t, 20 m} S//i->b+ GRACE 2 m",
    "S//i->a NEXT {b/t > a/t + %(n)s, 20 m} S//i->b",
    f"{INNER % '6 m'} NEXT {{c/t > a/t + %(n)s, 20 m}} S//i->c",
    f"{INNER % '4 m'} NOT FOLLOWED BY {{c/t > b/t + %(n)s, 9 m}} S//i->c",
    f"{INNER % '9 m'} FOLLOWED BY {{c/t = b/t, 9 m}} S//i->c UNLESS {{d/t > a/t + %(n)s}} S//i->d",
    "SELECT <n>{count()}</n> FROM S//i->a FOLLOWED BY {b/t > a/t + %(n)s, 9 m} S//i->b"
    " MATCH NEXT WINDOW 10 m HAVING count() > 1",
)
BUDGETS = [
    replace(UNLIMITED, pairs_per_document=4),
    replace(UNLIMITED, matches_per_document=2),
    replace(UNLIMITED, matches_per_1000_documents=30),
    replace(UNLIMITED, bytes_per_document=2_000),
    replace(UNLIMITED, output_bytes_per_1000_documents=3_000),
    UNLIMITED,
]
LISTED = replace(DEFAULT_MATCHING_LIMITS, held_pairs=0, tuples=7)


def statements(seed: int, count: int = 9) -> dict[str, str]:
    """Return statements of a few kinds that differ in a constant."""
    chance = random.Random(seed)
    kinds = chance.sample(TEXTS, 2)
    texts = (chance.choice(kinds) % {"n": chance.randrange(0, 40, 5)} for _ in range(count))
    return {f"q{number}": text for number, text in enumerate(texts)}


@pytest.mark.parametrize(
    ("way", "budget"),
    some(product([Way(), Way(limits=LISTED), Way(shards=2)], BUDGETS), 3),
    ids=str,
)
def test_statements_over_the_same_operands_do_what_each_does_over_its_own(
    way: Way, budget: Budget
) -> None:
    pauses = 0
    for seed in range(size(2, 20)):
        texts, batch = statements(seed), [60, 7, 1][seed % 3]
        found = Running(texts, budget, way).feed(documents(seed=seed), batch)
        # What is decided from different points on is decided over different operands.
        points = {name: -number for number, name in enumerate(texts, 1)}
        apart = Running(texts, budget, points=points).feed(documents(seed=seed), batch)
        assert sorted(found.lines) == sorted(apart.lines), seed
        assert sorted(map(repr, found.pauses)) == sorted(map(repr, apart.pauses)), seed
        assert sorted(found.spent) == sorted(apart.spent), seed
        pauses += len(found.pauses)
    assert (pauses > 0) == (budget != UNLIMITED)


def test_statements_come_and_go_and_others_read_on() -> None:
    text = "S//i->a FOLLOWED BY {b/t > a/t + %s, 30 m} S//i->b SAME (//lang) MATCH PARTITION"
    stream = documents()
    texts = {f"q{n}": text % n for n in range(3)}
    whole = Running(texts, UNLIMITED).feed(stream, 20)
    found = Running(texts, UNLIMITED).feed(stream[:20], 20)
    found.engine.follow(SetChange(gone=["q0"]))
    found.feed(stream, 20, 20)
    assert found.of("q0") == whole.of("q0", before=21) != []
    for name in ("q1", "q2"):
        assert found.of(name) == whole.of(name) != found.of(name, before=21)


def test_statements_from_other_documents_on_have_operands_of_their_own() -> None:
    text = "S//i->a FOLLOWED BY {b/t > a/t + %s, 30 m} S//i->b MATCH NEXT"
    texts, points = {f"q{n}": text % n for n in range(4)}, {"q1": 11, "q3": 30}
    found = Running(texts, UNLIMITED, points=points).feed(documents(), 7)
    for name, own in texts.items():
        one = Running({name: own}, UNLIMITED, points=points).feed(documents(), 60)
        assert found.of(name) == one.of(name) != []
