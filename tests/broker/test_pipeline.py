from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import doomed
from support.standin import Documents, StandInEngine

from broker.documents.disk import Disk
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.engine import Engine
from broker.matching.stepresult import StepResult
from broker.pipeline.evaluation import PlanStore, evaluate_slices
from broker.pipeline.outbox import Outbox
from broker.pipeline.slices import slice_segments
from broker.pipeline.steps import Pipeline, PipelineError
from xpath_eval.witnesses import WITNESS_SCHEMA


class Stand:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.outbox = Outbox(directory / "outbox.db", now_us=lambda: 0)
        self.writer = SpoolWriter(directory / "spool", Disk(is_durable=False))
        self.ingest = Ingest(self.writer)
        self.plans = PlanStore(directory / "plans")
        self.pipeline = self.make_pipeline()
        self.pipeline.recover(1)

    def make_pipeline(
        self,
        engines: Callable[[int], Any] = lambda version: StandInEngine(query=f"v{version}"),
    ) -> Pipeline:
        return Pipeline(Spool(self.directory / "spool"), self.outbox, engines, self.plans)

    def accept(self, start: int, stop: int, *, version: int = 1) -> None:
        lines = doomed.document_lines(stop)[start:stop]
        self.ingest.append(lines, registry_version=version)

    def witnesses(self, after: int, through: int) -> pa.Table:
        [slices] = slice_segments(Spool(self.directory / "spool"), after, through, 1)
        return pa.Table.from_batches(evaluate_slices(self.plans.get, slices), WITNESS_SCHEMA)

    def ids(self) -> list[str]:
        return [match.id for match in self.outbox.matches.find(limit=10_000)]


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    stand = Stand(tmp_path)
    yield stand
    stand.outbox.close()
    stand.writer.close()


def test_a_batch_that_is_committed_changes_nothing_more(stand: Stand) -> None:
    stand.accept(0, 6)
    stand.accept(6, 11)
    stand.pipeline.step(stand.witnesses(0, 2))
    before = stand.ids()
    assert stand.pipeline.step(stand.witnesses(0, 2)) == []
    assert stand.pipeline.step(stand.witnesses(0, 1)) == []
    assert stand.ids() == before != []


def test_of_a_batch_that_is_partly_committed_the_rest_is_processed(stand: Stand) -> None:
    stand.accept(0, 6)
    stand.accept(6, 11)
    stand.pipeline.step(stand.witnesses(0, 1))
    [summary] = stand.pipeline.step(stand.witnesses(0, 2))
    assert (summary.documents, summary.through) == (4, 2)


