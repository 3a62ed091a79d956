"""The pipeline: documents a second, delay under a constant rate, restart, registration.

    python -m benchmarks pipeline replay [--subscriptions 1000 1000000] [--broad]
    python -m benchmarks pipeline live [--rate 1000] [--minutes 10] [--subscriptions 1000000]
    python -m benchmarks pipeline restart [--documents 1000000]
    python -m benchmarks pipeline register [--queries 10000] [--subscriptions 1000000]

`--lines FILE` are document lines with `<item>` documents of stream `news`, plain or gzip; without
it the recorded news.  `replay` goes through Spark on two cores, each run in a process of its own.
`live` and `restart` measure `xscl run` from outside, over HTTP.  Memory is that of all processes,
as Linux counts it, shared pages once for each.  `live` plots delay and memory where matplotlib is
installed, to `--plots DIRECTORY` (docs/figures).
"""

from __future__ import annotations

import argparse
import asyncio
import io
import itertools
import multiprocessing
import resource
import sys
import tempfile
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lxml.etree as etree

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.running_broker import Broker

import xscl
from benchmarks._live import commit_times, give, plot_live, report_live
from benchmarks._memory import Memory, memory_mb
from benchmarks._workloads import NEWS
from broker.documents.document import DocumentLine
from broker.documents.recorded import read_document_lines
from broker.matching.match import parameters_key
from broker.pipeline.lookback.replay import replay
from broker.registry.queries import Registry
from broker.registry.registered import Engines, check_among
from broker.registry.subscription import Destination, Subscription

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
BY_AUTHOR_WITHIN = """
news//item[author = $who]->a FOLLOWED BY { a/author = b/author AND a/feed != b/feed, %s }
news//item->b
"""
BY_AUTHOR = BY_AUTHOR_WITHIN % "2 days"
BY_FEED = """
news//item[feed = $feed]->a FOLLOWED BY { a/author = b/author AND a/feed != b/feed, $within }
news//item->b
"""
SAME_STORY = "news//item->a JOIN { a/title = b/title AND a/feed != b/feed, %s } news//item->b"
BROAD_PER_FEED = 10
LIVE_WINDOW = "30 s"
MANY = 1_000_000


def document_lines(path: Path) -> Iterator[DocumentLine]:
    return (line for _, line in read_document_lines([path]) if isinstance(line, DocumentLine))


# -- replay through Spark


def values_of(path: Path, name: str) -> list[str]:
    """Return the values of an element of all items, the most frequent first."""
    seen: Counter[str] = Counter()
    for line in document_lines(path):
        value = etree.fromstring(line.xml).findtext(name)
        if value:
            seen[value] += 1
    return [value for value, _ in seen.most_common()]


def authors(path: Path, count: int) -> list[str]:
    """Return authors, the most frequent first, then made-up ones.

    So 1,000 subscriptions have nearly all the matches that a million have.
    """
    made_up = (f"nobody {i}" for i in itertools.count())
    return list(itertools.islice(itertools.chain(values_of(path, "author"), made_up), count))


def replay_row(path: Path, count: int, is_broad: bool) -> None:
    queries = xscl.parse(BY_AUTHOR, id="by-author")
    assignments: dict[str, list[dict[str, Any]]] = {
        "by-author": [{"who": name} for name in authors(path, count)]
    }
    if is_broad:
        queries += xscl.parse(BY_FEED, id="by-feed")
        assignments["by-feed"] = [
            {"feed": feed, "within": 86_400_000_000 + i}
            for feed in values_of(path, "feed")
            for i in range(BROAD_PER_FEED)
        ]
        count += len(assignments["by-feed"])
    with Memory() as memory:
        started = time.perf_counter()
        summary = replay(queries, [path], io.StringIO(), assignments=assignments)
        load_s = time.perf_counter() - started - summary.start_s - summary.seconds
    print(
        f"| {count:,}{' broad' if is_broad else ''} | {summary.documents_per_s:,.0f} "
        f"| {summary.matches:,} | {load_s:.1f} | {summary.start_s:.1f} | {memory.peak_mb:,.0f} |",
        flush=True,
    )


def run_replay(path: Path, subscriptions: list[int], is_broad: bool) -> None:
    print("| subscriptions | documents/s | matches | load s | Spark s | peak MB |")
    print("|---|---|---|---|---|---|", flush=True)
    runs = [(count, False) for count in subscriptions]
    runs += [(max(subscriptions), True)] if is_broad else []
    for run in runs:
        process = multiprocessing.get_context("spawn").Process(target=replay_row, args=(path, *run))
        process.start()
        process.join()


# -- a live broker


def run_live(
    path: Path, rate: int, minutes: float, subscriptions: int, interval: str, plots: Path
) -> None:
    lines = list(itertools.islice(document_lines(path), 20_000))
    settings = f'lateness = "{LIVE_WINDOW}"\n[log]\nformat = "json"\nlevel = "debug"\n'
    settings += f'[spark]\ninterval = "{interval}"\n' if interval else ""
    with tempfile.TemporaryDirectory() as name:
        broker = Broker(Path(name), settings)
        broker.start()
        broker.call("PUT", "/v1/queries/same", (SAME_STORY % LIVE_WINDOW).encode())
        if subscriptions:
            subscribe_authors(broker, authors(path, subscriptions))
        with Memory(broker.pid, every_s=1.0) as memory:
            given = asyncio.run(give(broker.url, broker.headers, lines, rate, minutes * 60))
            broker.wait_for(lambda: not figures_of(broker)["documents_waiting"])
        figures = figures_of(broker)
        assert broker.stop() == 0
        committed = commit_times(broker.log)
    report_live(given, committed, figures, memory, minutes)
    plot_live(given, committed, memory, plots)


