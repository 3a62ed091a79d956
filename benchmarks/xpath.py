"""What stage 1 costs, in times of a bare lxml parse of the same documents.

    python -m benchmarks xpath [--quick] [--plots DIRECTORY]
    python -m benchmarks xpath --planned 100000

Every figure is a ratio taken side by side: the two things compared run in turn, several times, in
processor time of this process, and the medians are divided.  So other load on the machine shows
little, and machines compare.  NITF documents and real items are read from `$XSCL_SHARED/data`
(default `../shared/data` beside the repository); without them those parts are left out.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pickle
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import elementpath
from lxml import etree

sys.path.insert(0, str(Path(__file__).parents[1]))

import xscl
from benchmarks._xpath_plots import Curves, plot
from benchmarks._xpath_workloads import (
    FORMS,
    auction_paths,
    auction_site,
    batch_of,
    nitf_catalog,
    nitf_documents,
    nitf_paths,
    real_items,
    register,
    rss_items,
    word_query,
)
from broker.pipeline.thisprocess import set_up_process
from xpath_eval.catalog import PatternCatalog
from xpath_eval.evaluator import Evaluator
from xpath_eval.stage import evaluate_batches
from xscl.treepattern import tree_pattern

Work = Callable[[], object]
YFILTER = [(1_000, 10.0), (10_000, 20.0), (100_000, 139.0)]
"""Version 1.0, the same documents and paths, on a machine like ours, parse included."""


def side_by_side(works: Sequence[Work], rounds: int = 7) -> list[float]:
    """Return the median processor time of each work; the works run in turn."""
    spent: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, times in zip(works, spent, strict=True):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
    return [statistics.median(times) for times in spent]


def row(*cells: object) -> None:
    print("  ".join(f"{cell:>12}" if i else f"{cell:<34}" for i, cell in enumerate(cells)))


def parse_all(documents: Iterable[bytes]) -> None:
    for xml in documents:
        etree.fromstring(xml)


def evaluate_all(evaluator: Evaluator, documents: Iterable[bytes]) -> Work:
    documents = list(documents)

    def work() -> None:
        for xml in documents:
            evaluator.evaluate("S", xml)

    return work


def resident() -> int:
    """Return the bytes of memory that the process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def items_by_queries(counts: Sequence[int]) -> Curves:
    """Items of known shapes: the cost of a further query."""
    collections = {"synthetic items": rss_items(3_000), "real items": real_items(3_000)}
    print("\nItems of known shapes, by the number of distinct queries (times of a parse)")
    heads = (f"{count:,}" for count in counts)
    row("queries, documents", *heads, "last/first", "as Arrow", "bytes/query")
    curves: Curves = {}
    for name, form in FORMS.items():
        evaluators, bytes_each = by_count(form, counts)
        for where, documents in collections.items():
            if not documents:
                continue
            works = [evaluate_all(evaluator, documents) for evaluator in evaluators]
            for work in works:
                work()
            arrow = arrow_of(evaluators[-1], documents)
            parse, *times = side_by_side([lambda d=documents: parse_all(d), *works, arrow])
            ratios = [time_ / parse for time_ in times]
            further = ratios[-2] / ratios[0]
            cells = (f"{ratio:.2f}" for ratio in (*ratios[:-1], further, ratios[-1]))
            row(f"{name}, {where}", *cells, f"{bytes_each:,.0f}")
            curves[f"{name}, {where}"] = list(zip(counts, ratios[:-1], strict=True))
    return curves


def by_count(
    form: Callable[[random.Random, int], str], counts: Sequence[int]
) -> tuple[list[Evaluator], float]:
    """Return evaluators of the first so many queries, and the memory of a further one."""
    random_, catalog = random.Random(2), PatternCatalog()
    evaluators: list[Evaluator] = []
    before = grown = 0
    for done, count in zip((0, *counts), counts, strict=False):
        before = resident()
        for number in range(done, count):
            register(catalog, form(random_, number))
        evaluators.append(Evaluator(catalog.plan()))
        evaluators[-1].evaluate("S", rss_items(1)[0])
        grown = resident() - before
    return evaluators, grown / counts[-1]


