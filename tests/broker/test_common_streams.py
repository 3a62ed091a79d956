"""Statements that differ in data read one stream of inner tuples, and nobody can tell.

*Agrees*: each finds, and is paused for, what it finds and is paused for without the others, and
where nothing is shared; over shards as in one process.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.budget_runs import MINUTE_US, Running, Way
from support.budgets import UNLIMITED
from support.examples import is_searching, size, some

from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.costs.budget import Budget
from broker.matching.engine import RegisteredQuery
from broker.matching.limits import DEFAULT_MATCHING_LIMITS
from broker.matching.mrules import MRule
from broker.matching.queries.queryset import QuerySet
from broker.matching.usegroups import GroupColumns
from joins import ClassRegistry
from joins.shards.limits import DEFAULT_SHARD_LIMITS
from xscl import parse

INNER = "S//i%s->a FOLLOWED BY {a/t = b/t%s, %s} S//i->b"
ABOVE = (
    "(%s) FOLLOWED BY {b/lang = c/lang, %s} S//i->c",
    "(%s) FOLLOWED BY {b/lang = c/lang OR a/n = c/n, %s} S//i->c",
    "((%s) FOLLOWED BY {b/n = c/n, 20 m} S//i->c) FOLLOWED BY {c/lang = d/lang, %s} S//i->d",
    "((%s) FOLLOWED BY {b/lang = c/lang AND c/p < 6, 20 m} S//i->c)"
    " FOLLOWED BY {c/n = d/n, %s} S//i->d",
    "(%s) JOIN {a/n = c/n AND a/t != c/t, %s} S//i->c",
)
WITH_STRINGS = (
    "",
    " AND b/lang = 'en'",
    " AND b/n != '3'",
    " AND b/lang != 'de'",
    " AND b/lang != 'en'",
    " AND b/lang != 'en' AND b/p < 5",
    " AND b/lang != 'de' AND b/n != '5' AND a/lang = 'en'",
    " AND b/lang != ''",
    " AND b/lang != a/lang",
)
WITH_NUMBERS = (
    " AND b/p < 5",
    " AND b/p <= 5",
    " AND b/p > 2",
    " AND b/p < 7 AND b/p > 1",
    " AND b/p - a/p < 3",
    " AND b/p - a/p < 1",
    " AND b/p = 3",
    " AND time(b) - time(a) < 300",
    " AND (b/p < 3 OR b/p < 6)",
    " AND a/p + b/p * 2 > 4",
    " AND b/p > a/p * 2",
    " AND b/p != 3",
    " AND b/p != 5 AND b/p < 6",
    " AND b/p > a/p * 0.5",
    " AND a/p = b/p - 2",
    " AND b/p - a/p < 2 * 2 - 1",
    " AND 4 div b/p < a/p + 1",
    " AND b/p != a/p * 3",
    " AND time(b) > time(a) + 3 m",
    " AND time(b) > time(a) + 1 m",
    " AND jaccard(words(a/w), words(b/w)) > 0.4",
    " AND jaccard(words(a/w), words(b/w)) > 0.1",
    " AND exists(b/p[. < 5])",
    " AND empty(b/p[. = 3])",
    " AND b/n[. != '5'] = a/n",
    " AND b/n[. != '3'] = a/n",
)
WITH_WORDS = (
    " AND contains(b/w, 'x')",
    " AND contains(b/w, 'y')",
    " AND starts-with(b/w, 'x')",
    " AND ends-with(b/w, 'z')",
    " AND contains(b/w, 'x') AND contains(b/w, 'y')",
    " AND contains(b/w, 'z') AND b/p < 5",
    " AND (contains(b/w, 'x') OR contains(b/w, 'y'))",
    " AND contains(a/w, 'x')",
    " AND matches(b/w, 'x.*z')",
    " AND matches(b/w, 'X', 'i')",
)
IN_A_BLOCK = (
    "[p < 5]",
    "[p < 2]",
    "[p >= 3]",
    "[p > 1 and p < 4]",
    "[p = 3]",
    "[p = 1][lang = 'en']",
    "[contains(w, 'x')]",
    "[contains(w, 'y')]",
    "[contains(w, 'x')][contains(w, 'z')]",
    "[matches(w, 'x.*z')]",
    "[w = 'x x x' or contains(lang, 'd')]",
    "[contains(upper-case(w), 'Y')][p < 4]",
    "[lang != 'en']",
    "[p != 3]",
    "[p != 3.0][w != 'x x x']",
    "[not(contains(w, 'x'))]",
    "[not(contains(w, 'y'))][p < 4]",
    "[not(matches(w, 'x.*z'))][lang != 'de']",
)
"""What is written out in a block."""
WITH_CHOICES = (
    " AND (b/p < 3 OR b/p < 6)",
    " AND (b/p < 2 OR b/p > a/p * 2)",
    " AND (b/p < 2 OR b/p > 4) AND contains(b/w, 'x')",
    " AND (contains(b/w, 'x') OR contains(b/w, 'y'))",
    " AND (contains(b/w, 'x') AND b/p < 3 OR contains(b/w, 'y') AND b/p < 6)",
    " AND (b/lang = 'en' OR b/lang = 'de')",
    " AND (b/lang = 'en' AND b/p < 3 OR b/lang = 'de' AND b/p < 6)",
    " AND (b/p < 3 OR contains(b/w, 'z'))",
    " OR a/lang = b/lang AND b/p < 3",
)
WITH_PARAMETERS = (
    " AND contains(b/w, $w)",
    " AND contains(b/w, $w) AND contains(b/w, 'x')",
    " AND (contains(b/w, $w) OR contains(b/w, 'y'))",
    " AND matches(b/w, $w)",
    " AND b/lang != $l",
    " AND b/lang != $l AND contains(b/w, 'x')",
    " AND (b/lang != $l OR b/lang != 'de' AND b/p < 3)",
    " AND b/lang != 'en'",
    " AND b/p < $x",
    " AND (b/p < $x OR b/p < 3)",
    " AND b/p > a/p * $x",
    " AND b/p - a/p < $x * 2 - 1",
    " AND b/p != $x",
    " AND contains(b/w, 'x')",
    " AND b/p > a/p * 2",
    " AND contains(concat(b/w, $w), 'xx')",
    " AND exists(b/w[contains(., $w)])",
    " AND b[p > count(n) * $x]/lang = a/lang",
    " AND b/n[position() <= $x] = a/n",
    " AND if (b/p > $x) then 1 else 0 = 1",
)
DATA: dict[str, tuple[Any, ...]] = {
    "w": ("x", "y", "z", "xy", "X"),
    "l": ("en", "de", "fr"),
    "x": (0.5, 1.0, 2.0, 3.0, 5.0, 1e55),
}
PRICES = ("1", "3", "3.0", "5", "-0", "INF", "cheap")
WORDS = ("x", "y", "z", "xy", "X", "")
BUDGETS = [
    replace(UNLIMITED, pairs_per_document=4),
    replace(UNLIMITED, pairs_per_document=9),
    replace(UNLIMITED, matches_per_document=3),
    replace(UNLIMITED, matches_per_1000_documents=12),
    replace(UNLIMITED, bytes_per_document=4_000),
    replace(UNLIMITED, output_bytes_per_1000_documents=2_000),
    UNLIMITED,
    Budget(
        pairs_per_document=6,
        matches_per_document=4,
        matches_per_1000_documents=15,
        bytes_per_document=8_000,
        output_bytes_per_1000_documents=4_000,
        remembered_documents=0,
    ),
    replace(UNLIMITED, pairs_per_document=6, matches_per_document=4, bytes_per_document=4_000),
]


def statements(seed: int, count: int = 8) -> dict[str, str]:
    """Return statements over few operators, with windows and constants of their own."""
    chance = random.Random(seed)
    found = {}
    kinds = (WITH_STRINGS, WITH_NUMBERS, WITH_WORDS, WITH_CHOICES, WITH_PARAMETERS)
    asked = (*kinds, (*WITH_NUMBERS, *WITH_WORDS, *WITH_CHOICES, *WITH_PARAMETERS))[seed % 6]
    blocks = IN_A_BLOCK if seed >= BLOCKS_FROM else ("", "", "[lang = 'en']", "[lang = 'de']")
    if blocks is IN_A_BLOCK and seed % 2:
        asked = ("",)
    for number in range(count):
        constant = chance.choice(blocks)
        also = chance.choice(asked)
        if asked is WITH_PARAMETERS and "$" not in also:
            constant = chance.choice(["[not(contains(w, $w))]", "[contains(w, $w)]"])
        window, above = (chance.choice(["3 m", "9 m", "30 m", "1 d"]) for _ in "ab")
        text = chance.choice(ABOVE) % (INNER % (constant, also, window), above)
        if seed % 6 >= 3 and chance.random() < 0.5:
            # Alternatives of a path have a variable each, those of a variable are of one stream.
            text = text.replace("b/p", "p").replace("S//i->b", "S//i->b[p->p]", 1)
        found[f"q{number}"] = text
    return found


def given(texts: Mapping[str, str], seed: int) -> dict[str, list[dict[str, Any]]]:
    """Return assignments of the statements that have parameters."""
    chance = random.Random(seed)
    found: dict[str, list[dict[str, Any]]] = {}
    for name, text in texts.items():
        for of, data in DATA.items():
            if f"${of}" in text:
                some = chance.sample(data, chance.choice([1, 2, 3]))
                found[name] = [{of: each} for each in some]
    return found


def documents(seed: int, count: int = 40) -> list[Document]:
    """Return documents of few values, some of them late, some with several tags."""
    chance, watermark_us, found = random.Random(seed), FIRST_WATERMARK_US, []
    for docid in range(1, count + 1):
        lang = chance.choice(["", "de", *["en"] * 4])
        names = "".join(f"<n>{chance.randrange(9)}</n>" for _ in range(chance.randrange(3)))
        price = "".join(f"<p>{chance.choice(PRICES)}</p>" for _ in range(chance.randrange(3)))
        words = " ".join(chance.choice(WORDS) for _ in range(3))
        xml = f"<i><lang>{lang}</lang>{names}<t>{chance.randrange(12)}</t>{price}<w>{words}</w></i>"
        time_us = (docid + chance.randint(-3, 3)) * MINUTE_US
        times = (time_us, time_us, time_us, watermark_us)
        found.append(Document(docid, "S", str(docid), *times, xml.encode()))
        watermark_us = max(watermark_us, time_us)
    return found


def paused(running: Running) -> dict[str, tuple[int, str]]:
    return {pause.query: (pause.docid, pause.reason) for pause in running.pauses}


def spent(running: Running) -> list[tuple[object, ...]]:
    return sorted(running.spent)


BLOCKS_FROM = 60
"""From this seed on statements have constants of their own in a block."""

CASES = [(seed, budget) for seed, budget in product(range(BLOCKS_FROM), BUDGETS)]
OF_BLOCKS = [(seed, budget) for seed, budget in product(range(BLOCKS_FROM, 100), BUDGETS)]
TRIED = [*CASES, *OF_BLOCKS] if is_searching() else [CASES[0], OF_BLOCKS[6], OF_BLOCKS[147]]


@pytest.mark.parametrize(("seed", "budget"), TRIED, ids=str)
def test_no_statement_minds_the_others(seed: int, budget: Budget) -> None:
    texts, stream = statements(seed), documents(seed)
    values = given(texts, seed)
    points = {name: seed % 3 * int(name[1:]) for name in texts}
    way = Way(limits=replace(DEFAULT_MATCHING_LIMITS, held_pairs=[0, 256][seed % 2]))
    found = Running(texts, budget, way, points, values).feed(stream, 7)
    for name, text in some(texts.items(), 2):
        way_alone = Way(shards=1 + seed % 2)
        alone = Running({name: text}, budget, way_alone, points, values).feed(stream, 40)
        assert paused(found).get(name) == paused(alone).get(name)
        assert found.of(name) == alone.of(name)


@pytest.mark.parametrize(("seed", "budget"), TRIED, ids=str)
def test_statements_find_the_same_where_nothing_is_shared(seed: int, budget: Budget) -> None:
    texts, stream = statements(seed), documents(seed)
    values = given(texts, seed)
    way = Way(without=(MRule.C_SEQ,))
    expected = Running(texts, budget, way, given=values).feed(stream, 40)
    for batch in [1, 9, 40] if is_searching() else [9 if seed >= BLOCKS_FROM else 3, 40]:
        held_pairs = [0, 5, 256][(seed + batch) % 3]
        limits = replace(DEFAULT_MATCHING_LIMITS, held_pairs=held_pairs)
        of_shards = replace(DEFAULT_SHARD_LIMITS, first_asked=1 + batch, listed_tuples=7 * batch)
        for shards in (1, 3) if is_searching() else (1 + batch % 3,):
            way = Way(shards=shards, limits=limits, shard_limits=of_shards)
            found = Running(texts, budget, way, given=values).feed(stream, batch)
            assert paused(found) == paused(expected)
            assert sorted(found.lines) == sorted(expected.lines)
    assert spent(found) == spent(expected)


@pytest.mark.parametrize(("seed", "budget"), TRIED, ids=str)
def test_a_restart_changes_nothing(seed: int, budget: Budget) -> None:
    texts, stream = statements(seed), documents(seed)
    values = given(texts, seed)
    once = Running(texts, budget, given=values).feed(stream, 20)
    again = Running(texts, budget, given=values).feed(stream[:20], 20)
    again.restart(stream[:20]).feed(stream, 20, 20)
    assert paused(again) == paused(once)
    assert sorted(again.lines) == sorted(once.lines)


@pytest.mark.parametrize("shards", [1, 2])
def test_a_statement_is_not_paused_for_pairs_of_anothers_tuples(shards: int) -> None:
    """A document meets six pairs of its language, of which one statement has two."""
    bodies = [(lang, 1) for lang in ("en", "en", "de", "en", "de", "en")] + [("en", 2)]
    stream = [
        replace(each, xml=f"<i><lang>{lang}</lang><t>{t}</t></i>".encode())
        for each, (lang, t) in zip(documents(1), bodies, strict=False)
    ]
    text = "(S//i[lang = '%s']->a FOLLOWED BY {a/t = b/t, 1 d} S//i[lang = 'en']->b)"
    text += " FOLLOWED BY {b/lang = c/lang, 1 d} S//i->c"
    budget = replace(UNLIMITED, pairs_per_document=4)
    texts = {"many": text % "en", "few": text % "de"}
    found = Running(texts, budget, Way(shards=shards)).feed(stream, 1)
    for name in texts:
        alone = Running({name: texts[name]}, budget).feed(stream, 1)
        assert paused(found).get(name) == paused(alone).get(name)


def test_many_statements_with_data_of_their_own_have_one_class_for_each_operator() -> None:
    classes, count = ClassRegistry(), size(200, 1_000)
    queries = QuerySet(classes)
    for number in range(count):
        inner = INNER % (f"[lang = 'l{number % 10}']", "", f"{number + 1} s")
        [query] = parse(ABOVE[0] % (inner, f"{number + 2} s"), id=f"q{number}")
        queries.add(RegisteredQuery(query, number))
    assert len(classes.by_number) == 2
    for number in range(count):
        queries.remove(f"q{number}")
    assert not classes.by_number
    assert not queries.catalog.plan().edges


@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize(
    "condition",
    [
        "[p < %d]",
        "[contains(w, 'x%d')]",
        "[matches(w, 'x%d$')]",
        "[p = %d]",
        "[p > %d][p < 9]",
        "[p != %d]",
        "[w != 'x%d']",
        "[not(contains(w, 'x%d'))]",
    ],
)
def test_what_is_written_out_in_a_block_is_data_at_any_operator(condition: str, block: int) -> None:
    classes, count = ClassRegistry(), size(20, 1_000)
    queries = QuerySet(classes)
    text = "S//i%s->a FOLLOWED BY {a/t = b/t, 9 m} S//i%s->b FOLLOWED BY {b/n = c/n, 9 m} S//i%s->c"
    for number in range(count):
        asked = [condition % number if k == block else "" for k in range(3)]
        queries.add(RegisteredQuery(*parse(text % tuple(asked), id=f"q{number}"), 0))
    assert len(classes.by_number) == 2
    for number in range(count):
        queries.remove(f"q{number}")
    assert not classes.by_number
    assert not queries.catalog.plan().admitted


def test_of_several_blocks_one_has_data_and_the_others_are_as_selective_as_they_were() -> None:
    """Most pairs of what anybody wants in one block and in another would be nobody's."""
    text = "S//i[p < %d]->a FOLLOWED BY {a/t = b/t, 9 m} S//i->b"
    text += " FOLLOWED BY {b/n = c/n, 9 m} S//i%s->c"
    classes = ClassRegistry()
    queries = QuerySet(classes)
    for number in range(3):
        queries.add(RegisteredQuery(*parse(text % (5, f"[p < {number}]"), id=f"q{number}"), 0))
    assert len(classes.by_number) == 2
    queries.add(RegisteredQuery(*parse(text % (6, "[p < 1]"), id="other"), 0))
    assert len(classes.by_number) == 4


