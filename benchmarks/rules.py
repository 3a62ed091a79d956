"""Transactions with tables: waves of each scheduler, and transactions per second.

    python -m benchmarks rules [TRANSACTIONS]

Waves are the longest chain of transactions that depend on each other, which no machine shortens.
The workload is that of ACEP (Wang, Rundensteiner, Ellison, 2011), section 6: every transaction
reads once, a share of them writes, with locks of a whole table or of one of 100 rows.  The last
table is of an engine: documents of which each one reads a row, and a quarter write it.
"""

from __future__ import annotations

import random
import sys
import time

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.tables.locks import Granularity, Lock, Locks, Scheduler, waves
from broker.tables.transactions import Schedule

KEYS = 100
SHARES = (0.125, 0.25, 0.5, 1.0)
RULES = """CREATE TABLE t (id KEY, n DEFAULT 0);
S//e[@w->w] WHERE t[w].n >= 0 GRACE 0 s;
S//e[@w->v][@x = '1'] GRACE 0 s ON MATCH SET t[v].n = t[v].n + 1"""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    for granularity in Granularity:
        print(f"waves of {count:,} transactions, locks of a {granularity.value}, {KEYS} keys")
        print("  share that writes    SEI   S2PL    LWM   S2PL/LWM  SEI/LWM   locks/s of LWM")
        for share in SHARES:
            transactions = workload(count, share)
            found = {}
            for scheduler in Scheduler:
                started = time.perf_counter()
                found[scheduler] = max(waves(transactions, scheduler, granularity))
                seconds = time.perf_counter() - started
            sei, s2pl, lwm = (
                found[each] for each in (Scheduler.SEI, Scheduler.S2PL, Scheduler.LWM)
            )
            ratios = f"{s2pl / lwm:10.2f} {sei / lwm:8.2f}"
            print(f"  {share:17} {sei:6} {s2pl:6} {lwm:6} {ratios} {count / seconds:16,.0f}")
    print(f"an engine, {count:,} documents in batches of 5,000")
    for scheduler in Scheduler:
        print(
            f"  {scheduler.value:5} {count / engine_seconds(count, scheduler):10,.0f} documents/s"
        )


def workload(count: int, share: float) -> list[Locks]:
    """Return transactions of which each reads a row, and a share writes it."""
    chosen = random.Random(7)
    found = []
    for _ in range(count):
        lock = frozenset([Lock("t", f"w{chosen.randrange(KEYS)}")])
        found.append(Locks(lock, lock if chosen.random() < share else frozenset()))
    return found


def engine_seconds(count: int, scheduler: Scheduler) -> float:
    """Return how long an engine takes to join documents and run their transactions."""
    chosen = random.Random(7)
    queries = [RegisteredQuery(query) for query in xscl.parse(RULES)]
    engine = Engine(queries, lateness_us=86_400_000_000, schedule=Schedule(scheduler))
    documents = [document(number, chosen) for number in range(1, count + 1)]
    xml = {each.docid: each.xml for each in documents}
    seconds = 0.0
    for start in range(0, count, 5_000):
        witnesses = engine.evaluate(documents[start : start + 5_000])
        started = time.perf_counter()
        engine.process(witnesses, lambda docids: {docid: xml[docid] for docid in docids})
        seconds += time.perf_counter() - started
    return seconds


def document(number: int, chosen: random.Random) -> Document:
    """Return a document of some worker, a second behind the one before."""
    writes = chosen.random() < 0.25
    text = f'<e w="w{chosen.randrange(KEYS)}" x="{int(writes)}"/>'
    at_us = number * 1_000_000
    return Document(
        docid=number,
        stream="S",
        key=str(number),
        start_us=at_us,
        end_us=at_us,
        arrival_us=at_us,
        watermark_us=at_us - 1_000_000,
        xml=text.encode(),
    )


main()
