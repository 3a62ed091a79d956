"""What spreading the join over shards costs: copies, bytes, skew and time, on recorded news.

    python -m benchmarks shards [--documents 20000] [--shards 1 2 4 8 16 32 64 128] [--only stages]

The items of `python -m benchmarks joins news`, for three sets of queries.  All shards are in this
process, and what each does is timed, as if each had a core of its own.

    copies      the replication factor: to how many shards a document goes on average
    bytes       of a document's rows in the pieces of all shards: what a cluster's network carries
    fullest     the rows of the fullest shard over the mean of all
    driver s    numbers, hashes, routing and writing at the driver, for all documents
    slowest s   the shard that works longest: with `driver s`, the time on enough machines
    all s       all shards one after the other: the time on one core

Then what one frequent value does to three shards: equal titles again, and a share of the items has
one and the same.  Then the processor time of a document by stage (`--only stages`): its evaluation,
which tasks do beforehand and side by side; the driver up to the commit; all shards, and the slowest
of each batch; the outbox.  *Path* is the critical path, driver, slowest shard and outbox, so the
path of one shard over that of N is the speed-up on N machines.

At the end, what a match costs the driver, in the workloads of `python -m benchmarks matches`, one
without matches, and one of 20,000 subscriptions (`asked`), in microseconds of processor time: the
driver up to the commit, with shards that make lines and with shards that answer with tuples; the
outbox; all shards, and the slowest of them.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

import xscl
from benchmarks._workloads import flat_side, join_class, news_lines, random_classes
from benchmarks.joins import DAY_US, LEAVES, news_batches
from benchmarks.matches import FROM, WORKLOADS, document
from broker.documents.document import DocumentLine
from broker.matching.engine import Engine, RegisteredQuery
from broker.pipeline.outbox import Outbox
from broker.pipeline.shards import Join
from broker.pipeline.store.runs import MemoryStore
from joins.shards.driver import ShardedProcessor
from joins.shards.orders import Answer, Order
from templates.queryclass import QueryClass

BATCH = 1_000
FULL_BATCH = 10_000
SHARDS = (1, 2, 4, 8, 16, 32, 64, 128)
SKEWED_SHARES = (0, 10, 50)
MATCHED_DOCUMENTS = 6_000
ASKING = 20_000
ASKED = FROM.replace("a/next = b/link", "a/next = b/link AND b/link = $asked")
SKEWED_DOCUMENTS = 4_000
"""Half of them with one title make two million pairs, which a broker with a budget does not."""


class CountingStore(MemoryStore):
    """Counts the rows and bytes of every shard, and the seconds that this takes."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: Counter[int] = Counter()
        self.bytes = 0
        self.counting_s = 0.0

    def put(self, name: str, rows: pa.Table) -> None:
        super().put(name, rows)
        began = time.process_time()
        shard, _, _ = name.partition("-")
        if shard.isdigit():  # not what all shards have to know
            self.rows[int(shard)] += rows.num_rows
            self.bytes += rows.nbytes
        self.counting_s += time.process_time() - began


class TimedShards:
    """A join of shards in this process, each with a clock."""

    def __init__(self, shards: int, *, can_finish: bool = False) -> None:
        self.store = CountingStore()
        join = Join(DAY_US, shards)
        self._members = [join.shard(n, self.store, self._documents) for n in range(shards)]
        self.seconds: Counter[int] = Counter()
        self.processor = ShardedProcessor(shards, self.store, self._answer, can_finish=can_finish)

    def _documents(self, docids: Iterable[int]) -> Mapping[int, bytes]:
        assert self.processor.asked is not None
        return self.processor.asked.documents(docids)

    def _answer(self, orders: Sequence[Order]) -> list[Answer]:
        return [self._timed(order) for order in orders]

    def _timed(self, order: Order) -> Answer:
        started = time.process_time()
        answer = self._members[order.shard].answer(order)
        self.seconds[order.shard] += time.process_time() - started
        return answer