def arrow_of(evaluator: Evaluator, documents: Sequence[bytes]) -> Work:
    """Return the work of a Spark task: batches in, batches out."""
    batch = batch_of(documents)
    return lambda: list(evaluate_batches(evaluator.plan, [batch]))


def constants_only(count: int) -> None:
    """Queries that differ in constants alone: what one more costs, and what all cost."""
    (query,) = xscl.parse("S//item[author = 'Ann']->x[link->l]")
    block = query.blocks[0]
    pattern, catalog = tree_pattern(block, block.variables), PatternCatalog()
    variables = catalog.add(pattern)
    edges = [(variables[0], v) for v in variables[1:]]
    catalog.want(edges, variables[1:])
    tracemalloc.start()
    before, start = tracemalloc.get_traced_memory()[0], time.process_time()
    for _ in range(count):
        catalog.add(pattern)
        catalog.want(edges, variables[1:])
    grown, spent = tracemalloc.get_traced_memory()[0] - before, time.process_time() - start
    tracemalloc.stop()
    documents = rss_items(3_000)
    work = evaluate_all(Evaluator(catalog.plan()), documents)
    work()
    parse, ours = side_by_side([lambda: parse_all(documents), work])
    print(f"\n{count:,} queries that differ in constants alone")
    print(f"  {ours / parse:.2f} times a parse of synthetic items")
    print(f"  {grown / count:.2f} bytes and {spent / count * 1e6:.1f} us (traced) for one more")
    print(f"  {len(pickle.dumps(catalog.plan()))} bytes of plan for all")


def nitf(counts: Sequence[int], rounds: int) -> Curves:
    """Shapes that never repeat: every document once with the automaton warm, then again."""
    documents = nitf_documents()
    if not documents:
        print("\nNITF: left out, there are no such documents")
        return {}
    print("\nNITF, 200 documents of 3.5 KB: all matching paths (times of a parse)")
    row("paths", "cold", "unseen", "new shapes", "known", "matching", "wrong", "states")
    curves: Curves = {"YFilter 1.0": YFILTER}
    for kind in ("plain", "nested"):
        for count in counts:
            catalog, paths, roots = nitf_catalog(kind, count)
            evaluator = Evaluator(catalog.plan())
            work = evaluate_all(evaluator, documents)
            (cold,) = side_by_side([work], 1)

            def new(evaluator: Evaluator = evaluator, work: Work = work) -> None:
                evaluator.forget_shapes()
                work()

            parse, fresh, known = side_by_side([lambda: parse_all(documents), new, work], rounds)
            matching, wrong = check_nitf(evaluator, documents[:3], paths, roots)
            times = (cold / parse, unseen(catalog, documents), fresh / parse, known / parse)
            cells = (f"{time_:.1f}" for time_ in times)
            row(f"{count:,} {kind}", *cells, f"{matching:.0f}", wrong, evaluator.state_count)
            curves.setdefault(f"{kind} paths, new shapes", []).append((count, times[2]))
            curves.setdefault(f"{kind} paths, known shapes", []).append((count, times[3]))
    return curves


def unseen(catalog: PatternCatalog, documents: Sequence[bytes], folds: int = 4) -> float:
    """Return the cost of documents that the automaton has never met, after all the others."""
    ratios = []
    for fold in range(folds):
        evaluator = Evaluator(catalog.plan())
        evaluate_all(evaluator, [d for i, d in enumerate(documents) if i % folds != fold])()
        others = documents[fold::folds]
        ours, parse = side_by_side(
            [evaluate_all(evaluator, others), lambda o=others: parse_all(o)], 1
        )
        ratios.append(ours / parse)
    return statistics.median(ratios)


