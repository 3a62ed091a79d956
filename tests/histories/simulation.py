"""A broker's core in a simulated world: one seed is one history, and a failing seed replays.

Everything that a broker meets is drawn from the seed: what publishers send and send again, late
documents and a clock that steps back, its ticks, changes of queries, those that look back and are
prepared beside the stream or not, how documents are grouped, batches that are evaluated before the
one before them is joined, batches that Spark repeats, a disk that is full or loses power between
any two of its steps, and the moments at which the process dies.
At the end everybody gets what they wait for, and the outbox
must hold exactly the matches of the documents that were acknowledged, and the rows that these have
left.

    python -m histories.simulation --runs 3000 --seed 1
    python -m histories.simulation --runs 300 --seed 1 --real
    python -m histories.simulation --runs 300 --seed 1 --rules

The first has one query and a stand-in for the engine, the second a registry whose queries come and
go, and the real engine; the oracle says what it must find.  The queries of the third use tables.

Not simulated: SQLite's own crash safety (its transactions are rolled back, as after a kill), and
threads: the scheduler below interleaves what they would do.
"""

from __future__ import annotations

import argparse
import errno
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from broker.documents.disk import Disk
from broker.documents.document import CLOCK, DocumentLine, tick
from broker.documents.ingest import Ingest, IngestOutcome
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.queries.registration import SetChange
from broker.matching.stepresult import StepResult
from broker.pipeline.evaluation import PlanStore, evaluate_slices
from broker.pipeline.limits import PipelineLimits
from broker.pipeline.outbox import Outbox
from broker.pipeline.slices import slice_segments
from broker.pipeline.snapshot import Snapshot
from broker.service.maintenance import RetentionNeeds, maintain
from histories.simulated_queries import (
    Queries,
    RealQueries,
    Row,
    RuledQueries,
    StandInQueries,
)
from xpath_eval.witnesses import WITNESS_SCHEMA

Kind = Callable[[Path], Queries]

DOCUMENTS = 24
IN_FLIGHT_MAX = 2
DEDUP_HORIZON_US = 1 << 40


class Crash(BaseException):
    """The process dies, or the power fails."""


@dataclass
class Fate:
    """Decides at each commit point whether the process dies there."""

    chosen: random.Random
    crash_rate: float

    def __call__(self, point: str) -> None:
        if self.chosen.random() < self.crash_rate:
            raise Crash(point)


