"""The streaming query: with `spoolsource` the only module that knows Spark.

The source is the spool.  An offset is a segment number; a batch `(start, end]` is cut into even
slices, one task each; a task that reads its slices evaluates them (`spoolsource`), and passes the
witnesses on as Arrow streams in a binary column, so the JVM carries bytes and never converts them.
`foreachBatch` gathers the witnesses of the batch in the driver and hands them over to `step`, which
commits, while Spark evaluates the next batch (`inflight`).  Spark has its own checkpoint, and that
one decides nothing: it is behind, since only the first batch of each run is written, it may be
lost, and where it is ahead of what was committed, as where the broker was killed before it had
joined what was evaluated, it is thrown away.

Where the join is spread over shards, `step` asks for them in jobs of their own: one task for each
shard.  The partitions of a cached, empty dataset stand for the shards, so that Spark prefers the
executor that carried out a shard's last task and still remembers its state.

Records of other systems, as of Kafka, are read by streaming queries of their own, and become
documents of the spool before they are anything else.

Invariants: one streaming query over the spool per broker, one Spark session per process.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyspark
from pyspark import RDD, SparkContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import sum as sum_
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import LongType, StructType
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from broker.pipeline.checkpoint import is_ahead
from broker.pipeline.evaluation import read_witnesses
from broker.pipeline.inflight import InFlight
from broker.pipeline.jvm import (
    Java,
    Jvm,
    find_java,
    socket_directory,
    socket_settings,
    start_jvm,
    worker_environment,
)
from broker.pipeline.limits import DEFAULT_PIPELINE_LIMITS, PipelineLimits
from broker.pipeline.querystart import started
from broker.pipeline.shards import ShardTask, carry_out
from broker.pipeline.spoolsource import FORMAT, SpoolSource
from broker.pipeline.store.objects import StorePlace, plainly
from joins.shards.orders import Answer

__all__ = [
    "OBSERVED",
    "OnEvaluated",
    "Records",
    "Spark",
    "SparkError",
    "SparkQuery",
    "StreamSource",
]

_SETTINGS = {
    # Otherwise workers of a stream have another environment than those of the warming up, and with
    # it a process of their own to be forked from.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "3",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1",
    "spark.sql.streaming.pollingDelay": "20ms",
    # Of jobs that are done nobody asks; Spark would keep a thousand, some 15 MB and more.
    "spark.ui.retainedJobs": "8",
    "spark.ui.retainedStages": "8",
    "spark.ui.retainedTasks": "64",
    "spark.ui.dagGraph.retainedRootRDDs": "8",
    "spark.sql.ui.retainedExecutions": "1",
    # An executor that is lost is a failure of its task: where executors are lost again and again,
    # one task may be with each of them.  What fails by itself fails at once, each time.
    "spark.task.maxFailures": "16",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.hadoop.fs.permissions.umask-mode": "077",  # Hadoop heeds no other umask
    # For each file Hadoop begins a process that sets its mode: a checkpoint has none with sums.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # It begins two more where it renames one by its newer interface, to see that it is no link.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}

_FIRST_BATCH_ONLY = {
    "asyncProgressTrackingEnabled": "true",
    # Longer than any query runs: then there are no gaps in the numbers of batches in a checkpoint,
    # with which a release that writes all of them could not go on.
    "asyncProgressTrackingCheckpointIntervalMs": str(100 * 365 * 86_400_000),
    # Spark knows of few sinks that these do for.
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}
"""Options of a query whose checkpoint decides nothing: Spark writes that of its first batch alone.
Each other batch would wait for two files, and for a process that sets the mode of each."""

OnEvaluated = Callable[[float, float], None]
"""Hears for how many seconds a batch was evaluated, and has waited since to be joined."""

_COUNTED = ("documents", "dead_letters", "left_out")
_NOTHING = StructType().add("nothing", LongType())

OBSERVED = "xscl_evaluated"
"""Under this name Spark's listeners of streaming queries see the counts of each batch."""