def check_nitf(
    evaluator: Evaluator, documents: Sequence[bytes], paths: Sequence[str], roots: Sequence[int]
) -> tuple[float, int]:
    """Return how many paths match a document, and how many differ from what lxml selects."""
    found, wrong = 0, 0
    for xml in documents:
        witnesses = evaluator.evaluate("S", xml)
        nodes: dict[int, set[int]] = {}
        for variable, _, node, _ in witnesses.shape.edges:
            nodes.setdefault(variable, set()).add(witnesses.nodes[node])
        root = etree.fromstring(xml)
        number = {element: i for i, element in enumerate(root.iter())}
        for path, variable in zip(paths, roots, strict=True):
            expected = {number[element] for element in root.xpath(path)}
            found += bool(expected)
            wrong += expected != nodes.get(variable, set())
    return found / len(documents), wrong


def one_by_one(counts: Sequence[int]) -> Curves:
    """Against a compiled XPath for each query block, and against elementpath."""
    documents = nitf_documents()[:20]
    if not documents:
        return {}
    print("\nAgainst one XPath for each block, plain NITF paths (times of ours, new shapes)")
    row("paths", "ours, us/doc", "lxml", "elementpath")
    curves: Curves = {}
    for count in counts:
        catalog, paths, _ = nitf_catalog("plain", count)
        evaluator = Evaluator(catalog.plan())
        work = evaluate_all(evaluator, documents)
        compiled = [etree.XPath(path) for path in paths]
        selectors = [elementpath.Selector(path) for path in paths] if count <= 100 else []

        def ours(evaluator: Evaluator = evaluator, work: Work = work) -> None:
            evaluator.forget_shapes()
            work()

        def lxml(compiled: list[etree.XPath] = compiled) -> None:
            for xml in documents:
                root = etree.fromstring(xml)
                for path in compiled:
                    path(root)

        def pure(selectors: list[elementpath.Selector] = selectors) -> None:
            for xml in documents:
                root = etree.fromstring(xml)
                for selector in selectors:
                    selector.select(root)

        ours()
        works = [lambda: parse_all(documents), ours, lxml, pure]
        parse, mine, theirs, other = side_by_side(works, 3)
        per_document = f"{mine / len(documents) * 1e6:.0f}"
        slow = f"{other / mine:.1f}" if selectors else "-"
        row(f"{count:,}", per_document, f"{theirs / mine:.1f}", slow)
        curves.setdefault("lxml, one XPath each", []).append((count, theirs / parse))
        if selectors:
            curves.setdefault("elementpath, one each", []).append((count, other / parse))
    return curves


def big_documents(counts: Sequence[int]) -> Curves:
    """Large documents: MB/s by the number of random patterns."""
    random_ = random.Random(3)
    documents = [auction_site(random_, 1_000_000) for _ in range(2)]
    print("\nXMark-like documents of 1 MB, random patterns of depth 2 to 6 with * and //")
    row("patterns", "MB/s", "x parse", "states", "edges/doc")
    points: list[tuple[int, float]] = []
    for count in counts:
        catalog = PatternCatalog()
        for path in auction_paths(random_, count):
            register(catalog, f"S{path}")
        evaluator = Evaluator(catalog.plan())

        def new(evaluator: Evaluator = evaluator) -> None:
            evaluator.forget_shapes()
            for xml in documents:
                evaluator.evaluate("S", xml)

        new()
        parse, spent = side_by_side([lambda: parse_all(documents), new], 3)
        speed = sum(map(len, documents)) / 1e6 / spent
        edges = len(evaluator.evaluate("S", documents[0]).shape)
        states = evaluator.state_count
        row(f"{count:,}", f"{speed:.1f}", f"{spent / parse:.1f}", states, f"{edges:,}")
        points.append((count, speed))
    return {"XMark-like, 1 MB": points}


