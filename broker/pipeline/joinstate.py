"""The join of the running broker, with its state as of the last commit.

The state is in memory.  It is made again from the spool, or from the snapshot where that has the
witnesses: an engine without state is rolled forward to the commit, emitting nothing.  That happens
when a process starts, and where an engine cannot follow the registry to another version.

For a change that looks back another engine can be made beside the one in use (`beside`), which
takes its place at the change's version.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.documents.head import Segment
from broker.documents.spool import Spool
from broker.matching.costs.budget import Spent
from broker.matching.outcomes.kept import Note
from broker.matching.queries.collecting import take_back
from broker.matching.queries.queryset import InForce, QuerySet
from broker.matching.queries.registration import SetChange
from broker.matching.stepresult import StepResult
from broker.pipeline.beside import Due, EngineBeside
from broker.pipeline.evaluation import evaluate_documents
from broker.pipeline.limits import PipelineLimits
from broker.pipeline.results import Results
from broker.pipeline.snapshot import Snapshot
from broker.tables.store import RowChange
from xpath_eval.catalog import EvaluationPlan
from xpath_eval.prefilters import Missing

__all__ = ["EngineState", "JoinEngine", "watermark_us"]

Documents = Callable[[Iterable[int]], Mapping[int, bytes]]


class JoinEngine(Protocol):
    """What the pipeline asks of an engine; `broker.matching.engine.Engine` is one."""

    @property
    def plan(self) -> EvaluationPlan:
        """What the evaluation has to look for."""

    @property
    def queries(self) -> QuerySet:
        """The queries in force."""

    def lacks(self, change: SetChange) -> bool:
        """Return whether state is missing for a change of the queries."""

    def follow(self, change: SetChange) -> bool:
        """Change the queries; return False, and change nothing, if state is missing for that."""

    def process(self, witnesses: pa.Table, documents: Documents) -> StepResult:
        """Join a batch with the state and remember it."""

    def absorb(
        self, witnesses: pa.Table, documents: Documents, published: Iterable[Document] = ()
    ) -> None:
        """Remember a batch whose matches are known, and what they published."""

    def warm_up(self) -> None:
        """Have what was absorbed where the next batch needs it."""

    def resume(
        self, spent: Iterable[Spent], rows: Iterable[RowChange], notes: Iterable[Note]
    ) -> None:
        """Hear what queries have spent and given, and the rows of tables, before a batch."""

    def horizon_us(self, watermark_us: int) -> int:
        """Return the oldest event time that is still needed when `W` is `watermark_us`."""

    def needed_from(self, watermark_us: int, docid: int) -> Mapping[str, int]:
        """Return the same by stream, for documents up to a docid; see `compaction.Needed`."""

    def figures(self) -> dict[str, int]:
        """Return how much is remembered; see `joins.Processor.figures`."""

    def first_point(self, missing: Missing) -> int | None:
        """Return the lowest registration point of the queries that need any of what is missing."""


@dataclass(frozen=True, slots=True)
class _Current:
    registry_version: int
    engine: JoinEngine


class EngineState:
    """The engine in use, and the registry version that it is for.

    `engines` makes the engine of a version, without state; `follow` brings one to a version, or
    says that it cannot.  `done` are the segments that are committed.
    """

    def __init__(
        self,
        spool: Spool,
        results: Results,
        engines: Callable[[int], JoinEngine],
        follow: Callable[[Any, int], bool],
        snapshot: Snapshot | None,
        done: Callable[[], list[Segment]],
        limits: PipelineLimits,
    ) -> None:
        self._spool = spool
        self._results = results
        self._engines = engines
        self._follow = follow
        self._snapshot = snapshot
        self._done = done
        self._limits = limits
        self._current: _Current | None = None
        # Held where the engine is taken and put back, and while another thread reads of it.
        self._is_here = threading.Condition()
        self._figures: Mapping[str, int] = {}
        self._horizon_us = FIRST_WATERMARK_US
        self._beside: EngineBeside[JoinEngine] | None = None
        self._absorbing = threading.Lock()
        """Held by who has to do with the engine beside."""

    @property
    def figures(self) -> Mapping[str, int]:
        """How much the join remembers as of the last commit: see `Processor.figures`."""
        return self._figures

    def horizon_us(self) -> int:
        """Return the oldest event time that documents still to be processed can need.

        While the engine is taken, as in a full stream nearly always, it is the time before that.
        """
        current = self._current
        if current is None:
            return self._horizon_us
        return current.engine.horizon_us(watermark_us(self._done()))

    def take(self, registry_version: int) -> JoinEngine:
        """Return the engine of a registry version, with the state at the commit.

        From here on it may be ahead of the commit: it is this state's again with `put_back`.
        """
        with self._is_here:
            if self._current is not None:
                self._horizon_us = self.horizon_us()
            current, self._current = self._current, None
        if current is not None and self._is_brought_to(registry_version, current):
            return current.engine
        if (beside := self._taken_beside(registry_version)) is not None:
            return beside
        # The memory of the one before is free before another is made.
        del current
        take_back()
        engine = self._engines(registry_version)
        self._roll_forward(engine)
        return engine

    def put_back(self, registry_version: int, engine: JoinEngine) -> None:
        """Take an engine whose state is that of the commit."""
        with self._is_here:
            self._current = _Current(registry_version, engine)
            self._figures = engine.figures()
            self._is_here.notify_all()

    def in_force(self, wait_s: float) -> tuple[int, InForce] | None:
        """Return a registry version and what is evaluated of it; None while the engine is taken.

        For another thread: a step that is to begin waits meanwhile, some milliseconds.
        """
        with self._is_here:
            if not self._is_here.wait_for(lambda: self._current is not None, wait_s):
                return None
            assert self._current is not None
            return self._current.registry_version, self._current.engine.queries.in_force()

    def _is_brought_to(self, registry_version: int, current: _Current) -> bool:
        """Return whether an engine is that of a registry version, or could follow to it."""
        is_same = current.registry_version == registry_version
        return is_same or self._follow(current.engine, registry_version)

    def _roll_forward(self, engine: JoinEngine) -> None:
        done = self._done()
        if done:
            for _ in self._absorb(engine, None, done[-1].last_docid, done, self._spool):
                pass
        self._resume(engine)

    def _resume(self, engine: JoinEngine) -> None:
        """Tell an engine whose state is that of the commit what else is committed."""
        engine.resume(self._results.spent(), self._results.rows(), self._results.notes())

    def _absorb(
        self, engine: JoinEngine, first: int | None, last: int, done: list[Segment], spool: Spool
    ) -> Iterator[int]:
        """Absorb documents; see `beside.Absorbing`."""
        tables = (
            self._all_needed(engine, last, done, spool)
            if first is None
            else self._evaluate(engine, spool, first, last)
        )
        for witnesses in tables:
            engine.absorb(witnesses, spool.documents, self._published(witnesses))
            yield witnesses.column("docid")[-1].as_py()

    def _published(self, witnesses: pa.Table) -> list[Document]:
        """Return what has been published at the documents of a table.

        Who published it may be paused, stated anew or gone by now.
        """
        first, last = (witnesses.column("docid")[i].as_py() for i in (0, -1))
        return self._results.published(after=first - 1, through=last)

    def _all_needed(
        self, engine: JoinEngine, last: int, done: list[Segment], spool: Spool
    ) -> Iterator[pa.Table]:
        """Yield the witnesses of all documents that are needed, some at a time."""
        watermark = watermark_us(done)
        horizon_us = engine.horizon_us(watermark)
        needed = next((s for s in done if s.end_max_us >= horizon_us), None)
        if needed is None:
            return iter(())
        evaluate = partial(self._evaluate, engine, spool)
        if self._snapshot is None:
            return evaluate(needed.first_docid, last)
        needed_from = partial(engine.needed_from, watermark)
        return self._snapshot.witnesses(
            engine,
            needed.first_docid,
            last,
            evaluate,
            needed_from,
            keeps=spool is self._spool,  # beside the running engine its batches write
        )

    def _evaluate(
        self, engine: JoinEngine, spool: Spool, first: int, last: int
    ) -> Iterator[pa.Table]:
        limits = self._limits
        if spool is not self._spool:  # the step waits for what is absorbed beside
            limits = replace(limits, sub_batch_bytes=limits.beside_bytes)
        return evaluate_documents(spool, lambda version: engine.plan, first, last, limits)

    # -- beside ----------------------------------------------------------------------------------

    def begin_beside(self, change: SetChange, wait_s: float) -> bool | None:
        """Make an engine that has a change, for `go_on_beside`; False where there is no need.

        None where the engine in use is not here for so long.  For another thread, one at a time.
        """
        with self._is_here:
            if not self._is_here.wait_for(lambda: self._current is not None, wait_s):
                return None
            current, done = self._current, self._done()
            assert current is not None
            if not done or not current.engine.lacks(change):
                return False
        engine = self._engines(current.registry_version)
        if not engine.follow(change):
            raise AssertionError("an engine that has absorbed nothing lacks nothing")
        self._beside = EngineBeside(
            engine,
            current.registry_version,
            done[-1].last_docid,
            spool=Spool(self._spool.directory),
            through=self._results.through,
            absorb=self._absorb,
            follow=self._follow,
        )
        return True

    def go_on_beside(self) -> int | None:
        """Have the engine beside absorb some documents; return how many are missing still.

        None where it has been taken or dropped, or is of no use.  In an idle stream it takes its
        place here.
        """
        with self._absorbing:
            beside = self._beside
            if beside is None or beside.is_lost:
                self._beside = None
                return None
            if beside.is_wanted:
                return 0
            missing = beside.go_on()
            return missing if missing or not self._is_exchanged(beside) else None

    def warm_up_beside(self) -> None:
        """Have what the engine beside has absorbed where its first batch needs it."""
        with self._absorbing:
            if self._beside is not None and not self._beside.is_wanted:
                self._beside.engine.warm_up()

    def _is_exchanged(self, beside: EngineBeside[JoinEngine]) -> bool:
        """Put the engine beside in the other one's place, if no step has to come before."""
        with self._is_here:
            due, done, current = beside.due, self._done(), self._current
            if due is None or current is None or not done or done[-1].last_docid < due.docid:
                return False
            self._beside = None
            if beside.bring_to(due.version):
                self._resume(beside.engine)
                self._current = _Current(due.version, beside.engine)
            return True

    def registered_beside(self, due: Due | None) -> None:
        """Hear that the change is registered, or, without `due`, that it will not be."""
        beside = self._beside
        if beside is not None and due is not None:
            beside.due = due
        else:
            self._beside = None

    @property
    def is_beside(self) -> bool:
        """Whether an engine is being made beside, which needs the documents that there are."""
        return self._beside is not None

    def _taken_beside(self, registry_version: int) -> JoinEngine | None:
        """Return the engine beside where it is for this version, with the state at the commit."""
        beside = self._beside
        if beside is None or beside.due is None or registry_version < beside.due.version:
            return None
        beside.is_wanted = True
        with self._absorbing:
            if self._beside is not beside:
                return None
            self._beside = None
            if not beside.bring_to(registry_version):
                return None
            self._resume(beside.engine)
            return beside.engine


def watermark_us(segments: list[Segment]) -> int:
    """Return `W` behind some segments."""
    return segments[-1].watermark_us if segments else FIRST_WATERMARK_US
