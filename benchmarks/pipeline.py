"""The pipeline: documents a second, delay under a constant rate, restart, registration.

    python -m benchmarks pipeline replay [--subscriptions 1000 1000000] [--broad]
    python -m benchmarks pipeline live [--rate 1000] [--minutes 10]
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
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import lxml.etree as etree

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from running_broker import Broker

import xscl
from benchmarks._workloads import NEWS
from broker.document import DocumentLine
from broker.registered import Engines, check_among
from broker.registry import Registry
from broker.replay import read_document_lines, replay
from broker.subscription import Destination, Subscription, parameters_key

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
BY_AUTHOR = """
news//item[author = $who]->a FOLLOWED BY { a/author = b/author AND a/feed != b/feed, 2 days }
news//item->b
"""
BY_FEED = """
news//item[feed = $feed]->a FOLLOWED BY { a/author = b/author AND a/feed != b/feed, $within }
news//item->b
"""
SAME_STORY = "news//item->a JOIN { a/title = b/title AND a/feed != b/feed, %s } news//item->b"
BROAD_PER_FEED = 10
LIVE_WINDOW = "30 s"
POST_EVERY_S = 0.02


def document_lines(path: Path) -> Iterator[DocumentLine]:
    return (line for _, line in read_document_lines([path]) if isinstance(line, DocumentLine))


# -- memory


def memory_mb(root: int) -> float:
    """Return the resident memory of a process and all below it."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(") ", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            sizes[int(entry.name)] = int(fields[21])
    ours = {root}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(sizes.get(pid, 0) for pid in ours) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Memory:
    """Watches the memory of a process and all below it in a thread: seconds and MB."""

    def __init__(self, root: int | None = None, every_s: float = 0.5) -> None:
        self._root = root or os.getpid()
        self._every_s = every_s
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.samples: list[tuple[float, float]] = []

    @property
    def peak_mb(self) -> float:
        return max((mb for _, mb in self.samples), default=0.0)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._is_over.wait(self._every_s):
            self.samples.append((time.time(), memory_mb(self._root)))

    def __exit__(self, *exc: object) -> None:
        self._is_over.set()
        self._thread.join()


# -- replay through Spark


def values_of(path: Path, name: str) -> list[str]:
    """Return the values of an element of all items, the rarest first."""
    seen: Counter[str] = Counter()
    for line in document_lines(path):
        value = etree.fromstring(line.xml).findtext(name)
        if value:
            seen[value] += 1
    return [value for value, _ in reversed(seen.most_common())]


def authors(path: Path, count: int) -> list[str]:
    """Return authors, the rarest first, so that a document matches few; then made-up ones."""
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


@dataclass
class Given:
    """What publishers have given to a broker: when each document was sent, by docid."""

    sent: dict[int, float] = field(default_factory=dict)
    acknowledged_s: list[float] = field(default_factory=list)
    refused: int = 0


async def give(url: str, lines: list[DocumentLine], rate: int, seconds: float) -> Given:
    """Publish documents at a constant rate, in requests of 20 ms, and note when."""
    given = Given()
    waiting: set[asyncio.Task[None]] = set()
    numbered = zip(itertools.count(), itertools.cycle(lines))

    async def post(session: aiohttp.ClientSession, body: bytes) -> None:
        started = time.time()
        headers = {"Content-Type": "application/x-ndjson"}
        address = f"{url}/v1/streams/news/documents"
        async with session.post(address, data=body, headers=headers) as answer:
            if answer.status != 200:
                given.refused += body.count(b"\n")
                return
            receipts = (await answer.json())["documents"]
        given.acknowledged_s.append(time.time() - started)
        given.sent.update((receipt["docid"], started) for receipt in receipts)

    async with aiohttp.ClientSession() as session:
        begun, count = time.monotonic(), 0
        while (elapsed := time.monotonic() - begun) < seconds:
            group = list(itertools.islice(numbered, int(elapsed * rate) - count))
            count += len(group)
            if group:
                task = asyncio.create_task(post(session, b"".join(map(rendered, group))))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
            await asyncio.sleep(POST_EVERY_S)
        await asyncio.gather(*waiting)
    return given


def rendered(numbered: tuple[int, DocumentLine]) -> bytes:
    number, line = numbered
    named = {"stream": "news", "key": f"live-{number}", "xml": line.xml.decode()}
    return json.dumps(named).encode() + b"\n"


def commit_times(log: Path) -> dict[int, float]:
    """Return when each document was committed, by docid, from the log of a broker."""
    times: dict[int, float] = {}
    docid = 0
    for text in log.read_text().splitlines():
        line = json.loads(text)
        if line.get("stage") == "commit":
            moment = datetime.fromisoformat(line["time"]).timestamp()
            for _ in range(line["documents"]):
                docid += 1
                times[docid] = moment
    return times