def subscribe_authors(broker: Broker, names: list[str]) -> None:
    """Have a query with a subscription for each name; they are written while the broker rests."""
    broker.call("PUT", "/v1/queries/shared", (BY_AUTHOR_WITHIN % LIVE_WINDOW).encode())
    assert broker.stop() == 0
    registry = Registry(broker.directory / "data" / "registry.db")
    subscribe(registry, names)
    registry.close()
    started = time.perf_counter()
    broker.start()
    print(f"started with {len(names):,} subscriptions in {time.perf_counter() - started:.1f} s")


def figures_of(broker: Broker) -> dict[str, float]:
    found: dict[str, float] = broker.call("GET", "/v1/statistics")["figures"]
    return found


# -- restart


def run_restart(documents: int) -> None:
    """Fill a broker with documents that a window can still reach, stop it, and start it again."""
    with tempfile.TemporaryDirectory() as name:
        broker = Broker(Path(name), '[log]\nformat = "json"\n')
        broker.start()
        broker.call("PUT", "/v1/queries/same", (SAME_STORY % "INF").encode())
        fill(broker, documents)
        assert broker.stop() == 0
        print("| start | ready after s | memory MB |\n|---|---|---|")
        for kind, end in (("after SIGTERM", broker.kill), ("after SIGKILL", broker.stop)):
            started = time.perf_counter()
            broker.start()
            ready_s = time.perf_counter() - started
            now_mb = memory_mb(broker.pid)
            print(f"| {kind}, {documents:,} remembered | {ready_s:.1f} | {now_mb:,.0f} |")
            end()


def fill(broker: Broker, documents: int) -> None:
    for first in range(0, documents, 1_000):
        body = [
            # Titles of their own: what is measured is remembering, not matching.
            {"key": str(n), "xml": f"<item><title>{n}</title><feed>{n % 97}</feed></item>"}
            for n in range(first, min(first + 1_000, documents))
        ]
        while True:
            try:
                broker.publish("news", body)
                break
            except urllib.error.HTTPError as error:
                if error.code != 429:
                    raise
                time.sleep(1)

    broker.wait_for(lambda: not figures_of(broker)["documents_waiting"], 3_600)


# -- registration


def run_register(queries: int, subscriptions: int) -> None:
    """Register queries one by one, then load subscriptions, into a registry and an engine."""
    with tempfile.TemporaryDirectory() as name:
        registry = Registry(Path(name) / "registry.db")
        engines = Engines(registry, lateness_us=86_400_000_000)
        engine = engines.make(0)
        print("| what | s | processor s | memory MB |\n|---|---|---|---|")

        def row(what: str, work: Callable[[], None]) -> None:
            started, before = time.perf_counter(), time.process_time()
            work()
            seconds, processor_s = time.perf_counter() - started, time.process_time() - before
            peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"| {what} | {seconds:.1f} | {processor_s:.1f} | {peak_mb:,} |", flush=True)

        def register(count: int, template: str, first: int) -> None:
            for n in range(first, first + count):
                [query] = xscl.parse(template.replace("%", str(n)), id=f"q{n}")
                check_among(registry, query)
                registry.register(query.id, query.text, version=query.version, point=n)
                engines.compile(registry.revision())

        def follow() -> None:
            assert engines.follow(engine, registry.revision())
            engines.plan(registry.revision())

        constant = "S//i[u = 'x%']->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b"
        path = "S//i/e%->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b"
        row(f"{queries:,} queries, each with a constant", lambda: register(queries, constant, 0))
        row("the running engine follows", follow)
        row(f"{queries:,} queries, each with a path", lambda: register(queries, path, queries))
        row("the running engine follows", follow)
        [shared] = xscl.parse("S//i[u = $who]->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b", id="shared")
        registry.register("shared", shared.text, version=shared.version, point=0)
        people = [f"person {n}" for n in range(subscriptions)]
        row(f"{subscriptions:,} subscriptions", lambda: subscribe(registry, people))
        row("the running engine follows", follow)
        registry.close()


def subscribe(registry: Registry, names: list[str]) -> None:
    pull = Destination.parse("pull")
    made = (
        Subscription(f"sub_{n}", "shared", parameters_key({"who": name}), pull, point=0)
        for n, name in enumerate(names)
    )
    for group in iter(lambda: list(itertools.islice(made, 10_000)), []):
        registry.subscriptions.add(group)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["replay", "live", "restart", "register"])
    parser.add_argument("--lines", type=Path, default=NEWS)
    parser.add_argument("--subscriptions", type=int, nargs="+")
    parser.add_argument("--broad", action="store_true")
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--interval", default="", help="`spark.interval`, if not the usual one")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--plots", type=Path, default=FIGURES)
    arguments = parser.parse_args()
    if arguments.what == "replay":
        run_replay(arguments.lines, arguments.subscriptions or [1_000, MANY], arguments.broad)
    elif arguments.what == "live":
        subscriptions = max(arguments.subscriptions or [0])
        run_live(
            arguments.lines,
            arguments.rate,
            arguments.minutes,
            subscriptions,
            arguments.interval,
            arguments.plots,
        )
    elif arguments.what == "restart":
        run_restart(arguments.documents)
    else:
        run_register(arguments.queries, max(arguments.subscriptions or [MANY]))


if __name__ == "__main__":
    main()
