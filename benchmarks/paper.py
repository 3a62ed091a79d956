"""The experiments of the paper: figures 6.8 to 6.16 (Hong 2009, section 6.6), all engines.

    python -m benchmarks paper [simple] [complex] [views] [rss] [--queries 10 ... 100000]
                               [--remembered N] [--documents N] [--seconds S] [--plots DIRECTORY]

What is timed is what the paper times: the join of one document with what is remembered, for all
queries; loading and stage 1 are left out.  `sequential` evaluates one query at a time: it is timed
on at most `SEQUENTIAL_MAX` queries and scaled to their number where there are more (marked ~).

    simple   6.8 queries, 6.9 leaves, 6.10 Zipf parameter: two documents of a two-level schema whose
             leaves are pairwise equal; defaults 1,000 queries, 6 leaves, Zipf 0.8 (table 6.5)
    complex  6.11 queries, 6.12 value joins, 6.13 Zipf parameter: three levels, 16 leaves
    views    6.14 and 6.15, the most queries: what materialising R_vj and slices of R_L costs, and
             what it saves
    rss      6.16: documents per second against queries, window infinite.  The paper's items, of 418
             channels in 2006, were not published; recorded news stands in for them: link, feed,
             title, time and author.  See `_paper_news`

Templates are counted twice: as they are, and with mirror images taken for one, as the paper counts
in section 6.6 (but not in table 6.3).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks._paper_news import figure_6_16
from benchmarks._paper_plots import Curves, plot_bars, plot_curves, print_head, print_row
from benchmarks._workloads import Side, complex_side, flat_side, random_classes, run, table
from joins.engines import EngineName, Processor, make_processor
from joins.sql import schema
from joins.sql.engine import SqlProcessor
from templates.joingraph import GraphNode, JoinGraph
from templates.queryclass import QueryClass
from templates.template import Template, template_of
from xscl.query import INFINITE_US

T = TypeVar("T")

SEQUENTIAL_MAX = 40
REPEATS = 3
KNOWN = 5
SECOND_US = 1_000_000
DEFAULT_QUERIES, DEFAULT_ZIPF = 1_000, 0.8
ZIPFS = (0.0, 0.4, 0.8, 1.2, 1.6)

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
    for _ in range(1 if engine == "sequential" else REPEATS):
        processor = loaded(engine, side, queries)
        second = rows(processor, side, 2)
        started = time.perf_counter()
        found = run(processor, second)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3, found


def known_ms(side: Side, queries: Sequence[QueryClass]) -> float:
    """Return the milliseconds of a document whose signature has been met before.

    The median of a few, each of which is joined with all before it.
    """
    processor = loaded("signatures", side, queries)
    run(processor, rows(processor, side, 2))
    times = []
    for number in range(3, 3 + KNOWN):
        further = rows(processor, side, number)
        started = time.perf_counter()
        run(processor, further)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


def sequential_ms(side: Side, queries: Sequence[QueryClass]) -> float:
    """Return the milliseconds of evaluating all queries, one at a time, however many are alike."""
    some = list(dict.fromkeys(queries))[:SEQUENTIAL_MAX]
    spent, found = join_ms("sequential", side, some)
    assert found == join_ms("signatures", side, some)[1], "the engines disagree"
    return spent * len(queries) / len(some)


def mirrored(template: Template) -> Template:
    """Return the template with its sides exchanged."""
    n = template.left_size
    left, right = template.parents[:n], [max(-1, parent - n) for parent in template.parents[n:]]
    sides = [tuple(GraphNode(0, parent) for parent in side) for side in (right, left)]
    joins = tuple((b - n, a) for a, b in template.value_joins)
    return template_of(JoinGraph((sides[0], sides[1]), joins))[0]


class Figure:
    """One figure: prints a row for each value of what is varied, and keeps the curves."""

    def __init__(self, number: str, title: str, varied: str) -> None:
        self.number, self.title, self.varied = number, title, varied
        self.curves: Curves = defaultdict(list)
        print(f"\nFigure {number}, {title}; milliseconds for one document\n")
        engines = ("sequential", "mmqjp", "mmqjp-views", "new", "known")
        ratios = ("sequential / mmqjp", "sequential / new", "sequential / known")
        print_head(varied, "templates", *engines, *ratios)

    def row(self, value: float, side: Side, queries: Sequence[QueryClass]) -> None:
        sequential = sequential_ms(side, queries)
        mmqjp, tuples = join_ms("mmqjp", side, queries)
        views, same = join_ms("mmqjp-views", side, queries)
        new, again = join_ms("signatures", side, queries)
        assert tuples == same == again, "the engines disagree"
        known = known_ms(side, queries)
        for engine, spent in zip(ENGINES, (sequential, mmqjp, views, new, known), strict=True):
            self.curves[engine].append((value, spent))
        mark = "~" if len(set(queries)) > SEQUENTIAL_MAX else ""
        templates = {query.template for query in queries}
        unordered = {min(each, mirrored(each), key=repr) for each in templates}
        print_row(
            f"{value:,}",
            f"{len(templates)} ({len(unordered)})",
            f"{mark}{sequential:,.0f}",
            *(f"{t:,.0f}" if t > 10 else f"{t:.2f}" for t in (mmqjp, views, new, known)),
            *(f"{sequential / spent:,.0f}" for spent in (mmqjp, new, known)),
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
    print(f"\nFigures 6.14 and 6.15, {count:,} queries; milliseconds for one document\n")
    print_head("figure", "levels", "mmqjp", "mmqjp-views", "saved", *PARTS)
    for number, name, side, joins_max in (
        ("6.14", "two", flat_side(6), 6),
        ("6.15", "three", complex_side(), 4),
    ):
        queries = classes_of(side, count, joins_max, DEFAULT_ZIPF)
        plain, _ = join_ms("mmqjp", side, queries)
        parts = broken_down(side, queries)
        total = sum(parts.values())
        saved = f"{1 - total / plain:.0%}"
        spent = (f"{parts[part]:,.1f}" for part in PARTS)
        print_row(number, name, f"{plain:,.0f}", f"{total:,.0f}", saved, *spent)
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
    parts = dict.fromkeys((*PARTS, "within slices"), 0.0)
    fill, ask = processor.view_cache.fill, processor.state.run

    def timed(part: str, work: Callable[[], T]) -> T:
        started = time.perf_counter()
        done = work()
        parts[part] += (time.perf_counter() - started) * 1e3
        return done

    with (
        patch.object(
            processor.view_cache, "fill", lambda first: timed("slices of R_L", lambda: fill(first))
        ),
        patch.object(processor.state, "run", lambda sql: timed(part_of(sql), lambda: ask(sql))),
    ):
        processor.probe(0)
    return {part: parts[part] for part in PARTS}


def part_of(sql: str) -> str:
    if "template_row" in sql:
        return "CQ_T"
    return "R_vj" if schema.VALUE_JOIN in sql else "within slices"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", default=["simple", "complex", "views", "rss"])
    parser.add_argument("--queries", type=int, nargs="+", default=[10, 100, 1_000, 10_000, 100_000])
    parser.add_argument("--remembered", type=int, default=50_000)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20)
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
            remembered, documents = arguments.remembered, arguments.documents
            figure_6_16(
                arguments.queries, remembered, documents, arguments.seconds, arguments.plots
            )


if __name__ == "__main__":
    main()
