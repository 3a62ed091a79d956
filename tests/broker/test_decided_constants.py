"""Constants of the blocks that something is decided of are data, and nobody can tell.

*Agrees*: each statement finds, and is paused for, what it finds and is paused for alone, with
filters.  Streams and decisions are each statement's own; classes are all statements'.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.budget_runs import Running, Way
from support.budgets import UNLIMITED
from support.examples import is_searching, size, some
from support.written_out import condition, documents

from broker.matching.costs.budget import Budget
from broker.matching.limits import DEFAULT_MATCHING_LIMITS
from broker.matching.mrules import MRule

AS_FILTERS = Way(without=(MRule.C_SEQ,))

SHAPES = (
    "S//i%s->a NEXT {a/k = b/k, 9 m} S//i%s->b WHERE b/p < 4",
    "S//i->a NEXT {a/k = b/k OR a/p < b/p, 9 m} S//r%s/i->b",
    "(S//i%s->a | S//j%s->a) NEXT {a/k = b/k, 9 m} (S//i%s->b | S//j->b) GRACE 1 m",
    "S//i%s->a NOT FOLLOWED BY {a/k = b/k, 4 m} S//i%s->b",
    "S//i->a NOT JOIN {a/k = b/k, 4 m} S//i%s->b",
    "S//r->r/i%s UNLESS {r/i/k = b/k, 4 m} S//i%s->b",
    "S//i%s->a FOLLOWED BY {a/k = b/k, 9 m} S//i%s->b UNLESS {c/k = a/k AND c/p < 3} S//i%s->c",
    "S//i[c->c%s] NEXT {c/p = b/p, 9 m} S//i[p->p]%s->b",
    "S//r%s//i->a NEXT {a/k = b/k, 9 m} S//r%s//i->b",
    "S//i%s->a FOLLOWED BY {a/k = b/k, 3 m} S//i%s->b+ {b/k >= prev(b/k)}",
    "S//i%s->a+ {a/k = prev(a/k)} FOLLOWED BY {, 2 m} S//i->b MATCH NEXT",
    "S//i%s->a FOLLOWED BY {, 9 m} S//i%s->b MATCH STRICT",
    "(S//i->a NEXT {a/k = b/k, 9 m} S//i%s->b) FOLLOWED BY {b/k = c/k, 9 m} S//i%s->c",
    "(S//i%s->a FOLLOWED BY {a/k = b/k, 4 m} S//i%s->b) NEXT {b/k = c/k, 9 m} S//i%s->c",
    "SELECT <n>{count()}</n> FROM S//i%s->a FOLLOWED BY {, 9 m} S//i%s->b MATCH NEXT"
    " WINDOW 10 m HAVING count() > 1",
)
BUDGETS = (
    replace(UNLIMITED, pairs_per_document=4),
    replace(UNLIMITED, matches_per_document=2),
    replace(UNLIMITED, matches_per_1000_documents=12),
    replace(UNLIMITED, bytes_per_document=2_000),
    replace(UNLIMITED, output_bytes_per_1000_documents=3_000),
    UNLIMITED,
)


def statements(seed: int, count: int = 8) -> dict[str, str]:
    """Return statements of two shapes, with constants of their own."""
    chance = random.Random(seed)
    shapes = chance.sample(SHAPES, 2)
    texts = {}
    for number in range(count):
        shape = chance.choice(shapes)
        constants = tuple(condition(chance) for _ in range(shape.count("%s")))
        texts[f"q{number}"] = shape % constants
    return texts


def paused(running: Running) -> dict[str, tuple[int, str]]:
    return {pause.query: (pause.docid, pause.reason) for pause in running.pauses}


def points(seed: int, texts: Mapping[str, str]) -> dict[str, int]:
    return {name: int(name[1:]) if seed % 2 else 0 for name in texts}


@pytest.mark.parametrize("seed", range(120) if is_searching() else (0, 31, 62, 93))
def test_each_statement_decides_over_what_a_filter_leaves(seed: int) -> None:
    texts, stream, budget = statements(seed), documents(seed), BUDGETS[seed % len(BUDGETS)]
    tiny = replace(DEFAULT_MATCHING_LIMITS, held_pairs=0, tuples=7)
    in_columns = replace(DEFAULT_MATCHING_LIMITS, plain_tuples=1)
    limits = [DEFAULT_MATCHING_LIMITS, tiny, in_columns][seed % 3]
    way, own = Way(shards=1 + seed // 2 % 2, limits=limits), points(seed, texts)
    found = Running(texts, budget, way, own).feed(stream, [7, 1, 40][seed % 3])
    for name, text in some(texts.items(), 4):
        alone = Running({name: text}, budget, AS_FILTERS, own).feed(stream, 40)
        assert paused(found).get(name) == paused(alone).get(name), text
        assert found.of(name) == alone.of(name), text


@pytest.mark.parametrize("budget", some(BUDGETS, 1), ids=str)
def test_a_restart_changes_nothing(budget: Budget) -> None:
    for seed in range(size(1, 20)):
        texts, stream = statements(seed), documents(seed)
        once = Running(texts, budget).feed(stream, 20)
        again = Running(texts, budget).feed(stream[:20], 20)
        again.restart(stream[:20]).feed(stream, 20, 20)
        assert paused(again) == paused(once)
        assert sorted(again.lines) == sorted(once.lines)


def classes_of_blocks(*texts: str) -> int:
    return blocks_in(Running({f"q{i}": text for i, text in enumerate(texts)}, UNLIMITED))


def blocks_in(running: Running) -> int:
    """Return how many classes there are of blocks alone."""
    uses = running.engine.queries.fan_out.uses()
    sources = {use.query_class: use.clause.sources for use in uses}
    return len([own for own in sources.values() if [each.block is None for each in own] == [False]])


@pytest.mark.parametrize(
    "text",
    [
        "S//i->a NEXT {a/k = b/k, 9 m} S//i%s->b",
        "S//i->a NOT JOIN {a/k = b/k, 9 m} S//i%s->b",
        "S//i->a FOLLOWED BY {a/k = b/k, 9 m} S//i->b UNLESS {a/k = c/k} S//i%s->c",
        "S//i->a FOLLOWED BY {a/k = b/k, 9 m} S//i%s->b+",
        "S//i%s->a FOLLOWED BY {a/k = b/k, 9 m} S//i->b MATCH STRICT",
        "(S//i->a NEXT {a/k = b/k, 9 m} S//i%s->b) FOLLOWED BY {b/k = c/k, 9 m} S//i->c",
    ],
)
@pytest.mark.parametrize("asked", ["[p < %d]", "[contains(w, 'x%d')]", "[not(p < %d)][w != 'a%d']"])
def test_what_is_decided_of_has_one_class(text: str, asked: str) -> None:
    texts = [text % asked.replace("%d", str(number)) for number in range(4)]
    assert classes_of_blocks(*texts) == classes_of_blocks(texts[0])


def test_a_block_with_constants_goes_from_columns_to_columns() -> None:
    """As one without does: what boxes tell apart is in none of the tables of tuples."""
    text = "S//i->a NEXT {a/k = b/k, 9 m} S//i[p < 4]->b GRACE 0 s"
    limits = [replace(DEFAULT_MATCHING_LIMITS, plain_tuples=each) for each in (1, 1 << 40)]
    first, other = (Running({"q": text}, UNLIMITED, Way(limits=each)) for each in limits)
    plain = first.engine.queries.fan_out.plain
    assert len([n for n in first.engine.queries.fan_out.classes() if plain.groups(n)]) == 2
    assert first.feed(documents(1), 20).lines == other.feed(documents(1), 20).lines != []


def test_each_decides_of_its_own_where_other_blocks_have_constants() -> None:
    """Else each of the decisions would look at what all of them want."""
    text = "S//i[p < %d]->a NOT FOLLOWED BY {a/k = b/k, 9 m} S//i%s->b"
    for beside, is_common in (("", True), ("[k = 1]", False), ("[contains(w, 'x')]", False)):
        running = Running({f"q{n}": text % (n, beside) for n in range(3)}, UNLIMITED)
        clauses = {use.clause for use in running.engine.queries.fan_out.uses()}
        assert any(each.is_common for each in clauses) == is_common


def test_values_that_are_compiled_have_one_class() -> None:
    text = "S//i->a FOLLOWED BY {a/k = b/k, 9 m} S//i[p < $x][contains(w, $y)]->b+"
    given = [{"x": number, "y": str(number)} for number in range(4)]
    few, many = (Running({"q": text}, UNLIMITED, given={"q": some}) for some in (given[:1], given))
    assert blocks_in(few) == blocks_in(many)