@pytest.mark.parametrize(
    "condition", ["[w != '%s']", "[not(contains(w, '%s'))]", "[p < 9][not(w = '%s')]"]
)
def test_a_statement_is_not_paused_for_tuples_with_what_it_excludes(condition: str) -> None:
    """A document meets six tuples, of which each statement has others."""
    words = ("x", "y", "x", "x", "y", "z", "", "")
    stream = [
        replace(each, xml=f"<i><t>{i // 2}</t><p>1</p><w>{word}</w><w>{word}</w></i>".encode())
        for i, (each, word) in enumerate(zip(documents(1), (*words, *words), strict=False))
    ]
    text = f"S//i{condition}->a JOIN {{a/t = b/t, 1 d}} S//i->b JOIN {{a/p = c/p, 1 d}} S//i->c"
    budget = replace(UNLIMITED, pairs_per_document=18)
    texts = {f"q{i}": text % word for i, word in enumerate(("x", "y", "xy", ""))}
    found = Running(texts, budget).feed(stream, 3)
    for name in texts:
        alone = Running({name: texts[name]}, budget).feed(stream, 7)
        assert paused(found).get(name) == paused(alone).get(name)
        assert found.of(name) == alone.of(name)
    assert len({pause.docid for pause in found.pauses}) > 2


