"""What stage 1 costs, in times of a bare lxml parse of the same documents.

    python benchmarks/xpath.py [--quick] [--plots DIRECTORY]

Every figure is a ratio taken side by side: the two things compared run in turn, several times, in
processor time of this process, and the medians are divided.  So other load on the machine shows
little, and machines compare.  NITF documents and real items are read from `$XSCL_SHARED/data`
(default `../shared/data` beside the repository); without them those parts are left out.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
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
import pyarrow as pa
from lxml import etree

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import xscl  # noqa: E402
from xpath_eval.catalog import PatternCatalog  # noqa: E402
from xpath_eval.evaluator import Evaluator  # noqa: E402
from xpath_eval.stage import evaluate_batches  # noqa: E402
from xpath_eval.witnesses import DOCUMENT_SCHEMA  # noqa: E402
from xscl.pattern import tree_pattern  # noqa: E402

SHARED = Path(os.environ.get("XSCL_SHARED", ROOT.parent / "shared")) / "data"
WORDS = [f"word{i}" for i in range(5_000)]
Work = Callable[[], object]


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


def rss_items(count: int) -> list[bytes]:
    """Return items of 8 to 20 elements, like those of RSS feeds."""
    random_ = random.Random(1)
    names = ("title", "link", "guid", "pubDate", "description", "author", "comments")

    def item() -> bytes:
        content = "".join(f"<{n}>{' '.join(random_.choices(WORDS, k=6))}</{n}>" for n in names)
        categories = random_.randint(0, 12)
        content += "".join(
            f"<category>{random_.choice(WORDS)}</category>" for _ in range(categories)
        )
        return f"<item>{content}</item>".encode()

    return [item() for _ in range(count)]


def register(catalog: PatternCatalog, text: str) -> None:
    """Ask for all variables of a query's first block, and for the edges from its root to them."""
    (query,) = xscl.parse(text)
    block = query.blocks[0]
    pattern = tree_pattern(block, block.variables)
    variables = catalog.add(pattern)
    root = variables[pattern.node_of(block.root)]
    others = [v for v in variables if v > root]
    catalog.want([(root, v) for v in others] or [(root, root)], others)


def mixed_query(random_: random.Random, number: int) -> str:
    """Return a query unlike any other: by what it binds, by a constant, or by both."""
    fields = ("title", "link", "guid", "pubDate", "author", "category")
    first, second = random_.sample(fields, 2)
    return random_.choice(
        (
            f"S//item[{first} = '{WORDS[number % 5000]} {number}']->x[{second}->a]",
            f"S/item[author = 'author {number}']->x[link->l][{first}->a]",
            f"S//item->x[{first}->a][{second}->b][guid = '{number}']",
        )
    )


def word_query(random_: random.Random, number: int) -> str:
    return f"S//item[contains(title, '{random_.choice(WORDS)} {WORDS[number % 5000]}')]->x"


def number_query(random_: random.Random, number: int) -> str:
    return f"S//item[price < {number}][.//category]->x"


def loaded(form: Callable[[random.Random, int], str], count: int) -> PatternCatalog:
    random_, catalog = random.Random(2), PatternCatalog()
    for number in range(count):
        register(catalog, form(random_, number))
    return catalog


def batch_of(documents: Sequence[bytes]) -> pa.RecordBatch:
    rows = [
        {
            "docid": i, "depth": 0, "match_id": "", "stream": "S", "key": str(i),
            "start_us": i, "end_us": i, "watermark_us": 0, "xml": xml,
        }
        for i, xml in enumerate(documents, 1)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, DOCUMENT_SCHEMA)


def evaluate_all(evaluator: Evaluator, documents: Iterable[bytes]) -> Work:
    documents = list(documents)

    def work() -> None:
        for xml in documents:
            evaluator.evaluate("S", xml)

    return work


def items_by_queries(many: int) -> None:
    """Items of known shapes: the cost of a further query."""
    collections = {"synthetic items": rss_items(3_000), "real items": real_items(3_000)}
    print(f"\nItems of known shapes, 100 and {many:,} distinct queries (times of a parse)")
    row("queries, documents", "100", f"{many:,}", "many/100", "Arrow", "definitions")
    for name, form in (("constants", mixed_query), ("contains", word_query), ("<", number_query)):
        few, more = (Evaluator(loaded(form, n).plan()) for n in (100, many))
        for where, documents in collections.items():
            if not documents:
                continue
            batch = batch_of(documents)
            works = [evaluate_all(few, documents), evaluate_all(more, documents)]
            for work in works:
                work()
            times = side_by_side(
                [
                    lambda documents=documents: parse_all(documents),
                    *works,
                    lambda more=more, batch=batch: list(evaluate_batches(more.plan, [batch])),
                ]
            )
            ratios = [f"{t / times[0]:.2f}" for t in times[1:]]
            further = f"{times[2] / times[1]:.2f}"
            row(f"{name}, {where}", *ratios[:2], further, ratios[2], len(more.plan.definitions))


