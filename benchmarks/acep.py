"""The experiments of ACEP: reads, writes, length and rate of transactions, under each scheduler.

    python -m benchmarks acep [DOCUMENTS]

Figures 5 to 8, 10 and 11 of *Active Complex Event Processing over Event Streams* (Wang,
Rundensteiner and Ellison, 2011, section 6).  The pool of statements is that of the paper
(`_rules_workloads`); the number of workers and the window, which it does not say, are ours.
Seconds are those of the processor.  Waves are the longest chain of transactions that depend on
each other, which no machine shortens: what the paper's many threads would wait for.  Its figure 9
is the first column of figure 10; memory (figure 12) is left out.
"""

from __future__ import annotations

import re
import sys

from benchmarks._rules_workloads import pool, pooled
from benchmarks.rules import KEYS, SHARES, run_engine
from broker.tables.locks import Granularity, Scheduler
from broker.tables.transactions import Schedule

READS = (1, 2, 3, 4, 6)
LENGTHS = (2, 3, 4, 5, 6)
BATCHES = (50, 100, 500, 1_000, 2_000, 5_000)
ALONE = 200
"""Events that come one by one, for figure 10."""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    varied(count)
    lengths()
    rates(count)


def varied(count: int) -> None:
    """Print documents a second and waves as reads or writes of an event grow: figures 5 to 8."""
    documents = list(pooled(count, KEYS, per_second=20))
    for granularity in Granularity:
        print(f"ACEP, {count:,} events, {KEYS} workers, locks of a {granularity.value}")
        print("  reads writes   documents/s SEI   S2PL    LWM    waves SEI   S2PL    LWM")
        for reads, writes in [*((n, 0.25) for n in READS), *((1, share) for share in SHARES)]:
            text = pool(reads=reads, writes=writes)
            runs = [run_engine(text, documents, Schedule(each, granularity)) for each in Scheduler]
            per_second = " ".join(f"{count / run.seconds:6,.0f}" for run in runs)
            chains = " ".join(f"{run.waves:6,}" for run in runs)
            print(f"  {reads:5} {writes:6}          {per_second}       {chains}")


def lengths() -> None:
    """Print what an event costs that comes alone, beside one without rules: figure 10."""
    print(f"ACEP, {ALONE} events one by one, rows: ms an event, and times that without tables")
    print("  length  without tables   SEI        S2PL       LWM")
    documents = list(pooled(ALONE, KEYS, per_second=20))
    for length in LENGTHS:
        text = pool(length=length)
        plain = run_engine(without_tables(text), documents, batch=1)
        runs = [run_engine(text, documents, Schedule(each), batch=1) for each in Scheduler]
        shown = "  ".join(
            f"{1_000 * run.seconds / ALONE:.2f} {run.seconds / plain.seconds:.2f}" for run in runs
        )
        print(f"  {length:6} {1_000 * plain.seconds / ALONE:15.2f}   {shown}")


def without_tables(text: str) -> str:
    """Return statements without what they read of tables and write into them."""
    _, *queries = text.split(";\n")
    plain = (re.sub(r" WHERE \S+\.s = '\w+'| ON MATCH .*", "", query) for query in queries)
    return ";\n".join(dict.fromkeys(plain))


def rates(count: int) -> None:
    """Print how long events wait as more of them come while a batch is worked on: figure 11."""
    print("ACEP, 1 read, 0.25 writes, rows: waves that an event waits for, by events in a batch")
    print("  events   SEI   S2PL    LWM    SEI/LWM  S2PL/LWM")
    for batch in BATCHES:
        documents = list(pooled(count, KEYS, per_second=20))
        batches = count / batch
        runs = [run_engine(pool(), documents, Schedule(each), batch) for each in Scheduler]
        sei, s2pl, lwm = (run.waves / batches for run in runs)
        print(
            f"  {batch:6,} {sei:5,.0f} {s2pl:6,.0f} {lwm:6,.0f} {sei / lwm:10.1f} {s2pl / lwm:9.1f}"
        )


if __name__ == "__main__":
    main()
