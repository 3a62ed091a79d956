"""Kill the executors of a Spark cluster while a stream is joined on them, and compare the outbox.

    make soak ARGS="--only executors"
    python -m kills.executors --minutes 10 --seed 7      in tests/, as `kills`

The cluster is `local-cluster[2,1,1024]`, on this machine; what is evaluated and what is joined in
shards is in tasks of its two executors.  Documents come all the time, and every ten seconds one of
the executors is killed, with what it remembers.  In the end the outbox must have what one has that
nobody disturbed, without Spark and without shards.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from support.cluster_process import QUERIES, document_line, start_cluster
from support.processes import below, command_of

import xscl
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine, parse_document_line
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.engine import Engine, RegisteredQuery
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.lookback.replay import LATENESS_US
from broker.pipeline.outbox import Outbox
from broker.pipeline.shards import Join, Tasks
from broker.pipeline.spark import Spark, StreamSource
from broker.pipeline.steps import Pipeline, StepSummary
from broker.pipeline.store.objects import StorePlace
from joins import Processor

SHARDS = 3
EVERY_S = 10.0
SEGMENT_DOCUMENTS = 10
SEGMENT_S = 0.5
_DONE_WAIT_S = 600.0
_EXECUTOR = "CoarseGrainedExecutorBackend"


@dataclass
class Figures:
    """What was tried."""

    kills: int = 0
    batches: int = 0
    longest_s: float = 0.0
    committed: float = field(default_factory=time.monotonic)

    def note(self, step: StepSummary) -> None:
        """Note a commit."""
        now = time.monotonic()
        self.batches += 1
        self.longest_s = max(self.longest_s, now - self.committed)
        self.committed = now


class Stream:
    """A spool that grows, and the pipeline over it."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self.writer = stack.enter_context(
            closing(SpoolWriter(directory / "spool", Disk(is_durable=False)))
        )
        self._ingest = Ingest(self.writer, dedup_horizon_us=None)
        self._queries = [
            RegisteredQuery(xscl.parse(text, id=name)[0]) for name, text in QUERIES.items()
        ]

    def feed(self, is_over: threading.Event) -> None:
        """Accept documents until it is over."""
        lines = document_lines()
        while not is_over.wait(SEGMENT_S):
            some = [next(lines) for _ in range(SEGMENT_DOCUMENTS)]
            self._ingest.append(some, registry_version=1)

    def pipeline(
        self,
        name: str,
        outbox: Outbox,
        processor: Callable[[], Processor | None],
        on_step: Callable[[StepSummary], None] = lambda step: None,
    ) -> Pipeline:
        """Return a pipeline of the documents into an outbox."""
        pipeline = Pipeline(
            Spool(self.directory / "spool"),
            outbox,
            lambda version: Engine(self._queries, lateness_us=LATENESS_US, processor=processor()),
            PlanStore(self.directory / f"plans-{name}"),
            on_step=on_step,
        )
        pipeline.recover(1)
        return pipeline


def document_lines() -> Iterator[DocumentLine]:
    """Yield documents, five minutes apart."""
    number = 0
    while True:
        yield parse_document_line(document_line(number, minutes=5).encode())
        number += 1


def kill_one(chosen: random.Random) -> bool:
    """Kill an executor; return whether there was one."""
    executors = [pid for pid in below(os.getpid()) if _EXECUTOR in command_of(pid)]
    for pid in chosen.sample(executors, min(1, len(executors))):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def disturbed(stream: Stream, spark: Spark, minutes: float, seed: int, outbox: Outbox) -> Figures:
    """Join what comes, while executors are killed; return when all of it is in the outbox."""
    figures, chosen = Figures(), random.Random(seed)
    join = Join(LATENESS_US, SHARDS, spool=stream.directory / "spool")
    tasks = Tasks(spark.run_tasks, StorePlace.of(stream.directory / "shards"))
    pipeline = stream.pipeline("spark", outbox, lambda: join.processor(tasks), figures.note)
    source = StreamSource(stream.directory / "spool", stream.directory / "plans-spark", through=0)
    query = spark.stream(source, pipeline.step, checkpoint=stream.directory / "checkpoint")
    is_over = threading.Event()
    feeding = threading.Thread(target=stream.feed, args=[is_over])
    feeding.start()
    try:
        ends = time.monotonic() + minutes * 60
        while time.monotonic() < ends:
            if query.wait(EVERY_S):
                raise AssertionError("the streaming query has ended")
            figures.kills += kill_one(chosen)
    finally:
        is_over.set()
        feeding.join()
    ends = time.monotonic() + _DONE_WAIT_S
    while pipeline.through < stream.writer.last and time.monotonic() < ends:
        query.wait(0.5)
    query.stop()
    return figures


def contents(outbox: Outbox) -> tuple[list[str], list[str]]:
    """Return the lines of all matches, and all documents published."""
    matches = sorted(match.line for match in outbox.matches.find(limit=1 << 40))
    return matches, sorted(map(repr, outbox.published()))


def search(minutes: float, seed: int) -> bool:
    """Return whether the outbox is as it must be."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="executors-")))
        outbox, other = (
            stack.enter_context(closing(Outbox(directory / name, now_us=lambda: 0)))
            for name in ("outbox.db", "other.db")
        )
        stream = Stream(directory, stack)
        spark = start_cluster(directory)
        try:
            figures = disturbed(stream, spark, minutes, seed, outbox)
        finally:
            spark.stop()
        found = contents(outbox)
        for _ in stream.pipeline("here", other, lambda: None).drain():
            pass
        expected = contents(other)
        documents, matches = stream.writer.last_docid, len(expected[0])
        print(
            f"{figures.kills} executors killed, {documents:,} documents, {figures.batches} commits,"
            f" at most {figures.longest_s:.0f} s apart, {matches:,} matches,"
            f" {len(expected[1]):,} documents published"
        )
        is_same = found == expected and matches > 0
        print("the same outbox" if is_same else f"FAULTS FOUND: {len(found[0])} matches")
        return is_same


def main() -> None:
    """Run a stream for some minutes, and end with a verdict."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    sys.exit(not search(given.minutes, given.seed))


if __name__ == "__main__":
    main()