def real_items(count: int) -> list[bytes]:
    path = SHARED / "news-2026.docs.jsonl.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt") as lines:
        return [json.loads(line)["xml"].encode() for line in itertools.islice(lines, count)]


def constants_only(count: int) -> None:
    """Queries that differ in constants alone: what one more adds to the catalog."""
    (query,) = xscl.parse("S//item[author = 'Ann']->x[link->l]")
    block = query.blocks[0]
    pattern, catalog = tree_pattern(block, block.variables), PatternCatalog()
    variables = catalog.add(pattern)
    edges = [(variables[0], v) for v in variables[1:]]
    catalog.want(edges, variables)
    tracemalloc.start()
    before, start = tracemalloc.get_traced_memory()[0], time.process_time()
    for _ in range(count):
        catalog.add(pattern)
        catalog.want(edges, variables)
    grown, spent = tracemalloc.get_traced_memory()[0] - before, time.process_time() - start
    tracemalloc.stop()
    print(f"\n{count:,} queries that differ in constants alone (traced, so slower than life)")
    print(f"  {grown / count:.2f} bytes and {spent / count * 1e6:.1f} us for one more")
    print(f"  {len(pickle.dumps(catalog.plan()))} bytes of plan for all")


def nitf_documents() -> list[bytes]:
    path = SHARED / "nitf" / "nitf.docs.jsonl.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt") as lines:
        return [json.loads(line)["xml"].encode() for line in lines]


def nitf_evaluator(kind: str, count: int) -> tuple[Evaluator, list[str], list[int]]:
    with gzip.open(SHARED / "nitf" / f"paths-{kind}.txt.gz", "rt") as lines:
        paths = [line.strip() for line in itertools.islice(lines, count)]
    catalog, roots = PatternCatalog(), []
    for path in paths:
        (query,) = xscl.parse(f"S{path}")
        block = query.blocks[0]
        pattern = tree_pattern(block, ())
        roots.append(catalog.add(pattern)[pattern.node_of(block.root)])
        catalog.want([(roots[-1], roots[-1])], ())
    return Evaluator(catalog.plan()), paths, roots


def nitf(counts: Sequence[int], rounds: int) -> list[tuple[str, int, float, float]]:
    """Shapes that never repeat: every document once with the automaton warm, then again."""
    documents = nitf_documents()
    if not documents:
        print("\nNITF: left out, there is no", SHARED / "nitf")
        return []
    print("\nNITF, 200 documents of 3.5 KB: all matching paths (times of a parse; YFilter in"
          " TODS 2003"
          " 10x at 1,000, 20x at 10,000)")  # fmt: skip
    row("paths", "cold", "new shapes", "known", "matching", "wrong", "states")
    figures = []
    for kind in ("plain", "nested"):
        for count in counts:
            evaluator, paths, roots = nitf_evaluator(kind, count)
            work = evaluate_all(evaluator, documents)
            (cold,) = side_by_side([work], 1)

            def new(evaluator: Evaluator = evaluator, work: Work = work) -> None:
                evaluator.forget_shapes()
                work()

            parse, fresh, known = side_by_side([lambda: parse_all(documents), new, work], rounds)
            matching, wrong = check_nitf(evaluator, documents[:3], paths, roots)
            row(
                f"{count:,} {kind}",
                *(f"{t / parse:.1f}" for t in (cold, fresh, known)),
                f"{matching:.0f}",
                wrong,
                evaluator.state_count,
            )
            figures.append((kind, count, fresh / parse, known / parse))
    return figures


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


def one_by_one(counts: Sequence[int]) -> None:
    """Against a compiled XPath for each query block, and against elementpath."""
    documents = nitf_documents()[:20]
    if not documents:
        return
    print("\nAgainst one XPath for each block, plain NITF paths (times of ours, new shapes)")
    row("paths", "ours, us/doc", "lxml", "elementpath")
    for count in counts:
        evaluator, paths, _ = nitf_evaluator("plain", count)
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
        mine, theirs, other = side_by_side([ours, lxml, pure], 3)
        per_document = f"{mine / len(documents) * 1e6:.0f}"
        slow = f"{other / mine:.1f}" if selectors else "-"
        row(f"{count:,}", per_document, f"{theirs / mine:.1f}", slow)


