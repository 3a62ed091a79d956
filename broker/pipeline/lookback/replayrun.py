"""The parts of one replay: a spool that is filled with lines, the pipeline, a file of matches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from broker.documents.document import Document
from broker.documents.spool import Spool
from broker.matching.costs.budget import Pause, Spent
from broker.matching.outcomes.kept import Note
from broker.matching.stepresult import StepResult
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.joinstate import JoinEngine
from broker.pipeline.lookback.filling import PROBLEMS_MAX, REGISTRY_VERSION, Filled
from broker.pipeline.steps import Pipeline, StepSummary
from broker.tables.store import RowChange

__all__ = ["Progress", "ReplayRun", "ReplaySummary"]


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
        if len(self.problems) < PROBLEMS_MAX:
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
    """The parts of one replay, in a temporary directory.

    `through` is the newest segment of its spool that was told of.
    """

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
        self.spool = directory / "spool"
        self.spool.mkdir()
        self.pipeline = Pipeline(
            Spool(self.spool),
            MatchFile(matches, self.summary),
            lambda registry_version: make_engine(directory),
            self.plans,
            on_step=self._count,
        )
        self.first_step: float | None = None
        self.through = 0
        self._progress = progress
        self._processed = 0
        self._has_news = threading.Event()
        self.pipeline.recover(REGISTRY_VERSION)

    def step(self, witnesses: pa.Table) -> None:
        """Take a batch from Spark."""
        if self.first_step is None:
            self.first_step = time.perf_counter()
        self.pipeline.step(witnesses)
        self._has_news.set()

    def wait(self, timeout_s: float) -> None:
        """Wait until more is committed; some time at the most."""
        if self._has_news.wait(timeout_s):
            self._has_news.clear()

    def _count(self, step: StepSummary) -> None:
        self._processed += step.documents
        self._progress(self._processed, self.summary.matches)

    def take(self, filled: Filled) -> None:
        """Hear what became of a group of lines, whose segment is in the spool."""
        self.summary.documents += filled.documents
        self.summary.duplicates += filled.duplicates
        self.summary.refused += filled.refused
        for problem in filled.problems:
            self.summary.note(problem)
        self.through = filled.through
