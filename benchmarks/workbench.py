"""What a person waits for at the page: `python -m benchmarks workbench`.

    python -m benchmarks workbench [--documents 50000] [--queries 10000] [--many 1000000]

- *dry run*: a text with an equality is edited, with a question on each pause: in windows and
  values, and in patterns.  It is asked of the process that the page's broker asks.
- *diagnostics*: the texts of `examples/`, after each word, over the API.
- *weight*: what a browser is sent for the editor's page, which is the largest.
- *pages*: the first page, searches and lists of a broker with many queries and documents.

Wall time, with the processor time of the process that works beside it; recorded news items, or made
ones where these are not there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from aiohttp.test_utils import TestClient
from support.api_house import House, open_house

from benchmarks._workloads import news_lines
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import SpoolWriter

TEXT = (
    "news//item->a FOLLOWED BY {a/title = b/title AND a/author != b/author, 2 days} news//item->b"
)
EDITS = {
    "windows, conditions": (
        ("2 days", "3 days"),
        ("2 days", "36 hours"),
        (" AND a/author != b/author", ""),
        ("2 days", "1 day"),
        ("!= b/author", "!= b/id"),
    ),
    "patterns": (
        ("author", "feed"),
        ("a/title = b/title", "a/link = b/link"),
        ("author", "id"),
        ("a/author != b/author", "a/language = b/language AND a/feed != b/feed"),
        ("author", "published"),
    ),
}
ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--documents", type=int, default=50_000, help="that a text is tried on")
    parser.add_argument("--queries", type=int, default=10_000, help="of a large registry")
    parser.add_argument("--many", type=int, default=1_000_000, help="documents of a large stream")
    given = parser.parse_args()
    print(f"{'':<34}{'median ms':>10}{'p95 ms':>9}{'first ms':>10}{'CPU ms':>9}")
    with tempfile.TemporaryDirectory() as directory:
        fill(Path(directory), given.documents)
        tried(directory, given.documents)
    asyncio.run(pages(given.queries, given.many))


def fill(directory: Path, count: int) -> None:
    """Have a spool with so many items, a second apart where they are made."""
    writer = SpoolWriter(directory, Disk(is_durable=False))
    ingest = Ingest(writer, dedup_horizon_us=None)
    lines = items(count)
    while some := [line for _, line in zip(range(10_000), lines, strict=False)]:
        ingest.append(some, registry_version=1)
    writer.close()


def items(count: int) -> Iterator[DocumentLine]:
    try:
        recorded = news_lines(min(count, 50_000))
    except FileNotFoundError:
        recorded = []
    yield from recorded
    start_us = max((line.time_us or 0 for line in recorded), default=1_700_000_000_000_000)
    for number in range(count - len(recorded)):
        xml = (
            f"<item><id>{number}</id><title>Story {number % 30_000}</title>"
            f"<link>https://example.org/{number % 40_000}</link><author>{number % 997}</author>"
            f"<feed>{number % 101}</feed><language>en</language></item>"
        )
        yield DocumentLine("news", xml.encode(), start_us + number * 1_000_000)


def tried(directory: str, documents: int) -> None:
    """Ask what edits of a text would match, as the broker does for the page."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "broker.pipeline.hindsight.trial"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    ahead = {"spool": directory, "documents_max": documents}
    report("dry run: documents read ahead", [asked(process, ahead)])
    report("dry run: first text", [asked(process, question(directory, TEXT, documents))])
    for name, edits in EDITS.items():
        texts = [TEXT.replace(*edit) for edit in edits] * 2
        found = [asked(process, question(directory, text, documents)) for text in texts]
        report(f"dry run: {name}", found)
    process.kill()
    process.wait()


def question(directory: str, text: str, documents: int) -> dict[str, Any]:
    return {
        "spool": directory,
        "query": ["q", text],
        "lateness_us": 86_400_000_000,
        "source": text,
        "documents_max": documents,
    }