def query_sets() -> dict[str, list[QueryClass]]:
    side = flat_side(len(LEAVES))
    return {
        "equal titles": [join_class(side, [(3, 3)])],
        "each leaf with itself": [join_class(side, [(i, i)]) for i in range(1, len(LEAVES) + 1)],
        "1,000 random": list(random_classes(side, 1_000, joins_max=5, zipf=0.8)),
    }


def with_frequent_title(lines: Sequence[DocumentLine], percent: int) -> list[DocumentLine]:
    """Return items of which so many in a hundred have one title."""
    title = re.compile(rb"<title>.*?</title>", re.DOTALL)
    return [
        replace(line, xml=title.sub(b"<title>News</title>", line.xml, count=1))
        if i % 100 < percent
        else line
        for i, line in enumerate(lines)
    ]


def measure(lines: Sequence[DocumentLine], classes: Sequence[QueryClass], shards: int) -> str:
    timed = TimedShards(shards)
    for query_class in classes:
        timed.processor.add(query_class, DAY_US)
    side = flat_side(len(LEAVES))
    batches = list(news_batches(lines, side, timed.processor, BATCH))
    tuples = 0
    started = time.process_time()
    for rows, newest in batches:
        timed.processor.begin_batch()
        timed.processor.absorb(rows)
        tuples += sum(1 for _ in timed.processor.tuples(0))
        timed.processor.evict(newest - 2 * DAY_US)
    shard_s = sum(timed.seconds.values())
    driver_s = time.process_time() - started - shard_s - timed.store.counting_s
    copies = timed.processor.routed_rows
    store, count = timed.store, len(lines)
    return (
        f"{shards:>7} {copies / count:>7.2f} {store.bytes / count:>7,.0f}"
        f" {max(store.rows.values()) * shards / copies:>8.2f} {driver_s:>9.2f}"
        f" {max(timed.seconds.values()):>10.2f} {shard_s:>7.2f} {tuples / count:>11.1f}"
    )


def registered(texts: Sequence[str]) -> list[RegisteredQuery]:
    """Return queries; one with a parameter is asked for by many, of whom each item has one."""
    queries = [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(texts)]
    items = [{"asked": f"item {i}"} for i in range(ASKING)]
    return [RegisteredQuery(each, 0, tuple(items if each.parameters else [{}])) for each in queries]


def measure_matches(
    texts: Sequence[str], shards: int, *, can_finish: bool, batch: int = BATCH
) -> dict[str, float]:
    """Return what is spent on all documents but those of the first batch, in microseconds."""
    timed = TimedShards(shards, can_finish=can_finish)
    engine = Engine(registered(texts), lateness_us=0, processor=timed.processor)
    batches = MATCHED_DOCUMENTS // BATCH
    stream = [document(number) for number in range(1, batches * batch + 1)]
    xml = {each.docid: each.xml for each in stream}
    stages = ("evaluation", "driver", "outbox", "shards", "slowest", "matches")
    spent = dict.fromkeys(stages, 0.0)
    with tempfile.TemporaryDirectory() as directory:
        outbox = Outbox(Path(directory) / "outbox.db")
        for through, start in enumerate(range(0, len(stream), batch), 1):
            evaluated = time.process_time()
            witnesses = engine.evaluate(stream[start : start + batch])
            timed.seconds.clear()
            timed.store.counting_s = 0.0
            began = time.process_time()
            step = engine.process(witnesses, lambda ids: {i: xml[i] for i in ids})
            processed = time.process_time()
            outbox.commit(after=through - 1, through=through, step=step)
            if through == 1:  # what is made once is there now
                continue
            in_shards = sum(timed.seconds.values())
            in_driver = processed - began - in_shards - timed.store.counting_s
            spent["evaluation"] += (began - evaluated) * 1e6
            spent["driver"] += in_driver * 1e6
            spent["outbox"] += (time.process_time() - processed) * 1e6
            spent["shards"] += in_shards * 1e6
            spent["slowest"] += max(timed.seconds.values()) * 1e6
            spent["matches"] += len(step.matches)
        outbox.close()
    return spent


