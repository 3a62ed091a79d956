"""How long the stream stands when something looks back: `python -m benchmarks standing`.

    python -m benchmarks standing [--documents 1000000] [--data DIRECTORY]

A broker without Spark has so many documents in its memory, and takes batches of 1,000, one after
the other.  A query that looks back over all of them is registered: at once, as it was before the
state for that was made beside the stream, and prepared.  The longest batches are printed, and how
long it took until the query was registered.  `--data` keeps the documents for another run.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import xscl
from benchmarks.state import QUERIES, STEP_US, build, memory_mb, pipeline_of, soak_document
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import SpoolWriter
from broker.pipeline.beside import Due
from broker.registry.queries import Registry
from broker.registry.registered import is_registered, looking_back
from broker.service.ahead import Making

BATCH = 1_000


class Stream:
    """A broker's core that takes one batch after the other."""

    def __init__(self, directory: Path, documents: int) -> None:
        self.registry = Registry(directory / "registry.db")
        self._ingest = Ingest(SpoolWriter(directory / "spool", Disk(is_durable=False)))
        self.pipeline = pipeline_of(directory, self.registry)
        self._random = random.Random(7)
        self.last = documents
        started, before = time.perf_counter(), time.process_time()
        self.pipeline.recover(self.registry.revision())
        told("recovered", time.perf_counter() - started, time.process_time() - before)

    def batch(self) -> float:
        """Take a batch; return for how long that took, on the clock."""
        first = self.last + 1
        documents = [soak_document(self._random, n, False) for n in range(first, first + BATCH)]
        lines = [DocumentLine("S", each.xml, each.end_us) for each in documents]
        self.last += BATCH
        started = time.perf_counter()
        self._ingest.append(
            lines, arrival_us=self.last * STEP_US, registry_version=self.registry.revision()
        )
        list(self.pipeline.drain())
        return time.perf_counter() - started

    def register(self, query: xscl.Query) -> None:
        """Register a query that looks back over all documents."""
        self.registry.register(
            query.id, query.text, version=query.version, point=self.last, since=0
        )
        self.pipeline.prepare(self.registry.revision())


def told(what: str, seconds: float, processor_s: float) -> None:
    load = os.getloadavg()[0]
    print(f"{what:<44} {seconds:6.2f} s, {processor_s:5.1f} s of work; load {load:.0f},"
          f" {memory_mb()[1]:,.0f} MB", flush=True)  # fmt: skip


def query_of(left: str, right: str) -> xscl.Query:
    text = QUERIES[0].replace("600 s", "30 d").replace("a/link = b/link", f"a/{left} = b/{right}")
    (query,) = xscl.parse(text, id=f"{left}{right}")
    return query


def at_once(stream: Stream, query: xscl.Query) -> None:
    stream.register(query)
    before = time.process_time()
    told("at once: the longest batch", stream.batch(), time.process_time() - before)


def prepared(stream: Stream, query: xscl.Query) -> None:
    change = looking_back(stream.registry, query, 0)
    making, is_ready = Making(stream.pipeline.state, change), threading.Event()
    started, before = time.perf_counter(), time.process_time()
    thread = threading.Thread(target=making.work, args=[is_ready.set])
    thread.start()
    batches = []
    while not is_ready.is_set():
        batches.append(stream.batch())
    stream.register(query)
    assert is_registered(stream.registry, change)
    making.registered(Due(stream.registry.revision(), stream.last))
    told("prepared: until it is registered", time.perf_counter() - started,
         time.process_time() - before)  # fmt: skip
    before = time.process_time()
    told("prepared: the batch of the exchange", stream.batch(), time.process_time() - before)
    thread.join()
    longest = sorted(batches)[-3:]
    print(
        f"{len(batches)} batches before it, the longest {', '.join(f'{s:.2f}' for s in longest)} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = given.data or Path(name)
        if not (directory / "spool").exists():
            build(directory, given.documents)
        stream = Stream(directory, given.documents)
        batches = [stream.batch() for _ in range(20)]
        print(f"20 batches before, the longest {max(batches):.2f} s, all {sum(batches):.2f} s")
        at_once(stream, query_of("author", "link"))
        prepared(stream, query_of("title", "link"))
        prepared(stream, query_of("link", "author"))
        at_once(stream, query_of("link", "title"))


if __name__ == "__main__":
    main()
