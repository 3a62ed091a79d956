"""Blocks of which nothing more is asked are handed to decisions in columns: nobody can tell.

*Agrees*: every statement finds, spends, and is paused for what it does where each tuple is looked
up.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from support.budget_runs import Running, Way, documents
from support.budgets import UNLIMITED
from support.examples import size, some

from broker.documents.document import Document
from broker.matching.costs.budget import Budget
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.matching.queries.registration import SetChange

TEXTS = (
    "S//i[t->t] FOLLOWED BY {u > t + %(n)s, 30 m} S//i[t->u] SAME (//lang) MATCH PARTITION",
    "S//i[t->t]+ {t > prev(t) AND first(t) > %(n)s} FOLLOWED BY {, 9 m} S//i->b MATCH NEXT",
    "S//i[t->t]+ {t > min(t)} FOLLOWED BY S//i[t < %(n)s] WITHIN 9 m MATCH STRICT",
    "S//i->a NEXT {b/t > a/t + %(n)s, 20 m} S//i->b",
    "S//i->a FOLLOWED BY {b/t = a/t, 9 m} S//i->b UNLESS {c/t > a/t + %(n)s} S//i->c",
    "S//i[t->t]+ {t > prev(t), 5 m} WITHIN 9 m MATCH ANY",
    "S//i[t->t]",
    "S//i->a FOLLOWED BY {b/t > a/t + %(n)s, 9 m} S//i->b",
)
BUDGETS = [
    replace(UNLIMITED, pairs_per_document=4),
    replace(UNLIMITED, matches_per_1000_documents=30),
    replace(UNLIMITED, bytes_per_document=2_000),
    replace(UNLIMITED, output_bytes_per_1000_documents=3_000),
    UNLIMITED,
]
LOOKED_UP = replace(DEFAULT_MATCHING_LIMITS, plain_tuples=1 << 40)
IN_COLUMNS = replace(DEFAULT_MATCHING_LIMITS, plain_tuples=1)


def statements(seed: int) -> dict[str, str]:
    """Return statements that differ in a constant, or in what they ask."""
    chance = random.Random(seed)
    kinds = chance.sample(TEXTS, 4)
    texts = (chance.choice(kinds) % {"n": chance.randrange(0, 40, 5)} for _ in range(8))
    return {f"q{number}": text for number, text in enumerate(texts)}


def stream(seed: int) -> list[Document]:
    """Return documents of which a few have two values, or one value twice, or none."""
    chance = random.Random(seed)
    found = []
    for document in documents(seed=seed):
        xml = document.xml
        if chance.random() < 0.1:
            xml = xml.replace(b"</i>", b"<t>%d</t></i>" % chance.randrange(60))
        elif chance.random() < 0.1:
            xml = xml.replace(b"<t>", b"<u>").replace(b"</t>", b"</u>")
        found.append(replace(document, xml=xml))
    return found


@pytest.mark.parametrize("budget", some(BUDGETS, 3), ids=str)
@pytest.mark.parametrize("way", some([Way(), Way(shards=2), Way(engine="mmqjp")], 1), ids=str)
def test_blocks_in_columns_are_what_is_found_by_looking_them_up(budget: Budget, way: Way) -> None:
    pauses = 0
    for seed in range(size(2, 40)):
        texts, batch = statements(seed), [20, 60, 7, 1][seed % 4]
        points = {"q1": 11, "q3": 30, "q4": 11} if seed % 3 else {}
        one, other = (
            Running(texts, budget, replace(way, limits=limits), points).feed(stream(seed), batch)
            for limits in (LOOKED_UP, IN_COLUMNS)
        )
        assert sorted(one.lines) == sorted(other.lines) != [], seed
        assert sorted(map(repr, one.pauses)) == sorted(map(repr, other.pauses)), seed
        assert sorted(one.spent) == sorted(other.spent), seed
        pauses += len(one.pauses)
    assert (pauses > 0) == (budget != UNLIMITED)


@pytest.mark.parametrize("limits", [LOOKED_UP, IN_COLUMNS])
def test_rows_that_are_handed_on_in_several_tables_are_tuples_as_in_one(
    limits: MatchingLimits,
) -> None:
    text = "S//i->a FOLLOWED BY {a/lang = b/lang, 9 m} S//i->b UNLESS {a/t = c/t} R//i->c"
    one, other = (
        Running({"q": text}, UNLIMITED, Way(limits=replace(limits, characters=characters)))
        for characters in (limits.characters, 50)
    )
    assert one.feed(documents(), 20).lines == other.feed(documents(), 20).lines != []


def test_a_class_is_plain_while_decisions_alone_read_it() -> None:
    chain = "S//i[t->t] FOLLOWED BY {u > t + %s, 30 m} S//i[t->u] MATCH NEXT"
    running = Running({"q0": chain % 1, "q1": chain % 2}, UNLIMITED)
    plain = running.engine.queries.fan_out.plain
    [number] = running.engine.queries.fan_out.classes() & {n for n in range(9) if plain.groups(n)}
    groups = plain.groups(number)
    assert [len(group) for group in groups] == [2, 2]
    root = Running({"q": "S//i[t->t]"}, UNLIMITED).engine.queries
    [use] = root.fan_out.uses()
    use.query_class = number
    plain.add(use, None)
    assert not plain.groups(number)
    plain.remove(use, None)
    assert plain.groups(number) == groups
    running.engine.follow(SetChange(gone=["q0"]))
    assert len(plain) == 1
    running.engine.follow(SetChange(gone=["q1"]))
    assert not len(plain)


def test_a_stratum_may_have_no_tuples_that_are_apart() -> None:
    """A document is in both operands of a tuple of the second stratum, which is none then."""
    texts = {
        "above": "(S//i->a FOLLOWED BY {, 9 m} S//i->b) JOIN {b/t = c/t, 9 m} S//i->c",
        "decided": "S//i->a NEXT {b/t > a/t, 20 m} S//i->b",
    }
    one, other = (
        Running(texts, UNLIMITED, Way(limits=limits)).feed(documents(25), 1)
        for limits in (LOOKED_UP, IN_COLUMNS)
    )
    assert sorted(one.lines) == sorted(other.lines) != []
