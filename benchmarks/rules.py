"""Tables and rules: waves of each scheduler, transactions and documents a second, what a row costs.

    python -m benchmarks rules [DOCUMENTS]

Seconds are those of the processor, not of the clock.  Waves are the longest chain of transactions
that depend on each other, which no machine shortens.  The figures of ACEP are in `benchmarks acep`.
"""

from __future__ import annotations

import gc
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import xscl
from benchmarks._rules_workloads import HYGIENE, document, hygiene
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.stepresult import StepResult
from broker.pipeline.outbox import Outbox
from broker.tables.actions import Actions, Beside, LockReader
from broker.tables.locks import Granularity, Lock, Locks, Scheduler, waves
from broker.tables.store import RowChange, Tables, TableVersions
from broker.tables.transactions import Schedule, in_transactions
from broker.tables.transactions import run as run_transactions
from xscl.comparison import Cell, Residual, Row, VariableValue
from xscl.evaluation import compile_condition
from xscl.path import Literal

KEYS = 100
SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)
BATCH = 5_000
ONE_READ = """CREATE TABLE t (id KEY, n DEFAULT 0);
S//e[@w->w] WHERE t[w].n < 0 GRACE 0 s;
S//e[@w->v][@x = '1'] WHERE t[v].n >= 0 GRACE 0 s ON MATCH SET t[v].n = t[v].n + 1"""


@dataclass
class Run:
    """What an engine did with documents: transactions are at most those of the matches."""

    seconds: float = 0.0
    evaluation_seconds: float = 0.0
    waves: int = 0
    matches: int = 0


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    waves_of_locks(count)
    one_read(count)
    hygiene_documents(5 * count)
    rows_of_a_table()


def waves_of_locks(count: int) -> None:
    """Print waves of transactions that read a row each, and of which a share writes it."""
    for granularity in Granularity:
        print(f"waves of {count:,} transactions, locks of a {granularity.value}, {KEYS} keys")
        print("  share that writes    SEI   S2PL    LWM   S2PL/LWM  SEI/LWM   locks/s of LWM")
        for share in SHARES:
            transactions = transactions_of(count, share)
            found = {}
            for scheduler in Scheduler:
                started = time.process_time()
                found[scheduler] = max(waves(transactions, scheduler, granularity))
                seconds = time.process_time() - started
            sei, s2pl, lwm = (
                found[each] for each in (Scheduler.SEI, Scheduler.S2PL, Scheduler.LWM)
            )
            ratios = f"{s2pl / lwm:10.2f} {sei / lwm:8.2f}"
            print(f"  {share:17} {sei:6} {s2pl:6} {lwm:6} {ratios} {count / seconds:16,.0f}")


def transactions_of(count: int, share: float) -> list[Locks]:
    """Return transactions of which each reads a row, and a share writes it."""
    chosen = random.Random(7)
    writers = set(chosen.sample(range(count), int(count * share)))
    locks = [[Lock("t", f"w{chosen.randrange(KEYS)}")] for _ in range(count)]
    return [Locks(lock, lock if n in writers else []) for n, lock in enumerate(locks)]


class OneRead:
    """A candidate that asks for a row, and one of four counts in it; a tuple as these read it."""

    rank = (0, "", "")
    start_us = end_us = 0
    parameters: Mapping[str, str] = {}
    asked = Row("t", VariableValue("w"))
    guard = compile_condition([Residual(Cell(asked, "n"), ">=", Literal(0.0))])
    actions = Actions(xscl.parse(ONE_READ)[2].actions)
    lock_reader = LockReader([asked])

    def __init__(self, number: int, chosen: random.Random) -> None:
        self.order = (number, number)
        self.is_writing = chosen.random() < 0.25
        self.key = f"w{chosen.randrange(KEYS)}"

    def value(self, name: str) -> str:
        """Return the value of every term: the key."""
        return self.key

    def locks(self) -> Locks:
        """Return what it reads and may write."""
        locks = self.lock_reader.locks(self)
        return Locks(locks, locks if self.is_writing else ())

    def ask(self, tables: TableVersions) -> tuple[OneRead, ...]:
        """Return it, if the row has a number."""
        return (self,) if type(self).guard(Beside(self, tables, (*self.order, ()))) else ()

    def act(self, tables: TableVersions) -> None:
        """Count in the row."""
        if self.is_writing:
            self.actions.act([self], tables, (*self.order, self.rank))


