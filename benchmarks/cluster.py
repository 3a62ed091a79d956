"""How long a replay takes on a Spark cluster of separate executors, by the clock.

    python -m benchmarks cluster [--documents 20000] [--executors 1 2] [--shards 1 2 4]

Recorded news items that have one title, or one author, in two feeds within two days, through
Spark's `local-cluster`: a master and executors as processes of their own, each with one task at a
time, and shards that answer with lines.  All are on this machine, so more executors than it has
processors say nothing.  The start of Spark and a first replay of 2,000 items are not in the figure;
what of it is the driver's own is said beside it, as processor time, and the matches are counted.
"""

from __future__ import annotations

import argparse
import gzip
import io
import itertools
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.cluster_process import start_cluster

import xscl
from benchmarks._workloads import NEWS
from broker.pipeline.lookback.replay import replay

QUERIES = [
    "news//item->a JOIN {a/title = b/title AND a/feed != b/feed, 2 days} news//item->b",
    "news//item->a FOLLOWED BY {a/author = b/author AND a/feed != b/feed, 2 days} news//item->b",
]
WARM_DOCUMENTS = 2_000


def first_lines(count: int, directory: Path) -> Path:
    """Write the first news items to a file of their own."""
    found = directory / f"{count}.jsonl"
    with gzip.open(NEWS, "rt") as lines:
        found.write_text("".join(itertools.islice(lines, count)))
    return found


def measure(executors: int, shards: Sequence[int], documents: int) -> None:
    """Print the rows of a cluster of so many executors; a process has one Spark session."""
    queries = [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(QUERIES)]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        warm, lines = (first_lines(count, directory) for count in (WARM_DOCUMENTS, documents))
        spark = start_cluster(directory, executors)
        for each in shards:
            replay(queries, [warm], io.StringIO(), session=spark, shards=each)
            began = time.process_time()
            summary = replay(queries, [lines], io.StringIO(), session=spark, shards=each)
            own_us = (time.process_time() - began) / documents * 1e6
            rate = summary.documents_per_s
            print(
                f"{executors:>9} {each:>6} {summary.seconds:>8.2f} {rate:>11,.0f}"
                f" {own_us:>19.1f} {summary.matches:>8,}",
                flush=True,
            )
        spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--executors", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--shards", type=int, nargs="+", default=(1, 2, 4))
    arguments = parser.parse_args()
    print(
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {arguments.documents:,} items"
    )
    print("executors shards  clock s  documents/s  driver us/document  matches")
    for executors in arguments.executors:
        given = executors, arguments.shards, arguments.documents
        process = multiprocessing.get_context("spawn").Process(target=measure, args=given)
        process.start()
        process.join()


if __name__ == "__main__":
    main()