_PLANNERS = "pyspark.sql.worker."
"""What Python processes that Spark plans with have in their command lines."""

# On one machine nothing of Spark listens to others.
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


class SparkError(RuntimeError):
    """The streaming query has failed.  The cause is chained where it arose in this process."""


@dataclass(frozen=True, slots=True)
class StreamSource:
    """What a streaming query reads: a spool, its plans, and how much of it in one batch.

    `through` is the last segment whose results are committed; the query begins behind it.  A batch
    has a task for each `task_documents`, or `limits.task_bytes`, up to `parallelism` of them: what
    a task costs beside the documents is what some hundred of them cost.  With `packs` tasks read
    what they need there, and need not see the spool.
    """

    spool: Path
    plans: Path
    through: int
    batch_documents_max: int = 10_000
    parallelism: int = 2
    task_documents: int = 500
    limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS
    packs: StorePlace | None = None

    def options(self) -> dict[str, str]:
        """Return these as options of a Spark source."""
        return {
            "spool": str(self.spool),
            "plans": str(self.plans),
            "through": str(self.through),
            "batchDocumentsMax": str(self.batch_documents_max),
            "batchBytesMax": str(self.limits.batch_bytes),
            "parallelism": str(self.parallelism),
            "taskDocuments": str(self.task_documents),
            "taskBytes": str(self.limits.task_bytes),
            "limits": pickle.dumps(self.limits).hex(),
            **({"store": self.packs.address, "packs": self.packs.folder} if self.packs else {}),
        }


@dataclass(frozen=True, slots=True)
class Records:
    """A streaming source of Spark's: the name of its format, its options, what is read of it."""

    format: str
    options: Mapping[str, str]
    columns: Sequence[str]


