"""Run queries over recorded documents, through the pipeline that a live broker has.

    read      document lines, plain or gzip -> a temporary spool, in segments of one batch
    step      the pipeline, fed by Spark or in this process
    write     match lines, sorted by (largest docid, query, match id)

A batch's matches all have their largest docid in the batch, so sorting each batch sorts the whole.

Invariants: the clock is never read; the output does not depend on the batch size, on the number of
shards, nor on whether Spark evaluates.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

import xscl
from broker.documents.disk import Disk
from broker.documents.document import LAST_US, Document, DocumentError, DocumentLine, tick
from broker.documents.ingest import Ingest, IngestOutcome
from broker.documents.recorded import ReadLine, read_document_lines
from broker.documents.segment import SEGMENT_BYTES_MAX
from broker.documents.spool import Spool, SpoolWriter
from broker.documents.sub_batches import in_sub_batches
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget, Pause, Spent
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.mrules import MRule, point_of
from broker.matching.outcomes.kept import Note
from broker.matching.stepresult import StepResult
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.joinstate import JoinEngine
from broker.pipeline.shards import Join, Tasks
from broker.pipeline.steps import Pipeline, StepSummary
from broker.tables.store import RowChange
from joins import DEFAULT_ENGINE, EngineName
from xscl.query import Query

if TYPE_CHECKING:
    from broker.pipeline.spark import Spark

__all__ = [
    "BATCH_DOCUMENTS",
    "LATENESS_US",
    "ReplayError",
    "ReplaySummary",
    "read_assignments",
    "replay",
    "replay_documents",
]

BATCH_DOCUMENTS = 20_000
"""Documents in a batch: a Spark batch costs 0.2 to 0.4 s however small it is."""

_FIRST_BATCH_DOCUMENTS = 500
_PROBLEMS_KEPT = 20
_WAIT_S = 0.05
_REGISTRY_VERSION = 1

LATENESS_US = 24 * 3600 * 1_000_000
"""How late a document may come and still find every partner (semantics, section 1.1)."""


class ReplayError(ValueError):
    """A row of parameters is none.  Its author can act on it."""


@dataclass(slots=True)
class ReplaySummary:
    """What a replay did.

    `start_s` is what Spark took until its first batch was evaluated: the JVM, the session, the
    workers, and a batch of a few documents.  `seconds` is all after that.  `undecided` are the
    tuples that still wait for the clock.
    """

    documents: int = 0
    duplicates: int = 0
    refused: int = 0
    dead_letters: int = 0
    matches: int = 0
    undecided: int = 0
    start_s: float = 0.0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)

    @property
    def documents_per_s(self) -> float:
        """The rate after the start."""
        return self.documents / self.seconds if self.seconds else 0.0

    def note(self, problem: str) -> None:
        """Keep a problem for the reader, up to a number of them."""
        if len(self.problems) < _PROBLEMS_KEPT:
            self.problems.append(problem)


Progress = Callable[[int, int], None]
"""Called after each batch with the documents and the matches so far."""


def replay(
    queries: Sequence[Query],
    documents: Iterable[Path],
    matches: TextIO,
    *,
    lateness_us: int = LATENESS_US,
    assignments: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    engine: EngineName = DEFAULT_ENGINE,
    budget: Budget = DEFAULT_BUDGET,
    batch_documents: int = BATCH_DOCUMENTS,
    shards: int = 1,
    spark: bool = True,
    session: Spark | None = None,
    until_us: int = LAST_US,
    without: Collection[MRule] = (),
    progress: Progress = lambda documents, matches: None,
) -> ReplaySummary:
    """Run queries over files of document lines and write their match lines.

    `assignments` are the canonical parameter values of each parameterised query, by its id.  Only
    the default engine keeps to the budget of pairs and is spread over `shards`.  Where a query is
    ordered, the clock ticks at `until_us` when all has been read: by default later than everything.
    Queries share nothing by the m-rules of `without`.
    """
    assert shards == 1 or engine == DEFAULT_ENGINE
    by_query = assignments or {}
    registered = [
        RegisteredQuery(
            query,
            registration_point=point_of(number, without),
            assignments=tuple(by_query.get(query.id, ())),
        )
        for number, query in enumerate(queries)
    ]
    sessions: list[Spark] = []

    def make_engine(directory: Path) -> Engine:
        join = Join(lateness_us, shards, budget.pairs_max)
        tasks = Tasks(lambda some: sessions[0].run_tasks(some), directory / "shards")
        processor = join.processor(tasks if spark else None)
        return Engine(
            registered,
            lateness_us=lateness_us,
            engine=engine,
            budget=budget,
            processor=processor,
            without=without,
        )

    return replay_documents(
        read_document_lines(documents),
        make_engine,
        matches,
        closed_streams=[query.publish for query in queries if query.publish is not None],
        batch_documents=batch_documents,
        spark=spark,
        session=session,
        on_session=sessions.append,
        last=[("", tick(until_us))] if any(query.is_ordered for query in queries) else [],
        progress=progress,
    )


def read_assignments(path: Path, queries: Sequence[Query]) -> dict[str, list[dict[str, Any]]]:
    """Return the canonical assignments of a file of parameter rows, by query id.

    Raises `ReplayError` with the line for a row that is not one, or whose query is not there, and
    `xscl.XsclError` for values that do not fit their query.
    """
    by_id = {query.id: query for query in queries}
    assignments: dict[str, list[dict[str, Any]]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            query, values = by_id[row["query"]], dict(row["parameters"])
        except KeyError as error:
            raise ReplayError(f"{path}:{number}: no {error} here") from error
        except (ValueError, TypeError) as error:
            raise ReplayError(f"{path}:{number}: not a row of parameters: {error}") from error
        assignments.setdefault(query.id, []).append(xscl.assignment(query, values))
    return assignments


def replay_documents(
    lines: Iterable[ReadLine],
    make_engine: Callable[[Path], JoinEngine],
    matches: TextIO,
    *,
    closed_streams: Sequence[str] = (),
    batch_documents: int = BATCH_DOCUMENTS,
    spark: bool = True,
    session: Spark | None = None,
    on_session: Callable[[Spark], None] = lambda session: None,
    last: Sequence[ReadLine] = (),
    progress: Progress = lambda documents, matches: None,
) -> ReplaySummary:
    """Run an engine over document lines, then the `last` ones, and write its match lines.

    `make_engine` gets the replay's directory, which is deleted at the end.  With Spark, a session
    is started for the replay unless one is given; `on_session` hears of it before the first batch.
    """
    with tempfile.TemporaryDirectory(
        prefix="xscl-replay-", ignore_cleanup_errors=True
    ) as directory:
        run = _ReplayRun(Path(directory), make_engine, matches, progress)
        run.ingest.closed_streams = closed_streams
        lines = chain(lines, last)
        if spark:
            _run_in_spark(run, lines, batch_documents, session, on_session)
        else:
            _run_in_process(run, lines, batch_documents)
        run.summary.undecided = run.pipeline.join_figures.get("undecided", 0)
        return run.summary


class _MatchFile:
    """The outbox of a replay: match lines in a file, progress in memory."""

    def __init__(self, file: TextIO, summary: ReplaySummary) -> None:
        self._file = file
        self._summary = summary
        self._through = 0

    def through(self) -> int:
        """Return the last segment whose matches are written."""
        return self._through

    def commit(self, *, after: int, through: int, step: StepResult) -> bool:
        """Write the matches of the segments (after, through]."""
        assert after == self._through
        self._file.writelines(match.line + "\n" for match in sorted(step.matches))
        self._summary.matches += len(step.matches)
        for docid, reason in step.dead_letters:
            self._summary.dead_letters += 1
            self._summary.note(f"document {docid}: {reason}")
        self._summary.pauses += step.pauses
        self._through = through
        return True

    def spent(self) -> list[Spent]:
        """Return nothing: the engine lives as long as the replay."""
        return []

    def rows(self) -> list[RowChange]:
        """Return nothing, for the same reason."""
        return []

    def notes(self) -> list[Note]:
        """Return nothing, for the same reason."""
        return []

    def published(self, *, after: int, through: int) -> list[Document]:
        """Return nothing, for the same reason."""
        return []


class _ReplayRun:
    """The parts of one replay, in a temporary directory."""

    def __init__(
        self,
        directory: Path,
        make_engine: Callable[[Path], JoinEngine],
        matches: TextIO,
        progress: Progress,
    ) -> None:
        self.directory = directory
        self.summary = ReplaySummary()
        self.plans = PlanStore(directory / "plans")
        self.writer = SpoolWriter(directory / "spool", Disk(is_durable=False))
        self.ingest = Ingest(self.writer, dedup_horizon_us=None)
        self.pipeline = Pipeline(
            Spool(directory / "spool"),
            _MatchFile(matches, self.summary),
            lambda registry_version: make_engine(directory),
            self.plans,
            on_step=self._count,
        )
        self.first_step: float | None = None
        self._progress = progress
        self._processed = 0
        self.pipeline.recover(_REGISTRY_VERSION)

    def step(self, witnesses: pa.Table) -> None:
        """Take a batch from Spark."""
        if self.first_step is None:
            self.first_step = time.perf_counter()
        self.pipeline.step(witnesses)

    def _count(self, step: StepSummary) -> None:
        self._processed += step.documents
        self._progress(self._processed, self.summary.matches)

    def append(self, group: Sequence[ReadLine]) -> None:
        """Put lines into the spool as one segment."""
        places = [place for place, line in group if isinstance(line, DocumentLine)]
        lines = [line for _, line in group if isinstance(line, DocumentLine)]
        for place, line in group:
            if isinstance(line, DocumentError):
                self._refuse(place, str(line))
        receipts = self.ingest.append(lines, registry_version=_REGISTRY_VERSION)
        for place, line, receipt in zip(places, lines, receipts, strict=True):
            if receipt.outcome is IngestOutcome.ACCEPTED:
                self.summary.documents += not line.is_tick
            elif receipt.outcome is IngestOutcome.DUPLICATE:
                self.summary.duplicates += 1
            else:
                self._refuse(place, receipt.reason or "")

    def _refuse(self, place: str, reason: str) -> None:
        self.summary.refused += 1
        self.summary.note(f"{place}: {reason}")


def _run_in_process(run: _ReplayRun, lines: Iterable[ReadLine], batch_documents: int) -> None:
    started = time.perf_counter()
    for group in _groups(lines, batch_documents):
        run.append(group)
        for _ in run.pipeline.drain(batch_documents_max=batch_documents):
            pass
    run.summary.seconds = time.perf_counter() - started


def _run_in_spark(
    run: _ReplayRun,
    lines: Iterable[ReadLine],
    batch_documents: int,
    session: Spark | None,
    on_session: Callable[[Spark], None],
) -> None:
    from broker.pipeline.spark import Spark, StreamSource  # a replay without Spark needs no Java

    with ExitStack() as stack:
        started = time.perf_counter()
        reader = _RecordedReader(run, lines, batch_documents)
        reader.start()
        if session is None:
            session = Spark.start(run.directory / "logs")
            stack.callback(session.stop)
        on_session(session)
        source = StreamSource(
            spool=run.writer.directory,
            plans=run.plans.directory,
            through=0,
            batch_documents_max=batch_documents,
        )
        query = session.stream(source, run.step, checkpoint=run.directory / "checkpoint")
        stack.callback(query.stop)
        while reader.is_reading or run.pipeline.through < run.writer.last:
            query.wait(_WAIT_S)
        ended = time.perf_counter()
        run.summary.start_s = (run.first_step or ended) - started
        run.summary.seconds = ended - (run.first_step or ended)
        reader.finish()


class _RecordedReader:
    """Fills the spool while Spark starts and runs."""

    def __init__(self, run: _ReplayRun, lines: Iterable[ReadLine], batch_documents: int) -> None:
        self._run = run
        self._lines = iter(lines)
        self._batch_documents = batch_documents
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._read, name="replay", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    @property
    def is_reading(self) -> bool:
        """Whether more may come."""
        return self._thread.is_alive()

    def finish(self) -> None:
        """Raise what the reading raised."""
        if self._failure is not None:
            raise self._failure

    def _read(self) -> None:
        try:
            # Spark's first batch takes seconds however small it is, so it is small.
            first = min(_FIRST_BATCH_DOCUMENTS, self._batch_documents)
            self._run.append(next(_groups(self._lines, first), []))
            for group in _groups(self._lines, self._batch_documents):
                self._run.append(group)
        except BaseException as failure:
            self._failure = failure


def _groups(lines: Iterable[ReadLine], size: int) -> Iterator[list[ReadLine]]:
    """Yield lines in groups of at most a size, and of `SEGMENT_BYTES_MAX` and one document."""
    return in_sub_batches(lines, _nbytes, SEGMENT_BYTES_MAX, size)


def _nbytes(read: ReadLine) -> int:
    _, line = read
    return len(line.xml) if isinstance(line, DocumentLine) else 0