def test_a_statement_is_not_paused_for_pairs_of_documents_that_another_wants_below() -> None:
    """A document meets six others of its language, of which one statement wants two."""
    prices = (50, 50, 1, 50, 1, 50, 50)
    stream = [
        replace(each, xml=f"<i><lang>en</lang><t>1</t><p>{price}</p></i>".encode())
        for each, price in zip(documents(1), prices, strict=False)
    ]
    text = "S//i[p < %d]->a FOLLOWED BY {a/t = b/t, 1 d} S//i->b"
    text += " FOLLOWED BY {b/lang = c/x, 1 d} S//i->c"
    budget = replace(UNLIMITED, pairs_per_document=4)
    texts = {"many": text % 100, "few": text % 10}
    found = Running(texts, budget).feed(stream, 3)
    assert paused(found).keys() == {"many"}
    alone = Running({"many": texts["many"]}, budget).feed(stream, 3)
    assert paused(found) == paused(alone)


@pytest.mark.parametrize(
    ("asked", "classes_of_all"),
    [
        ("b/p < %s", 2),
        ("b/p > a/p * %s + 1", 2),
        ("b/p - a/p < %s * 2", 2),
        ("contains(b/w, 'x%s')", 2),
        ("b/w != 'x%s'", 2),
        ("b/p != %s", 2),
        ("b/p != a/p * %s", 2),
        ("time(b) > time(a) + %s min", 2),
        ("jaccard(words(a/w), words(b/w)) > %s", 2),
        ("exists(b/p[. < %s])", 2),
        ("empty(b/w[. = 'x%s'])", 2),
        ("b/e[k = 'x%s']/n = a/n", 2),
        ("b[p > n * %s]/lang = a/lang", 2),
        ("(p < %s OR p < 100)", 2),
        ("(contains(p, 'x%s') OR contains(p, 'y'))", 2),
        # Each path is a variable of its own, so each alternative has a stream.
        ("(b/p < %s OR b/p < 100)", 3),
    ],
)
def test_statements_that_differ_in_a_datum_have_classes_together(
    asked: str, classes_of_all: int
) -> None:
    classes = ClassRegistry()
    queries = QuerySet(classes)
    for number in range(20):
        inner = INNER % ("", f" AND {asked % number}", "1 h") + "[p->p]"
        [query] = parse(ABOVE[0] % (inner, "1 h"), id=f"q{number}")
        queries.add(RegisteredQuery(query, number))
    assert len(classes.by_number) == classes_of_all


