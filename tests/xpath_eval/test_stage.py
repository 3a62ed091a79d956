"""Stage 1 over Arrow says the same, however documents are batched and plans follow each other."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from generators.random_paths import random_block, random_xml
from support.registered import Registered

import xscl
from xpath_eval.catalog import EvaluationPlan, PatternCatalog
from xpath_eval.counters import Counters, counters_of, witness_table
from xpath_eval.evaluator import Evaluator
from xpath_eval.limits import EvaluatorLimits
from xpath_eval.stage import evaluate_batches
from xpath_eval.witnesses import DOCUMENT_SCHEMA, WITNESS_SCHEMA


def plan_of(seed: int, count: int = 10) -> EvaluationPlan:
    catalog = PatternCatalog()
    random_ = random.Random(seed)
    for _ in range(count):
        Registered(catalog, random_block(random_))
    return catalog.plan()


def batch_of(documents: list[bytes]) -> pa.RecordBatch:
    rows = [
        {
            "docid": i,
            "depth": 0,
            "match_id": "",
            "stream": "S",
            "key": str(i),
            "start_us": i,
            "end_us": i,
            "watermark_us": 0,
            "xml": xml,
        }
        for i, xml in enumerate(documents, 1)
    ]
    return pa.RecordBatch.from_pylist(rows, DOCUMENT_SCHEMA)


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[dict[str, object]]:
    table = pa.Table.from_batches(batches, WITNESS_SCHEMA)
    table.validate(full=True)
    return table.to_pylist()


def documents_of(seed: int, count: int = 30) -> list[bytes]:
    random_ = random.Random(seed)
    return [random_xml(random_) if i % 7 else b"<broken" for i in range(count)]


def test_rows_are_what_the_evaluator_says() -> None:
    plan, documents = plan_of(1), documents_of(2)
    evaluator = Evaluator(plan)
    spelled = set()
    for row, xml in zip(
        rows_of(evaluate_batches(plan, [batch_of(documents)])), documents, strict=True
    ):
        if xml == b"<broken":
            assert row["error"]
            assert row["shape"] is row["edges"] is row["nodes"] is row["values"] is None
            continue
        witnesses = evaluator.evaluate("S", xml)
        assert row["error"] is None
        assert row["shape"] == witnesses.shape.id
        assert row["nodes"] == list(witnesses.nodes)
        assert row["values"] == list(witnesses.values)
        edges = row["edges"]
        assert (edges is None) == (witnesses.shape.id in spelled)
        spelled.add(witnesses.shape.id)
        if edges is not None:
            assert isinstance(edges, list)
            found = [(e["var1"], e["var2"], e["node1"], e["node2"]) for e in edges]
            assert found == list(witnesses.shape.edges)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_batch_boundaries_do_not_show(size: int) -> None:
    plan, batch = plan_of(3), batch_of(documents_of(4))
    pieces = [batch.slice(start, size) for start in range(0, batch.num_rows, size)]
    assert rows_of(evaluate_batches(plan, pieces)) == rows_of(evaluate_batches(plan, [batch]))


def test_two_plans_at_a_time_do_not_disturb_each_other() -> None:
    one, two, batch = plan_of(5), plan_of(6), batch_of(documents_of(7))
    pieces = [batch.slice(start, 5) for start in range(0, batch.num_rows, 5)]
    alone = [rows_of(evaluate_batches(plan, pieces)) for plan in (one, two)]
    together = list(zip(evaluate_batches(one, pieces), evaluate_batches(two, pieces), strict=True))
    assert rows_of(a for a, _ in together) == alone[0]
    assert rows_of(b for _, b in together) == alone[1]


class Hesitant(EvaluationPlan):
    """A plan that lets other threads run while it is looked at."""

    @property
    def version(self) -> str:  # type: ignore[override]
        time.sleep(0.001)
        return str(self.definitions_digest)


def test_threads_with_plans_of_their_own_never_get_another_one_s_evaluator() -> None:
    plans, batch = [plan_of(seed) for seed in (5, 6, 9)], batch_of(documents_of(7, 3))
    expected = [rows_of(evaluate_batches(plan, [batch])) for plan in plans]

    def evaluate(i: int) -> bool:
        plan = plans[i % 3]
        hesitant = Hesitant(plan.definitions, plan.edges, plan.valued, plan.definitions_digest)
        return rows_of(evaluate_batches(hesitant, [batch])) == expected[i % 3]

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(evaluate, range(150)))


class Collecting(EvaluatorLimits):
    """Limits that have cycles of objects collected where they are compared."""

    def __eq__(self, other: object) -> bool:
        gc.collect()
        return isinstance(other, EvaluatorLimits)

    __hash__ = EvaluatorLimits.__hash__


def test_an_evaluation_that_nobody_ends_is_collected_while_another_one_begins() -> None:
    plan, batch = plan_of(1), batch_of(documents_of(1))
    found: list[list[dict[str, object]]] = []

    def evaluate(limits: EvaluatorLimits) -> None:
        found.append(rows_of(evaluate_batches(plan, [batch], limits)))

    gc.disable()
    try:
        left = [evaluate_batches(plan, [batch, batch])]
        next(left[0])
        evaluate(EvaluatorLimits())  # its evaluator is idle then
        left.append(left)  # type: ignore[arg-type]
        del left
        other = Thread(target=evaluate, args=[Collecting()], daemon=True)
        other.start()
        other.join(30)
    finally:
        gc.enable()
    assert len(found) == 2
    assert found[0] == found[1]


def test_an_empty_batch_is_an_empty_batch() -> None:
    assert rows_of(evaluate_batches(plan_of(8), [batch_of([])])) == []


def test_each_document_hits_or_misses_each_cache_once() -> None:
    catalog = PatternCatalog()
    (query,) = xscl.parse("S//item[contains(title, 'a')]->x")
    Registered(catalog, query.blocks[0])
    xmls = [f"<item><title>{text}</title></item>".encode() for text in ("a", "b", "ab", "c")]
    batch = batch_of([*xmls, b"<item/>", b"<broken"])
    table = witness_table(evaluate_batches(catalog.plan(), [batch.slice(0, 3), batch.slice(3)]))
    counters = counters_of(table)
    assert (counters.raw_shape_misses, counters.raw_shape_hits) == (2, 3)
    # With an `a`, without one, and without a title.
    assert (counters.witness_shape_misses, counters.witness_shape_hits) == (3, 2)
    assert counters.automaton_states > 0
    assert counters_of(table.select(["docid"]).replace_schema_metadata()) == Counters()


def test_what_a_bound_pushes_out_is_counted() -> None:
    catalog = PatternCatalog()
    (query,) = xscl.parse("S//item[contains(title, 'a')]->x")
    Registered(catalog, query.blocks[0])
    evaluator = Evaluator(catalog.plan(), EvaluatorLimits(raw_shapes=1, outcomes=1, states=1))
    for xml in (b"<item><title>a</title></item>", b"<item><title/></item>", b"<item/>"):
        evaluator.evaluate("S", xml)
    counters = evaluator.take_counters()
    assert counters.raw_shape_evictions == 1
    assert counters.witness_shape_evictions == 2
    assert counters.automaton_evictions > 0
    assert evaluator.take_counters() == Counters(automaton_states=1)


def test_every_counter_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    for name in Counters().figures():
        assert f"`xscl_{name}`" in page


def test_a_batch_is_cut_where_its_values_are_many_and_each_piece_stands_alone() -> None:
    catalog = PatternCatalog()
    (query,) = xscl.parse("S//*->a FOLLOWED BY {a = b, 1 h} S//*->b", id="q")
    for block in query.blocks:
        Registered(catalog, block)
    plan = catalog.plan()
    documents = [b"<i><b>xxxx</b></i>"] * 5
    [whole] = evaluate_batches(plan, [batch_of(documents)])
    pieces = list(evaluate_batches(plan, [batch_of(documents)], EvaluatorLimits(characters=10)))
    assert [piece.num_rows for piece in pieces] == [2, 2, 1]
    assert all(piece.column("edges")[0].is_valid for piece in pieces)
    columns = ("docid", "shape", "nodes", "values")
    rows = pa.Table.from_batches([piece.select(columns) for piece in pieces]).to_pylist()
    assert rows == whole.select(columns).to_pylist()
