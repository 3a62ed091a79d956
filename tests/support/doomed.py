"""A broker's core in processes of its own, which are killed at a chosen commit point.

Each accepts documents and processes them, as a publisher does who sends everything again that was
not acknowledged.  Run one until it ends by itself; `contents` is then what it has found.

`python -m support.doomed` reads lines `["live", directory]`, runs each in a fork, and answers with
its exit code: a fork costs a few milliseconds, an interpreter with all imports more than a second.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds  # noqa: F401 - pyarrow imports it at first use, as each fork would

import xscl
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine, tick
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.outcomes.learned import Learning
from broker.pipeline.evaluation import PlanStore, evaluated
from broker.pipeline.inflight import InFlight
from broker.pipeline.limits import PipelineLimits
from broker.pipeline.outbox import Outbox
from broker.pipeline.slices import slice_segments
from broker.pipeline.snapshot import Snapshot
from broker.pipeline.steps import Pipeline
from broker.pipeline.thisprocess import set_up_process
from support.standin import StandInEngine
from xpath_eval.witnesses import WITNESS_SCHEMA

POINTS = (
    *("file written", "file renamed", "file durable", "evaluated", "processed", "committed"),
    *("state file written", "state file renamed", "state file durable"),
)

SECOND_US = 1_000_000


def document_lines(count: int) -> list[DocumentLine]:
    """Return documents of which many join, some repeat one before, and one is not XML."""
    chosen = random.Random(17)
    lines = []
    for number in range(count):
        again = number if number % 7 else max(0, number - 3)
        xml = "<broken" if number == 11 else f"<d><v>{chosen.randrange(5)}</v><n>{again}</n></d>"
        time_us = (1000 + number) * SECOND_US
        lines.append(DocumentLine("S", xml.encode(), time_us, time_us, key=f"k{again}"))
    return lines


TICKS = {15: 1020 * SECOND_US, 30: 1034 * SECOND_US, 40: 1100 * SECOND_US}
"""The times at which a clock ticks behind so many documents; the ones that come next are late."""

DECIDING = {
    "next": "S//d->a NEXT {a/v = b/v, 30 s} S//d->b GRACE 3 s",
    "quiet": "FROM S//d->a NOT FOLLOWED BY {a/v = b/v, 5 s} S//d->b GRACE 3 s PUBLISH Q",
    "after": "Q//d->a FOLLOWED BY {a/v = b/v, 20 s} S//d->b UNLESS {} S//d[v = '0'] GRACE 2 s",
    "pairs": "S//d->a FOLLOWED BY {a/v = b/v, 20 s} S//d->b",
}


def deciding(registry_version: int) -> Engine:
    """Return the real engine, with queries in which something is decided among others."""
    queries = [xscl.parse(text, id=name)[0] for name, text in DECIDING.items()]
    return Engine([RegisteredQuery(query) for query in queries], lateness_us=20 * SECOND_US)


RULES = {
    "seen": "CREATE TABLE seen (v KEY, n DEFAULT 0, last DEFAULT '')",
    "counts": """SELECT * FROM S//d->a FOLLOWED BY {a/v = b/v, 20 s} S//d->b GRACE 3 s
        ON MATCH SET seen[b/v].n = seen[b/v].n + 1, SET seen[b/v].last = b/n PUBLISH P""",
    "clears": "P//d->p WHERE seen[p/v].n >= 4 GRACE 3 s ON MATCH DELETE seen[p/v]",
    "few": "S//d->a NEXT {a/v = b/v, 30 s} S//d->b WHERE seen[a/v].n < 2 GRACE 3 s",
    "learns": """SELECT * FROM S//d->a FOLLOWED BY {a/v = b/v, 6 s} S//d[n > 5]->b
        LOSS 0.5 DELAY learned
        FOLLOWED BY {b/v = c/v, 6 s} S//d->c GRACE 3 s PUBLISH L""",
    "counts_in": "L//d->p JOIN {p/v = d/v, 9 s} S//d->d CONFIDENCE 0.1",
}


def ruling(registry_version: int) -> Engine:
    """Return the real engine, with queries that use a table, one that learns, and its reader."""
    queries = [xscl.parse(text, id=name)[0] for name, text in RULES.items()]
    return Engine(
        [RegisteredQuery(query) for query in queries],
        lateness_us=20 * SECOND_US,
        learning=Learning(least=2, most=5),
    )


def standing_in(registry_version: int) -> StandInEngine:
    """Return the stand-in for an engine."""
    return StandInEngine()


ENGINES: dict[str, Callable[[int], Any]] = {
    "stand-in": standing_in,
    "real": deciding,
    "rules": ruling,
}