class Spark:
    """A Spark session in its own JVM.  Start one per process, and stop it."""

    def __init__(
        self, jvm: Jvm, session: SparkSession, sockets: TemporaryDirectory[str] | None
    ) -> None:
        self._jvm = jvm
        self._session = session
        self._sockets = sockets
        self._places: dict[int, RDD[int]] = {}

    @classmethod
    def start(
        cls,
        log_directory: Path,
        *,
        master: str = "local[2]",
        heap: str = "1g",
        has_shards: bool = False,
        is_brief: bool = False,
    ) -> Spark:
        """Start a JVM and a session.  Spark's log is written to `log_directory`.

        With `has_shards` workers begin with what the join needs, not only the evaluation;
        `is_brief` is as in `start_jvm`.
        """
        assert SparkContext._active_spark_context is None, "a process has one Spark session"
        jvm = start_jvm(
            find_java(),
            spark_home=Path(pyspark.__file__).parent,
            log_directory=log_directory,
            heap=heap,
            environment=worker_environment(is_local=is_local(master)),
            has_executors=not master.startswith("local["),
            is_brief=is_brief,
        )
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_GATEWAY_PORT"] = str(jvm.port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = jvm.secret
        builder = SparkSession.builder.master(master).appName("xscl")
        settings = {**_SETTINGS, **(_LOOPBACK if is_local(master) else {})}
        sockets = socket_directory() if is_local(master) else None
        if sockets is not None:
            settings |= socket_settings(sockets.name)
        for name, value in settings.items():
            builder = builder.config(name, value)
        workers = "broker.pipeline.shardworkers" if has_shards else "broker.pipeline.workers"
        builder = builder.config("spark.python.daemon.module", workers)
        builder = builder.config("spark.sql.warehouse.dir", str(log_directory / "warehouse"))
        session = builder.getOrCreate()
        session.dataSource.register(SpoolSource)
        _warm_up(session)
        return cls(jvm, session, sockets)

    @property
    def java(self) -> Java:
        """The Java runtime that it runs on."""
        return self._jvm.java

    def stream(
        self,
        source: StreamSource,
        step: Callable[[pa.Table], object],
        *,
        checkpoint: Path,
        interval_s: float = 0.0,
        on_evaluated: OnEvaluated = lambda seconds, waited_s: None,
    ) -> SparkQuery:
        """Start the streaming query.  `step` gets the witnesses of each batch, in docid order.

        It is called while the next batch is evaluated, and right after `on_evaluated`.
        """
        if is_ahead(checkpoint, source.through):
            shutil.rmtree(checkpoint)
        query = SparkQuery(step, on_evaluated)
        found = self._session.readStream.format(FORMAT).options(**source.options()).load()
        counts = [sum_(name).alias(name) for name in _COUNTED]
        evaluated = found.observe(OBSERVED, *counts).select("witnesses")
        query.start(evaluated, checkpoint, interval_s, _FIRST_BATCH_ONLY)
        return query

    def consume(
        self,
        records: Records,
        take: Callable[[pa.Table], object],
        *,
        checkpoint: Path,
        interval_s: float = 0.0,
    ) -> SparkQuery:
        """Start a streaming query over records from elsewhere; `take` gets those of each batch.

        It may get records again: all behind the last batch that is in the checkpoint, which Spark
        writes when `take` has returned.  Raises `SparkError` where Spark does not know the format.
        """
        query = SparkQuery(take, read=lambda batch: batch.toArrow(), is_overlapping=False)
        reader = self._session.readStream.format(records.format).options(**records.options)
        try:
            rows = reader.load().select(*records.columns)
        except AnalysisException as error:
            raise SparkError(f"Spark cannot read {records.format}: {error}") from error
        query.start(rows, checkpoint, interval_s)
        return query

    def run_tasks(self, tasks: Sequence[ShardTask]) -> list[Answer]:
        """Carry out tasks of shards, each as a task of one Spark job."""
        if not tasks:
            return []
        # Each task gets all of them, and makes an object of its own alone.
        by_shard = {task.order.shard: pickle.dumps(task) for task in tasks}
        shards = tasks[0].join.shards
        if shards not in self._places:
            context = self._session.sparkContext
            self._places[shards] = context.parallelize(range(shards), shards).cache()

        def work(shard: int, partition: Iterable[int]) -> Iterator[bytes]:
            # Without a look at the partition it would not be cached.
            for _ in partition:
                task: ShardTask = pickle.loads(by_shard[shard])
                yield pickle.dumps(carry_out(task), pickle.HIGHEST_PROTOCOL)

        job = self._places[shards].mapPartitionsWithIndex(work)
        context = self._session.sparkContext
        found = context.runJob(job, list, [task.order.shard for task in tasks])
        return [pickle.loads(answer) for answer in found]

    def end_planners(self) -> None:
        """End the Python processes that Spark has asked how to read the spool, where it is done.

        Their workers end when they have had nothing to do for a minute; Spark keeps for ever what
        these were forked from, 46 MB for each kind of question, and begins it anew if it is gone.
        What the JVM itself has left of planning it is asked to give back then.
        """
        if self._jvm.end_idle_children(_PLANNERS):
            jvm: Any = SparkContext._jvm
            jvm.java.lang.System.gc()

    def stop(self) -> None:
        """Stop the session and its JVM."""
        self._session.stop()
        gateway = SparkContext._gateway
        if gateway is not None:
            gateway.shutdown()
        SparkContext._gateway = None
        SparkContext._jvm = None
        for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
            os.environ.pop(name, None)
        self._jvm.stop()
        if self._sockets is not None:
            self._sockets.cleanup()


class _Batch(NamedTuple):
    rows: pa.Table
    evaluation_s: float
    ended: float


