"""Documents per second against the number of queries, for each engine, without Spark.

    python -m benchmarks queries [--documents 5000] [--queries 1 10 100 1000] [--engines ...]

Synthetic items of eight elements whose values are drawn from 1,000 each, one a second of event
time; queries compare one to three of them, `FOLLOWED BY` within 1 to 10 minutes.  The figures are
stage 1 and the join in this process, matches built.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from joins.engines import ENGINES, EngineName

FIELDS = ("title", "link", "author", "category", "source", "language", "comments", "id")
VALUES = 1_000
BATCH = 1_000
LATENESS_US = 60_000_000


def documents(count: int) -> list[Document]:
    chance = random.Random(1)
    return [document(number, chance) for number in range(1, count + 1)]


def document(number: int, chance: random.Random) -> Document:
    body = "".join(f"<{name}>{name} {chance.randrange(VALUES)}</{name}>" for name in FIELDS)
    time_us = number * 1_000_000
    return Document(
        docid=number,
        stream="S",
        key=str(number),
        start_us=time_us,
        end_us=time_us,
        arrival_us=time_us,
        watermark_us=time_us - 1_000_000,
        xml=f"<item>{body}</item>".encode(),
    )


def queries(count: int) -> Iterator[RegisteredQuery]:
    chance = random.Random(2)
    for number in range(count):
        compared = chance.sample(FIELDS, chance.randint(1, 3))
        equal = " AND ".join(f"a/{name} = b/{name}" for name in compared)
        window = f"{chance.randint(1, 10)} min"
        text = f"S//item->a FOLLOWED BY {{{equal}, {window}}} S//item->b"
        (query,) = xscl.parse(text, id=f"q{number}")
        yield RegisteredQuery(query)


def measure(engine_name: EngineName, query_count: int, stream: list[Document]) -> tuple[float, int]:
    engine = Engine(list(queries(query_count)), lateness_us=LATENESS_US, engine=engine_name)
    by_docid = {document.docid: document.xml for document in stream}
    matches = 0
    started = time.perf_counter()
    for start in range(0, len(stream), BATCH):
        witnesses = engine.evaluate(stream[start : start + BATCH])
        step = engine.process(witnesses, lambda docids: {d: by_docid[d] for d in docids})
        matches += len(step.matches)
    return len(stream) / (time.perf_counter() - started), matches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=5_000)
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 10, 100, 1_000])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    arguments = parser.parse_args()
    stream = documents(arguments.documents)
    print(f"{'queries':>8}  {'engine':<14} {'documents/s':>12} {'matches':>9}")
    for count in arguments.queries:
        for engine in arguments.engines:
            if engine == "sequential" and count > 100:
                continue  # one statement for each query and batch: minutes
            rate, matches = measure(engine, count, stream)
            print(f"{count:>8}  {engine:<14} {rate:>12,.0f} {matches:>9,}", flush=True)


if __name__ == "__main__":
    main()
