"""A batch in which documents are asked for many data is joined in parts, and says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest
from support.budgets import UNLIMITED

import xscl
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.costs.askedrows import AskedRows
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import MatchingLimits
from broker.matching.stepresult import StepResult

TWO = "S//a->a NEXT {a/k = b/k, 1 h} S//b[p > $x][q > $y]->b GRACE 0 s"
PUBLISHING = f"SELECT * FROM {TWO} PUBLISH T"
READING = "T//*->t NOT FOLLOWED BY {, 1 s} S//b[p > $x][q > $y] GRACE 0 s"
GIVEN = tuple({"x": x, "y": y} for x in range(4) for y in range(3))


def stream(contents: Sequence[str]) -> list[Document]:
    """Return documents, a second apart."""
    found: list[Document] = []
    for number, content in enumerate(contents, 1):
        at = number * 1_000_000
        before = at - 1_000_000 if number > 1 else FIRST_WATERMARK_US
        xml = f"<{content[0]}><k>x</k>{content[1:]}</{content[0]}>".encode()
        found.append(Document(number, "S", str(number), at, at, at, before, xml))
    return found


BUSY = stream(["a", *(f"b<p>{n % 5}</p><q>{n % 3}</q>" for n in range(12)), "a", "c", "c"])


def engine_of(texts: Sequence[str], *, rows: int = 250_000, most: int = 0) -> Engine:
    """Return an engine that makes so many rows at a time, and lets a document have so many."""
    queries = [xscl.parse(text, id=f"q{n}")[-1] for n, text in enumerate(texts)]
    return Engine(
        [RegisteredQuery(query, 0, GIVEN) for query in queries],
        lateness_us=0,
        limits=MatchingLimits(asked_rows=rows),
        budget=replace(UNLIMITED, pairs_per_document=most),
    )


def step_of(engine: Engine, documents: Sequence[Document]) -> StepResult:
    xml = {each.docid: each.xml for each in BUSY}
    return engine.process(engine.evaluate(documents), lambda docids: {d: xml[d] for d in docids})


def parts_of(engine: Engine, documents: Sequence[Document], rows: int) -> list[pa.Table]:
    fan_out = engine.queries.fan_out
    asked = AskedRows(fan_out.by_data, fan_out.counts, 0, MatchingLimits(asked_rows=rows))
    return [*asked.parts(engine.evaluate(documents))]


@pytest.mark.parametrize(("rows", "sizes"), [(5, [6, 4, 6]), (8, [6, 7, 3]), (200, [16])])
def test_a_part_ends_with_the_document_that_has_a_row_too_many(rows: int, sizes: list[int]) -> None:
    found = [part.num_rows for part in parts_of(engine_of([TWO]), BUSY, rows)]
    assert found == sizes


def test_nothing_is_counted_where_nothing_is_asked_of_each() -> None:
    assert len(parts_of(engine_of(["S//a NEXT {, 1 h} S//b[p > $x]"]), BUSY, 0)) == 1


def test_who_comes_and_who_goes_is_counted() -> None:
    engine = engine_of([TWO])
    fan_out = engine.queries.fan_out
    asked = AskedRows(fan_out.by_data, fan_out.counts, 0, MatchingLimits(asked_rows=0))
    witnesses = engine.evaluate(BUSY)
    whole = len([*asked.parts(witnesses)])
    engine.queries.assign("q0", {"x": -1, "y": -1})
    assert len([*asked.parts(witnesses)]) == 13 > whole
    assert [part.num_rows for part in parts_of(engine, BUSY, 8)] == [5, 4, 3, 4]
    engine.queries.remove("q0")
    assert not fan_out.by_data.clauses
    assert len(fan_out.by_data) == 0
    assert len([*asked.parts(witnesses)]) == 1


def test_who_goes_and_asked_for_no_data_is_not_counted() -> None:
    text = "S//a[p->n] NEXT {n > m?, 1 h} S//b[p->m] GRACE 0 s"
    engine = engine_of([text.replace("?", " * $x - $y"), text.replace("?", "")])
    asking = len(engine.queries.fan_out.by_data)
    engine.queries.remove("q1")
    assert len(engine.queries.fan_out.by_data) == asking > 0


@pytest.mark.parametrize("most", [0, 5])
def test_parts_say_what_the_whole_says(most: int) -> None:
    texts = [TWO, PUBLISHING, READING]
    found = [step_of(engine_of(texts, rows=rows, most=most), BUSY) for rows in (250_000, 1, 9)]
    assert found[0].matches
    assert found[0].published
    assert bool(found[0].pauses) == bool(most)
    for each in found[1:]:
        assert each.matches == found[0].matches
        assert each.published == found[0].published
        assert {*each.pauses} == {*found[0].pauses}


def test_what_is_known_is_absorbed_in_parts_too() -> None:
    first, then = BUSY[:9], BUSY[9:]
    texts = [TWO, PUBLISHING, READING]
    found = []
    for rows in (250_000, 1):
        known = step_of(engine_of(texts), first).published
        engine = engine_of(texts, rows=rows)
        engine.absorb(engine.evaluate(first), lambda docids: {}, known)
        found.append(step_of(engine, then))
    assert found[0].matches == found[1].matches != []
    assert found[0].published == found[1].published


def test_a_pause_says_that_many_data_were_asked_for() -> None:
    texts = [TWO, "S//a FOLLOWED BY {, 1 h} S//b"]
    pauses = {p.query: p.reason for p in step_of(engine_of(texts, most=5), BUSY).pauses}
    assert "one for each of the data that subscriptions ask for" in pauses["q0"]
    assert "q1" not in pauses


def test_what_has_been_counted_is_forgotten() -> None:
    engine = engine_of([TWO])
    fan_out = engine.queries.fan_out
    asked = AskedRows(fan_out.by_data, fan_out.counts, 0, MatchingLimits(asked_rows=0))
    for _ in range(30):
        assert len([*asked.parts(engine.evaluate(BUSY))]) > 1
    assert asked._join.figures()["documents"] < len(BUSY)