class UnsafeDisk(Disk):
    """A disk that can be full, and that forgets at a power failure what was not flushed."""

    def __init__(self, chosen: random.Random, reached: Callable[[str], None]) -> None:
        super().__init__(is_durable=False, reached=reached)
        self._chosen = chosen
        self._reached = reached

    def publish(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        if self._chosen.random() < 0.03:
            raise OSError(errno.ENOSPC, "No space left on device")
        content = b"".join(bytes(chunk) for chunk in chunks)
        temporary = path.with_name(path.name + ".tmp")
        try:
            self._reached("file created")
            temporary.write_bytes(content)
            self._reached("file flushed")
        except Crash:
            temporary.write_bytes(content[: self._chosen.randrange(len(content) + 1)])
            raise
        temporary.rename(path)
        try:
            self._reached("file renamed")
        except Crash:
            # Without a flush of the directory the rename itself may be lost.
            if self._chosen.random() < 0.5:
                path.rename(temporary)
            raise
        self._reached("directory flushed")


class UnsafeOutbox(Outbox):
    """An outbox that finds its disk full now and then."""

    def __init__(self, path: Path, chosen: random.Random) -> None:
        super().__init__(path, now_us=lambda: 0)
        self._chosen = chosen

    def commit(self, *, after: int, through: int, step: StepResult) -> bool:
        if self._chosen.random() < 0.03:
            raise sqlite3.OperationalError("database or disk is full")
        return super().commit(after=after, through=through, step=step)


@dataclass
class World:
    """What outlives the process: the disk, the publishers, and what they were told."""

    directory: Path
    chosen: random.Random
    lines: list[DocumentLine]
    kind: Kind
    now_us: int = 1000
    is_pruned: bool = False
    sent_us: dict[int, int] = field(default_factory=dict)
    acknowledged: dict[int, int] = field(default_factory=dict)
    archive: dict[int, Row] = field(default_factory=dict)
    crashes: int = 0

    def tick(self) -> int:
        """Return the time on a clock that mostly goes forward."""
        self.now_us += self.chosen.randrange(-5, 12)
        return self.now_us


class Process:
    """One life of the broker."""

    def __init__(self, world: World, crash_rate: float) -> None:
        fate = Fate(world.chosen, crash_rate)
        directory = world.directory
        self._world = world
        self._in_flight: list[tuple[int, pa.Table]] = []
        self._prepared: SetChange | None = None
        self._outbox = UnsafeOutbox(directory / "outbox.db", world.chosen)
        try:
            self._open(fate, directory)
        except BaseException:
            self._outbox.close()
            raise

    def _open(self, fate: Fate, directory: Path) -> None:
        through = self._outbox.through()
        disk = UnsafeDisk(self._world.chosen, fate)
        self._spool = SpoolWriter(directory / "spool", disk, processed=through)
        try:
            newest = self._spool.newest
            self._arrival_us = newest.arrival_us if newest else 0
            self._ingest = Ingest(self._spool, dedup_horizon_us=DEDUP_HORIZON_US)
            self._plans = PlanStore(directory / "plans")
            self._queries = self._world.kind(directory)
        except BaseException:
            self._spool.close()
            raise
        try:
            spool = Spool(directory / "spool")
            snapshot = Snapshot(
                directory / "state", disk=disk, limits=PipelineLimits(file_documents=4)
            )
            self._pipeline = self._queries.pipeline(
                spool, self._outbox, self._plans, reached=fate, snapshot=snapshot
            )
            self._pipeline.recover(self._queries.version())
        except BaseException:
            self._queries.close()
            self._spool.close()
            raise

    def close(self) -> None:
        """Die: what is not on the disk is gone."""
        self._outbox.close()
        self._queries.close()
        self._spool.close()

    def act(self) -> None:
        """Do one thing that a broker does."""
        actions = (self._accept, self._accept, self._process, self._repeat, self._maintain)
        self._world.chosen.choice(actions)()
        if self._world.chosen.random() < 0.05:
            self._change_queries()
        if self._queries.is_looking_back:
            self._look_back()
        if self._queries.is_ticking and self._world.chosen.random() < 0.1:
            self._tick()

    def settle(self) -> None:
        """Accept and process everything that is left."""
        for number in range(len(self._world.lines)):
            if number not in self._world.acknowledged:
                self._send([number])
        while self._pipeline.through < self._spool.last:
            self._process()
        self._queries.look_back(self._outbox, Spool(self._spool.directory))

    def _accept(self) -> None:
        chosen = self._world.chosen
        waiting = [n for n in range(len(self._world.lines)) if n not in self._world.acknowledged]
        numbers = waiting[: chosen.randrange(1, 5)]
        if self._world.acknowledged and not self._world.is_pruned and chosen.random() < 0.3:
            numbers.append(chosen.choice(list(self._world.acknowledged)))
        self._send(numbers)

    def _send(self, numbers: list[int]) -> None:
        lines = [self._world.lines[number] for number in numbers]
        self._arrival_us = max(self._arrival_us, self._world.tick())
        for number in numbers:
            self._world.sent_us.setdefault(number, self._arrival_us)
        try:
            receipts = self._ingest.append(
                lines, arrival_us=self._arrival_us, registry_version=self._queries.version()
            )
        except OSError:
            return
        for number, receipt in zip(numbers, receipts, strict=True):
            assert receipt.outcome is not IngestOutcome.REFUSED
            assert receipt.docid is not None
            known = self._world.acknowledged.setdefault(number, receipt.docid)
            assert known == receipt.docid, "a repetition is the document that it repeats"

    def _look_back(self) -> None:
        """Prepare a query that looks back, go on with that, or register it; or look back."""
        chosen, state = self._world.chosen, self._pipeline.state
        if chosen.random() < 0.05:
            self._queries.look_back(self._outbox, Spool(self._spool.directory))
        if state.is_beside and chosen.random() < 0.3:
            state.go_on_beside()
        elif self._prepared is None and not state.is_beside:
            if chosen.random() < 0.4 and self._spool.last:
                oldest = self._spool.all_segments()[0].first_docid - 1
                point = chosen.randrange(oldest, self._spool.next_docid)
                self._prepared = self._queries.prepared(chosen, point)
                if chosen.random() < 0.8:
                    state.begin_beside(self._prepared, 0)
        elif self._prepared is None:
            pass  # what is prepared has been registered, and waits for its step
        elif chosen.random() < 0.1:
            state.registered_beside(None)
            self._prepared = None
        elif chosen.random() < 0.6:
            due = self._queries.register(self._prepared, self._spool.next_docid - 1)
            self._prepared = None
            state.registered_beside(due)
            self._pipeline.prepare(self._queries.version())

    def _tick(self) -> None:
        """Let the clock tick, as where nothing has come for a while."""
        self._arrival_us = max(self._arrival_us, self._world.tick())
        with suppress(OSError):
            self._ingest.append(
                [tick()], arrival_us=self._arrival_us, registry_version=self._queries.version()
            )

    def _process(self) -> None:
        """Evaluate the next batch, and join the oldest of those in flight, now or later."""
        if len(self._in_flight) < IN_FLIGHT_MAX:
            self._evaluate_next()
        if len(self._in_flight) == IN_FLIGHT_MAX or self._world.chosen.random() < 0.5:
            self._join_next()

    def _evaluate_next(self) -> None:
        after = self._in_flight[-1][0] if self._in_flight else self._pipeline.through
        last = min(self._spool.last, after + self._world.chosen.randrange(1, 9))
        if last > after:
            self._in_flight.append((last, self._evaluate(after, last)))

    def _join_next(self) -> None:
        """Join the oldest batch in flight; with one that fails the others are dropped."""
        if self._in_flight:
            _, witnesses = self._in_flight.pop(0)
            try:
                self._pipeline.step(witnesses)
            except sqlite3.OperationalError:
                self._in_flight.clear()

    def _repeat(self) -> None:
        """Step on a batch that begins behind the commit, as Spark does from an old checkpoint."""
        self._in_flight.clear()
        oldest = self._spool.all_segments()[0].first - 1 if self._spool.last else 0
        if oldest < self._spool.last:
            after = self._world.chosen.randrange(oldest, self._spool.last)
            through = self._world.chosen.randrange(after + 1, self._spool.last + 1)
            if after <= self._pipeline.through:
                # The plans of what is committed may have been deleted since.
                segments = self._spool.segments(after, through)
                for version in sorted({segment.registry_version for segment in segments}):
                    self._pipeline.prepare(version)
                with suppress(sqlite3.OperationalError):
                    self._pipeline.step(self._evaluate(after, through))

    def _evaluate(self, after: int, through: int) -> pa.Table:
        spool = Spool(self._spool.directory)
        slices = slice_segments(spool, after, through, self._world.chosen.randrange(1, 4))
        batches = [batch for part in slices for batch in evaluate_slices(self._plans.get, part)]
        return pa.Table.from_batches(batches, WITNESS_SCHEMA)

    def _maintain(self) -> None:
        world = self._world
        world.archive.update(_documents(self._spool))
        # A publisher who has no answer sends again, and that must be recognised.
        waiting = [at for n, at in world.sent_us.items() if n not in world.acknowledged]
        arrival_us = min(waiting, default=1 << 60) if world.is_pruned else 0
        needs = RetentionNeeds(
            self._pipeline.through,
            self._pipeline.horizon_us(),
            arrival_us,
            0 if self._prepared else self._queries.looked_back_at(),
        )
        with suppress(OSError):
            maintain(self._spool, lambda: needs)
        self._pipeline.forget_plans()

    def _change_queries(self) -> None:
        self._queries.change(self._world.chosen, self._spool.next_docid - 1)
        self._pipeline.prepare(self._queries.version())


def simulate(seed: int, directory: Path, kind: Kind = StandInQueries) -> World:
    """Run one history; raise `AssertionError` if its outbox is not what it must be."""
    chosen = random.Random(seed)
    world = World(directory, chosen, _lines(chosen), kind, is_pruned=chosen.random() < 0.5)
    crash_rate = chosen.choice([0.0, 0.01, 0.05, 0.2])
    for _ in range(chosen.randrange(1, 6)):
        _live(world, crash_rate, lambda process: process.act(), times=chosen.randrange(1, 20))
    while not _live(world, crash_rate / 4, lambda process: process.settle(), times=1):
        pass
    _check(world)
    return world


def _live(world: World, crash_rate: float, act: Callable[[Process], None], *, times: int) -> bool:
    """Live once; return whether the end was in peace."""
    process: Process | None = None
    try:
        process = Process(world, crash_rate)
        for _ in range(times):
            act(process)
    except Crash:
        world.crashes += 1
        return False
    finally:
        if process is not None:
            process.close()
    return len(world.acknowledged) == len(world.lines)


def _lines(chosen: random.Random) -> list[DocumentLine]:
    """Return what publishers want to send: keys make repetitions known."""
    lines = []
    for number in range(DOCUMENTS):
        revised = chosen.randrange(number) if number and chosen.random() < 0.1 else number
        time_us = chosen.choice([None, 1000 + chosen.randrange(4 * DOCUMENTS)])
        xml = f"<d><v>{chosen.randrange(4)}</v><n>{number}</n></d>"
        lines.append(DocumentLine("S", xml.encode(), time_us, key=f"k{revised}"))
    return lines


def _check(world: World) -> None:
    spool = Spool(world.directory / "spool")
    outbox = Outbox(world.directory / "outbox.db")
    try:
        found = outbox.matches.find(limit=100_000)
        numbers = [match.seq for match in found]
        assert numbers == sorted(set(numbers))
        assert outbox.through() == spool.last
        documents = {**world.archive, **_documents(spool)}
        published = [docid for docid, (row, _) in documents.items() if row["stream"] != CLOCK]
        assert sorted(world.acknowledged.values()) == sorted(published)
        assert len(published) == DOCUMENTS
        assert sorted(documents) == list(range(1, len(documents) + 1))
        queries = world.kind(world.directory)
        # What is found once more, as looking back a second time, takes a number and no row.
        assert queries.is_looking_back or numbers == list(range(1, len(found) + 1))
        expected, rows = queries.expected(documents)
        queries.close()
        ids = [match.id for match in found]
        # What is found looking back comes behind what is there already.
        assert (sorted(ids) if queries.is_looking_back else ids) == expected
        assert {(row.table, row.key): row.cells for row in outbox.rows()} == rows
    finally:
        outbox.close()


def _documents(spool: Spool) -> dict[int, Row]:
    return {
        docid: (row, segment.registry_version)
        for segment in spool.all_segments()
        for docid, row in enumerate(spool.rows(segment).to_pylist(), segment.first_docid)
    }


def main() -> None:
    """Run many histories and say how many, how fast, and which failed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--real", action="store_true", help="run the real engine")
    parser.add_argument("--rules", action="store_true", help="run it with tables")
    arguments = parser.parse_args()
    started = time.monotonic()
    crashes = 0
    for seed in range(arguments.seed, arguments.seed + arguments.runs):
        directory = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        try:
            real = RuledQueries if arguments.rules else RealQueries
            kind = real if arguments.real or arguments.rules else StandInQueries
            crashes += simulate(seed, directory, kind).crashes
        except BaseException:
            print(f"seed {seed} failed; its files are in {directory}")
            raise
        shutil.rmtree(directory)
    minutes = (time.monotonic() - started) / 60
    print(f"{arguments.runs} histories, {crashes} crashes, {arguments.runs / minutes:.0f} a minute")


if __name__ == "__main__":
    main()
