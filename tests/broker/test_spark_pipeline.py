from __future__ import annotations

import os
import shutil
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support import doomed
from support.examples import some
from support.kit import parse_case
from support.processes import below, command_of
from support.runners import run_engine
from support.standin import StandInEngine

from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.outbox import Outbox
from broker.pipeline.shards import Join, Tasks, carry_out
from broker.pipeline.steps import Pipeline, StepSummary
from broker.pipeline.store.objects import Objects, StorePlace
from joins.shards.limits import ShardLimits
from xpath_eval.catalog import EvaluationPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from broker.pipeline.spark import Spark, SparkQuery

pytestmark = pytest.mark.spark


class Stand:
    """A broker's core on a directory; opened again, it is the broker after a restart."""

    def __init__(
        self, directory: Path, engines: Callable[[int], StandInEngine] | None = None
    ) -> None:
        self.directory = directory
        self.outbox = Outbox(directory / "outbox.db", now_us=lambda: 0)
        self.writer = SpoolWriter(directory / "spool", Disk(is_durable=False))
        self.ingest = Ingest(self.writer, dedup_horizon_us=None)
        self.plans = PlanStore(directory / "plans")
        self.steps: list[StepSummary] = []
        self.received: list[int] = []
        self.packs: StorePlace | None = None
        self.pipeline = Pipeline(
            Spool(directory / "spool"),
            self.outbox,
            engines or (lambda version: StandInEngine()),
            self.plans,
            on_step=self.steps.append,
        )
        self.pipeline.recover(1)

    def accept(self, lines: list[DocumentLine], *, size: int = 5, version: int = 1) -> None:
        for start in range(0, len(lines), size):
            self.ingest.append(lines[start : start + size], registry_version=version)

    def step(self, witnesses: pa.Table) -> None:
        self.received += witnesses.column("docid").to_pylist()
        self.pipeline.step(witnesses)

    def stream(self, spark: Spark, batch_documents_max: int = 8) -> SparkQuery:
        from broker.pipeline.spark import StreamSource

        source = StreamSource(
            self.directory / "spool",
            self.directory / "plans",
            self.pipeline.through,
            batch_documents_max=batch_documents_max,
            task_documents=1,
            packs=self.packs,
        )
        return spark.stream(source, self.step, checkpoint=self.directory / "checkpoint")

    def catch_up(self, query: SparkQuery) -> None:
        deadline = time.monotonic() + 60
        while self.pipeline.through < self.writer.last:
            assert time.monotonic() < deadline
            query.wait(0.02)

    def run(self, spark: Spark, batch_documents_max: int = 8) -> None:
        """Process everything, and stop when Spark has written its checkpoint too."""
        query = self.stream(spark, batch_documents_max)
        self.catch_up(query)
        query.finish()

    def close(self) -> None:
        self.outbox.close()
        self.writer.close()


@pytest.fixture
def lines() -> list[DocumentLine]:
    return doomed.document_lines(40)


@pytest.fixture
def expected(tmp_path: Path) -> list[tuple[object, ...]]:
    directory = tmp_path / "expected"
    directory.mkdir()
    doomed.live(str(directory))
    return doomed.contents(directory)


@dataclass(frozen=True)
class Half:
    """A broker's directory when it has stopped behind the first half of the documents."""

    directory: Path
    received: list[int]

    def copied(self, directory: Path) -> Stand:
        """Return the broker after a restart on a copy, with the second half accepted."""
        shutil.copytree(self.directory, directory, dirs_exist_ok=True)
        restarted = Stand(directory)
        restarted.accept(doomed.document_lines(40)[20:])
        return restarted


