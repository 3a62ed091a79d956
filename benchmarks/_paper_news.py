"""Figure 6.16: documents per second over recorded feed items, without end (Hong, section 6.6.3).

Every engine remembers the same items, then joins the same batches: the first is not timed, it fills
what the engine caches; the others are, as many as end within a time limit.  What is compared is
compared on the batches that both have ended.  `sequential` is timed on a sample of the queries, one
statement for each of them, and scaled to their number.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks._paper_plots import plot_curves, print_head, print_row
from benchmarks._workloads import Side, flat_side, news_lines, random_classes, run
from benchmarks.joins import LEAVES, news_batches
from joins.engines import ENGINES, EngineName, Processor, make_processor
from joins.memory.tupletable import ClassTuple
from joins.sql.engine import SqlProcessor
from templates.queryclass import QueryClass
from xscl.query import INFINITE_US

__all__ = ["figure_6_16"]

BATCH = 500
ZIPF = 0.8
OVER_VIEWS = ("signatures / views", "in processor time")
SAMPLE = 20
"""Queries that `sequential` is timed on: the first, which are drawn like all others."""


@dataclass(frozen=True)
class Stream:
    """Items as ready witnesses: some are remembered, the others joined with them."""

    side: Side
    remembered: list[pa.Table]
    joined: list[pa.Table]

    @classmethod
    def recorded(cls, remembered: int, documents: int) -> Stream:
        """Return the first recorded items."""
        side = flat_side(len(LEAVES))
        first = make_processor("signatures", lateness_us=0)
        lines = news_lines(remembered + documents)
        batches = [rows for rows, _ in news_batches(lines, side, first, BATCH)]
        cut = remembered // BATCH
        return cls(side, batches[:cut], batches[cut:])


@dataclass
class Run:
    """What an engine did: seconds for the timed batches, tuples of all that it ended.

    `processor_s` is what all threads have spent: the engines in SQL have two, the default one.
    """

    seconds: float = 0.0
    processor_s: float = 0.0
    timed: int = 0
    tuples: list[int] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Documents per second, or more than there can be where no batch ended in time."""
        return max(1, self.timed) * BATCH / self.seconds

    @property
    def processor_rate(self) -> float:
        """Documents per second of processor time."""
        return max(1, self.timed) * BATCH / self.processor_s

    @property
    def tuples_per_document(self) -> float:
        """Tuples of a document; NaN where no batch ended."""
        return sum(self.tuples) / (len(self.tuples) * BATCH) if self.tuples else float("nan")

    @property
    def mark(self) -> str:
        """`<` where the rate is a bound."""
        return "" if self.timed else "<"


def joined(
    engine: EngineName, stream: Stream, queries: Sequence[QueryClass], seconds: float
) -> Run:
    """Join the stream's batches, as many as there are or as end in time."""
    processor = make_processor(engine, lateness_us=0)
    for query_class in queries:
        processor.add(query_class, INFINITE_US)
    processor.add_shapes({"item": stream.side.edges()})
    assert processor.shape_number("item") == 0, "the shape that the batches name"
    for rows in stream.remembered:
        processor.begin_batch()
        processor.absorb(rows)
    done = Run()
    for rows in stream.joined:
        started, processor_started = time.perf_counter(), time.process_time()
        tuples, aside = run_within(processor, rows, seconds - done.seconds)
        spent = time.perf_counter() - started - aside
        processor_s = time.process_time() - processor_started - aside
        if tuples is not None:
            done.tuples.append(tuples)
        elif not done.timed:
            done.seconds, done.processor_s = spent, processor_s
        if tuples is None:
            break
        if len(done.tuples) > 1:
            done.timed += 1
            done.seconds += spent
            done.processor_s += processor_s
        if done.seconds >= seconds:
            break
    return done


def run_within(processor: Processor, batch: pa.Table, seconds: float) -> tuple[int | None, float]:
    """Join a batch: its tuples, None where that takes too long, and seconds to be left aside.

    The default engine hands its tuples over in columns, the others as objects.  To make these takes
    up to half of their time, and is no part of the join: it is done twice, and left aside twice.
    """
    if not isinstance(processor, SqlProcessor):
        return run(processor, batch), 0.0
    timer = threading.Timer(seconds, processor.state.db.interrupt)
    timer.start()
    try:
        processor.begin_batch()
        processor.absorb(batch)
        found = processor.probe(0)
    except duckdb.InterruptException:
        return None, 0.0
    finally:
        timer.cancel()
    started = time.perf_counter()
    for one in found:
        ClassTuple(one.query_class, one.left, one.right, one.span_us, one.nodes)
    return len(found), 2 * (time.perf_counter() - started)


