"""What the page costs a busy broker, and how fast it is then: `python -m benchmarks looking`.

    python -m benchmarks looking [--documents 400000] [--rounds 3]

A broker is started on a spool that is full of documents, and works them off as fast as it can.
In turn, in each round: without the page, with the page and nobody who looks, and with one person
who looks at the first page as a browser does: it is told of changes, and asks for the page again.
Processor time is that of the broker and of all processes below it, from when it is ready until no
document waits; the latency of the page is wall time, as whoever looks has it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.running_broker import Broker

from benchmarks._memory import processes_below
from benchmarks.pipeline import SAME_STORY, figures_of
from benchmarks.workbench import fill

WITHOUT = """
import broker.web.pages as pages
pages.install = lambda application: None
from broker.cli import main
main()
"""
WINDOW = "30 s"
"""A short one: what is measured is a broker at its full rate, and matches would cost most of it."""

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass
class Run:
    """One broker that worked off its documents."""

    processor_s: float = 0.0
    wall_s: float = 0.0
    documents: int = 0
    answers_s: list[float] = field(default_factory=list)


class PagelessBroker(Broker):
    """A broker in which the page is not installed."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", WITHOUT, "run", "--until-eof"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        full = Path(name) / "full"
        make(full, given.documents)
        runs: dict[str, list[Run]] = {"without the page": [], "nobody looks": [], "one looks": []}
        for _ in range(given.rounds):
            for kind, found in runs.items():
                found.append(worked_off(full, Path(name) / "run", kind))
                shutil.rmtree(Path(name) / "run")
                tell(kind, found[-1])
    base = sorted(map(per_document, runs["without the page"]))
    for kind, found in runs.items():
        costs = sorted(map(per_document, found))
        least, median = costs[0], statistics.median(costs)
        print(
            f"{kind}: {median * 1e6:.1f} us of processor a document in the median"
            f" ({median / statistics.median(base) - 1:+.1%}), {least * 1e6:.1f} at least"
            f" ({least / base[0] - 1:+.1%})"
        )


def make(directory: Path, documents: int) -> None:
    """Have a broker with a query, whose spool has so many documents that it has not seen."""
    broker = Broker(directory)
    broker.start()
    broker.call("PUT", "/v1/queries/same", (SAME_STORY % WINDOW).encode())
    assert broker.stop() == 0
    fill(directory / "data" / "spool", documents)


def worked_off(full: Path, directory: Path, kind: str) -> Run:
    shutil.copytree(full, directory)
    broker = (PagelessBroker if kind == "without the page" else Broker)(directory)
    broker.start()
    run, is_over = Run(), threading.Event()
    waiting = figures_of(broker)["documents_waiting"]
    begun, worked = time.perf_counter(), processor_s(broker.pid)
    looking = threading.Thread(target=look, args=(broker, run, is_over))
    if kind == "one looks":
        looking.start()
    broker.wait_for(lambda: not figures_of(broker)["documents_waiting"], 3_600)
    run.processor_s, run.wall_s = processor_s(broker.pid) - worked, time.perf_counter() - begun
    run.documents = int(waiting)
    is_over.set()
    broker.kill()
    if looking.is_alive():
        looking.join()
    return run


def processor_s(root: int) -> float:
    """Return the processor time of a process and all below it, those that have ended too."""
    ticks = 0
    for each in processes_below(root):
        fields = Path(f"/proc/{each.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks * TICK_S


def look(broker: Broker, run: Run, is_over: threading.Event) -> None:
    """Follow what is told, and ask for the page again whenever something is."""
    request = urllib.request.Request(f"{broker.url}/live", headers=broker.headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as told:
            while not is_over.is_set():
                if told.readline() == b"event: change\n":
                    started = time.perf_counter()
                    broker.text("/")
                    run.answers_s.append(time.perf_counter() - started)
    except OSError:
        return  # the broker has been killed


def per_document(run: Run) -> float:
    return run.processor_s / max(run.documents, 1)


def tell(kind: str, run: Run) -> None:
    rate, answers = run.documents / run.wall_s, sorted(run.answers_s)
    seen = f", page p50 {statistics.median(answers) * 1e3:.0f} ms" if answers else ""
    seen += f", worst {answers[-1] * 1e3:.0f} ms of {len(answers)}" if answers else ""
    print(
        f"{kind}: {run.documents:,} documents, {rate:,.0f}/s, {run.processor_s:.1f} s of processor"
        f"{seen}; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