def test_of_a_batch_that_is_partly_committed_the_rest_spells_out_its_shapes(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, given = Engine.process, list[pa.Table]()

    def note(engine: Engine, witnesses: pa.Table, documents: Documents) -> StepResult:
        given.append(witnesses)
        return process(engine, witnesses, documents)

    monkeypatch.setattr(Engine, "process", note)
    stand.pipeline = stand.make_pipeline(doomed.deciding)
    stand.pipeline.recover(1)
    stand.accept(0, 6)
    stand.accept(6, 11)
    stand.pipeline.step(stand.witnesses(0, 1))
    stand.pipeline.step(stand.witnesses(0, 2))
    _, rest = given
    shapes, edges = (rest.column(name).to_pylist() for name in ("shape", "edges"))
    spelled = [shape for shape, own in zip(shapes, edges, strict=True) if own is not None]
    assert len(rest) == 4
    assert sorted(spelled) == sorted({*shapes})


def test_a_batch_with_a_document_missing_is_refused(stand: Stand) -> None:
    stand.accept(0, 6)
    witnesses = stand.witnesses(0, 1)
    with pytest.raises(PipelineError, match="5 of the documents 1 to 6"):
        stand.pipeline.step(pa.concat_tables([witnesses.slice(0, 2), witnesses.slice(3)]))
    assert stand.pipeline.through == 0


def test_a_second_pipeline_on_the_same_outbox_is_noticed(stand: Stand) -> None:
    stand.accept(0, 6)
    other = stand.make_pipeline()
    other.recover(1)
    stand.pipeline.step(stand.witnesses(0, 1))
    with pytest.raises(PipelineError, match="another process"):
        other.step(stand.witnesses(0, 1))


def test_a_batch_over_a_change_of_queries_is_two_commits(stand: Stand) -> None:
    stand.accept(0, 5)
    stand.pipeline.prepare(2)
    stand.accept(5, 10, version=2)
    first, second = stand.pipeline.step(stand.witnesses(0, 2))
    assert (first.through, second.through) == (1, 2)
    queries = {match.query for match in stand.outbox.matches.find() if match.position > 5}
    assert queries == {"v2"}


def test_plans_that_nothing_is_evaluated_with_any_more_are_deleted(stand: Stand) -> None:
    for version in (1, 2, 3):
        stand.pipeline.prepare(version)
        stand.accept(3 * version, 3 * version + 3, version=version)
    list(stand.pipeline.drain(batch_documents_max=6))
    stand.accept(12, 15, version=4)
    stand.pipeline.prepare(4)
    stand.pipeline.forget_plans()
    names = sorted(path.name for path in stand.plans.directory.glob("*.version"))
    assert names == ["3.version", "4.version"]
    assert [summary.documents for summary in stand.pipeline.drain()] == [3]


def test_a_plan_that_lost_power_has_cut_short_is_written_anew(stand: Stand) -> None:
    stand.accept(0, 3)
    [plan] = stand.plans.directory.glob("*.plan")
    plan.write_bytes(b"")
    pipeline = stand.make_pipeline()
    pipeline.recover(1)
    assert [summary.documents for summary in pipeline.drain()] == [3]


def test_state_is_made_from_segments_that_are_merged_meanwhile(stand: Stand) -> None:
    stand.accept(0, 3)
    stand.accept(3, 6)
    stand.accept(6, 11)
    list(stand.pipeline.drain())
    undisturbed = stand.ids()
    reader = stand.make_pipeline()
    assert stand.writer.compact(through=3, documents_max=100) == 3
    reader.recover(2)
    stand.accept(11, 14, version=2)
    list(reader.drain())
    assert len(stand.ids()) > len(undisturbed)


def test_draining_takes_at_least_one_segment_and_then_up_to_the_batch_size(stand: Stand) -> None:
    for start in range(0, 6, 2):
        stand.accept(start, start + 2)
    summaries = list(stand.pipeline.drain(batch_documents_max=4))
    assert [summary.documents for summary in summaries] == [4, 2]
    stand.accept(8, 14)
    assert [s.documents for s in stand.pipeline.drain(batch_documents_max=1)] == [6]


def test_a_document_that_is_not_xml_is_a_dead_letter_with_its_reason(stand: Stand) -> None:
    stand.accept(10, 13)
    [summary] = stand.pipeline.drain()
    assert summary.dead_letters == 1
    [letter] = stand.outbox.dead_letters()
    assert letter.docid == 2
    assert letter.reason


def test_while_a_batch_is_joined_what_is_still_needed_is_what_was_before(stand: Stand) -> None:
    asked: list[int] = []

    class Asking(StandInEngine):
        def process(self, witnesses: pa.Table, documents: Documents) -> StepResult:
            asked.append(pipeline.horizon_us())
            return super().process(witnesses, documents)

    pipeline = stand.make_pipeline(lambda version: Asking(window_us=1))
    pipeline.recover(1)
    after = []
    for segment in range(3):
        after.append(pipeline.horizon_us())
        stand.accept(4 * segment, 4 * segment + 4)
        pipeline.step(stand.witnesses(segment, segment + 1))
    assert asked == after
    assert len(set(asked)) == 3
