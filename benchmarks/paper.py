"""The experiments of the paper: figures 6.8 to 6.16 (Hong 2009, section 6.6), all engines.

    python -m benchmarks paper [simple] [complex] [views] [rss] [--queries 10 ... 100000]
                               [--documents N] [--seconds S] [--plots DIRECTORY]

What is timed is what the paper times: the join of one document with what is remembered, for all
queries; loading and stage 1 are left out.  `sequential` evaluates one query at a time: it is timed
on at most `SEQUENTIAL_MAX` queries and scaled to their number where there are more (marked ~).

    simple   6.8 queries, 6.9 leaves, 6.10 Zipf parameter: two documents of a two-level schema whose
             leaves are pairwise equal; defaults 1,000 queries, 6 leaves, Zipf 0.8 (table 6.5)
    complex  6.11 queries, 6.12 value joins, 6.13 Zipf parameter: three levels, 16 leaves
    views    6.14 and 6.15, the most queries: what materialising R_vj and slices of R_L costs, and
             what it saves
    rss      6.16: recorded news items, window infinite, documents per second against queries.
             All engines remember the same `REMEMBERED` items first.  One that is slow is timed on
             the batches that it ends within `--seconds`; one that does not end the first batch in
             that time is stopped, and its rate is a bound (marked <)
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._paper_plots import Curves, plot_bars, plot_curves
from benchmarks._workloads import (
    Side,
    complex_side,
    flat_side,
    news_lines,
    random_classes,
    run,
    table,
)
from benchmarks.joins import LEAVES, news_batches
from joins import schema
from joins.classes import QueryClass
from joins.engines import EngineName, make_processor
from joins.processor import Processor, SqlProcessor
from xscl.query import INFINITE_US

SEQUENTIAL_MAX = 40
REPEATS = 3
SECOND_US = 1_000_000
DEFAULT_QUERIES, DEFAULT_ZIPF = 1_000, 0.8
ZIPFS = (0.0, 0.4, 0.8, 1.2, 1.6)

REMEMBERED = 1_000
BATCH = 500
RSS_SEQUENTIAL_MAX = 5

ENGINES = ("sequential", "mmqjp", "mmqjp-views", "signatures, new", "signatures, known")


def classes_of(side: Side, count: int, joins_max: int, zipf: float) -> list[QueryClass]:
    return list(random_classes(side, count, joins_max=joins_max, zipf=zipf))


def loaded(engine: EngineName, side: Side, queries: Sequence[QueryClass]) -> Processor:
    """Return a processor with the queries, and with the first document remembered."""
    processor = make_processor(engine, lateness_us=0)
    for query_class in queries:
        processor.add(query_class, INFINITE_US)
    processor.add_shapes({"d": side.edges()})
    run(processor, rows(processor, side, 1))
    return processor


def rows(processor: Processor, side: Side, number: int) -> pa.Table:
    shape = processor.shape_number("d")
    assert shape is not None
    values = [f"leaf {i}" if i in side.leaves else None for i in range(len(side.parents))]
    return table([shape], [values], [number * SECOND_US], number)


def join_ms(engine: EngineName, side: Side, queries: Sequence[QueryClass]) -> tuple[float, int]:
    """Return the milliseconds of joining one further document, and the tuples found.

    Without memory of earlier signatures: a new engine for each repetition.
    """
    times, found = [], 0
    is_slow = engine == "sequential" or len(queries) > DEFAULT_QUERIES
    for _ in range(1 if is_slow else REPEATS):
        processor = loaded(engine, side, queries)
        second = rows(processor, side, 2)
        started = time.perf_counter()
        found = run(processor, second)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3, found


def known_ms(side: Side, queries: Sequence[QueryClass]) -> float:
    """Return the milliseconds of a document whose signature has been met before."""
    processor = loaded("signatures", side, queries)
    run(processor, rows(processor, side, 2))
    third = rows(processor, side, 3)
    started = time.perf_counter()
    run(processor, third)
    return (time.perf_counter() - started) * 1e3


def sequential_ms(side: Side, queries: Sequence[QueryClass]) -> float:
    """Return the milliseconds of evaluating all queries, one at a time, however many are alike."""
    some = list(dict.fromkeys(queries))[:SEQUENTIAL_MAX]
    spent, _ = join_ms("sequential", side, some)
    return spent * len(queries) / len(some)


class Figure:
    """One figure: prints a row for each value of what is varied, and keeps the curves."""

    def __init__(self, number: str, title: str, varied: str) -> None:
        self.number, self.title, self.varied = number, title, varied
        self.curves: Curves = defaultdict(list)
        print(f"\nFigure {number}, {title}; milliseconds for one document")
        print(
            f"{varied:>10} {'templates':>9} {'sequential':>12} {'mmqjp':>9} {'views':>9}"
            f" {'new sig.':>9} {'known':>9} {'seq/mmqjp':>9} {'seq/new':>9} {'seq/known':>10}"
        )

    def row(self, value: float, side: Side, queries: Sequence[QueryClass]) -> None:
        sequential = sequential_ms(side, queries)
        mmqjp, tuples = join_ms("mmqjp", side, queries)
        views, same = join_ms("mmqjp-views", side, queries)
        new, again = join_ms("signatures", side, queries)
        assert tuples == same == again, "the engines disagree"
        known = known_ms(side, queries)
        for engine, spent in zip(ENGINES, (sequential, mmqjp, views, new, known), strict=True):
            self.curves[engine].append((value, spent))
        mark = "~" if len(set(queries)) > SEQUENTIAL_MAX else " "
        print(
            f"{value:>10,} {len({q.template for q in queries}):>9} {mark}{sequential:>11,.1f}"
            f" {mmqjp:>9,.1f} {views:>9,.1f} {new:>9,.1f} {known:>9,.2f}"
            f" {sequential / mmqjp:>8,.0f}x {sequential / new:>8,.0f}x"
            f" {sequential / known:>9,.0f}x",
            flush=True,
        )

    def plot(self, directory: Path | None) -> None:
        if directory is not None:
            plot_curves(directory, self.number, self.title, self.varied, self.curves)


def simple(counts: Sequence[int], plots: Path | None) -> None:
    side = flat_side(6)
    figure = Figure("6.8", "two levels, 6 leaves", "queries")
    for count in counts:
        figure.row(count, side, classes_of(side, count, 6, DEFAULT_ZIPF))
    figure.plot(plots)
    figure = Figure("6.9", "two levels, 1,000 queries", "leaves")
    for leaves in (4, 6, 8, 10, 12):
        side_of = flat_side(leaves)
        figure.row(leaves, side_of, classes_of(side_of, DEFAULT_QUERIES, leaves, DEFAULT_ZIPF))
    figure.plot(plots)
    figure = Figure("6.10", "two levels, 1,000 queries", "Zipf")
    for zipf in ZIPFS:
        figure.row(zipf, side, classes_of(side, DEFAULT_QUERIES, 6, zipf))
    figure.plot(plots)


def complex_(counts: Sequence[int], plots: Path | None) -> None:
    side = complex_side()
    figure = Figure("6.11", "three levels, 16 leaves, at most 4 joins", "queries")
    for count in counts:
        figure.row(count, side, classes_of(side, count, 4, DEFAULT_ZIPF))
    figure.plot(plots)
    figure = Figure("6.12", "three levels, 1,000 queries", "joins")
    for joins_max in (2, 3, 4, 5):
        figure.row(joins_max, side, classes_of(side, DEFAULT_QUERIES, joins_max, DEFAULT_ZIPF))
    figure.plot(plots)
    figure = Figure("6.13", "three levels, 1,000 queries", "Zipf")
    for zipf in ZIPFS:
        figure.row(zipf, side, classes_of(side, DEFAULT_QUERIES, 4, zipf))
    figure.plot(plots)


PARTS = ("slices of R_L", "R_vj", "CQ_T")


def views(count: int, plots: Path | None) -> None:
    print(f"\nFigures 6.14 and 6.15, {count:,} queries; milliseconds for one document")
    print(f"{'figure':>7} {'schema':>7} {'mmqjp':>9} {'views':>9} {'saved':>6}", end="")
    print("   of which " + " ".join(f"{part:>14}" for part in PARTS))
    for number, name, side, joins_max in (
        ("6.14", "two", flat_side(6), 6),
        ("6.15", "three", complex_side(), 4),
    ):
        queries = classes_of(side, count, joins_max, DEFAULT_ZIPF)
        plain, _ = join_ms("mmqjp", side, queries)
        parts = broken_down(side, queries)
        total = sum(parts.values())
        print(
            f"{number:>7} {name:>7} {plain:>9,.1f} {total:>9,.1f} {1 - total / plain:>6.0%}", end=""
        )
        print(" " * 12 + " ".join(f"{parts[part]:>14,.1f}" for part in PARTS), flush=True)
        if plots is not None:
            bars = {"mmqjp": {"CQ_T": plain}, "mmqjp-views": parts}
            plot_bars(plots, number, f"{name} levels, {count:,} queries", bars)


def broken_down(side: Side, queries: Sequence[QueryClass]) -> dict[str, float]:
    """Return the milliseconds of a document with views, by what they are spent on."""
    processor = loaded("mmqjp-views", side, queries)
    assert isinstance(processor, SqlProcessor)
    second = rows(processor, side, 2)
    processor.begin_batch()
    processor.absorb(second)
    parts = dict.fromkeys(PARTS, 0.0)

    def timed(sql: str) -> list[tuple[object, ...]]:
        started = time.perf_counter()
        found = statement(sql)
        parts[part_of(sql)] += (time.perf_counter() - started) * 1e3
        return found

    statement, processor.state.run = processor.state.run, timed  # type: ignore[method-assign]
    processor.probe(0)
    return parts


def part_of(sql: str) -> str:
    if sql.startswith((f"INSERT INTO {schema.VALUE_JOIN}", f"TRUNCATE {schema.VALUE_JOIN}")):
        return "R_vj"
    return "CQ_T" if sql.startswith(("SELECT", "WITH")) and "template_row" in sql else PARTS[0]


def rss(counts: Sequence[int], documents: int, seconds: float, plots: Path | None) -> None:
    lines = news_lines(documents)
    print(f"\nFigure 6.16, {len(lines):,} news items in batches of {BATCH}; documents/s")
    print(
        f"{'queries':>10} {'sequential':>11} {'mmqjp':>9} {'views':>9} {'signatures':>11}"
        f" {'sig./views':>10} {'sig./seq':>9}"
    )
    side, curves = flat_side(len(LEAVES)), defaultdict[str, list[tuple[float, float]]](list)
    for count in counts:
        queries = classes_of(side, count, len(LEAVES), DEFAULT_ZIPF)
        rates, marks, found = {}, {}, []
        for engine in ("sequential", "mmqjp", "mmqjp-views", "signatures"):
            is_one_by_one = engine == "sequential"
            some = list(dict.fromkeys(queries))[:RSS_SEQUENTIAL_MAX] if is_one_by_one else queries
            rate, tuples = throughput(engine, side, some, lines, seconds)
            rates[engine] = rate * len(some) / len(queries)
            marks[engine] = "~" if len(some) < len(queries) else ""
            if not tuples:
                marks[engine] += "<"
            if not is_one_by_one:
                found.append(tuples)
            curves[engine].append((count, rates[engine]))
        assert all(a == b for tuples in found for a, b in zip(tuples, found[-1], strict=False))
        figures = {engine: f"{marks[engine]}{rate:,.1f}" for engine, rate in rates.items()}
        print(
            f"{count:>10,} {figures['sequential']:>11} {figures['mmqjp']:>9}"
            f" {figures['mmqjp-views']:>9} {figures['signatures']:>11}"
            f" {rates['signatures'] / rates['mmqjp-views']:>9,.1f}x"
            f" {rates['signatures'] / rates['sequential']:>8,.0f}x",
            flush=True,
        )
    if plots is not None:
        plot_curves(plots, "6.16", "news items", "queries", curves, unit="documents/s")


def throughput(
    engine: EngineName,
    side: Side,
    queries: Sequence[QueryClass],
    lines: Sequence[object],
    seconds: float,
) -> tuple[float, list[int]]:
    """Return documents per second, and the tuples of each batch that was ended in time."""
    processor = make_processor(engine, lateness_us=0)
    for query_class in queries:
        processor.add(query_class, INFINITE_US)
    tuples: list[int] = []
    spent = 0.0
    for i, (batch, _) in enumerate(news_batches(lines, side, processor, BATCH)):
        if i < REMEMBERED // BATCH:
            processor.begin_batch()
            processor.absorb(batch)
            continue
        started = time.perf_counter()
        found = run_within(processor, batch, seconds - spent)
        spent += time.perf_counter() - started
        if found is None:
            break
        tuples.append(found)
    return max(1, len(tuples)) * BATCH / spent, tuples


def run_within(processor: Processor, batch: pa.Table, seconds: float) -> int | None:
    """Join a batch; None where that takes longer than some seconds."""
    if not isinstance(processor, SqlProcessor):
        return run(processor, batch)
    timer = threading.Timer(max(seconds, 0.0), processor.state.db.interrupt)
    timer.start()
    try:
        return run(processor, batch)
    except duckdb.InterruptException:
        return None
    finally:
        timer.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["simple", "complex", "views", "rss"])
    parser.add_argument("--queries", type=int, nargs="+", default=[10, 100, 1_000, 10_000, 100_000])
    parser.add_argument("--documents", type=int, default=6_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--plots", type=Path)
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part == "simple":
            simple(arguments.queries, arguments.plots)
        elif part == "complex":
            complex_(arguments.queries, arguments.plots)
        elif part == "views":
            views(max(arguments.queries), arguments.plots)
        else:
            rss(arguments.queries, arguments.documents, arguments.seconds, arguments.plots)


if __name__ == "__main__":
    main()