OVERLAPPING = "overlapping"
"""Says that a batch is evaluated while the one before it is joined."""


def run(
    directory: Path,
    reached: Callable[[str], None],
    engine: str = "stand-in",
    how: str = "",
    *,
    chunk: int = 5,
) -> None:
    """Accept and process everything, in chunks; of batches that overlap all is accepted first."""
    directory.mkdir(exist_ok=True)
    outbox = Outbox(directory / "outbox.db", now_us=lambda: 0)
    disk = Disk(is_durable=False, reached=reached)
    spool = SpoolWriter(directory / "spool", disk, processed=outbox.through())
    ingest = Ingest(spool, dedup_horizon_us=None)
    pipeline = Pipeline(
        Spool(directory / "spool"),
        outbox,
        ENGINES[engine],
        PlanStore(directory / "plans"),
        reached=reached,
        snapshot=Snapshot(
            directory / "state",
            disk=Disk(is_durable=False, reached=lambda point: reached(f"state {point}")),
            limits=PipelineLimits(file_documents=4),
        ),
    )
    pipeline.recover(1)
    lines = document_lines(40)
    for start in range(0, len(lines), chunk):
        ingest.append(lines[start : start + chunk], registry_version=1)
        tick_us = TICKS.get(start + chunk) if engine != "stand-in" else None
        # A clock that has ticked does not tick again when everything is published again.
        if tick_us is not None and spool.watermark_us < tick_us:
            ingest.append([tick(tick_us)], registry_version=1)
        for _ in () if how == OVERLAPPING else pipeline.drain():
            spool.compact(through=pipeline.through, documents_max=16)
    if how == OVERLAPPING:
        overlap(directory, spool, pipeline)
    outbox.close()
    spool.close()


def overlap(directory: Path, spool: SpoolWriter, pipeline: Pipeline) -> None:
    """Process everything as Spark's streaming query does: a batch is evaluated beside a join."""

    def join(witnesses: pa.Table) -> None:
        pipeline.step(witnesses)
        spool.compact(through=pipeline.through, documents_max=16)

    in_flight = InFlight(join)
    plans = PlanStore(directory / "plans")
    for after in range(pipeline.through, spool.last):
        [slices] = slice_segments(Spool(spool.directory), after, after + 1, parallelism=1)
        in_flight.hand_over(pa.Table.from_batches(evaluated(plans.get, slices), WITNESS_SCHEMA))
    in_flight.wait()
    in_flight.close()


def contents(directory: Path) -> list[tuple[object, ...]]:
    """Return everything in the outbox, and every document in the spool."""
    rows: list[tuple[object, ...]] = []
    with sqlite3.connect(directory / "outbox.db") as db:
        for table in ("match", "published", "dead_letter", "table_row", "note"):
            found = db.execute(f"SELECT '{table}', * FROM {table}").fetchall()
            rows += sorted(found, key=repr)
    spool = Spool(directory / "spool")
    return [*rows, *sorted(spool.documents(range(1, 1000)).items())]


class KillAt:
    """Kills this process at the n-th visit of a commit point."""

    def __init__(self, point: str, visit: int) -> None:
        self._point = point
        self._visit = visit
        self._visits: Counter[str] = Counter()

    def __call__(self, point: str) -> None:
        self._visits[point] += 1
        if point == self._point and self._visits[point] == self._visit:
            os.kill(os.getpid(), signal.SIGKILL)


def live(directory: str, engine: str = "stand-in", how: str = "") -> None:
    """Run to the end."""
    run(Path(directory), lambda point: None, engine, how)


def die_at(directory: str, point: str, visit: int, engine: str = "stand-in", how: str = "") -> None:
    """Run, to be killed at a commit point."""
    run(Path(directory), KillAt(point, visit), engine, how)


def die_after(directory: str, seconds: float) -> None:
    """Run, to be killed at some instant."""
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    live(directory)
    signal.setitimer(signal.ITIMER_REAL, 0)


TARGETS = {"live": live, "die_at": die_at, "die_after": die_after}


class Forks:
    """Runs the targets above in forks of one process that has imported everything."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.doomed"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def run(self, target: str, *arguments: object) -> int:
        """Return the exit code of a target, negative for the signal that ended it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([target, *map(_plain, arguments)]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(10) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()


def _plain(argument: object) -> object:
    return str(argument) if isinstance(argument, Path) else argument


def _serve() -> None:
    set_up_process()
    # The parser is imported when something is parsed: once, and not in each fork.
    deciding(1)
    for line in sys.stdin:
        target, *arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            TARGETS[target](*arguments)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
