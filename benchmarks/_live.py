"""A broker under a constant rate of documents, measured from outside."""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import aiohttp

from benchmarks._memory import Memory
from broker.documents.document import DocumentLine

__all__ = ["Given", "commit_times", "give", "plot_live", "report_live"]

POST_EVERY_S = 0.02


@dataclass
class Given:
    """What publishers have given to a broker: when each document was sent, by docid."""

    sent: dict[int, float] = field(default_factory=dict)
    acknowledged_s: list[float] = field(default_factory=list)
    refused: int = 0


async def give(
    url: str, admission: dict[str, str], lines: list[DocumentLine], rate: int, seconds: float
) -> Given:
    """Publish documents at a constant rate, in requests of 20 ms, and note when."""
    given = Given()
    waiting: set[asyncio.Task[None]] = set()
    numbered = zip(itertools.count(), itertools.cycle(lines))

    async def post(session: aiohttp.ClientSession, body: bytes) -> None:
        started = time.time()
        headers = {"Content-Type": "application/x-ndjson", **admission}
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
