"""The experiments of ACEP: reads, writes, length and rate of transactions, under each scheduler.

    python -m benchmarks acep [--events 10000] [--plots DIRECTORY]

Figures 5 to 8, 10 and 11 of *Active Complex Event Processing over Event Streams* (Wang,
Rundensteiner and Ellison, 2011, section 6).  The pool of statements is that of the paper
(`_rules_workloads`); the number of workers and the window, which it does not say, are ours.
Seconds are those of the processor.  Waves are the longest chain of transactions that depend on
each other, which no machine shortens: what the paper's many threads would wait for, so its figures
of throughput are plotted as events of a wave.  Its figure 9 is the first column of figure 10;
memory (figure 12) is left out.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks._paper_plots import Curves, plot_curves
from benchmarks._rules_workloads import pool, pooled
from benchmarks.rules import KEYS, SHARES, Run, run_engine
from broker.documents.document import Document
from broker.tables.locks import Granularity, Scheduler
from broker.tables.transactions import Schedule

READS = (1, 2, 3, 4, 6)
LENGTHS = (2, 3, 4, 5, 6)
BATCHES = (50, 100, 500, 1_000, 2_000, 5_000)
ALONE = 200
"""Events that come one by one, for figure 10."""

FIGURES = {Granularity.ROW: ("5", "7"), Granularity.TABLE: ("6", "8")}
"""The figures in which reads and writes grow, by what is locked."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--plots", type=Path, help="a directory for a plot of each figure")
    given = parser.parse_args()
    for granularity in Granularity:
        varied(given.events, granularity, given.plots)
    lengths(given.plots)
    rates(given.events, given.plots)


def named(points: dict[Scheduler, list[tuple[float, float]]]) -> Curves:
    """Return points of each scheduler as curves."""
    return {scheduler.value.upper(): points[scheduler] for scheduler in Scheduler}


def varied(count: int, granularity: Granularity, plots: Path | None) -> None:
    """Print documents a second and waves as reads or writes of an event grow: figures 5 to 8."""
    documents = list(pooled(count, KEYS, per_second=20))
    print(f"ACEP, {count:,} events, {KEYS} workers, locks of a {granularity.value}")
    print("  reads writes   documents/s SEI   S2PL    LWM    waves SEI   S2PL    LWM")
    axes = (
        ("reads of an event, a quarter writes", [(float(n), n, 0.25) for n in READS]),
        ("share of events that write", [(share, 1, share) for share in SHARES]),
    )
    for figure, (axis, cases) in zip(FIGURES[granularity], axes, strict=True):
        points: dict[Scheduler, list[tuple[float, float]]] = {each: [] for each in Scheduler}
        for at, reads, writes in cases:
            runs = _schedules(pool(reads=reads, writes=writes), documents, granularity)
            per_second = " ".join(f"{count / run.seconds:6,.0f}" for run in runs.values())
            chains = " ".join(f"{run.waves:6,}" for run in runs.values())
            print(f"  {reads:5} {writes:6}          {per_second}       {chains}", flush=True)
            for scheduler, run in runs.items():
                points[scheduler].append((at, count / max(1, run.waves)))
        if plots is not None:
            title = f"ACEP, locks of a {granularity.value}"
            plot_curves(plots, f"acep-{figure}", title, axis, named(points), "events of a wave")


def _schedules(
    text: str, documents: Sequence[Document], granularity: Granularity
) -> dict[Scheduler, Run]:
    """Return what documents need under each scheduler."""
    return {each: run_engine(text, documents, Schedule(each, granularity)) for each in Scheduler}


def lengths(plots: Path | None) -> None:
    """Print what an event costs that comes alone, beside one without rules: figure 10."""
    print(f"ACEP, {ALONE} events one by one, rows: ms an event, and times that without tables")
    print("  length  without tables   SEI        S2PL       LWM")
    documents = list(pooled(ALONE, KEYS, per_second=20))
    curves: Curves = {name: [] for name in ("no tables", "SEI", "S2PL", "LWM")}
    for length in LENGTHS:
        text = pool(length=length)
        plain = run_engine(without_tables(text), documents, batch=1)
        runs = [run_engine(text, documents, Schedule(each), batch=1) for each in Scheduler]
        shown = "  ".join(
            f"{1_000 * run.seconds / ALONE:.2f} {run.seconds / plain.seconds:.2f}" for run in runs
        )
        print(f"  {length:6} {1_000 * plain.seconds / ALONE:15.2f}   {shown}", flush=True)
        for curve, run in zip(curves.values(), [plain, *runs], strict=True):
            curve.append((length, 1_000 * run.seconds / ALONE))
    if plots is not None:
        plot_curves(plots, "acep-10", "ACEP, events one by one", "length", curves, "ms an event")


def without_tables(text: str) -> str:
    """Return statements without what they read of tables and write into them."""
    _, *queries = text.split(";\n")
    plain = (re.sub(r" WHERE \S+\.s = '\w+'| ON MATCH .*", "", query) for query in queries)
    return ";\n".join(dict.fromkeys(plain))


def rates(count: int, plots: Path | None) -> None:
    """Print how long events wait as more of them come while a batch is worked on: figure 11."""
    print("ACEP, 1 read, 0.25 writes, rows: waves that an event waits for, by events in a batch")
    print("  events   SEI   S2PL    LWM    SEI/LWM  S2PL/LWM")
    points: dict[Scheduler, list[tuple[float, float]]] = {each: [] for each in Scheduler}
    for batch in BATCHES:
        documents = list(pooled(count, KEYS, per_second=20))
        batches = count / batch
        runs = {each: run_engine(pool(), documents, Schedule(each), batch) for each in Scheduler}
        sei, s2pl, lwm = (runs[each].waves / batches for each in Scheduler)
        print(
            f"  {batch:6,} {sei:5,.0f} {s2pl:6,.0f} {lwm:6,.0f} {sei / lwm:10.1f} {s2pl / lwm:9.1f}"
        )
        for scheduler, run in runs.items():
            points[scheduler].append((batch, run.waves / batches))
    if plots is not None:
        title = "ACEP, waves that an event waits for"
        plot_curves(plots, "acep-11", title, "events in a batch", named(points), "waves")


if __name__ == "__main__":
    main()