def run_live(path: Path, rate: int, minutes: float, plots: Path) -> None:
    lines = list(itertools.islice(document_lines(path), 20_000))
    settings = f'lateness = "{LIVE_WINDOW}"\n[log]\nformat = "json"\nlevel = "debug"\n'
    with tempfile.TemporaryDirectory() as name:
        broker = Broker(Path(name), settings)
        broker.start()
        broker.call("PUT", "/v1/queries/same", (SAME_STORY % LIVE_WINDOW).encode())
        with Memory(broker.pid, every_s=1.0) as memory:
            given = asyncio.run(give(broker.url, lines, rate, minutes * 60))
            broker.wait_for(lambda: not figures_of(broker)["documents_waiting"])
        figures = figures_of(broker)
        assert broker.stop() == 0
        committed = commit_times(broker.log)
    report_live(given, committed, figures, memory, minutes)
    plot_live(given, committed, memory, plots)


def figures_of(broker: Broker) -> dict[str, float]:
    found: dict[str, float] = broker.call("GET", "/v1/statistics")["figures"]
    return found


def report_live(
    given: Given,
    committed: dict[int, float],
    figures: dict[str, float],
    memory: Memory,
    minutes: float,
) -> None:
    lost = [docid for docid in given.sent if docid not in committed]
    delays = [committed[docid] - sent for docid, sent in sorted(given.sent.items())]
    warm = delays[len(delays) // 10 :]
    centiles = statistics.quantiles(warm, n=1_000)
    answers = statistics.quantiles(given.acknowledged_s, n=100)
    early, late = (
        statistics.median(mb for _, mb in part)
        for part in (quarter_of(memory.samples, 1), quarter_of(memory.samples, 3))
    )
    print(f"{len(given.sent):,} documents in {minutes:g} minutes, {given.refused} refused")
    print(f"lost: {len(lost)}; matches: {figures['matches_total']:,.0f}")
    print(f"acknowledged: p50 {answers[49] * 1e3:.0f} ms, p99 {answers[98] * 1e3:.0f} ms")
    print(
        f"sent to outbox: p50 {centiles[499]:.2f} s, p99 {centiles[989]:.2f} s,"
        f" p99.9 {centiles[998]:.2f} s (behind the first tenth)"
    )
    print(f"memory: peak {memory.peak_mb:,.0f} MB, second quarter {early:,.0f}, last {late:,.0f}")


def quarter_of(samples: list[tuple[float, float]], quarter: int) -> list[tuple[float, float]]:
    """Return one quarter of the samples, from 0."""
    length = max(1, len(samples) // 4)
    return samples[quarter * length : (quarter + 1) * length] or samples[-1:]


def plot_live(given: Given, committed: dict[int, float], memory: Memory, plots: Path) -> None:
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no plot: pip install 'xscl-broker[bench]'")
        return
    begun = min(given.sent.values())
    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(8, 5))
    by_second: dict[int, list[float]] = {}
    for docid, sent in given.sent.items():
        by_second.setdefault(int(sent - begun), []).append(committed[docid] - sent)
    seconds = sorted(by_second)
    for share, label in ((0.5, "p50"), (0.99, "p99")):
        values = [sorted(by_second[s])[int(len(by_second[s]) * share)] for s in seconds]
        above.plot(seconds, values, label=label, linewidth=0.8)
    above.set_ylabel("sent to outbox, s")
    above.set_ylim(bottom=0)
    above.legend()
    below.plot([at - begun for at, _ in memory.samples], [mb for _, mb in memory.samples])
    below.set_ylabel("memory of all processes, MB")
    below.set_xlabel("seconds")
    below.set_ylim(bottom=0)
    plots.mkdir(parents=True, exist_ok=True)
    figure.savefig(plots / "live.svg", metadata={"Date": None})
    print(f"plotted to {plots / 'live.svg'}")


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
        broker.publish("news", body)

    broker.wait_for(lambda: not figures_of(broker)["documents_waiting"], 3_600)


# -- registration


def run_register(queries: int, subscriptions: int) -> None:
    """Register queries one by one, then load subscriptions, into a registry and an engine."""
    with tempfile.TemporaryDirectory() as name:
        registry = Registry(Path(name) / "registry.db")
        engines = Engines(registry, lateness_us=86_400_000_000, engine="signatures")
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
        row(f"{subscriptions:,} subscriptions", lambda: subscribe(registry, subscriptions))
        row("the running engine follows", follow)
        registry.close()


def subscribe(registry: Registry, count: int) -> None:
    pull = Destination.parse("pull")
    made = (
        Subscription(f"sub_{n}", "shared", parameters_key({"who": f"person {n}"}), pull, point=0)
        for n in range(count)
    )
    for group in iter(lambda: list(itertools.islice(made, 10_000)), []):
        registry.add(group)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["replay", "live", "restart", "register"])
    parser.add_argument("--lines", type=Path, default=NEWS)
    parser.add_argument("--subscriptions", type=int, nargs="+", default=[1_000, 1_000_000])
    parser.add_argument("--broad", action="store_true")
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--plots", type=Path, default=FIGURES)
    arguments = parser.parse_args()
    if arguments.what == "replay":
        run_replay(arguments.lines, arguments.subscriptions, arguments.broad)
    elif arguments.what == "live":
        run_live(arguments.lines, arguments.rate, arguments.minutes, arguments.plots)
    elif arguments.what == "restart":
        run_restart(arguments.documents)
    else:
        run_register(arguments.queries, max(arguments.subscriptions))


if __name__ == "__main__":
    main()
