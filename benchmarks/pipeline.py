"""The pipeline: documents a second, delay under a constant rate, and how long a restart takes.

    python benchmarks/pipeline.py replay LINES --subscriptions 1000 10000
    python benchmarks/pipeline.py live LINES --rate 1000 --seconds 600
    python benchmarks/pipeline.py restart LINES --documents 1000000

LINES is a file of document lines with `<item>` documents of stream `news`, plain or gzip.  `replay`
and `live` go through Spark on two cores.  Memory is that of all processes, as Linux counts it.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import lxml.etree as etree

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])

import xscl
from broker.disk import Disk
from broker.document import DocumentLine
from broker.engine import Engine, RegisteredQuery
from broker.evaluation import PlanStore
from broker.ingest import Ingest
from broker.ingest_thread import IngestThread
from broker.outbox import Outbox
from broker.pipeline import Pipeline, StepSummary
from broker.replay import read_document_lines, replay
from broker.spark import Source, Spark
from broker.spool import Spool, SpoolWriter

DAY_US = 86_400_000_000
SAME_STORY = """
news//item->a FOLLOWED BY { a/title = b/title AND a/feed != b/feed, 2 days } news//item->b
"""
BY_AUTHOR = """
news//item[author = $who]->a FOLLOWED BY { a/author = b/author AND a/feed != b/feed, 2 days }
news//item->b
"""


def document_lines(path: Path) -> Iterator[DocumentLine]:
    return (line for _, line in read_document_lines([path]) if isinstance(line, DocumentLine))


def memory_mb() -> float:
    """Return the resident memory of this process and all below it."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(") ", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            sizes[int(entry.name)] = int(fields[21])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(sizes[pid] for pid in ours) * os.sysconf("SC_PAGE_SIZE") / 2**20


class PeakMemory:
    """Watches the memory of all our processes in a thread."""

    def __enter__(self) -> PeakMemory:
        self.peak_mb = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._is_over.wait(0.5):
            self.peak_mb = max(self.peak_mb, memory_mb())

    def __exit__(self, *exc: object) -> None:
        self._is_over.set()
        self._thread.join()


def authors(path: Path, count: int) -> list[str]:
    """Return authors, the rarest first: a document then matches few subscriptions; made-up ones
    where there are too few."""
    seen: Counter[str] = Counter()
    for line in document_lines(path):
        author = etree.fromstring(line.xml).findtext("author")
        if author:
            seen[author] += 1
    real = [author for author, _ in reversed(seen.most_common())]
    return list(
        itertools.islice(itertools.chain(real, (f"nobody {i}" for i in itertools.count())), count)
    )


def run_replay(path: Path, subscriptions: list[int]) -> None:
    [query] = xscl.parse(BY_AUTHOR, id="by-author")
    names = authors(path, max(subscriptions))
    print("| subscriptions | documents/s | matches | start s | peak MB |\n|---|---|---|---|---|")
    for count in subscriptions:
        assignments = {query.id: [{"who": name} for name in names[:count]]}
        with PeakMemory() as memory:
            summary = replay([query], [path], io.StringIO(), assignments=assignments)
        print(
            f"| {count:,} | {summary.documents_per_s:,.0f} | {summary.matches:,} "
            f"| {summary.start_s:.1f} | {memory.peak_mb:,.0f} |",
            flush=True,
        )


def same_story_engine(registry_version: int) -> Engine:
    return Engine([RegisteredQuery(xscl.parse(SAME_STORY, id="same")[0])], lateness_us=DAY_US)