@pytest.fixture(scope="module")
def half(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Half:
    stand = Stand(tmp_path_factory.mktemp("half"))
    stand.accept(doomed.document_lines(40)[:20])
    stand.run(spark)
    stand.close()
    return Half(stand.directory, stand.received)


def test_spark_commits_what_the_in_process_runner_commits(
    spark: Spark, tmp_path: Path, lines: list[DocumentLine], expected: list[tuple[object, ...]]
) -> None:
    stand = Stand(tmp_path)
    stand.accept(lines)
    stand.run(spark)
    stand.close()
    assert len(stand.steps) > 2
    assert doomed.contents(tmp_path) == expected


def test_tasks_read_what_was_packed_for_them(
    spark: Spark, tmp_path: Path, lines: list[DocumentLine], expected: list[tuple[object, ...]]
) -> None:
    stand = Stand(tmp_path)
    stand.packs = StorePlace.of(tmp_path / "store").below("documents/run")
    stand.accept(lines)
    stand.run(spark)
    stand.close()
    assert doomed.contents(tmp_path) == expected
    left = sorted(Path(name).suffix for name in Objects(stand.packs).names())
    assert left[-2:] == [".plan", ".version"]
    assert set(left[:-2]) == {".pack"}


def test_listeners_of_spark_see_what_was_evaluated(
    spark: Spark, tmp_path: Path, lines: list[DocumentLine]
) -> None:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    from broker.pipeline.spark import OBSERVED

    class Listener(StreamingQueryListener):
        seen: list[dict[str, int]]

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            if OBSERVED in event.progress.observedMetrics:
                self.seen.append(event.progress.observedMetrics[OBSERVED].asDict())

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            self.ended.set()

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

    listener = Listener()
    listener.seen, listener.ended = [], threading.Event()
    spark._session.streams.addListener(listener)
    try:
        stand = Stand(tmp_path)
        broken = replace(lines[0], key="broken", xml=b"<a>")
        stand.accept([*lines, broken])
        stand.run(spark)
        stand.close()
        assert listener.ended.wait(60)
    finally:
        spark._session.streams.removeListener(listener)
    seen = {name: sum(each[name] for each in listener.seen) for name in listener.seen[0]}
    dead_letters = sum(step.dead_letters for step in stand.steps)
    assert seen == {
        "documents": stand.writer.last_docid,
        "dead_letters": dead_letters,
        "left_out": 0,
    }
    assert dead_letters > 0


def test_a_session_of_spark_reads_what_shards_remember(spark: Spark, tmp_path: Path) -> None:
    from broker.pipeline.store.frames import StateSource

    place = StorePlace.of(tmp_path / "shards")
    case = parse_case(
        "query q\n  S//a[v->x1] FOLLOWED BY {x1 = x2, 2 h} S//a[v->x2]\n"
        + "".join(f"document {i} S 12:{i:02} <a><v>{i % 3}</v></a>\n" for i in range(1, 31))
        + "----\n"
    )
    tasks = Tasks(lambda some: [carry_out(each) for each in some], place)
    join = Join(case.lateness_us, 2, limits=ShardLimits(pieces=2, piece_rows=10))
    run_engine(case, batch_size=2, processors=lambda: join.processor(tasks))
    [run] = Objects(place).names()
    [name, *_] = [each for each in Objects(place.below(run)).names() if each.startswith("0-")]
    shutil.copy(tmp_path / "shards" / run / name, tmp_path / "shards" / run / "0-1-twice")
    spark._session.dataSource.register(StateSource)
    frame = spark._session.read.format("xscl-state").load(str(tmp_path / "shards"))
    rows = frame.orderBy("instance").collect()
    assert [row.docid for row in rows] == [*range(1, 31)]
    assert {row.shard for row in rows} == {0, 1}
    assert [row["values"] for row in rows[:3]] == [[None, "1"], [None, "2"], [None, "0"]]
    assert rows[0].end - rows[1].end == timedelta(minutes=-1)
    assert frame.filter("array_contains(values, '2')").count() == 10


def test_spark_and_python_speak_over_sockets_of_this_user_alone(spark: Spark) -> None:
    directory = Path(spark._session.conf.get("spark.python.unix.domain.socket.dir"))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert any(path.is_socket() for path in directory.iterdir())


def test_of_each_run_only_the_first_batch_is_in_the_checkpoint(
    spark: Spark, tmp_path: Path, half: Half
) -> None:
    def files(directory: Path) -> set[str]:
        checkpoint = directory / "checkpoint"
        return {
            str(path.relative_to(checkpoint)) for path in checkpoint.rglob("*") if path.is_file()
        }

    assert len(set(half.received)) > 8, "batches have 8 documents"
    first = {"metadata", "offsets/0", "commits/0"}
    assert files(half.directory) == first
    restarted = half.copied(tmp_path)
    restarted.run(spark)
    restarted.close()
    # Numbers without a gap, with which a release that writes all batches goes on as well.
    assert files(tmp_path) == first | {"offsets/1", "commits/1"}


def test_the_process_that_reads_the_spool_has_not_loaded_arrow(
    spark: Spark, tmp_path: Path, lines: list[DocumentLine]
) -> None:
    stand = Stand(tmp_path)
    stand.accept(lines)
    query = stand.stream(spark)
    stand.catch_up(query)
    readers = [pid for pid in below(os.getpid()) if "source_runner" in command_of(pid)]
    maps = [Path(f"/proc/{pid}/maps").read_text() for pid in readers]
    query.finish()
    stand.close()
    assert [("libc.so" in text, "libarrow" in text) for text in maps] == [(True, False)]


def test_a_batch_that_spark_repeats_is_dropped(
    spark: Spark, tmp_path: Path, half: Half, expected: list[tuple[object, ...]]
) -> None:
    restarted = half.copied(tmp_path)
    # As if the broker had been killed after the outbox's commit and before Spark's.
    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    restarted.run(spark)
    restarted.close()
    assert doomed.contents(tmp_path) == expected


def test_a_batch_that_was_never_committed_is_processed_again(
    spark: Spark, tmp_path: Path, lines: list[DocumentLine], expected: list[tuple[object, ...]]
) -> None:
    class OutboxError(Exception):
        pass

    stand = Stand(tmp_path)
    stand.accept(lines)
    commit = stand.outbox.commit

    def fails_once(**arguments: object) -> bool:
        stand.outbox.commit = commit  # type: ignore[method-assign]
        raise OutboxError("the disk is full")

    stand.outbox.commit = fails_once  # type: ignore[method-assign]
    from broker.pipeline.spark import SparkError

    query = stand.stream(spark)
    with pytest.raises(SparkError, match="the disk is full"):
        query.wait(60)
    assert not query.is_running
    # The same process takes it up again: nothing of the failed batch is remembered.
    stand.run(spark)
    stand.close()
    assert doomed.contents(tmp_path) == expected


def test_spark_evaluates_on_while_a_batch_is_joined_and_nothing_is_lost_where_that_fails(
    spark: Spark,
    tmp_path: Path,
    lines: list[DocumentLine],
    expected: list[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from broker.pipeline.spark import SparkError, SparkQuery

    class JoinError(Exception):
        pass

    begun: list[int] = []
    handle = SparkQuery.handle

    def noted(query: SparkQuery, batch: DataFrame, batch_id: int) -> None:
        begun.append(batch_id)
        handle(query, batch, batch_id)

    monkeypatch.setattr(SparkQuery, "handle", noted)

    class Dying(Stand):
        def step(self, witnesses: pa.Table) -> None:
            # Spark believes that this batch is done, and has begun the next one.
            while not (begun == [0, 1] and (tmp_path / "checkpoint/commits/0").exists()):
                time.sleep(0.01)
            raise JoinError("out of memory")

    dying = Dying(tmp_path)
    dying.accept(lines)
    query = dying.stream(spark)
    with pytest.raises(SparkError, match="out of memory"):
        query.wait(60)
    query.stop()
    dying.close()
    assert doomed.contents(tmp_path) != expected
    monkeypatch.undo()
    restarted = Stand(tmp_path)
    assert restarted.pipeline.through == 0
    restarted.run(spark)
    restarted.close()
    assert doomed.contents(tmp_path) == expected


def test_what_made_the_last_batch_fail_is_told_though_no_other_comes(
    spark: Spark, tmp_path: Path, lines: list[DocumentLine]
) -> None:
    from broker.pipeline.spark import SparkError

    class Dying(Stand):
        def step(self, witnesses: pa.Table) -> None:
            raise OSError("the disk is full")

    stand = Dying(tmp_path)
    stand.accept(lines[:1], size=1)
    query = stand.stream(spark)
    with pytest.raises(SparkError, match="the disk is full"):
        query.finish()
    assert not query.is_running
    stand.close()


@pytest.mark.parametrize(
    "lost", some(["", "checkpoint", "checkpoint/commits", "checkpoint/offsets"], 1)
)
def test_a_restarted_broker_goes_on_whatever_is_lost_of_the_checkpoint(
    spark: Spark, tmp_path: Path, half: Half, expected: list[tuple[object, ...]], lost: str
) -> None:
    restarted = half.copied(tmp_path)
    if lost:
        shutil.rmtree(tmp_path / lost)
    restarted.run(spark)
    restarted.close()
    assert min(restarted.received) == max(half.received) + 1
    assert doomed.contents(tmp_path) == expected


def test_a_checkpoint_ahead_of_the_outbox_is_thrown_away(
    spark: Spark, tmp_path: Path, half: Half, expected: list[tuple[object, ...]]
) -> None:
    stand = half.copied(tmp_path)
    stand.run(spark)
    stand.close()
    # A backup of the first half takes the place of the outbox.
    for path in tmp_path.glob("outbox.db*"):
        path.unlink()
    shutil.copy(half.directory / "outbox.db", tmp_path)
    restored = Stand(tmp_path)
    restored.run(spark)
    restored.close()
    assert doomed.contents(tmp_path) == expected


def test_a_change_of_queries_reaches_the_workers_of_a_running_query(
    spark: Spark, tmp_path: Path, lines: list[DocumentLine]
) -> None:
    def engine(version: int) -> StandInEngine:
        # Plans that differ, and ask for nothing: the stand-in needs no witnesses.
        plan = EvaluationPlan((), (), frozenset({version}))
        return StandInEngine(query=f"v{version}", plan=plan)

    stand = Stand(tmp_path, engine)
    query = stand.stream(spark)
    stand.accept(lines[:10])
    stand.catch_up(query)
    before = stand.writer.next_docid - 1
    stand.pipeline.prepare(2)
    stand.accept(lines[10:20], version=2)
    stand.accept(lines[20:], version=2)
    stand.catch_up(query)
    query.finish()
    found = stand.outbox.matches.find(limit=10_000)
    stand.close()
    assert {match.query for match in found if match.position <= before} == {"v1"}
    assert {match.query for match in found if match.position > before} == {"v2"}
    # The new engine knows the documents from before the change.
    assert min(match.oldest for match in found if match.query == "v2") <= before
