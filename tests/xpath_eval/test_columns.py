"""Documents that are taken apart once have the witnesses of documents that are parsed each time."""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa
import pytest
from generators.random_paths import random_block, random_xml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.registered import Registered

import xscl
from broker.matching.engine import Engine, RegisteredQuery
from xpath_eval import columns, walk
from xpath_eval.catalog import EvaluationPlan, PatternCatalog
from xpath_eval.columns import DocumentColumns
from xpath_eval.limits import EvaluatorLimits
from xpath_eval.stage import evaluate_batches
from xpath_eval.witnesses import DOCUMENT_SCHEMA, WITNESS_SCHEMA

WORDS = ["a", "b", "1", "2.5", "x &lt; y", "ä", "<![CDATA[<]]>", "long " * 9]


def plan_of(random_: random.Random, count: int) -> EvaluationPlan:
    catalog = PatternCatalog()
    for _ in range(count):
        Registered(catalog, random_block(random_))
    return catalog.plan()


def reworded(random_: random.Random, xml: bytes) -> bytes:
    """Return a document of the same structure with other texts."""
    return re.sub(rb"(?<=>)[^<>]+(?=<)", lambda _: random_.choice(WORDS).encode(), xml)


def documents_of(random_: random.Random) -> list[tuple[str, int, bytes]]:
    kinds = [random_xml(random_) for _ in range(4)]
    found = [reworded(random_, random_.choice(kinds)) for _ in range(50)]
    found += [random_xml(random_) for _ in range(5)] + [b"<broken", b""]
    random_.shuffle(found)
    return [(random_.choice(("S", "S", "S", "T")), random_.randrange(2), xml) for xml in found]


def batch_of(documents: list[tuple[str, int, bytes]]) -> pa.RecordBatch:
    rows = [
        {
            "docid": docid,
            "depth": depth,
            "match_id": "m" * depth,
            "stream": stream if xml else "$clock",
            "key": str(docid),
            "start_us": docid,
            "end_us": docid,
            "watermark_us": 0,
            "xml": xml,
        }
        for docid, (stream, depth, xml) in enumerate(documents, 1)
    ]
    return pa.RecordBatch.from_pylist(rows, DOCUMENT_SCHEMA)


def spelled_out(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows with the edges of their shapes, which an earlier row or this one has to have."""
    table.validate(full=True)
    assert table.schema == WITNESS_SCHEMA
    edges: dict[str, Any] = {}
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        if row["edges"] is not None:
            assert edges.setdefault(row["shape"], row["edges"]) == row["edges"]
        row["edges"] = None if row["shape"] is None else edges[row["shape"]]
    return rows


def evaluated(plan: EvaluationPlan, batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches(evaluate_batches(plan, [batch]), WITNESS_SCHEMA)


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_columns_agree_with_documents(seed: int) -> None:
    random_ = random.Random(seed)
    batch = batch_of(documents_of(random_))
    apart = DocumentColumns(batch)
    for _ in range(3):
        plan = plan_of(random_, random_.randrange(1, 8))
        assert spelled_out(apart.evaluate(plan, batch)) == spelled_out(evaluated(plan, batch))


@pytest.mark.parametrize(
    "condition",
    [
        "x = z",
        "x/title = z/by",
        "x/@id = z/title",
        "x/text() = z/by/n",
        "lower-case(x/title) = z/title",
    ],
)
def test_values_that_are_compared_agree(condition: str) -> None:
    xml = '<item id="{0}">A{0}<title>T{0}</title>b<by><n>c{0}</n>d</by></item>'
    batch = batch_of([("S", 0, xml.format(n % 3).encode()) for n in range(30)])
    plan = plan_for(f"S//item->x JOIN {{{condition}, 1 h}} S//item->z")
    wanted = spelled_out(evaluated(plan, batch))
    assert any(value for row in wanted for value in row["values"] or ())
    assert spelled_out(DocumentColumns(batch).evaluate(plan, batch)) == wanted


PREDICATES = [
    "contains(title, '1')",
    "matches(title, '^T[12]$')",
    "translate(@id, '1', '2') = '2'",
    "starts-with(text(), 'A1') or @id = '2'",
    "not(by/n = 'c1')",
    "contains(., 'c2d')",
    "*[contains(., 'T1')][1]",
]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_what_texts_decide_is_asked_of_the_texts_that_are_kept(predicate: str) -> None:
    xml = '<item id="{0}">A{0}<title>T{0}</title>b<by><n>c{0}</n>d</by></item>'
    batch = batch_of([("S", 0, xml.format(n % 3).encode()) for n in range(30)])
    plan = plan_for(f"S//item[{predicate}]->x JOIN {{lower-case(x) = z, 1 h}} S//item->z")
    wanted = spelled_out(evaluated(plan, batch))
    assert len({row["shape"] for row in wanted}) > 1
    assert spelled_out(DocumentColumns(batch).evaluate(plan, batch)) == wanted


def test_a_document_of_which_functions_make_too_much_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(walk, "DERIVED_CHARACTERS_MAX", 20)
    batch = batch_of([("S", 0, b"<item>%s</item>" % (b"A" * n)) for n in range(10, 30)])
    plan = plan_for("S//item->x JOIN {lower-case(x) = z, 1 h} S//item->z")
    wanted = spelled_out(evaluated(plan, batch))
    assert any(row["error"] for row in wanted)
    assert any(not row["error"] for row in wanted)
    assert spelled_out(DocumentColumns(batch).evaluate(plan, batch)) == wanted


def plan_for(text: str) -> EvaluationPlan:
    (query,) = xscl.parse(text, id="q")
    return Engine([RegisteredQuery(query)], lateness_us=0).plan


def test_what_would_be_too_much_in_one_array_is_evaluated_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns, "_ALIKE_MIN", 2)
    batch = batch_of([("S", 0, b"<a>%d<b>c</b></a>" % n) for n in range(9)])
    plan = plan_of(random.Random(3), 5)
    for characters in (1, 40, 10_000):
        limits = EvaluatorLimits(characters=characters)
        found = DocumentColumns(batch).evaluate(plan, batch, limits)
        assert spelled_out(found) == spelled_out(evaluated(plan, batch))


def test_nothing_taken_apart_is_nothing() -> None:
    batch = batch_of([])
    assert DocumentColumns(batch).nbytes == 0
    assert DocumentColumns(batch).evaluate(plan_of(random.Random(1), 1), batch).num_rows == 0
