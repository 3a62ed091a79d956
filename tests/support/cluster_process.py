"""A Spark cluster of two executors on this machine, and joins that are spread over it.

`python tests/support/cluster_process.py DIRECTORY` prints a line of JSON: by trial, whether its
matches are those of a join that is not spread.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyspark

import broker.pipeline.jvm
import broker.pipeline.spark
import xscl
from broker.documents.disk import Disk
from broker.documents.document import parse_document_line
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.engine import Engine, RegisteredQuery
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.jvm import Java, Jvm
from broker.pipeline.lookback.replay import LATENESS_US, replay
from broker.pipeline.outbox import Outbox
from broker.pipeline.shards import Join, ShardTask, Tasks
from broker.pipeline.spark import Spark, StreamSource
from broker.pipeline.steps import Pipeline
from broker.pipeline.store.objects import StorePlace
from joins.shards.orders import Answer, Order
from support.object_store import SECRET, S3Server, s3_server

EXECUTORS = 2
EXECUTOR_MB = 1_024
BATCH = 60

QUERIES = {
    "pairs": "S//a[v->x1] FOLLOWED BY {x1 = x2, 2 h} S//a[v->x2]",
    "triples": "(S//a[v->x1] FOLLOWED BY {x1 = x2, 2 h} S//a[v->x2])"
    " FOLLOWED BY {x2 = x3, 9 h} S//a[v->x3]",
    "rare": "S//rare JOIN {, 2 h} S//rare",
    "same": "FROM S//a[v->x1] JOIN {x1 = x2, 2 h} S//a[w->x2] SELECT <s>{x1}</s> PUBLISH same",
    "again": "same//v->p FOLLOWED BY {p = x2, 2 h} S//a[v->x2]",
    "alike": "S//a->x1 JOIN {similar(x1/t, x2/t) >= 0.5, 2 h} S//a->x2",
    "filter": "S//a[v = '7']",
    "next": "S//a[v->x1] NEXT {x1 = x2, 9 h} S//a[v->x2] UNLESS {, 30 min} S//rare GRACE 1 h",
    "quiet": "S//a[v->x1] NOT FOLLOWED BY {x1 = x2, 9 h} S//a[v->x2] GRACE 10 min",
}


def document_line(number: int, minutes: int = 10) -> str:
    """Return a document, so many minutes behind the one before it."""
    i = number
    values = f"<v>{i * i % 59}</v><w>{i * 7 % 61}</w>" + ("<rare/>" if i % 11 == 0 else "")
    values += f"<t>{' '.join(f'w{i * k % 11}' for k in (1, 2, 3, 5))}</t>"
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes * number)
    time = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return json.dumps({"stream": "S", "time": time, "xml": f"<a>{values}</a>"}) + "\n"


class DoomedOrder:
    """An order whose task dies once, when its shard has taken on its state but not yet answered."""

    def __init__(self, order: Order, died: Path, *, with_executor: bool) -> None:
        self.order = order
        self.died = died
        self.with_executor = with_executor

    def __getattr__(self, name: str) -> Any:
        if name in ("order", "died", "with_executor"):
            raise AttributeError(name)  # while it is unpickled
        if name == "stratum" and not self.died.exists():
            self.died.touch()
            if self.with_executor:
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2]
                os.kill(int(daemon.split()[1]), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        return getattr(self.order, name)


class Doomed:
    """A Spark session in which one task of the third job of shards dies."""

    def __init__(self, spark: Spark, died: Path, *, with_executor: bool) -> None:
        self.spark = spark
        self.died = died
        self.with_executor = with_executor
        self.jobs = 0

    def stream(self, *arguments: Any, **options: Any) -> Any:
        return self.spark.stream(*arguments, **options)

    def run_tasks(self, tasks: Sequence[ShardTask]) -> list[Answer]:
        self.jobs += 1
        if self.jobs == 3:
            order: Any = DoomedOrder(tasks[0].order, self.died, with_executor=self.with_executor)
            tasks = [dataclasses.replace(tasks[0], order=order), *tasks[1:]]
        return self.spark.run_tasks(tasks)


class Trials:
    spark: Spark
    store: S3Server

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.lines = directory / "documents.jsonl"
        self.lines.write_text("".join(map(document_line, range(240))))
        self.queries = [xscl.parse(text, id=name)[0] for name, text in QUERIES.items()]
        self.expected = self.replayed(spark=False)

    def replayed(self, **arguments: Any) -> str:
        out = io.StringIO()
        replay(self.queries, [self.lines], out, batch_documents=BATCH, **arguments)
        return out.getvalue()

    def run(self) -> Iterator[tuple[str, bool]]:
        yield "there are matches of every query", all(q.id in self.expected for q in self.queries)
        for shards, with_executor in ((5, True), (2, False)):
            died = self.directory / f"died-{shards}"
            doomed = Doomed(self.spark, died, with_executor=with_executor)
            found = self.replayed(session=doomed, shards=shards)
            what = "executor" if with_executor else "worker"
            yield f"{shards} shards, {what} killed", found == self.expected and died.exists()
        yield "one shard", self.replayed(session=self.spark) == self.expected
        yield "other shards after a restart", self.restarted((2, 5)) == self.restarted((1, 1))
        yield "tasks that see a store alone", self.stored() == self.restarted((1, 1))
        files = [path for path in self.directory.rglob("*") if path.is_file()]
        seen = [path for path in files if SECRET.encode() in path.read_bytes()]
        yield "no file has the credentials of the store", not seen

    def restarted(self, numbers: tuple[int, int]) -> list[str]:
        """Return the matches of a broker that is restarted with another number of shards."""
        directory = self.directory / "-".join(map(str, numbers))
        outbox = Outbox(directory / "outbox.db", now_us=lambda: 0)
        writer = SpoolWriter(directory / "spool", Disk(is_durable=False))
        ingest = Ingest(writer, dedup_horizon_us=None)
        lines = [parse_document_line(line) for line in self.lines.read_bytes().splitlines()]
        for half, shards in zip((lines[:120], lines[120:]), numbers, strict=True):
            pipeline = Pipeline(
                Spool(directory / "spool"),
                outbox,
                self.engines(directory, shards),
                PlanStore(directory / "plans"),
            )
            pipeline.recover(1)
            for start in range(0, len(half), 40):
                ingest.append(half[start : start + 40], registry_version=1)
                list(pipeline.drain())
        found = sorted(match.line for match in outbox.matches.find(limit=100_000))
        outbox.close()
        writer.close()
        return found

    def stored(self) -> list[str]:
        """Return the matches of a broker whose executors read and write in an object store."""
        directory = self.directory / "stored"
        store = StorePlace(self.store.address).below("broker")
        join = Join(LATENESS_US, 3)
        tasks = Tasks(self.spark.run_tasks, store.below("shards"))
        registered = [RegisteredQuery(query) for query in self.queries]
        with (
            closing(Outbox(directory / "outbox.db", now_us=lambda: 0)) as outbox,
            closing(SpoolWriter(directory / "spool", Disk(is_durable=False))) as writer,
        ):
            pipeline = Pipeline(
                Spool(directory / "spool"),
                outbox,
                lambda version: Engine(
                    registered, lateness_us=LATENESS_US, processor=join.processor(tasks)
                ),
                PlanStore(directory / "plans"),
            )
            pipeline.recover(1)
            ingest = Ingest(writer, dedup_horizon_us=None)
            lines = [parse_document_line(line) for line in self.lines.read_bytes().splitlines()]
            for start in range(0, len(lines), 40):
                ingest.append(lines[start : start + 40], registry_version=1)
            packs = store.below("documents").below("run")
            source = StreamSource(
                directory / "spool", directory / "plans", 0, batch_documents_max=80, packs=packs
            )
            query = self.spark.stream(source, pipeline.step, checkpoint=directory / "checkpoint")
            while pipeline.through < writer.last:
                query.wait(0.1)
            query.stop()
            return sorted(match.line for match in outbox.matches.find(limit=100_000))

    def engines(self, directory: Path, shards: int) -> Callable[[int], Engine]:
        join = Join(LATENESS_US, shards, spool=directory / "spool")
        tasks = Tasks(self.spark.run_tasks, StorePlace.of(directory / "shards"))
        registered = [RegisteredQuery(query) for query in self.queries]
        return lambda version: Engine(
            registered, lateness_us=LATENESS_US, processor=join.processor(tasks)
        )


def _without_module(java: Path, home: Path) -> Path:
    """Return a `java` that also runs where the module is missing that executors ask for."""
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir()
    wrapper.write_text(f"""#!/bin/sh