class SparkQuery:
    """A running streaming query; if it `is_overlapping`, `step` is called beside the next batch."""

    def __init__(
        self,
        step: Callable[[pa.Table], object],
        on_evaluated: OnEvaluated = lambda seconds, waited_s: None,
        *,
        read: Callable[[DataFrame], pa.Table] | None = None,
        is_overlapping: bool = True,
    ) -> None:
        self._step = step
        self._read = read or (lambda batch: read_witnesses(batch.toArrow()))
        self._on_evaluated = on_evaluated
        self._is_overlapping = is_overlapping
        self._query: StreamingQuery | None = None
        self._failure: BaseException | None = None
        self._in_flight = InFlight(self._take, self._fail)
        self._handling = threading.Lock()
        self._is_stopping = False

    def start(
        self,
        rows: DataFrame,
        checkpoint: Path,
        interval_s: float,
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Have Spark run it over rows; batches begin `interval_s` apart at the least."""
        writer = rows.writeStream.foreachBatch(self.handle).options(**options)
        writer = writer.option("checkpointLocation", str(checkpoint))
        if interval_s:
            writer = writer.trigger(processingTime=f"{round(interval_s * 1000)} milliseconds")
        self._query = started(writer.start)

    def handle(self, batch: DataFrame, batch_id: int) -> None:
        """Take one batch from Spark.  Its id decides nothing."""
        with self._handling:
            if self._is_stopping:
                # To return would tell Spark that the batch was taken.
                raise SparkError("the streaming query is being stopped")
            try:
                self._hand_over(batch)
            except BaseException as error:
                self._fail(error)
                raise

    def _hand_over(self, batch: DataFrame) -> None:
        began = time.perf_counter()
        rows = self._read(batch)
        ended = time.perf_counter()
        self._in_flight.hand_over(_Batch(rows, ended - began, ended))
        if not self._is_overlapping:
            self._in_flight.wait()

    def _take(self, batch: _Batch) -> None:
        self._on_evaluated(batch.evaluation_s, time.perf_counter() - batch.ended)
        self._step(batch.rows)

    def _fail(self, error: BaseException) -> None:
        """Keep what made a batch fail: the query ends with the next one."""
        self._failure = self._failure or error

    @property
    def is_running(self) -> bool:
        """Whether the query takes batches."""
        return self._failure is None and self._query is not None and bool(self._query.isActive)

    def check(self) -> None:
        """Raise `SparkError` if the query has failed."""
        assert self._query is not None
        self._check_batches()
        if not self._query.isActive and (error := self._query.exception()) is not None:
            raise SparkError(plainly(error))

    def _check_batches(self) -> None:
        if self._failure is not None:
            reason = plainly(self._failure)
            raise SparkError(f"the pipeline has failed: {reason}") from self._failure

    def wait(self, timeout_s: float) -> bool:
        """Wait for the query to end; return whether it has.  Raises `SparkError` if it failed."""
        assert self._query is not None
        try:
            is_ended = bool(self._query.awaitTermination(timeout_s))  # type: ignore[arg-type]
        except Exception as error:
            self.check()
            raise SparkError(plainly(error)) from error
        self.check()
        return is_ended

    def finish(self) -> None:
        """Process all that the spool holds, wait for Spark's checkpoint too, then end the query."""
        assert self._query is not None
        self._query.processAllAvailable()
        self.stop()
        self._check_batches()

    def stop(self) -> None:
        """Finish the batches in flight, then end the query."""
        # Spark interrupts a running batch; what is evaluated here is finished first.
        with self._handling:
            self._is_stopping = True
        self._in_flight.close()
        if self._query is not None and self._query.isActive:
            self._query.stop()


def _warm_up(session: SparkSession) -> None:
    """Start the workers, which import what a task needs: that takes seconds.

    It is `DataFrame.mapInArrow` without its demand for pandas, which nothing here uses: 40 MB.
    """
    cores = session.sparkContext.defaultParallelism
    nothing: Any = session.createDataFrame([], _NOTHING).repartition(cores)
    function = UserDefinedFunction(iter, _NOTHING, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column: Any = function(*[nothing[name] for name in nothing.columns])
    DataFrame(nothing._jdf.mapInArrow(column._jc, False, None), session).toArrow()


def is_local(master: str) -> bool:
    """Return whether a master is on this machine alone.

    >>> is_local("local[2]"), is_local("local-cluster[2,1,1024]"), is_local("spark://host:7077")
    (True, True, False)
    """
    return master.startswith("local")
