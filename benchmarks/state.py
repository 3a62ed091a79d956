"""What the join remembers: memory, look-ups and restart.

python -m benchmarks state [wide] [remember] [soak] [restart] [--documents N] [--plots DIRECTORY]

wide      a window of an hour over a busy stream, alone and beside one without end over a stream of
          one document in 1,000 (100,000 documents, one a second): what is remembered, memory, and
          the longest batch, side by side.  Evaluation and join.
remember  news-like items of five joined values, 180 characters of text, all kept (10 million):
          resident memory, bytes a document, and the time to absorb and look up a batch of 1,000
          whose values have about one partner each.  The join alone; no evaluation, no matches.
soak      documents of ever-new structure, and of one structure, through a window that keeps
          60,000 (1 million of the latter, a tenth of the former): memory must be flat.
          Evaluation and join.
restart   a broker's state of so many documents (1 million) made again in a new process: from
          its start until the join is ready, with the snapshot and without.  Without Spark.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).parents[1]))

import xscl
from benchmarks._workloads import ROW, flat_side, join_class
from broker.documents.disk import Disk
from broker.documents.document import Document, DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.engine import Engine, RegisteredQuery
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.outbox import Outbox
from broker.pipeline.snapshot import Snapshot
from broker.pipeline.steps import Pipeline
from broker.registry.queries import Registry
from broker.registry.registered import Engines
from joins.engines import make_processor

DAY_US = 86_400_000_000
LEAVES = 5
BATCH = 1_000
PROBED = 10
REPORTED = 100_000
KEPT = 60_000
RARE_EVERY = 1_000
BUSY_QUERY = "B//item->a FOLLOWED BY {a/link = b/link, 1 h} B//item->b"
RARE_QUERY = "R//item->a FOLLOWED BY {a/link = b/link, INF} R//item->b"
STEP_US = 10_000
QUERIES = (
    "S//item->a FOLLOWED BY {a/link = b/link, 600 s} S//item->b",
    "S//item->a FOLLOWED BY {a/author = b/author AND a/title = b/title, 600 s} S//item->b",
)

Point = tuple[int, float]


def memory_mb() -> tuple[float, float]:
    """Return the resident memory of this process: all, and without mapped files."""
    status = Path("/proc/self/status").read_text().split("\n")
    sizes = {line.split(":")[0]: line.split()[1] for line in status if line.startswith("Rss")}
    anonymous = int(sizes["RssAnon"]) + int(sizes["RssShmem"])
    return (anonymous + int(sizes["RssFile"])) / 1024, anonymous / 1024


def remember(documents: int) -> list[Point]:
    side = flat_side(LEAVES)
    start_mb, _ = memory_mb()
    processor = make_processor("signatures", lateness_us=0)
    for leaf in side.leaves:
        processor.add(join_class(side, [(leaf, leaf)]), 1 << 61)
    processor.add_shapes({"item": side.edges()})
    random_ = np.random.default_rng(1)
    print(f"remember: {documents:,} documents; {start_mb:,.0f} MB before the first")
    print(f"{'documents':>11} {'MB':>8} {'anon MB':>8} {'bytes/doc':>10} {'absorb ms':>9}"
          f" {'worst':>7} {'look up ms':>10} {'pairs/doc':>10}")  # fmt: skip
    points: list[Point] = []
    absorbing: list[float] = []
    probing: list[float] = []
    found = 0
    for first in range(1, documents + 1, BATCH):
        rows = news_like(random_, first, documents)
        started = time.process_time()
        processor.begin_batch()
        processor.absorb(rows)
        absorbed = time.process_time()
        absorbing.append(absorbed - started)
        if first // BATCH % PROBED == 0:
            found += sum(len(columns) for columns in processor.probe_columns(0))  # type: ignore[attr-defined]
            probing.append(time.process_time() - absorbed)
        done = first + BATCH - 1
        if done % REPORTED == 0:
            resident, anonymous = memory_mb()
            points.append((done, resident))
            if done % (documents // 10) == 0:
                per = (resident - start_mb) * (1 << 20) / done
                print(f"{done:>11,} {resident:>8,.0f} {anonymous:>8,.0f} {per:>10,.0f}"
                      f" {np.median(absorbing) * 1e3:>9.1f} {max(absorbing) * 1e3:>7.0f}"
                      f" {np.median(probing) * 1e3:>9.1f}"
                      f" {found / len(probing) / BATCH:>10.2f}", flush=True)  # fmt: skip
                absorbing, probing, found = [], [], 0
    print(processor.figures())
    return points


def news_like(random_: np.random.Generator, first: int, values: int) -> pa.Table:
    """Return items with values of their own, drawn from so many for each leaf."""
    numbers = pa.array(random_.integers(0, values, BATCH * LEAVES)).cast(pa.string())
    text = pc.binary_join_element_wise("https://news.example.org/2026/", numbers, "x" * 6, "-")
    none = pa.nulls(BATCH, pa.string())
    of_row = np.arange(BATCH)[:, None]
    order = np.concatenate([BATCH * LEAVES + of_row, of_row * LEAVES + np.arange(LEAVES)], axis=1)
    vals = pa.concat_arrays([text, none]).take(pa.array(order.ravel()))
    docids = np.arange(first, first + BATCH)
    offsets = pa.array(np.arange(BATCH + 1) * (LEAVES + 1), pa.int32())
    times = docids * STEP_US
    columns = {
        "stream": pa.repeat("S", BATCH),
        "key": pa.array(docids).cast(pa.string()),
        "docid": docids,
        "depth": np.zeros(BATCH, np.int32),
        "match_id": pa.repeat("", BATCH),
        "docid_min": docids,
        "docid_max": docids,
        "start_us": times,
        "end_us": times,
        "watermark_us": times - STEP_US,
        "shape": np.zeros(BATCH, np.int32),
        "leaves": pa.ListArray.from_arrays(pa.array(np.arange(BATCH + 1), pa.int32()), docids),
        "nodes": pa.ListArray.from_arrays(
            offsets, pa.array(np.tile(np.arange(LEAVES + 1), BATCH), pa.int32())
        ),
        "vals": pa.ListArray.from_arrays(offsets, vals),
    }
    return pa.table(columns, ROW)


def wide(documents: int) -> None:
    print(f"wide: {documents:,} documents, one a second")
    alone, beside = wide_run(documents, [BUSY_QUERY]), wide_run(documents, [BUSY_QUERY, RARE_QUERY])
    print(f"{'documents':>11} | {'an hour':^30} | {'beside a window without end':^30}")
    for (done, *one), (_, *other) in zip(alone, beside, strict=True):
        columns = (f"{kept:>9,} {nbytes / 2**20:>7,.1f} MB {ms:>6,.0f} ms"
                   for kept, nbytes, ms in (one, other))  # fmt: skip
        print(f"{done:>11,} | {' | '.join(columns)}")


def wide_run(documents: int, texts: list[str]) -> list[tuple[int, int, int, float]]:
    """Return documents so far, those remembered, their bytes, and the longest batch in ms."""
    queries = [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(texts)]
    engine = Engine([RegisteredQuery(query) for query in queries], lateness_us=0)
    points, longest = [], 0.0
    for first in range(1, documents + 1, BATCH):
        batch = [wide_document(n) for n in range(first, first + BATCH)]
        witnesses = engine.evaluate(batch)
        started = time.process_time()
        engine.process(witnesses, lambda ids: {i: wide_document(i).xml for i in ids})
        longest = max(longest, time.process_time() - started)
        done = first + BATCH - 1
        if done % (documents // 10) == 0:
            figures = engine.processor.figures()
            points.append((done, figures["documents"], figures["memory_bytes"], longest * 1e3))
            longest = 0.0
    return points


def wide_document(n: int) -> Document:
    stream, time_us = "B" if n % RARE_EVERY else "R", n * 1_000_000
    xml = f"<item><link>https://news.example.org/{n}</link><title>The news {n}</title></item>"
    return Document(n, stream, str(n), time_us, time_us, time_us, time_us - 1_000_000, xml.encode())


def soak(documents: int) -> dict[str, list[Point]]:
    print(f"soak: a window of {KEPT:,} documents")
    return {
        "one structure": soak_run(documents, is_new_shape=False),
        "ever-new structure": soak_run(documents // 10, is_new_shape=True),
    }


def soak_run(documents: int, *, is_new_shape: bool) -> list[Point]:
    queries = [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(QUERIES)]
    engine = Engine([RegisteredQuery(query) for query in queries], lateness_us=0)
    random_ = random.Random(2)
    points: list[Point] = []
    matches, started = 0, time.perf_counter()
    reported = documents // 10
    print(f"{documents:,} documents of {'ever-new' if is_new_shape else 'one'} structure")
    for first in range(1, documents + 1, BATCH):
        batch = [soak_document(random_, n, is_new_shape) for n in range(first, first + BATCH)]
        xml = {document.docid: document.xml for document in batch}
        kept.update(xml)
        step = engine.process(engine.evaluate(batch), lambda ids: {i: kept[i] for i in ids})
        matches += len(step.matches)
        for docid in range(first - KEPT - BATCH, first - KEPT):
            kept.pop(docid, None)
        done = first + BATCH - 1
        if done % reported == 0:
            resident, _ = memory_mb()
            points.append((done, resident))
            figures = engine.processor.figures()
            rate = done / (time.perf_counter() - started)
            print(f"{done:>11,} {resident:>8,.0f} MB {rate:>8,.0f} documents/s,"
                  f" {matches:,} matches; remembered {figures['documents']:,},"
                  f" shapes {figures['shapes']:,}, signatures {figures['signatures']:,}",
                  flush=True)  # fmt: skip
    return points


kept: dict[int, bytes] = {}
"""The XML of the documents in the window, for the few that are output."""


def soak_document(random_: random.Random, n: int, is_new_shape: bool) -> Document:
    unique = random_.randrange(10 * KEPT)
    more = ""
    if is_new_shape:
        bits = random_.getrandbits(16)
        more = "".join(
            f"<author>{n}.{i}</author>" if bits >> i & 1 else f"<title>{n}.{i}</title>"
            for i in range(16)
        )
    xml = (
        f"<item><link>https://news.example.org/{unique}</link><title>The news {n}</title>"
        f"<author>{unique % 99_991}</author>{more}</item>"
    )
    time_us = n * STEP_US
    return Document(n, "S", str(n), time_us, time_us, time_us, time_us - STEP_US, xml.encode())


def restart(documents: int) -> None:
    print(f"restart: {documents:,} remembered documents")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        started = time.perf_counter()
        build(directory, documents)
        size = sum(path.stat().st_size for path in (directory / "state").iterdir())
        print(f"made in {time.perf_counter() - started:.0f} s; {size >> 20:,} MB of snapshot")
        for label in ("with the snapshot", "again", "without it"):
            if label == "without it":
                for path in (directory / "state").iterdir():
                    path.unlink()
            started, before = time.perf_counter(), processor_s()
            command = [sys.executable, __file__, "ready", "--data", name]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            print(f"{label:<18} {time.perf_counter() - started:6.1f} s from the start of the"
                  f" process, {processor_s() - before:.1f} s of them at work; {said.strip()}",
                  flush=True)  # fmt: skip


def processor_s() -> float:
    """Return the processor time of the processes that were started here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def build(directory: Path, documents: int) -> None:
    """Let a broker take documents, with queries whose windows keep them all."""
    registry = Registry(directory / "registry.db")
    for i, text in enumerate(QUERIES):
        text = text.replace("600 s", "30 d")
        (query,) = xscl.parse(text, id=f"q{i}")
        registry.register(query.id, text, version=query.version, point=0)
    writer = SpoolWriter(directory / "spool", Disk(is_durable=False))
    ingest = Ingest(writer)
    pipeline = pipeline_of(directory, registry)
    pipeline.recover(registry.revision())
    random_ = random.Random(3)
    for first in range(1, documents + 1, 10_000):
        lines = [
            DocumentLine("S", document.xml, document.end_us)
            for document in (soak_document(random_, n, False) for n in range(first, first + 10_000))
        ]
        ingest.append(lines, arrival_us=(first + 10_000) * STEP_US,
                      registry_version=registry.revision())  # fmt: skip
        list(pipeline.drain())
    writer.close()
    registry.close()