for option; do
  shift
  [ "$option" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$option"
done
exec '{java.resolve()}' "$@"
""")
    wrapper.chmod(0o755)
    return wrapper


def start_cluster(directory: Path, executors: int = EXECUTORS) -> Spark:
    """Start Spark, with a home of its own: the workers of `local-cluster` write there.

    An executor has one task at a time.
    """
    jars = Path(pyspark.__file__).parent / "jars"
    home = directory / "home"
    home.mkdir()
    (home / "jars").symlink_to(jars)
    # What starts executors would look for it in the files of a build of Spark.
    (library,) = jars.glob("scala-library-*.jar")
    os.environ["SPARK_SCALA_VERSION"] = ".".join(library.stem.split("-")[-1].split(".")[:2])

    def start_jvm(java: Java, **options: Any) -> Jvm:
        java = dataclasses.replace(java, executable=_without_module(java.executable, home))
        return broker.pipeline.jvm.start_jvm(java, **{**options, "spark_home": home})

    broker.pipeline.spark.start_jvm = start_jvm
    # As the driver: what compiles best takes the processors of a machine with few of them.
    usual = os.environ.get("JAVA_TOOL_OPTIONS", "")
    os.environ["JAVA_TOOL_OPTIONS"] = f"{usual} -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    master = f"local-cluster[{executors},1,{EXECUTOR_MB}]"
    return Spark.start(directory / "log", master=master, has_shards=True)


def main() -> None:
    with s3_server() as store:  # executors have the environment of this process
        trials = Trials(Path(sys.argv[1]))
        trials.store = store
        trials.spark = start_cluster(trials.directory)
        try:
            print(json.dumps(dict(trials.run())))
        finally:
            trials.spark.stop()


if __name__ == "__main__":
    main()