def print_matches(shards: int) -> None:
    nothing = FROM.replace("1 h", "1 us")
    print(f"\n{shards} shards, of each document: µs, and of each match beside the first line's")
    print(f"{'':>8} {'matches':>8} {'driver':>14} {'with tuples':>14} {'outbox':>14}", end="")
    print(f" {'all shards':>11} {'slowest':>8}")
    base: dict[str, float] = {}
    for name, texts in {"none": [nothing], **WORKLOADS, "asked": [ASKED]}.items():
        count = MATCHED_DOCUMENTS - BATCH
        runs = [
            min(
                (measure_matches(texts, shards, can_finish=each) for _ in range(3)),
                key=lambda spent: spent["driver"],
            )
            for each in (True, False)
        ]
        made, tuples = runs
        own = {"driver": made["driver"], "tuples": tuples["driver"], "outbox": made["outbox"]}
        base = base or own
        matches = made["matches"]
        columns = [
            f"{spent / count:>6.1f} {(spent - base[key]) / max(1, matches):>7.1f}"
            for key, spent in own.items()
        ]
        print(
            f"{name:>8} {matches / count:>8.1f} {' '.join(columns)}"
            f" {made['shards'] / count:>11.1f} {made['slowest'] / count:>8.1f}",
            flush=True,
        )


def print_stages(shards: Sequence[int]) -> None:
    """Print what a document costs by stage, in small and in full batches."""
    nothing = FROM.replace("1 h", "1 us")
    for name, text in (("without a match", nothing), ("with a match", WORKLOADS["alone"][0])):
        print(f"\na document {name}, µs:")
        print(f"{'shards':>7} {'batches':>8} {'matches':>8} {'evaluation':>11}", end="")
        print(f" {'driver':>7} {'all shards':>11} {'slowest':>8} {'outbox':>7} {'path':>7}")
        for count in shards:
            for batch in (BATCH, FULL_BATCH):
                runs = [
                    measure_matches([text], count, can_finish=True, batch=batch) for _ in range(2)
                ]
                documents = (MATCHED_DOCUMENTS // BATCH - 1) * batch
                each = {key: min(run[key] for run in runs) / documents for key in runs[0]}
                path = each["driver"] + each["slowest"] + each["outbox"]
                print(
                    f"{count:>7} {batch:>8,} {each['matches']:>8.2f} {each['evaluation']:>11.1f}"
                    f" {each['driver']:>7.1f} {each['shards']:>11.1f} {each['slowest']:>8.1f}"
                    f" {each['outbox']:>7.1f} {path:>7.1f}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--shards", type=int, nargs="+", default=SHARDS)
    parser.add_argument("--only", choices=["stages"], help="what a document costs by stage, alone")
    arguments = parser.parse_args()
    if arguments.only == "stages":
        print_stages(arguments.shards)
        return
    lines = news_lines(arguments.documents)
    print(f"{len(lines):,} news items, window and lateness 1 day, batches of {BATCH:,}")
    for name, classes in query_sets().items():
        print(f"\n{name}: {len(set(classes)):,} classes")
        print(
            f"{'shards':>7} {'copies':>7} {'bytes':>7} {'fullest':>8} {'driver s':>9}"
            f" {'slowest s':>10} {'all s':>7} {'tuples/doc':>11}"
        )
        for shards in arguments.shards:
            print(measure(lines, classes, shards), flush=True)
    titles = query_sets()["equal titles"]
    for percent in SKEWED_SHARES:
        skewed = with_frequent_title(lines[:SKEWED_DOCUMENTS], percent)
        print(f"\nequal titles, {len(skewed):,} items, one title in {percent} %")
        print(measure(skewed, titles, 3), flush=True)
    print_stages(arguments.shards)
    for shards in arguments.shards:
        print_matches(shards)


if __name__ == "__main__":
    main()