def auction_site(random_: random.Random, octets: int) -> bytes:
    """Return a document in the manner of XMark: a site of regions, items, people and auctions."""

    def text() -> str:
        words = " ".join(random_.choices(WORDS, k=random_.randint(3, 12)))
        keyword, bold = random_.choice(WORDS), random_.choice(WORDS)
        return f"{words} <keyword>{keyword}</keyword> <bold>{bold}</bold>"

    def item(i: int) -> str:
        mails = "".join(
            f"<mail><from>{random_.choice(WORDS)}</from><date>{i}</date><text>{text()}</text></mail>"
            for _ in range(random_.randint(0, 3))
        )
        listed = "".join(
            f"<listitem><text>{text()}</text></listitem>" for _ in range(random_.randint(1, 4))
        )
        return (
            f"<item id='i{i}'><location>x</location><name>{random_.choice(WORDS)}</name>"
            f"<description><parlist>{listed}</parlist></description><mailbox>{mails}</mailbox></item>"
        )

    regions: dict[str, list[str]] = {name: [] for name in ("africa", "asia", "europe", "namerica")}
    size = 0
    while size < octets:
        regions[random_.choice(list(regions))].append(one := item(size))
        size += len(one)
    body = "".join(f"<{name}>{''.join(items)}</{name}>" for name, items in regions.items())
    return f"<site><regions>{body}</regions></site>".encode()


def big_documents(counts: Sequence[int]) -> list[tuple[int, float]]:
    """Large documents: MB/s by the number of random patterns."""
    random_ = random.Random(3)
    documents = [auction_site(random_, 1_000_000) for _ in range(2)]
    names = (
        "site", "regions", "africa", "asia", "europe", "item", "location", "name", "description",
        "parlist", "listitem", "text", "keyword", "bold", "mailbox", "mail", "from", "date",
    )  # fmt: skip
    print("\nXMark-like documents of 1 MB, random patterns of depth 2 to 6 with * and //")
    row("patterns", "MB/s", "x parse", "states", "edges/doc")
    figures = []
    for count in counts:
        catalog = PatternCatalog()
        for _ in range(count):
            path = "".join(
                random_.choice(("/", "/", "/", "//")) + random_.choice((*names, "*", "*"))
                for _ in range(random_.randint(2, 6))
            )
            register(catalog, f"S{path}")
        evaluator = Evaluator(catalog.plan())

        def new(evaluator: Evaluator = evaluator) -> None:
            evaluator.forget_shapes()
            for xml in documents:
                evaluator.evaluate("S", xml)

        new()
        parse, spent = side_by_side([lambda: parse_all(documents), new], 3)
        size = sum(map(len, documents)) / 1e6
        edges = len(evaluator.evaluate("S", documents[0]).shape)
        row(
            f"{count:,}",
            f"{size / spent:.1f}",
            f"{spent / parse:.1f}",
            evaluator.state_count,
            edges,
        )
        figures.append((count, size / spent))
    return figures


def cold(count: int) -> None:
    """Registration: how long until queries are effective, one plan for all or one for each."""
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


def plot(
    directory: Path, paths: list[tuple[str, int, float, float]], big: list[tuple[int, float]]
) -> None:
    try:
        from matplotlib import pyplot
    except ImportError:
        print("\nNo plots: matplotlib is not there.")
        return
    directory.mkdir(parents=True, exist_ok=True)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    for kind in ("plain", "nested"):
        points = [(count, fresh) for k, count, fresh, _ in paths if k == kind]
        left.loglog(*zip(*points, strict=True), marker="o", label=f"{kind} paths, new shapes")
    left.set(xlabel="paths", ylabel="times of a bare parse", title="NITF")
    left.legend()
    right.semilogx(*zip(*big, strict=True), marker="o")
    right.set(xlabel="patterns", ylabel="MB/s", title="XMark-like, 1 MB")
    figure.tight_layout()
    figure.savefig(directory / "xpath.svg")
    print("\nPlots:", directory / "xpath.svg")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer queries: a minute")
    parser.add_argument("--plots", type=Path, help="write plots into this directory")
    arguments = parser.parse_args()
    quick = arguments.quick
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, lxml {etree.__version__},",
          f"load {os.getloadavg()[0]:.1f}")  # fmt: skip
    items_by_queries(10_000 if quick else 100_000)
    constants_only(10_000 if quick else 1_000_000)
    figures = nitf((100, 1_000, 10_000), 3 if quick else 7)
    one_by_one((10, 100, 1_000) if quick else (10, 100, 1_000, 10_000))
    big = big_documents((10, 100, 1_000) if quick else (10, 100, 1_000, 10_000))
    cold(10_000)
    if arguments.plots and figures:
        plot(arguments.plots, figures, big)


if __name__ == "__main__":
    main()
