"""The experiments of the paper: figures 6.8 to 6.16 (Hong 2009, section 6.6), all engines.

    python -m benchmarks paper [simple] [complex] [views] [rss] [--queries 10 100 1000 10000]

What is timed is what the paper times: the join of one document with what is remembered, for all
queries; loading and stage 1 are left out.  `sequential` evaluates one query at a time: it is timed
on at most `SEQUENTIAL_MAX` queries and scaled to their number where there are more (marked ~).

    simple   6.8 queries, 6.9 leaves, 6.10 Zipf parameter: two documents of a two-level schema whose
             leaves are pairwise equal; defaults 1,000 queries, 6 leaves, Zipf 0.8 (table 6.5)
    complex  6.11 queries, 6.12 value joins, 6.13 Zipf parameter: three levels, 16 leaves
    views    6.14 and 6.15: what materialising R_vj costs, and what it saves
    rss      6.16: recorded news items in batches, documents per second against queries
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._workloads import (
    Side,
    complex_side,
    flat_side,
    news_lines,
    random_classes,
    run,
    table,
)
from benchmarks.joins import DAY_US, LEAVES, news_batches
from joins.classes import QueryClass
from joins.engines import ENGINES, EngineName, make_processor
from joins.processor import Processor
from xscl.query import INFINITE_US

SEQUENTIAL_MAX = 40
REPEATS = 3
SECOND_US = 1_000_000


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


def rows(processor: Processor, side: Side, number: int) -> object:
    shape = processor.shape_number("d")
    assert shape is not None
    values = [f"leaf {i}" if i in side.leaves else None for i in range(len(side.parents))]
    return table([shape], [values], [number * SECOND_US], number)


def join_ms(engine: EngineName, side: Side, queries: Sequence[QueryClass]) -> tuple[float, int]:
    """Return the milliseconds of joining one further document, and the tuples found.

    Without memory of earlier signatures: a new engine for each repetition.
    """
    times, found = [], 0
    for _ in range(1 if engine == "sequential" else REPEATS):
        processor = loaded(engine, side, queries)
        second = rows(processor, side, 2)
        started = time.perf_counter()
        found = run(processor, second)  # type: ignore[arg-type]
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3, found


def known_ms(side: Side, queries: Sequence[QueryClass]) -> float:
    """Return the milliseconds of a document whose signature has been met before."""
    processor = loaded("signatures", side, queries)
    run(processor, rows(processor, side, 2))  # type: ignore[arg-type]
    third = rows(processor, side, 3)
    started = time.perf_counter()
    run(processor, third)  # type: ignore[arg-type]
    return (time.perf_counter() - started) * 1e3


def line(label: str, side: Side, queries: list[QueryClass]) -> None:
    """Print one row: sequential, the paper's two, and signatures when new and when known."""
    some = queries[:SEQUENTIAL_MAX]
    sequential, _ = join_ms("sequential", side, list(dict.fromkeys(some)))
    distinct = len(set(some))
    # A query at a time: queries that are the same are evaluated again.
    sequential *= len(queries) / distinct
    mmqjp, tuples = join_ms("mmqjp", side, queries)
    views, same = join_ms("mmqjp-views", side, queries)
    new, again = join_ms("signatures", side, queries)
    assert tuples == same == again, "the engines disagree"
    known = known_ms(side, queries)
    mark = "~" if len(queries) > distinct else " "
    print(
        f"{label:>10} {len({q.template for q in queries}):>9} {mark}{sequential:>11,.1f}"
        f" {mmqjp:>9,.1f} {views:>9,.1f} {new:>9,.1f} {known:>9,.2f}"
        f" {sequential / mmqjp:>8,.0f}x {sequential / known:>9,.0f}x"
    )


def heading(title: str, first: str) -> None:
    print(f"\n{title}; milliseconds for one document")
    print(
        f"{first:>10} {'templates':>9} {'sequential':>12} {'mmqjp':>9} {'views':>9}"
        f" {'new sig.':>9} {'known':>9} {'seq/mmqjp':>9} {'seq/known':>10}"
    )


