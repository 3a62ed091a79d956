"""Whether match lines are the same bytes in one process, on Spark and over shards.

    python -m benchmarks lines [--first 20000] [--batch 2000] [--ways one spark-shards-8]
    python -m benchmarks lines --program DIRECTORY

Recorded news go through a replay in one process, on Spark, and over shards in this process and on
Spark.  Each row that goes to the outbox is taken whole: position, query, id, parameters, oldest
document, line.  A hash of all rows is printed for each way, and the exit code is 1 where two of
them differ.  With `--program` they are also found by the program of another checkout.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("XSCL_PROGRAM", Path(__file__).parents[1]))
"""The program whose rows are found."""

sys.path[0] = str(ROOT)

import xscl  # noqa: E402
from broker.pipeline.lookback import replayrun  # noqa: E402
from broker.pipeline.lookback.replay import replay  # noqa: E402

DATA = Path(os.environ.get("XSCL_SHARED", Path(__file__).parents[2] / "shared")) / "data"
NEWS = DATA / "news-2026.docs.jsonl.gz"

QUERIES = {
    "copied": "news//item[author]->a",
    "titles": "news//item->a JOIN {a/title = b/title AND a/feed != b/feed, 2 days} news//item->b",
    "built": (
        "SELECT <pair at='{x/link}'>{a/title}{b/title}</pair> FROM news//item->a[link->x]"
        " FOLLOWED BY {a/author = b/author AND a/feed != b/feed, 12 h} news//item->b"
    ),
    "listed": (
        "SELECT a/title, b/link FROM news//item->a"
        " FOLLOWED BY {a/author = b/author AND a/feed != b/feed, 6 h} news//item->b"
    ),
    "undisturbed": (
        "news//item->a FOLLOWED BY {a/author = b/author AND a/feed != b/feed, 1 h} news//item->b"
        " UNLESS {a/feed = c/feed} news//item->c GRACE 1 min"
    ),
    "by feed": (
        "news//item[feed = $feed]->a"
        " FOLLOWED BY {a/author = b/author AND a/feed != b/feed, 1 day} news//item->b"
    ),
}
WAYS = ("one", "spark", "shards-2", "shards-8", "spark-shards-2", "spark-shards-8")


class Rows:
    """A hash of the rows of matches, and how many there are."""

    def __init__(self) -> None:
        self.count = 0
        self._hash = hashlib.sha256()

    def take(self, matches: Any) -> None:
        """Take the matches of a batch, in any order."""
        for match in sorted(matches):
            self.count += 1
            self._hash.update(json.dumps([*match]).encode() + b"\n")

    @property
    def digest(self) -> str:
        """What tells them from any others."""
        return self._hash.hexdigest()[:16]


def found(way: str, path: Path, batch: int) -> Rows:
    """Return the rows that are found in one way."""
    rows = Rows()
    queries = [xscl.parse(text, id=name)[0] for name, text in QUERIES.items()]
    commit = replayrun.MatchFile.commit

    def seen(self: Any, *, after: int, through: int, step: Any) -> bool:
        rows.take(step.matches)
        return commit(self, after=after, through=through, step=step)

    replayrun.MatchFile.commit = seen  # type: ignore[method-assign]
    try:
        summary = replay(
            queries,
            [path],
            io.StringIO(),
            assignments={"by feed": [{"feed": each} for each in feeds(path)]},
            batch_documents=batch,
            shards=int(way.rpartition("-")[2]) if "shards" in way else 1,
            spark=way.startswith("spark"),
        )
    finally:
        replayrun.MatchFile.commit = commit  # type: ignore[method-assign]
    assert summary.matches == rows.count
    assert not summary.pauses, summary.pauses
    return rows


def feeds(path: Path) -> list[str]:
    """Return the feeds of some documents."""
    names = dict[str, None]()
    for line in path.read_text().splitlines():
        _, is_there, rest = json.loads(line)["xml"].partition("<feed>")
        if is_there:
            names[rest.partition("</feed>")[0]] = None
    return [name for name in names if "&" not in name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=20_000, help="items")
    parser.add_argument("--batch", type=int, default=2_000, help="documents in a batch")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--program", type=Path, help="another checkout, which is run as well")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "items.jsonl"
        with gzip.open(NEWS, "rt") as lines, path.open("w") as file:
            file.writelines(islice(lines, given.first))
        digests = set()
        for way in given.ways:
            started, before = time.perf_counter(), os.times()
            rows = found(way, path, given.batch)
            digests.add(rows.digest)
            worked_s = sum(os.times()[:4]) - sum(before[:4])
            print(f"{way:<16} {rows.count:>8,} rows {rows.digest}  {worked_s:6.1f} s of work,"
                  f" {time.perf_counter() - started:6.1f} s", flush=True)  # fmt: skip
    if given.program is not None:
        print(f"{given.program}:", flush=True)
        command = [sys.executable, __file__, "--first", str(given.first), "--batch"]
        command += [str(given.batch), "--ways", *given.ways]
        other = subprocess.run(
            command,
            env={**os.environ, "XSCL_PROGRAM": str(given.program), "PYTHONPATH": ""},
            cwd=given.program,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(other.stdout, end="")
        told = [
            line.split(" rows ")[1] for line in other.stdout.splitlines() if " rows " in line[:40]
        ]
        assert len(told) == len(given.ways)
        digests |= {each.split()[0] for each in told}
    print("the same rows" if len(digests) == 1 else "DIFFERENT ROWS")
    return len(digests) != 1


if __name__ == "__main__":
    sys.exit(main())