def one_by_one(stream: Stream, queries: Sequence[QueryClass], seconds: float) -> Run:
    """Join by `sequential`, some queries; what it finds is held against the default engine."""
    done = joined("sequential", stream, queries, seconds)
    check([done, joined("signatures", stream, queries, seconds)])
    return done


def check(runs: Sequence[Run]) -> None:
    """Hold the tuples of each batch that all have ended against one another."""
    for tuples in zip(*(done.tuples for done in runs), strict=False):
        assert len(set(tuples)) == 1, f"the engines disagree: {tuples}"


def figure_6_16(
    counts: Sequence[int], remembered: int, documents: int, seconds: float, plots: Path | None
) -> None:
    """Print a row for each number of queries, then one for each tenth of what is remembered."""
    stream = Stream.recorded(remembered, documents)
    items = sum(map(len, stream.joined))
    print(
        f"\nFigure 6.16, {remembered:,} remembered news items and up to {items:,} more in batches"
        f" of {BATCH}, {seconds:g} s for each engine; documents/s\n"
    )
    names = ("sequential", "mmqjp", "mmqjp-views", "signatures")
    ratios = ("mmqjp / sequential", "signatures / sequential", *OVER_VIEWS)
    print_head("queries", "classes", "matches a document", *names, *ratios)
    curves = defaultdict[str, list[tuple[float, float]]](list)
    samples: dict[int, Run] = {}
    for count in counts:
        queries = list(random_classes(stream.side, count, joins_max=len(LEAVES), zipf=ZIPF))
        some = list(dict.fromkeys(queries[:SAMPLE]))
        if len(some) not in samples:
            samples[len(some)] = one_by_one(stream, some, seconds)
        runs = {"sequential": samples[len(some)], **set_oriented(stream, queries, seconds)}
        rates = {engine: done.rate for engine, done in runs.items()}
        rates["sequential"] *= len(some) / count
        marks = {engine: done.mark for engine, done in runs.items()}
        marks["sequential"] += "~" if len(some) < count else ""
        for engine in ENGINES:
            curves[engine].append((count, rates[engine]))
        print_row(
            f"{count:,}",
            f"{len(set(queries)):,}",
            f"{runs['signatures'].tuples_per_document:.1f}",
            *(marks[engine] + shown(rates[engine]) for engine in ENGINES),
            f"{rates['mmqjp'] / rates['sequential']:,.0f}",
            f"{rates['signatures'] / rates['sequential']:,.0f}",
            *over_views(runs),
        )
    if plots is not None:
        plot_curves(plots, "6.16", "news items", "queries", curves, unit="documents/s")
    by_state(remembered, seconds)


def set_oriented(stream: Stream, queries: Sequence[QueryClass], seconds: float) -> dict[str, Run]:
    """Join by all engines but `sequential`."""
    runs = {e: joined(e, stream, queries, seconds) for e in ENGINES if e != "sequential"}
    check(list(runs.values()))
    return dict(runs)


def by_state(remembered: int, seconds: float) -> None:
    """Print the rates of 10,000 queries by what is remembered, hence by matches."""
    print("\nThe same, 10,000 queries, up to 5,000 items more\n")
    names = ("mmqjp", "mmqjp-views", "signatures")
    print_head("remembered", "matches a document", *names, *OVER_VIEWS)
    for part in (50, 10, 1):
        stream = Stream.recorded(remembered // part, 5_000)
        queries = list(random_classes(stream.side, 10_000, joins_max=len(LEAVES), zipf=ZIPF))
        runs = set_oriented(stream, queries, seconds)
        print_row(
            f"{remembered // part:,}",
            f"{runs['signatures'].tuples_per_document:.1f}",
            *(runs[name].mark + shown(runs[name].rate) for name in names),
            *over_views(runs),
        )


def over_views(runs: Mapping[str, Run]) -> tuple[str, str]:
    """Return how much faster signatures are than views, by the clock and in processor time."""
    signatures, views = runs["signatures"], runs["mmqjp-views"]
    return (
        f"{signatures.rate / views.rate:,.1f}",
        f"{signatures.processor_rate / views.processor_rate:,.1f}",
    )


def shown(rate: float) -> str:
    """Return a rate with the digits that matter."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