def simple(counts: Sequence[int]) -> None:
    side = flat_side(6)
    heading("Figure 6.8, two levels, 6 leaves", "queries")
    for count in counts:
        line(f"{count:,}", side, classes_of(side, count, 6, 0.8))
    heading("Figure 6.9, 1,000 queries", "leaves")
    for leaves in (4, 6, 8, 10, 12):
        line(str(leaves), flat_side(leaves), classes_of(flat_side(leaves), 1_000, leaves, 0.8))
    heading("Figure 6.10, 1,000 queries", "Zipf")
    for zipf in (0.0, 0.4, 0.8, 1.2, 1.6):
        line(str(zipf), side, classes_of(side, 1_000, 6, zipf))


def complex_(counts: Sequence[int]) -> None:
    side = complex_side()
    heading("Figure 6.11, three levels, 16 leaves, at most 4 joins", "queries")
    for count in counts:
        line(f"{count:,}", side, classes_of(side, count, 4, 0.8))
    heading("Figure 6.12, 1,000 queries", "joins")
    for joins_max in (2, 3, 4, 5):
        line(str(joins_max), side, classes_of(side, 1_000, joins_max, 0.8))
    heading("Figure 6.13, 1,000 queries", "Zipf")
    for zipf in (0.0, 0.4, 0.8, 1.2, 1.6):
        line(str(zipf), side, classes_of(side, 1_000, 4, zipf))


def views(count: int) -> None:
    print(f"\nFigures 6.14 and 6.15, {count:,} queries; milliseconds for one document")
    print(f"{'schema':>10} {'mmqjp':>9} {'with R_vj':>10} {'saved':>7}")
    for name, side, joins_max in (("two", flat_side(6), 6), ("three", complex_side(), 4)):
        queries = classes_of(side, count, joins_max, 0.8)
        plain, _ = join_ms("mmqjp", side, queries)
        shared, _ = join_ms("mmqjp-views", side, queries)
        print(f"{name:>10} {plain:>9,.1f} {shared:>10,.1f} {1 - shared / plain:>7.0%}")


def rss(counts: Sequence[int], documents: int) -> None:
    lines = news_lines(documents)
    print(f"\nFigure 6.16, {len(lines):,} news items in batches of 500, window 1 day; documents/s")
    print(f"{'queries':>10} {'mmqjp':>9} {'views':>9} {'signatures':>11} {'sig./views':>10}")
    side = flat_side(len(LEAVES))
    for count in counts:
        queries = classes_of(side, count, len(LEAVES), 0.8)
        rates, found = {}, set()
        for engine in ("mmqjp", "mmqjp-views", "signatures"):
            processor = make_processor(engine, lateness_us=DAY_US)
            for query_class in queries:
                processor.add(query_class, DAY_US)
            batches = list(news_batches(lines, side, processor, 500))
            started, tuples = time.perf_counter(), 0
            for rows_, _ in batches:
                tuples += run(processor, rows_)
            rates[engine] = len(lines) / (time.perf_counter() - started)
            found.add(tuples)
        assert len(found) == 1, "the engines disagree"
        ratio = rates["signatures"] / rates["mmqjp-views"]
        print(
            f"{count:>10,} {rates['mmqjp']:>9,.0f} {rates['mmqjp-views']:>9,.0f}"
            f" {rates['signatures']:>11,.0f} {ratio:>9,.1f}x"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["simple", "complex", "views", "rss"])
    parser.add_argument("--queries", type=int, nargs="+", default=[10, 100, 1_000, 10_000, 100_000])
    parser.add_argument("--documents", type=int, default=5_000)
    arguments = parser.parse_args()
    assert set(ENGINES) >= {"sequential", "mmqjp", "mmqjp-views", "signatures"}
    for part in arguments.parts:
        if part == "simple":
            simple(arguments.queries)
        elif part == "complex":
            complex_(arguments.queries)
        elif part == "views":
            views(max(arguments.queries))
        else:
            rss(arguments.queries, arguments.documents)


if __name__ == "__main__":
    main()