def run_live(path: Path, rate: int, seconds: int) -> None:
    """Give documents at a constant rate and measure the time from submission to commit."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        outbox = Outbox(directory / "outbox.db")
        writer = SpoolWriter(directory / "spool")
        committed: list[tuple[float, int]] = []

        def on_step(step: StepSummary) -> None:
            committed.append((time.monotonic(), step.documents))

        pipeline = Pipeline(
            Spool(directory / "spool"),
            outbox,
            same_story_engine,
            PlanStore(directory / "plans"),
            on_step=on_step,
        )
        pipeline.recover(1)
        ingest = IngestThread(Ingest(writer), writer, registry_version=lambda: 1)
        ingest.start()
        spark = Spark.start(directory / "logs")
        source = Source(directory / "spool", directory / "plans", 0)
        query = spark.stream(source, pipeline.step, checkpoint=directory / "checkpoint")
        sent = give(document_lines(path), ingest, rate, seconds)
        ingest.stop()
        while pipeline.through < writer.last:
            query.wait(0.05)
        query.stop()
        spark.stop()
        report_delays(sent, committed)


def give(
    lines: Iterator[DocumentLine], ingest: IngestThread, rate: int, seconds: int
) -> list[float]:
    """Submit documents in groups of 20 ms; return when each was submitted."""
    sent: list[float] = []
    unnamed = (replace(line, key=None) for line in itertools.cycle(list(lines)))
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < seconds:
        group = list(itertools.islice(unnamed, int(elapsed * rate) - len(sent)))
        if group:
            ingest.submit(group)
            sent += [time.monotonic()] * len(group)
        if int(elapsed) % 10 == 0 and len(sent) % (10 * rate) < rate // 50:
            print(f"{elapsed:6.0f} s  {len(sent):,} documents  {memory_mb():,.0f} MB", flush=True)
        time.sleep(0.02)
    return sent


def report_delays(sent: list[float], committed: list[tuple[float, int]]) -> None:
    delays = []
    position = 0
    for moment, documents in committed:
        delays += [moment - at for at in sent[position : position + documents]]
        position += documents
    warm = delays[len(delays) // 10 :]
    centiles = statistics.quantiles(warm, n=100)
    print(f"{len(sent):,} given, {position:,} committed, in {len(committed):,} batches")
    print(f"delay p50 {centiles[49]:.2f} s, p99 {centiles[98]:.2f} s (behind the first tenth)")


def run_restart(path: Path, documents: int) -> None:
    """Measure how long a broker with so many remembered documents takes to be ready again."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        writer = SpoolWriter(directory / "spool", Disk(is_durable=False))
        ingest = Ingest(writer)
        unnamed = (replace(line, key=None) for line in itertools.cycle(list(document_lines(path))))
        newest_us = 0
        while writer.next_docid <= documents:
            group = list(itertools.islice(unnamed, 20_000))
            newest_us = max(newest_us, *(line.time_us or 0 for line in group))
            ingest.append(group, arrival_us=newest_us, registry_version=1)
        outbox = Outbox(directory / "outbox.db")
        outbox.commit(after=0, through=writer.last)
        writer.close()

        def restart() -> None:
            reopened = SpoolWriter(directory / "spool", processed=writer.last)
            Ingest(reopened)
            pipeline = Pipeline(
                Spool(directory / "spool"), outbox, endless_engine, PlanStore(directory / "plans")
            )
            pipeline.recover(1)

        print(f"{documents:,} remembered documents: {timed(restart):.1f} s, {memory_mb():,.0f} MB")


def endless_engine(registry_version: int) -> Engine:
    """Return an engine that remembers everything."""
    query = xscl.parse(SAME_STORY.replace("2 days", "INF"), id="same")[0]
    return Engine([RegisteredQuery(query)], lateness_us=DAY_US)


def timed(action: Callable[[], None]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["replay", "live", "restart"])
    parser.add_argument("lines", type=Path)
    parser.add_argument("--subscriptions", type=int, nargs="+", default=[1, 1000])
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--documents", type=int, default=1_000_000)
    arguments = parser.parse_args()
    if arguments.what == "replay":
        run_replay(arguments.lines, arguments.subscriptions)
    elif arguments.what == "live":
        run_live(arguments.lines, arguments.rate, arguments.seconds)
    else:
        run_restart(arguments.lines, arguments.documents)


if __name__ == "__main__":
    main()
