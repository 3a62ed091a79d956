"""Witnesses do not depend on how many of Spark's workers find them, or on what these know."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from generators.random_paths import random_block, random_xml
from support.registered import Registered

from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.pipeline.evaluation import PlanStore, evaluate_slices
from broker.pipeline.limits import PipelineLimits
from broker.pipeline.slices import slice_segments
from xpath_eval.catalog import EvaluationPlan, PatternCatalog
from xpath_eval.counters import Counters, counters_of, witness_table

if TYPE_CHECKING:
    from broker.pipeline.spark import Spark

pytestmark = pytest.mark.spark

DOCUMENTS = 120
Found = dict[int, tuple[object, ...]]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spool of random documents, some of them broken, and the plan of random patterns."""
    directory = tmp_path_factory.mktemp("evaluation")
    random_ = random.Random(11)
    PlanStore(directory / "plans").put(1, random_plan(random_))
    with closing(SpoolWriter(directory / "spool", Disk(is_durable=False))) as writer:
        ingest = Ingest(writer, dedup_horizon_us=None)
        for start in range(0, DOCUMENTS, 30):
            ingest.append(
                [
                    DocumentLine("S", random_xml(random_) if i % 9 else b"<broken", i, i)
                    for i in range(start, start + 30)
                ],
                registry_version=1,
            )
    return directory


def random_plan(random_: random.Random) -> EvaluationPlan:
    catalog = PatternCatalog()
    for _ in range(25):
        Registered(catalog, random_block(random_))
    return catalog.plan()


def evaluated_by(spark: Spark, directory: Path, checkpoint: Path, workers: int) -> list[pa.Table]:
    from broker.pipeline.spark import StreamSource

    source = StreamSource(directory / "spool", directory / "plans", 0, 60, workers, 1)
    tables: list[pa.Table] = []
    spark.stream(source, tables.append, checkpoint=checkpoint).finish()
    return tables


def found_in(tables: list[pa.Table]) -> Found:
    """Return what each document has, with the shape spelled out by the batch that it came in."""
    found: Found = {}
    for table in tables:
        rows = table.to_pylist()
        edges = {row["shape"]: row["edges"] for row in rows if row["edges"] is not None}
        for row in rows:
            named = None if row["shape"] is None else edges[row["shape"]]
            found[row["docid"]] = (row["error"], row["shape"], named, row["nodes"], row["values"])
    return found


@pytest.fixture(scope="module")
def expected(directory: Path) -> Found:
    (slices,) = slice_segments(Spool(directory / "spool"), 0, 4, parallelism=1)
    plans = PlanStore(directory / "plans")
    return found_in([witness_table(evaluate_slices(plans.get, slices))])


@pytest.mark.parametrize(("most", "together"), [(7, 7), (45, 30), (60, 60), (2_000, DOCUMENTS)])
def test_witnesses_are_the_same_however_many_documents_are_evaluated_together(
    directory: Path, expected: Found, most: int, together: int
) -> None:
    (slices,) = slice_segments(Spool(directory / "spool"), 0, 4, parallelism=1)
    limits = PipelineLimits(evaluated_documents=most)
    batches = list(evaluate_slices(PlanStore(directory / "plans").get, slices, limits))
    assert found_in([witness_table(batches)]) == expected
    assert max(batch.num_rows for batch in batches) == together, "segments have 30 documents each"


@pytest.mark.parametrize("workers", [1, 2])
def test_witnesses_are_the_same_by_any_number_of_workers(
    spark: Spark, directory: Path, tmp_path: Path, expected: Found, workers: int
) -> None:
    tables = evaluated_by(spark, directory, tmp_path / "checkpoint", workers)
    assert len(tables) > 1
    assert found_in(tables) == expected
    assert len(expected) == DOCUMENTS


def test_workers_that_know_every_shape_spell_all_of_them_out_again(
    spark: Spark, directory: Path, tmp_path: Path, expected: Found
) -> None:
    # As after a restart of the broker's own process: the reader knows no shape, the workers all.
    # Tasks are dealt out freely, so that one worker may have met only half of them until now.
    total = Counters()
    for again in range(2):
        tables = evaluated_by(spark, directory, tmp_path / f"checkpoint{again}", 2)
        assert found_in(tables) == expected
        for table in tables:
            total.add(counters_of(table))
    readable = sum(error is None for error, *_ in expected.values())
    assert total.raw_shape_hits + total.raw_shape_misses == 2 * readable
    assert total.raw_shape_hits >= readable // 2
    assert total.automaton_states > 0
