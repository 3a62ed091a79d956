"""What signatures are bad at costs what its bounds say, and finds what the paper's engine finds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import duckdb
import pytest
from support.budget_runs import stream
from support.budgets import UNLIMITED
from support.examples import examples
from support.tiny_limits import matching

import xscl
from broker.documents.document import Document
from broker.matching.costs.budget import Budget
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from joins.engines import EngineName
from joins.memory.limits import MemoryLimits
from joins.signature import view as signatureview
from joins.signature.engine import SignatureProcessor
from joins.sql import rows

MINUTE_US = 60_000_000
FORGETFUL = matching(MemoryLimits(shapes_kept=0, evicted_rows=1))


class Running:
    def __init__(
        self,
        texts: Sequence[str],
        engine: EngineName = "signatures",
        budget: Budget = UNLIMITED,
        limits: MatchingLimits = DEFAULT_MATCHING_LIMITS,
    ) -> None:
        queries = [RegisteredQuery(xscl.parse(t, id=f"q{i}")[0]) for i, t in enumerate(texts)]
        self.engine = Engine(queries, lateness_us=0, engine=engine, budget=budget, limits=limits)
        self.lines: list[str] = []
        self._xml: dict[int, bytes] = {}
        self.pauses: list[str] = []

    def feed(self, stream: Sequence[Document], batch: int = 10) -> Running:
        self._xml |= {one.docid: one.xml for one in stream}
        for start in range(0, len(stream), batch):
            witnesses = self.engine.evaluate(stream[start : start + batch])
            step = self.engine.process(witnesses, lambda ids: {i: self._xml[i] for i in ids})
            self.lines += [match.line for match in step.matches]
            self.pauses += [pause.query for pause in step.pauses]
        return self

    @property
    def processor(self) -> SignatureProcessor:
        assert isinstance(self.engine.processor, SignatureProcessor)
        return self.engine.processor


def agrees(
    texts: Sequence[str],
    stream: Sequence[Document],
    limits: MatchingLimits = DEFAULT_MATCHING_LIMITS,
) -> Running:
    running = Running(texts, limits=limits).feed(stream)
    assert running.lines == Running(texts, "mmqjp-views").feed(stream).lines != []
    return running


def test_four_hundred_equal_pairs_of_nodes_are_one_signature() -> None:
    text = "S//i->a FOLLOWED BY {a/c = b/c, 1 h} S//i->b"
    running = agrees([text], stream(["<c>same</c>" * 20] * 5))
    view = running.processor.view
    assert view.misses == len(view) == 1
    assert view.rows == 400 + 400, "the equal pairs of nodes, and a tuple for each"


@pytest.mark.parametrize("bounds", [{"wide": 0}, {"wide": 0, "sorted_slots": 9}, {"few_pairs": 0}])
def test_however_equal_values_are_looked_for_they_are_found(
    bounds: dict[str, int],
) -> None:
    random_ = random.Random(6)
    bodies = [
        "".join(f"<c>{value}</c>" for value in random_.choices(["", *"abcdefgh"], k=n % 9))
        for n in range(40)
    ]
    agrees(["S//i->a FOLLOWED BY {a/c = b/c, 12 m} S//i->b"], stream(bodies), matching(**bounds))


STRUCTURED = [
    "S//i->a FOLLOWED BY {a/c = b/c, 9 m} S//i->b",
    "S//i->a JOIN {a//c = b/d AND a/d = b//c, 9 m} S//i->b",
    "S//g->a FOLLOWED BY {a/c = b/d AND a/d = b/c, 9 m} S//i//g->b",
    "S//i[c->x][c->y] FOLLOWED BY {x = z AND y = w, 9 m} S//i[c->z][.//d->w]",
    "S//i[g->a][d->b] FOLLOWED BY {a/c = c/c AND b = c/d, 9 m} S//g->c",
    "S//i//c->a FOLLOWED BY {a = b, 9 m} S//d->b",
    "(S//i->a FOLLOWED BY {a/c = b/c, 9 m} S//g->b) FOLLOWED BY {a/d = c//c, 9 m} S//i->c",
    "S//i[d]->a",
    "S//g[c]//d->a",
]


@pytest.mark.parametrize("seed", range(examples(1)))
def test_tuples_are_the_same_with_and_without_statements(seed: int) -> None:
    """Where signatures differ in how many classes may hold, both ways are gone in one batch."""
    random_ = random.Random(seed)
    parts = ["<c>{}</c>", "<d>{}</d>", "<g><c>{}</c><d>1</d></g>", "<g><g><d>{}</d></g></g>"]
    bodies = [
        "".join(
            random_.choice(parts).format(random_.choice("123"))
            for _ in range(random_.choice((1, 2, 6)))
        )
        for _ in range(24)
    ]
    expected = Running(STRUCTURED, "mmqjp-views").feed(stream(bodies)).lines
    for assigned in (0, 5, 100_000):
        running = Running(STRUCTURED, limits=matching(assigned=assigned)).feed(stream(bodies))
        assert running.lines == expected != []
        assert ("db" in vars(running.processor.view)) == (assigned < 100_000)


@pytest.mark.parametrize("groups", [2, 4])
def test_where_value_joins_multiply_a_statement_is_asked(groups: int) -> None:
    """With four groups each of the four value joins has 16 pairs, which are 65,536 together."""
    side = "S//i//g[a->a{0}][b->b{0}][c->c{0}][d->d{0}]"
    equal = " AND ".join(f"{name}1 = {name}2" for name in "abcd")
    text = f"{side.format(1)} FOLLOWED BY {{{equal}, 1 h}} {side.format(2)}"
    body = "<g><a>1</a><b>1</b><c>1</c><d>1</d></g>" * groups
    running = agrees([text], stream([body] * 2))
    assert ("db" in vars(running.processor.view)) == (groups == 4)


def test_documents_of_seventy_thousand_values_are_joined() -> None:
    bodies = ["".join(f"<c>{k}.{n}</c>" for k in range(70_000)) + "<c>x</c>" for n in range(2)]
    text = "S//i->a FOLLOWED BY {a/c = b/c, 1 h} S//i->b"
    [line] = Running([text]).feed(stream(bodies)).lines
    assert line.count('"node": 70001') == 2


def test_what_many_equal_pairs_make_is_kept_up_to_a_bound() -> None:
    bodies = ["<c>same</c>" * (10 + n) for n in range(8)]
    text = "S//i->a FOLLOWED BY {a/c = b/c, 1 h} S//i->b"
    running = agrees([text], stream(bodies), matching(entry_rows=500))
    kept = sum(len(e.nodes) + len(e.signature[2]) for e in running.processor.view._entries.values())
    assert kept == running.processor.view.rows < 28 * 2 * 15 * 15


def test_where_signatures_hardly_repeat_each_is_asked_for_once() -> None:
    random_ = random.Random(3)
    bodies = [
        "".join(f"<c>{value}</c>" for value in random_.sample(range(12), 6)) for _ in range(24)
    ]
    text = "S//i[c->x][c->y] FOLLOWED BY {x = z AND y = w, 1 h} S//i[c->z][c->w]"
    running = agrees([text], stream(bodies))
    view = running.processor.view
    assert view.hits < view.misses, "the view helps little here"
    assert view.misses <= 24 * 23 // 2, "no pair is asked for twice"


def test_structures_that_never_repeat_are_forgotten_with_their_documents() -> None:
    bodies = [f"<p{n}><c>{n % 3}</c></p{n}>" for n in range(120)]
    text = "S//i->a FOLLOWED BY {a//c = b//c, 9 m} S//i->b"
    running = agrees([text], stream(bodies))
    assert running.processor.figures()["shapes"] < 60


def test_rows_of_forgotten_structures_are_not_counted_any_more() -> None:
    bodies = [f"<c>{n % 3}</c>" * (n % 20 + 1) for n in range(60)]
    running = agrees(["S//i->a FOLLOWED BY {a/c = b/c, 4 m} S//i->b"], stream(bodies), FORGETFUL)
    view = running.processor.view
    kept = sum(len(e.nodes) + len(e.signature[2]) for e in view._entries.values())
    assert len(view) < view.misses, "some signatures went with their structures"
    assert 0 < view.rows == kept


def test_a_template_is_asked_only_for_signatures_with_as_many_equal_values_as_it_joins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    statements: list[str] = []

    def noted(db: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[Any, ...]]:
        statements.append(sql)
        return rows.run(db, sql)

    monkeypatch.setattr(signatureview, "run", noted)
    texts = [
        "S//i->a FOLLOWED BY {a/c = b/c, 1 h} S//i->b",
        "S//i->a FOLLOWED BY {a/c = b/c AND a/t = b/t, 1 h} S//i->b",
        "S//i->a FOLLOWED BY {a/t = b/t AND a/u = b/u, 1 h} S//i->b",
    ]
    running = Running(texts, limits=matching(assigned=0))
    asked = []
    for one in stream(["<c>1</c><t>2</t><u>3</u>", "<c>1</c><t>4</t>", "<c>1</c><t>4</t>"]):
        del statements[:]
        running.feed([one])
        asked.append(sum("WITH joined" in sql for sql in statements))
    # <c> alone is asked of the template of one value join, <c> and <t> of both.
    assert asked == [0, 1, 2]


def test_operators_without_a_value_join_outlive_forgotten_structures() -> None:
    bodies = [f"<c>{n % 3}</c>" * (n + 1) for n in range(14)] + ["<c>3</c>"] * 10
    windows = ["{, 3 m}", "{a/c = b/c, 2 m}"]
    texts = [f"S//i->a FOLLOWED BY {w} S//i->b" for w in windows]
    running = agrees(texts, stream(bodies), FORGETFUL)
    assert running.processor.figures()["shapes"] == 1


def test_a_frequent_value_is_paired_by_a_rarer_one() -> None:
    bodies = [f"<lang>en</lang><t>{n % 40}</t>" for n in range(80)]
    text = "S//i->a FOLLOWED BY {a/lang = b/lang AND a/t = b/t, 1 d} S//i->b"
    running = Running([text], budget=Budget(0, 0, 5, 0)).feed(stream(bodies))
    assert running.lines == Running([text], "mmqjp-views").feed(stream(bodies)).lines != []
    assert running.pauses == []


def test_a_frequent_value_without_a_rarer_one_pauses_its_query_alone() -> None:
    bodies = [f"<lang>en</lang><t>{n % 40}</t>" for n in range(80)]
    texts = [
        "S//i->a FOLLOWED BY {a/lang = b/lang, 1 d} S//i->b",
        "S//i->a FOLLOWED BY {a/t = b/t, 1 d} S//i->b",
    ]
    running = Running(texts, budget=Budget(0, 0, 20, 0)).feed(stream(bodies))
    assert running.pauses == ["q0"]
    alone = Running(texts[1:], "mmqjp-views").feed(stream(bodies)).lines
    assert len([line for line in running.lines if '"q1"' in line]) == len(alone) == 40


def test_long_and_short_windows_on_one_value_join_keep_apart() -> None:
    random_ = random.Random(4)
    bodies = [f"<c>{random_.randrange(5)}</c>" for _ in range(60)]
    text = "S//i->a FOLLOWED BY {a/c = b/c, %s} S//i->b"
    running = agrees([text % window for window in ("INF", "3 m", "20 m")], stream(bodies))
    assert running.engine.horizon_us(0) < -(1 << 60), "an INF window forgets nothing"
