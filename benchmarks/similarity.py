"""Joins by similarity: documents per second of processor time, and what thresholds cost.

    python -m benchmarks similarity [--documents 70110] [--batch 1000]
        [--subscriptions 1 1000000] [--only WORD]

    news        the recorded titles: another feed, two days, at four thresholds; the pairs are
                counted (`tests/support/similar_news.py` finds them by brute force)
    thresholds  one subscription at the lowest threshold, and very many with thresholds of their own
                that no pair reaches
    bodies      texts of 500 words, shingles of three, half of one in the other
    shards      the same titles at 0.5 over shards in this process: how many of them each title
                goes to, and the processor time of the driver and of the busiest shard
    lsh         what datasketch and rensa find of the same titles at 0.5, by locality-sensitive
                hashing, if they are installed; candidates are not looked at again

Stage 1 is done before the clock starts.  What is timed is the join, and with it the fan-out and
match lines.  Of the others it is words, hashing and index.  What is done once for all, as
to compile loops (the extra `fast`), is done before.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

import xscl
from benchmarks._workloads import news_lines
from broker.documents.document import Document
from broker.matching.costs.budget import Budget
from broker.matching.engine import Engine, RegisteredQuery
from broker.pipeline.shards import Join
from joins.engines import Processor
from joins.shards.driver import ShardedProcessor
from joins.shards.orders import Answer, Order
from joins.shards.shard import Shard
from xpath_eval.structure import parse_xml
from xscl.words import words

DAY_US = 86_400_000_000
BATCH = 1_000
PERMUTATIONS = 128
NEWS = (
    "news//item->a FOLLOWED BY {similar(a/title, b/title) >= %s AND a/feed != b/feed, 2 days}"
    " news//item->b"
)
BODIES = "S//i->a FOLLOWED BY {containment(shingles(a, 3), shingles(b, 3)) >= 0.5, 2 days} S//i->b"
UNLIMITED = Budget(0, 0, 0, 0, 0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=70_110)
    parser.add_argument("--batch", type=int, default=BATCH, help="documents a batch of `news` has")
    parser.add_argument("--subscriptions", type=int, nargs="*", default=[1, 1_000_000])
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    # What is done once for all, such as compiling loops.
    (query,) = xscl.parse(NEWS % "0.5", id="q")
    run(engine_of([RegisteredQuery(query)]), news_documents(100))
    if "news".startswith(asked.only):
        news(asked.documents, asked.batch)
    if "thresholds".startswith(asked.only):
        thresholds(min(asked.documents, 20_000), asked.subscriptions)
    if "bodies".startswith(asked.only):
        bodies(min(asked.documents, 5_000))
    if "shards".startswith(asked.only):
        shards(min(asked.documents, 20_000))
    if "lsh".startswith(asked.only):
        lsh(asked.documents)


def news(count: int, batch: int) -> None:
    documents = news_documents(count)
    print(f"news: {len(documents):,} titles in batches of {batch:,}, another feed, two days")
    print(
        f"{'threshold':>10} {'join alone':>12} {'documents/s':>12} {'pairs':>8}"
        f" {'bytes of sets':>13} {'bytes a title':>13}"
    )
    for threshold in ("0.4", "0.5", "0.6", "0.8"):
        (query,) = xscl.parse(NEWS % threshold, id="q")
        engine = engine_of([RegisteredQuery(query)])
        joined, seconds, found = run(engine, documents, batch=batch)
        figures = engine.figures()
        remembered = max(1, figures["documents"])
        print(
            f"{threshold:>10} {len(documents) / joined:>12,.0f}"
            f" {len(documents) / seconds:>12,.0f} {len(found):>8,}"
            f" {engine.processor.similar_bytes / remembered:>13,.0f}"
            f" {figures['memory_bytes'] / remembered:>13,.0f}"
        )


def thresholds(count: int, subscriptions: Sequence[int]) -> None:
    documents = news_documents(count)
    print(f"thresholds: {len(documents):,} titles, `>= $least`, the lowest 0.5")
    print(f"{'subscriptions':>14} {'documents/s':>12} {'pairs':>8}")
    (query,) = xscl.parse(NEWS % "$least", id="q")
    for number in subscriptions:
        rows: list[dict[str, Any]] = [{"least": 0.5}]
        rows += [{"least": 2 + i / 1e7} for i in range(number - 1)]
        engine = engine_of([RegisteredQuery(query, assignments=tuple(rows))])
        run(engine, documents, stop=BATCH)
        _, seconds, found = run(engine, documents, start=BATCH)
        print(f"{number:>14,} {(len(documents) - BATCH) / seconds:>12,.0f} {len(found):>8,}")


def bodies(count: int) -> None:
    random_ = random.Random(1)
    words = [f"word{i}" for i in range(20_000)]
    weights = [1 / (i + 1) for i in range(len(words))]
    texts: list[str] = []
    for _ in range(count):
        text = random_.choices(words, weights, k=500)
        if texts and random_.random() < 0.1:
            text[:350] = random_.choice(texts).split()[:350]
        texts.append(" ".join(text))
    documents = [
        Document(i, "S", str(i), *times(i * 60_000_000), f"<i>{text}</i>".encode())
        for i, text in enumerate(texts, 1)
    ]
    (query,) = xscl.parse(BODIES, id="q")
    joined, seconds, found = run(engine_of([RegisteredQuery(query)]), documents)
    print(f"bodies: {count:,} texts of 500 words, {len(found):,} pairs")
    print(f"{count / seconds:,.0f} documents/s, the join alone {count / joined:,.0f}")


def shards(count: int) -> None:
    documents = news_documents(count)
    print(f"shards: {len(documents):,} titles at 0.5, documents/s of processor time")
    print(f"{'shards':>7} {'copies':>7} {'busiest shard':>14} {'driver':>8} {'pairs':>8}")
    (query,) = xscl.parse(NEWS % "0.5", id="q")
    for number in (2, 4, 8, 16):
        spent = Counter[int]()
        with patch.object(Shard, "answer", clocked_shard(Shard.answer, spent)):
            processor = Join(DAY_US, number).processor(None)
            assert isinstance(processor, ShardedProcessor)
            engine = engine_of([RegisteredQuery(query)], processor)
            joined, _, found = run(engine, documents)
        print(
            f"{number:>7} {processor.routed_rows / len(documents):>7.2f}"
            f" {len(documents) / max(spent.values()):>14,.0f}"
            f" {len(documents) / (joined - spent.total()):>8,.0f} {len(found):>8,}"
        )


def clocked_shard(
    answer: Callable[[Shard, Order], Answer], spent: Counter[int]
) -> Callable[[Shard, Order], Answer]:
    def clocked(shard: Shard, order: Order) -> Answer:
        begun = time.process_time()
        answered = answer(shard, order)
        spent[order.shard] += time.process_time() - begun
        return answered

    return clocked


def lsh(count: int) -> None:
    documents = news_documents(count)
    roots = [parse_xml(document.xml).root for document in documents]
    titles = [root.findtext("title") or "" for root in roots]
    feeds = [root.findtext("feed") for root in roots]
    (query,) = xscl.parse(NEWS % "0.5", id="q")
    _, _, pairs = run(engine_of([RegisteredQuery(query)]), documents)
    similar = {(min(pair), max(pair)) for pair in pairs}

    def is_asked(one: int, other: int) -> bool:
        apart = abs(documents[one].end_us - documents[other].end_us)
        return feeds[one] != feeds[other] and apart <= 2 * DAY_US

    print(f"lsh: {len(documents):,} titles at 0.5, {PERMUTATIONS} permutations")
    print(f"{'':>10} {'documents/s':>12} {'candidates':>11} {'recall':>7}")
    for name, sketch, index in filter(None, (datasketch_lsh(), rensa_lsh())):
        found: set[tuple[int, int]] = set()
        begun = time.process_time()
        for i, title in enumerate(titles):
            if own := words(title):
                sketched = sketch(own)
                found.update((j, i) for j in index.query(sketched))
                index.insert(i, sketched)
        seconds = time.process_time() - begun
        asked = {(j + 1, i + 1) for j, i in found if is_asked(i, j)}
        recall = len(asked & similar) / max(1, len(similar))
        print(f"{name:>10} {len(titles) / seconds:>12,.0f} {len(asked):>11,} {recall:>7.3f}")


Lsh = tuple[str, Callable[[frozenset[str]], Any], Any]


def datasketch_lsh() -> Lsh | None:
    try:
        import datasketch
    except ImportError:
        print("datasketch is not there: pip install datasketch")
        return None

    def sketch(own: frozenset[str]) -> Any:
        sketched = datasketch.MinHash(num_perm=PERMUTATIONS)
        sketched.update_batch([word.encode() for word in own])
        return sketched

    return "datasketch", sketch, datasketch.MinHashLSH(threshold=0.5, num_perm=PERMUTATIONS)


def rensa_lsh() -> Lsh | None:
    try:
        import rensa
    except ImportError:
        print("rensa is not there: pip install rensa")
        return None

    def sketch(own: frozenset[str]) -> Any:
        sketched = rensa.RMinHash(num_perm=PERMUTATIONS, seed=1)
        sketched.update(sorted(own))
        return sketched

    index = rensa.RMinHashLSH(threshold=0.5, num_perm=PERMUTATIONS, num_bands=PERMUTATIONS // 4)
    return "rensa", sketch, index


def times(at_us: int) -> tuple[int, int, int, int]:
    return at_us, at_us, at_us, at_us - 60_000_000


def news_documents(count: int) -> list[Document]:
    documents: list[Document] = []
    watermark_us = 0
    for line in islice(news_lines(count), count):
        arrival_us = line.arrival_us or line.time_us or 0
        at_us = min(line.time_us or arrival_us, arrival_us)
        key = str(len(documents) + 1)
        documents.append(
            Document(
                len(documents) + 1,
                line.stream,
                key,
                at_us,
                at_us,
                arrival_us,
                watermark_us,
                line.xml,
            )
        )
        watermark_us = max(watermark_us, at_us)
    return documents


def engine_of(queries: Sequence[RegisteredQuery], processor: Processor | None = None) -> Engine:
    return Engine(queries, lateness_us=DAY_US, budget=UNLIMITED, processor=processor)


def run(
    engine: Engine,
    documents: Sequence[Document],
    *,
    start: int = 0,
    stop: int | None = None,
    batch: int = BATCH,
) -> tuple[float, float, list[tuple[int, int]]]:
    """Return the seconds of processor time, and the pairs of documents that matched.

    The first seconds are those of the join alone, without fan-out and match lines.
    """
    xml = {document.docid: document.xml for document in documents}
    joined = seconds = 0.0
    found: list[tuple[int, int]] = []

    def timed(tuples: Callable[[int], Iterator[Any]], stratum: int) -> Iterator[Any]:
        nonlocal joined
        parts = tuples(stratum)
        while True:
            begun = time.process_time()
            part = next(parts, None)
            joined += time.process_time() - begun
            if part is None:
                return
            yield part

    def clocked(absorb: Callable[[Any], None], instances: Any) -> None:
        nonlocal joined
        begun = time.process_time()
        absorb(instances)
        joined += time.process_time() - begun

    inner = engine.processor
    with (
        patch.object(inner, "tuples", partial(timed, inner.tuples)),
        patch.object(inner, "absorb", partial(clocked, inner.absorb)),
    ):
        for first in range(start, len(documents) if stop is None else stop, batch):
            witnesses = engine.evaluate(documents[first : first + batch])
            begun = time.process_time()
            step = engine.process(witnesses, lambda docids: {docid: xml[docid] for docid in docids})
            seconds += time.process_time() - begun
            for match in step.matches:
                first, second = (each["docid"] for each in json.loads(match.line)["documents"])
                found.append((first, second))
    return joined, seconds, found


if __name__ == "__main__":
    main()
