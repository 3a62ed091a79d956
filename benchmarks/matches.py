"""What a match costs from the join to the outbox: processor time, driver alone, without Spark.

    python -m benchmarks matches [--documents 2000] [--batch 500]

Items of eight elements, 1.3 KB a line; an item has the link of the one before it, so each but the
first makes a match for each query.  `alone` is one query with a fresh pair for each match, `ten`
are ten queries that find the same pairs, `built` is one query with a constructor of copies and
values.  The join and what it reads are in the figure; the evaluation of documents
and the first batch are not.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.stepresult import StepResult
from broker.pipeline.outbox import Outbox
from broker.pipeline.thisprocess import set_up_process

FIELDS = ("title", "author", "category", "source", "language", "comments", "summary")
FROM = "S//item->a FOLLOWED BY {a/next = b/link, 1 h} S//item->b"
BUILT = "SELECT <pair from='{a/author}'>{a/title}<by>{b/author/text()}</by>{dur()}</pair> FROM "

WORKLOADS = {"alone": [FROM], "ten": [FROM] * 10, "built": [BUILT + FROM]}


def document(number: int) -> Document:
    """Return an item that links to the next one."""
    fields = "".join(f"<{name}>{name} of item {number} {'.' * 40}</{name}>" for name in FIELDS)
    xml = f"<item>{fields}<link>item {number}</link><next>item {number + 1}</next></item>"
    time_us = number * 1_000_000
    times = (time_us, time_us, time_us, time_us - 1_000_000)
    return Document(number, "S", str(number), *times, xml.encode())


def measure(
    texts: list[str], stream: list[Document], directory: Path, batch: int
) -> tuple[float, float, int]:
    """Return the processor time of the engine and of the outbox, and how many matches there are."""
    queries = [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(texts)]
    engine = Engine([RegisteredQuery(query) for query in queries], lateness_us=0)
    outbox = Outbox(directory / "outbox.db")
    xml = {each.docid: each.xml for each in stream}
    processing = committing = 0.0
    matches = 0
    for through, start in enumerate(range(0, len(stream), batch), 1):
        witnesses = engine.evaluate(stream[start : start + batch])
        began = time.process_time()
        step: StepResult = engine.process(witnesses, lambda ids: {i: xml[i] for i in ids})
        processed = time.process_time()
        outbox.commit(after=through - 1, through=through, step=step)
        committing += time.process_time() - processed
        processing += processed - began
        matches += len(step.matches)
        if through == 1:  # what is made once is there now
            processing, committing, matches = 0.0, 0.0, 0
    outbox.close()
    return processing, committing, matches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--batch", type=int, default=500, help="documents in a batch")
    arguments = parser.parse_args()
    if arguments.documents < 2 * arguments.batch:
        parser.error("the first batch is not measured: --documents is at least twice --batch")
    set_up_process()
    stream = [document(number) for number in range(1, arguments.documents + 1)]
    print(f"load {os.getloadavg()[0]:.1f}\nworkload  matches  engine µs  outbox µs")
    for name, texts in WORKLOADS.items():
        best = None
        for _ in range(3):
            with tempfile.TemporaryDirectory() as directory:
                run = measure(texts, stream, Path(directory), arguments.batch)
            best = min(best or run, run, key=lambda each: each[0] + each[1])
        processing, committing, matches = best
        per_match = [f"{seconds / matches * 1e6:9.1f}" for seconds in (processing, committing)]
        print(f"{name:<8} {matches:8,} {per_match[0]:>10} {per_match[1]:>10}", flush=True)


if __name__ == "__main__":
    main()