def shape_miss(counts: Sequence[int]) -> None:
    """What a document costs whose shape is new, against one whose shape is known."""
    documents = rss_items(300)
    print("\nA new shape, synthetic items with distinct queries (us a document)")
    row("queries", "parse", "known", "new", "states")
    for evaluator, count in zip(by_count(FORMS["constants"], counts)[0], counts, strict=True):
        known = evaluate_all(evaluator, documents)

        def new(evaluator: Evaluator = evaluator) -> None:
            for xml in documents:
                evaluator.forget_shapes()
                evaluator.evaluate("S", xml)

        known()
        times = side_by_side([lambda: parse_all(documents), known, new], 5)
        cells = (f"{time_ / len(documents) * 1e6:.1f}" for time_ in times)
        row(f"{count:,}", *cells, evaluator.state_count)


def registration(count: int) -> None:
    """How long until queries are effective, one plan for all or one for each."""
    print(f"\nRegistration of {count:,} distinct queries (processor seconds)")
    random_, catalog = random.Random(4), PatternCatalog()
    start = time.process_time()
    blocks = [xscl.parse(word_query(random_, n))[0].blocks[0] for n in range(count)]
    print(f"  parse the queries          {time.process_time() - start:6.2f}")
    start = time.process_time()
    for block in blocks:
        pattern = tree_pattern(block, block.variables)
        variables = catalog.add(pattern)
        catalog.want([(variables[-1], variables[-1])], ())
    print(f"  add them to the catalog    {time.process_time() - start:6.2f}")
    evaluator = Evaluator(PatternCatalog().plan())
    start = time.process_time()
    evaluator.update(catalog.plan())
    evaluator.evaluate("S", rss_items(1)[0])
    print(f"  plan, update, 1st document {time.process_time() - start:6.2f}")
    register(catalog, "S//item[contains(title, 'one more')]->x")
    start = time.process_time()
    evaluator.update(catalog.plan())
    evaluator.evaluate("S", rss_items(1)[0])
    print(f"  and one more               {time.process_time() - start:6.2f}")


def planned(count: int) -> None:
    """How long until so many different NITF paths can be evaluated, in a broker's process."""
    print(f"\n{count:,} NITF paths registered and planned (processor seconds)")
    row("paths", "read", "pattern", "registered", "planned", "in all")
    set_up_process()
    for kind in ("plain", "nested"):
        catalog, paths = PatternCatalog(), nitf_paths(kind, count)
        times = [time.process_time()]
        blocks = [xscl.parse(f"S{path}")[0].blocks[0] for path in paths]
        times.append(time.process_time())
        patterns = [tree_pattern(block, ()) for block in blocks]
        times.append(time.process_time())
        for pattern in patterns:
            root = catalog.add(pattern)[pattern.node_of("#0")]
            catalog.want([(root, root)], ())
        times.append(time.process_time())
        Evaluator(catalog.plan())
        times.append(time.process_time())
        parts = [end - start for start, end in itertools.pairwise(times)]
        row(kind, *(f"{each:.2f}" for each in (*parts, sum(parts))))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer queries: a minute")
    parser.add_argument("--plots", type=Path, help="write plots into this directory")
    parser.add_argument("--planned", type=int, metavar="PATHS", help="register so many, no more")
    arguments = parser.parse_args()
    quick = arguments.quick
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, lxml {etree.__version__},",
          f"load {os.getloadavg()[0]:.1f}")  # fmt: skip
    if arguments.planned:
        planned(arguments.planned)
        return
    counts = (10, 100, 1_000) if quick else (10, 100, 1_000, 10_000)
    items = items_by_queries((100, 1_000, 10_000) if quick else (100, 1_000, 10_000, 100_000))
    constants_only(10_000 if quick else 1_000_000)
    paths = nitf((100, 1_000, 10_000), 3 if quick else 7)
    others = one_by_one(counts)
    big = big_documents(counts)
    shape_miss((100, 10_000))
    registration(10_000)
    if arguments.plots:
        plot(arguments.plots, items, {**paths, **others}, big)
        print("\nPlots:", arguments.plots)


if __name__ == "__main__":
    main()
