"""The parts of one replay: a spool that is filled with lines, the pipeline, a file of matches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from broker.documents.disk import Disk
from broker.documents.document import Document, DocumentError, DocumentLine
from broker.documents.ingest import Ingest, IngestOutcome
from broker.documents.recorded import ReadLine
from broker.documents.segment import SEGMENT_BYTES_MAX
from broker.documents.spool import Spool, SpoolWriter
from broker.documents.sub_batches import in_sub_batches
from broker.matching.costs.budget import Pause, Spent
from broker.matching.outcomes.kept import Note
from broker.matching.stepresult import StepResult
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.joinstate import JoinEngine
from broker.pipeline.steps import Pipeline, StepSummary
from broker.tables.store import RowChange

__all__ = ["Progress", "RecordedReader", "ReplayRun", "ReplaySummary", "groups"]

_FIRST_BATCH_DOCUMENTS = 500
_PROBLEMS_KEPT = 20
_REGISTRY_VERSION = 1


@dataclass(slots=True)
class ReplaySummary:
    """What a replay did.

    `start_s` is what Spark took until its first batch was evaluated: the JVM, the session, the
    workers, and a batch of a few documents.  `seconds` is all after that.  `undecided` are the
    tuples of operands that still wait for the clock, `waves` those of transactions over tables, one
    after the other.
    """

    documents: int = 0
    duplicates: int = 0
    refused: int = 0
    dead_letters: int = 0
    matches: int = 0
    undecided: int = 0
    waves: int = 0
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


class MatchFile:
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
        self._summary.waves += step.waves
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


class ReplayRun:
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
            MatchFile(matches, self.summary),
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


class RecordedReader:
    """Fills the spool while Spark starts and runs."""

    def __init__(self, run: ReplayRun, lines: Iterable[ReadLine], batch_documents: int) -> None:
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
            self._run.append(next(groups(self._lines, first), []))
            for group in groups(self._lines, self._batch_documents):
                self._run.append(group)
        except BaseException as failure:
            self._failure = failure


def groups(lines: Iterable[ReadLine], size: int) -> Iterator[list[ReadLine]]:
    """Yield lines in groups of at most a size, and of `SEGMENT_BYTES_MAX` and one document."""
    return in_sub_batches(lines, _nbytes, SEGMENT_BYTES_MAX, size)


def _nbytes(read: ReadLine) -> int:
    _, line = read
    return len(line.xml) if isinstance(line, DocumentLine) else 0