def one_read(count: int) -> None:
    """Print what transactions cost that read a row each, of which a quarter writes it."""
    print(
        f"one read of {KEYS} keys, a quarter writes: transactions/s alone; documents/s and matches"
    )
    print("         transactions/s    waves  documents/s   matches")
    chosen = random.Random(7)
    documents = [
        document(n, f'<e w="w{chosen.randrange(KEYS)}" x="{int(chosen.random() < 0.25)}"/>')
        for n in range(1, count + 1)
    ]
    for scheduler in Scheduler:
        tables = Tables()
        table = xscl.parse(ONE_READ)[0].table
        assert table is not None
        tables.define(table)
        candidates = [OneRead(n, chosen) for n in range(count)]
        started = time.process_time()
        versions = tables.begin_batch()
        found = run_transactions(in_transactions(candidates), versions, Schedule(scheduler))
        per_second = count / (time.process_time() - started)
        run = run_engine(ONE_READ, documents, Schedule(scheduler))
        print(
            f"  {scheduler.value:5} {per_second:15,.0f} {found:8,} {count / run.seconds:12,.0f}"
            f" {run.matches:9,}"
        )


def hygiene_documents(count: int) -> None:
    """Print documents of hygiene a second."""
    print(f"HYG, {count:,}: documents/s of the join and its transactions, and with evaluation")
    for workers in (1_000, 100):
        run = run_engine(HYGIENE, list(hygiene(count, workers)))
        both = count / (run.seconds + run.evaluation_seconds)
        print(
            f"  {workers:5,} workers {count / run.seconds:9,.0f} {both:9,.0f}"
            f" {run.matches:7,} matches"
        )


def run_engine(
    text: str,
    documents: Sequence[Document],
    schedule: Schedule | None = None,
    batch: int = BATCH,
    rows: Sequence[RowChange] = (),
) -> Run:
    """Return what an engine needs for documents, in batches."""
    queries = [RegisteredQuery(query) for query in xscl.parse(text)]
    engine = Engine(queries, lateness_us=86_400_000_000, schedule=schedule)
    engine.resume([], rows)
    run, xml = Run(), {each.docid: each.xml for each in documents}
    for start in range(0, len(documents), batch):
        step = run_batch(engine, documents[start : start + batch], xml, run)
        assert not step.pauses
    return run


def run_batch(
    engine: Engine, documents: Sequence[Document], xml: Mapping[int, bytes], run: Run
) -> StepResult:
    """Have an engine process a batch, of documents with some XML; add what that took."""
    started = time.process_time()
    witnesses = engine.evaluate(documents)
    evaluated = time.process_time()
    step = engine.process(witnesses, lambda docids: {docid: xml[docid] for docid in docids})
    run.seconds += time.process_time() - evaluated
    run.evaluation_seconds += evaluated - started
    run.waves += step.waves
    run.matches += len(step.matches)
    return step


def rows_of_a_table() -> None:
    """Print what rows cost in memory, and whether a batch and its commit grow with them."""
    print("a table of many rows: its memory, and 100 batches of 100 documents, 100 rows written")
    print("       rows   bytes/row   process ms   commit ms   restore s")
    for count in (1_000, 10_000, 100_000, 1_000_000):
        print(f"  {count:9,} {rows_line(count)}")


def rows_line(count: int) -> str:
    """Return the figures of a table of so many rows."""
    queries = [RegisteredQuery(query) for query in xscl.parse(ONE_READ)]
    with tempfile.TemporaryDirectory() as directory:
        with closing(Outbox(Path(directory) / "outbox.db")) as outbox:
            for first in range(0, count, 5_000):
                numbers = range(first, min(count, first + 5_000))
                step = StepResult(
                    rows=[RowChange("t", f"w{n}", {"n": float(n)}, 1) for n in numbers]
                )
                outbox.commit(after=outbox.through(), through=outbox.through() + 1, step=step)
        gc.collect()
        with closing(Outbox(Path(directory) / "outbox.db")) as outbox:
            engine = Engine(queries, lateness_us=86_400_000_000)
            before, started = resident_bytes(), time.process_time()
            engine.resume([], outbox.rows())
            restored = time.process_time() - started
            per_row = (resident_bytes() - before) / count
            run, committing = Run(), 0.0
            written = [document(n, f'<e w="w{n * 7919 % count}" x="1"/>') for n in range(1, 10_001)]
            xml = {each.docid: each.xml for each in written}
            for batch in range(0, len(written), 100):
                step = run_batch(engine, written[batch : batch + 100], xml, run)
                started = time.process_time()
                outbox.commit(after=outbox.through(), through=outbox.through() + 1, step=step)
                committing += time.process_time() - started
    times = f"{run.seconds * 10:12.1f} {committing * 10:11.1f} {restored:11.1f}"
    return f"{per_row:11.0f} {times}"


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


if __name__ == "__main__":
    main()