def pipeline_of(directory: Path, registry: Registry) -> Pipeline:
    engines = Engines(registry, lateness_us=DAY_US)
    return Pipeline(
        Spool(directory / "spool"),
        Outbox(directory / "outbox.db"),
        engines.make,
        PlanStore(directory / "plans"),
        plan_of=engines.plan,
        follow=engines.follow,
        snapshot=Snapshot(directory / "state"),
    )


def ready(directory: Path) -> None:
    """Make the state again, in the process that `restart` starts."""
    writer = SpoolWriter(directory / "spool", Disk(is_durable=False), processed=0)
    Ingest(writer)
    registry = Registry(directory / "registry.db")
    pipeline = pipeline_of(directory, registry)
    pipeline.recover(registry.revision())
    resident, anonymous = memory_mb()
    print(f"{resident:,.0f} MB resident, {anonymous:,.0f} MB without mapped files")


def plot(directory: Path, curves: dict[str, list[Point]]) -> None:
    try:
        from matplotlib import pyplot
    except ImportError:
        print("No plots: matplotlib is not there.")
        return
    directory.mkdir(parents=True, exist_ok=True)
    figure, panes = pyplot.subplots(1, len(curves), figsize=(5 * len(curves), 3.5), squeeze=False)
    for pane, (name, points) in zip(panes[0], curves.items(), strict=True):
        documents, resident = zip(*points, strict=True)
        pane.plot(documents, resident, marker=".")
        pane.set(
            xlabel="documents", ylabel="MB resident", title=name, ylim=(0, max(resident) * 1.2)
        )
    figure.tight_layout()
    figure.savefig(directory / "state.svg")
    print("Plots:", directory / "state.svg")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["wide", "remember", "soak", "restart"])
    parser.add_argument("--documents", type=int, help="of each part, instead of its own number")
    parser.add_argument("--plots", type=Path, help="write plots into this directory")
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.parts == ["ready"]:
        ready(arguments.data)
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    curves: dict[str, list[Point]] = {}
    if "wide" in arguments.parts:
        wide(arguments.documents or 100_000)
    if "soak" in arguments.parts:
        curves |= soak(arguments.documents or 1_000_000)
    if "remember" in arguments.parts:
        curves["all kept"] = remember(arguments.documents or 10_000_000)
    if "restart" in arguments.parts:
        restart(arguments.documents or 1_000_000)
    if arguments.plots and curves:
        plot(arguments.plots, curves)


if __name__ == "__main__":
    main()
