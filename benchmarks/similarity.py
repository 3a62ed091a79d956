"""Joins by similarity: documents per second of processor time, memory, and what thresholds cost.

    python -m benchmarks similarity [--only PART ...] [--documents 70110]
        [--batches 1000 10000] [--subscriptions 1 1000000]

    news        the recorded titles: another feed, two days, at four thresholds, by array operations
                and by compiled loops (the extra `fast`); the pairs are those of brute force
                (`tests/support/similar_news.py`); bytes of sets for each remembered title are the
                most that there were in any step
    lsh         what datasketch and rensa find of the same titles at 0.5, by locality-sensitive
                hashing, if they are installed, beside this join; their candidates are not looked at
                again
    thresholds  one subscription at the lowest threshold, and very many with thresholds of their own
                that no pair reaches
    state       the same titles, with ten times as many remembered
    bodies      texts of 500 words, shingles of three, half of one in the other
    decided     titles under NEXT, NOT FOLLOWED BY and UNLESS, some 2,000 of them in the window, for
                one threshold, a hundred and a thousand, with match lines
    shards      the same titles at 0.5 over shards in this process: how many of them each title
                goes to, and the processor time of the driver and of the busiest shard

Stage 1 is done before the clock starts.  What is timed is the join, and with it the fan-out and
match lines.  Of the others it is words, hashing and index.  What is done once for all, as
to compile loops, is done before.  At the end stands a table of the aims, and of what was reached.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from support.similar_news import KEPT, RECORDED, digest
from support.similar_news import news as recorded_news

import xscl
from benchmarks._lsh import PERMUTATIONS, datasketch_lsh, rensa_lsh
from broker.documents.document import Document
from broker.matching.costs.budget import Budget
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import MatchingLimits
from broker.pipeline.shards import Join
from joins.shards.driver import ShardedProcessor
from joins.shards.orders import Answer, Order
from joins.shards.shard import Shard
from joins.signature.limits import SignatureLimits
from joins.similarity.compilation import compile_loops
from templates.compiling import can_compile
from xpath_eval.structure import parse_xml
from xscl.words import words

DAY_US = 86_400_000_000
BATCH = 1_000
NEWS = (
    "news//item->a FOLLOWED BY {similar(a/title, b/title) >= %s AND a/feed != b/feed, %s}"
    " news//item->b"
)
TWO_DAYS = "2 days"
BODIES = "S//i->a FOLLOWED BY {containment(shingles(a, 3), shingles(b, 3)) >= 0.5, 2 days} S//i->b"
UNLIMITED = Budget(0, 0, 0, 0, 0, 0)
WAYS = {"arrays": 1 << 60, "compiled": 0}
"""From how many sets on loops are of use, by how sets are searched."""

AIMS: list[tuple[str, float, str, bool]] = []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=70_110)
    parser.add_argument("--batches", type=int, nargs="*", default=[BATCH, 10_000])
    parser.add_argument("--subscriptions", type=int, nargs="*", default=[1, 1_000_000])
    parts: dict[str, Callable[[argparse.Namespace], None]] = {
        each.__name__: each for each in (news, lsh, thresholds, state, bodies, decided, shards)
    }
    parser.add_argument("--only", nargs="*", choices=parts, default=list(parts))
    asked = parser.parse_args()
    if can_compile():
        compile_loops()
    else:
        print("without the extra `fast`: pip install -e '.[fast]'")
        del WAYS["compiled"]
    print(f"load {load()}; processor time of one thread")
    for name, part in parts.items():
        if name in asked.only:
            print()
            part(asked)
    print(f"\nload {load()}\n\n| aim | | |\n|---|---|---|")
    for what, aim, found, is_reached in AIMS:
        print(f"| {what} | {aim:,g} | {found}{'' if is_reached else ' (not reached)'} |")


def load() -> str:
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


def at_least(what: str, aim: float, found: float) -> None:
    AIMS.append((what, aim, f"{found:,.0f}", found >= aim))


def at_most(what: str, aim: float, found: float) -> None:
    AIMS.append((what, aim, f"{found:,.2f}" if aim < 10 else f"{found:,.0f}", found <= aim))


def news(asked: argparse.Namespace) -> None:
    documents = recorded_news(asked.documents)
    print(f"news: {len(documents):,} titles, another feed, two days")
    print(
        f"{'':>9} {'batch':>6} {'threshold':>10} {'join alone':>12} {'documents/s':>12}"
        f" {'pairs':>8} {'hash':>17} {'bytes of sets':>13}"
    )
    most = 0.0
    for way, batch in product(WAYS, asked.batches):
        for threshold, kept in KEPT.items():
            query = news_query(threshold)
            ran = run(engine_of([query], WAYS[way]), documents, batch=batch)
            most = max(most, ran.bytes_most)
            print(
                f"{way:>9} {batch:>6} {threshold:>10} {ran.joined:>12,.0f} {ran.all:>12,.0f}"
                f" {len(ran.pairs):>8,} {digest(ran.pairs):>17} {ran.bytes_most:>13,.0f}",
                flush=True,
            )
            if asked.documents >= RECORDED:
                assert kept == (len(ran.pairs), digest(ran.pairs)), "brute force finds others"
            if threshold == "0.5":
                aim = 20_000 if way == "arrays" else 60_000
                at_least(f"titles a second at 0.5, {way}, in batches of {batch:,}", aim, ran.joined)
    at_most("bytes of sets for a title at most", 300, most)


def lsh(asked: argparse.Namespace) -> None:
    documents = recorded_news(asked.documents)
    roots = [parse_xml(document.xml).root for document in documents]
    titles = [root.findtext("title") or "" for root in roots]
    feeds = [root.findtext("feed") for root in roots]
    similar: set[tuple[int, int]] = set()

    def is_asked(one: int, other: int) -> bool:
        apart = abs(documents[one].end_us - documents[other].end_us)
        return feeds[one] != feeds[other] and apart <= 2 * DAY_US

    print(f"lsh: {len(documents):,} titles at 0.5, {PERMUTATIONS} permutations")
    print(f"{'':>10} {'documents/s':>12} {'candidates':>11} {'recall':>7}")
    for way, least in WAYS.items():
        ran = run(engine_of([news_query("0.5")], least), documents)
        similar = {(min(pair), max(pair)) for pair in ran.pairs}
        print(f"{way:>10} {ran.joined:>12,.0f} {len(similar):>11,} {1:>7.3f}")
    for name, sketch, index in filter(None, (datasketch_lsh(), rensa_lsh())):
        found: set[tuple[int, int]] = set()
        begun = time.process_time()
        for i, title in enumerate(titles):
            if own := words(title):
                sketched = sketch(own)
                found.update((j, i) for j in index.query(sketched))
                index.insert(i, sketched)
        seconds = time.process_time() - begun
        candidates = {(j + 1, i + 1) for j, i in found if is_asked(i, j)}
        recall = len(candidates & similar) / max(1, len(similar))
        print(f"{name:>10} {len(titles) / seconds:>12,.0f} {len(candidates):>11,} {recall:>7.3f}")


def thresholds(asked: argparse.Namespace) -> None:
    documents = recorded_news(min(asked.documents, 20_000))
    print(f"thresholds: {len(documents):,} titles, `>= $least`, the lowest 0.5")
    print(f"{'subscriptions':>14} {'documents/s':>12} {'pairs':>8}")
    query = news_query("$least").query
    found: list[float] = []
    for number in asked.subscriptions:
        rows: list[dict[str, Any]] = [{"least": 0.5}]
        rows += [{"least": 2 + i / 1e7} for i in range(number - 1)]
        engine = engine_of([RegisteredQuery(query, assignments=tuple(rows))])
        run(engine, documents, stop=BATCH)
        ran = run(engine, documents, start=BATCH)
        found.append(ran.all)
        print(f"{number:>14,} {ran.all:>12,.0f} {len(ran.pairs):>8,}")
    most = max(asked.subscriptions)
    at_most(f"times what one threshold costs, {most:,}", 1.2, found[0] / found[-1])


def state(asked: argparse.Namespace) -> None:
    documents = recorded_news(min(asked.documents, 40_000))
    half = len(documents) // 2
    print(f"state: the second half of {len(documents):,} titles at 0.5")
    print(f"{'':>9} {'window':>10} {'remembered':>11} {'join alone':>12}")
    for way, least in WAYS.items():
        remembered, found = [], []
        for window in ("4 h", "40 h"):
            engine = engine_of([news_query("0.5", window)], least, lateness_us=0)
            run(engine, documents, stop=half)
            ran = run(engine, documents, start=half)
            remembered.append(ran.remembered)
            found.append(ran.joined)
            print(f"{way:>9} {window:>10} {ran.remembered:>11,.0f} {ran.joined:>12,.0f}")
        times = remembered[1] / remembered[0]
        at_most(f"times the work with {times:.1f} times the state, {way}", 1.5, found[0] / found[1])


def bodies(asked: argparse.Namespace) -> None:
    count = min(asked.documents, 5_000)
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
    print(f"bodies: {count:,} texts of 500 words")
    print(f"{'':>9} {'join alone':>12} {'documents/s':>12} {'pairs':>8}")
    for way, least in WAYS.items():
        ran = run(engine_of([RegisteredQuery(query)], least), documents)
        print(f"{way:>9} {ran.joined:>12,.0f} {ran.all:>12,.0f} {len(ran.pairs):>8,}")
        at_least(f"bodies a second, {way}, the join alone", 2_000, ran.joined)
        at_least(f"bodies a second, {way}, with match lines", 2_000, ran.all)


DECIDED = {
    "NEXT": "news//item->a NEXT {%s, 4 h} news//item->b",
    "NOT FOLLOWED BY": "news//item->a NOT FOLLOWED BY {%s, 4 h} news//item->b",
    "UNLESS": "news//item->b UNLESS {%s, 4 h} news//item->a",
}


def decided(asked: argparse.Namespace) -> None:
    documents = recorded_news(min(asked.documents, 6_000))
    print(f"decided: {len(documents):,} titles at 0.5, window 4 h, with match lines")
    print(f"{'':>16} {'thresholds':>10} {'documents/s':>12} {'matches':>8}")
    for (kind, text), number in product(DECIDED.items(), (1, 100, 1_000)):
        similar = "similar(a/title, b/title) >= $least"
        (query,) = xscl.parse(text % similar, id="q")
        rows = tuple({"least": 0.5 + i / 2_000} for i in range(number))
        engine = engine_of([RegisteredQuery(query, assignments=rows)], lateness_us=0)
        some = documents[: 6_000 if number == 1 else 2_000]
        texts = {document.docid: document.xml for document in some}
        begun, matches = time.process_time(), 0
        for first in range(0, len(some), BATCH):
            witnesses = engine.evaluate(some[first : first + BATCH])
            step = engine.process(witnesses, partial(_chosen, texts))
            matches += len(step.matches)
        seconds = time.process_time() - begun
        print(f"{kind:>16} {number:>10,} {len(some) / seconds:>12,.0f} {matches:>8,}", flush=True)


def _chosen(texts: dict[int, bytes], docids: Iterable[int]) -> dict[int, bytes]:
    return {docid: texts[docid] for docid in docids}


def shards(asked: argparse.Namespace) -> None:
    documents = recorded_news(min(asked.documents, 20_000))
    print(f"shards: {len(documents):,} titles at 0.5, documents/s")
    print(f"{'shards':>7} {'copies':>7} {'busiest shard':>14} {'driver':>8} {'pairs':>8}")
    for number in (2, 4, 8, 16):
        spent = Counter[int]()
        with patch.object(Shard, "answer", clocked_shard(Shard.answer, spent)):
            processor = Join(DAY_US, number).processor(None)
            assert isinstance(processor, ShardedProcessor)
            engine = Engine(
                [news_query("0.5")], lateness_us=DAY_US, budget=UNLIMITED, processor=processor
            )
            ran = run(engine, documents)
        joined = len(documents) / ran.joined
        print(
            f"{number:>7} {processor.routed_rows / len(documents):>7.2f}"
            f" {len(documents) / max(spent.values()):>14,.0f}"
            f" {len(documents) / (joined - spent.total()):>8,.0f} {len(ran.pairs):>8,}"
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


def times(at_us: int) -> tuple[int, int, int, int]:
    return at_us, at_us, at_us, at_us - 60_000_000


def news_query(threshold: str, window: str = TWO_DAYS) -> RegisteredQuery:
    (query,) = xscl.parse(NEWS % (threshold, window), id="q")
    return RegisteredQuery(query)


def engine_of(
    queries: Sequence[RegisteredQuery], compiled_sets: int = 0, lateness_us: int = DAY_US
) -> Engine:
    limits = MatchingLimits(join=SignatureLimits(compiled_sets=compiled_sets))
    return Engine(queries, lateness_us=lateness_us, budget=UNLIMITED, limits=limits)


class Run(NamedTuple):
    """Documents a second of processor time, and the pairs of documents that matched.

    They are those of the join alone, and those with fan-out and match lines.  `bytes_most` are the
    most bytes of sets that there were for a remembered document, of a thousand or more;
    `remembered` is how many were, on average.
    """

    joined: float
    all: float
    pairs: list[tuple[int, int]]
    bytes_most: float
    remembered: float


def run(
    engine: Engine,
    documents: Sequence[Document],
    *,
    start: int = 0,
    stop: int | None = None,
    batch: int = BATCH,
) -> Run:
    xml = {document.docid: document.xml for document in documents}
    joined = seconds = 0.0
    found: list[tuple[int, int]] = []
    remembered: list[int] = []
    bytes_each: list[float] = [0]

    def note() -> None:
        count = engine.figures()["documents"]
        remembered.append(count)
        if count >= BATCH and hasattr(engine.processor, "similar_bytes"):
            bytes_each.append(engine.processor.similar_bytes / count)

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
    stop = len(documents) if stop is None else stop
    with (
        patch.object(inner, "tuples", partial(timed, inner.tuples)),
        patch.object(inner, "absorb", partial(clocked, inner.absorb)),
    ):
        for first in range(start, stop, batch):
            witnesses = engine.evaluate(documents[first : min(first + batch, stop)])
            begun = time.process_time()
            step = engine.process(witnesses, lambda docids: {docid: xml[docid] for docid in docids})
            seconds += time.process_time() - begun
            note()
            for match in step.matches:
                first_, second = (each["docid"] for each in json.loads(match.line)["documents"])
                found.append((first_, second))
    count = stop - start
    mean = sum(remembered) / len(remembered)
    return Run(count / joined, count / seconds, found, max(bytes_each), mean)


if __name__ == "__main__":
    main()