def test_queries_with_words_of_their_own_have_one_class_for_each_operator() -> None:
    classes = ClassRegistry()
    queries = QuerySet(classes)
    for number in range(20):
        inner = INNER % ("", " AND contains(b/w, $w)", "1 h")
        [query] = parse(ABOVE[0] % (inner, "1 h"), id=f"q{number}")
        queries.add(RegisteredQuery(query, number, ({"w": f"x{number}"}, {"w": "y"})))
    assert len(classes.by_number) == 2


@pytest.mark.parametrize("excluding", [4, 40, 1 << 40])
@pytest.mark.parametrize("telling", [(), (0,), (1,), (0, 2), (0, 1, 2)], ids=str)
def test_sums_of_all_uses_are_those_of_each(telling: tuple[int, ...], excluding: int) -> None:
    chance = np.random.default_rng(len(telling))
    bounds, excluded = np.full((30, 3), 100), chance.integers(0, excluding, (30, 4))
    for column in telling:
        bounds[:, column] = chance.integers(0, 20, 30)
    tuples, weights = chance.integers(0, 20, (50, 7)), chance.integers(0, 9, (50, 2))
    uses = GroupColumns(np.arange(30), [f"q{i}" for i in range(30)], bounds, excluded)
    held = np.array([uses.has(use, tuples) for use in range(30)])
    assert (uses.sums(tuples, weights) == held @ weights).all()
    assert (uses.some_have(tuples) == held.any(axis=0)).all()