def asked(process: subprocess.Popen[bytes], question: dict[str, Any]) -> tuple[float, float, float]:
    """Return the seconds until the last line, until the first one, and of the processor."""
    assert process.stdin is not None
    assert process.stdout is not None
    start, worked = time.perf_counter(), processor_s(process.pid)
    process.stdin.write(json.dumps(question).encode() + b"\n")
    process.stdin.flush()
    first = 0.0
    while "is_ready" not in (line := json.loads(process.stdout.readline())):
        assert "error" not in line, line
        first = first or time.perf_counter() - start
    return time.perf_counter() - start, first, processor_s(process.pid) - worked


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def report(name: str, found: Sequence[tuple[float, ...]]) -> None:
    """Print what was waited for; in columns: all of it, the first part, processor."""
    total = sorted(each[0] * 1_000 for each in found)
    p95 = total[min(len(total) - 1, round(0.95 * len(total)))]
    rest = [statistics.median(column) * 1_000 for column in zip(*found, strict=True)][1:]
    columns = [f"{statistics.median(total):>10.0f}{p95:>9.0f}"]
    columns += [f"{value:>{width}.0f}" for value, width in zip(rest, (10, 9), strict=False)]
    print(f"{name:<34}{''.join(columns)}", flush=True)


async def pages(queries: int, documents: int) -> None:
    """Ask for pages of a broker with many queries and documents, as a browser does."""
    with tempfile.TemporaryDirectory() as directory:
        fill(Path(directory) / "spool", documents)
        async with open_house(Path(directory)) as house:
            await house.log_in("admin")
            await diagnostics(house)
            await weight(house.client)
            for number in range(queries):
                text = TEXT.replace("title", f"t{number % 97}")
                house.room.registry.register(f"q{number}", text, version="1", point=0)
            house.room.registry.register("wanted-one", TEXT, version="1", point=0)
            for name, address in {
                "first page": "/",
                "queries with a text": "/?find=wanted-one",
                "a query": "/queries/wanted-one",
                "newest documents": "/documents",
                "documents with a rare word": "/documents?find=made-nothing",
                "documents by element": "/documents?find=Story+77&name=title",
            }.items():
                found = [await loaded(house.client, address) for _ in range(20)]
                report(f"page: {name}", found)


async def loaded(client: TestClient, address: str) -> tuple[float, float, float]:
    start, worked = time.perf_counter(), time.process_time()
    async with client.get(address) as answer:
        assert answer.status == 200, address
        first = time.perf_counter() - start
        await answer.read()
    return time.perf_counter() - start, first, time.process_time() - worked


async def diagnostics(house: House) -> None:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    found = []
    for text in beginnings(sorted(ROOT.glob("examples/**/*.xscl"))):
        start = time.perf_counter()
        url = "/v1/language/check?id=mine"
        async with house.client.post(url, data=text.encode(), headers=headers) as answer:
            await answer.read()
        found.append((time.perf_counter() - start,))
    report("diagnostics", found)


def beginnings(paths: Iterable[Path]) -> Iterator[str]:
    """Yield texts as they are while they are typed: up to the end of every fourth word."""
    for path in paths:
        text = path.read_text()
        for word in list(re.finditer(r"\w+", text))[::4]:
            yield text[: word.end()]


async def weight(client: TestClient) -> None:
    """Print how many bytes the editor's page and all that it names have, as they are sent."""
    sent = plain = 0
    waiting, known = ["/register"], set[str]()
    while waiting:
        address = waiting.pop()
        known.add(address)
        async with client.get(address, headers={"Accept-Encoding": "gzip"}) as answer:
            text = (await answer.read()).decode()
            sent += int(answer.headers.get("Content-Length", len(text)))
            plain += len(text.encode())
        named = re.findall(r'(?:src|href)="(/assets/[^"]+)"|from "\./([^"]+)"', text)
        found = {asset or f"/assets/{module}" for asset, module in named}
        waiting += sorted(found - known - set(waiting))
    print(f"weight: {sent / 1_000:.0f} KB sent, {plain / 1_000:.0f} KB as it reads", flush=True)


if __name__ == "__main__":
    main()
