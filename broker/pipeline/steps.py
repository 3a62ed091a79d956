"""From the spool to the outbox: witnesses in, matches committed.

One step takes the witnesses of a batch of segments, whoever evaluated them:

    select     rows of segments that are committed already are dropped; none left: return
    process    the engine joins the rest with its state -> matches, published documents
    commit     results and progress in one transaction of the outbox

The state of the engine is that of the last commit whenever a step begins (`joinstate`).

Invariants: a segment's results are committed exactly once, whatever Spark repeats and in whatever
batches; a step either commits or leaves no trace outside this process; documents reach the engine
in docid order without gaps.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.disk import Reached, nothing
from broker.documents.document import CLOCK
from broker.documents.head import Segment
from broker.documents.spool import Spool
from broker.matching.queries.queryset import InForce
from broker.matching.stepresult import StepResult
from broker.pipeline.evaluation import PlanOf, PlanStore, are_evaluated, evaluated, in_sub_batches
from broker.pipeline.joinstate import EngineState, JoinEngine, watermark_us
from broker.pipeline.limits import DEFAULT_PIPELINE_LIMITS, PipelineLimits
from broker.pipeline.results import Results
from broker.pipeline.slices import next_batch, slice_segments
from broker.pipeline.snapshot import Snapshot
from joins.files.witnessfile import compacted
from xpath_eval.witnesses import WITNESS_SCHEMA

__all__ = ["Pipeline", "PipelineError", "StepSummary"]

_log = logging.getLogger(__name__)

_LOGGED_MAX = 10
"""Dead letters of one step that are logged one by one."""


class PipelineError(RuntimeError):
    """The pipeline's own rules are broken: documents are missing, or another process commits."""


@dataclass(frozen=True, slots=True)
class StepSummary:
    """What one step committed, and how long its parts took; `ticks` are counted in `documents`."""

    through: int
    documents: int
    matches: int
    dead_letters: int
    pauses: int
    process_s: float
    commit_s: float
    segments: tuple[Segment, ...] = ()
    matches_by_query: Mapping[str, int] = field(default_factory=dict)
    ticks: int = 0


class Pipeline:
    """The steps of one broker.

    `engines` makes the engine of a registry version, without state.  `plan_of` gives the plan of a
    version where that is cheaper than its engine; `follow` brings the running engine to a version,
    or says that it cannot.
    """

    def __init__(
        self,
        spool: Spool,
        outbox: Results,
        engines: Callable[[int], JoinEngine],
        plans: PlanStore,
        *,
        reached: Reached = nothing,
        on_step: Callable[[StepSummary], None] = lambda summary: None,
        plan_of: PlanOf | None = None,
        follow: Callable[[Any, int], bool] = lambda engine, registry_version: False,
        snapshot: Snapshot | None = None,
        limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS,
    ) -> None:
        self._spool = spool
        self._outbox = outbox
        self._plans = plans
        self._reached = reached
        self._on_step = on_step
        self._plan_of = plan_of or (lambda version: engines(version).plan)
        self._snapshot = snapshot
        self._limits = limits
        self._through = outbox.through()
        self._state = EngineState(spool, outbox, engines, follow, snapshot, self._done, limits)

    @property
    def through(self) -> int:
        """The last segment whose results are committed."""
        return self._through

    @property
    def state(self) -> EngineState:
        """The engine in use, and the one that is made beside it for a change that looks back."""
        return self._state

    def prepare(self, registry_version: int) -> None:
        """Write the plan of a registry version, before any segment may name it.

        Safe in the thread that changes the registry while another one steps.
        """
        self._plans.put(registry_version, self._plan_of(registry_version))

    def forget_plans(self) -> None:
        """Delete the plans that nothing will be evaluated with; where `prepare` is called."""
        if done := self._done():
            self._plans.forget_before(done[-1].registry_version)

    def recover(self, registry_version: int) -> None:
        """Make the state as it was at the last commit, and the plans of what is not committed."""
        self._plans.clear()
        waiting = self._spool.segments(self._through)
        versions = {segment.registry_version for segment in waiting} | {registry_version}
        for version in sorted(versions):
            self.prepare(version)
        if self._snapshot is not None:
            done = self._done()
            self._snapshot.open(done[-1].last_docid if done else 0)
        version = waiting[0].registry_version if waiting else registry_version
        self._state.put_back(version, self._state.take(version))

    def step(self, witnesses: pa.Table) -> list[StepSummary]:
        """Process and commit the witnesses of a batch of segments; one commit per registry version.

        `witnesses` are in docid order and hold whole segments.
        """
        if witnesses.num_rows == 0:
            return []
        self._spool.refresh()
        last_docid = int(witnesses.column("docid")[-1].as_py())
        last = self._spool.segment_of(last_docid)
        if last is None or last.last <= self._through:
            return []
        segments = self._spool.segments(self._through, last.last)
        return [self._commit_group(group, witnesses) for group in _by_version(segments)]

    def drain(self, *, batch_documents_max: int = 10_000) -> Iterator[StepSummary]:
        """Evaluate and process what the spool holds, in this process, batch by batch."""
        while True:
            self._spool.refresh()
            waiting = self._spool.segments(self._through)
            batch = next_batch(waiting, batch_documents_max, self._limits.batch_bytes)
            if batch is None:
                return
            yield from self.step(self._evaluate(self._through, batch.last))

    @property
    def join_figures(self) -> Mapping[str, int]:
        """How much the join remembers as of the last commit: see `Processor.figures`."""
        return self._state.figures

    def in_force(self, wait_s: float = 1.0) -> tuple[int, InForce] | None:
        """Return a registry version and what is evaluated of it; None where a step goes on.

        Safe in another thread.
        """
        return self._state.in_force(wait_s)

    def horizon_us(self) -> int:
        """Return the oldest event time that documents still to be processed can need."""
        return self._state.horizon_us()

    def _commit_group(self, group: list[Segment], witnesses: pa.Table) -> StepSummary:
        rows = _rows_of(witnesses, group[0].first_docid, group[-1].last_docid)
        version = group[0].registry_version
        # If the commit fails, the engine remembers documents that are not committed: it is gone.
        engine = self._state.take(version)
        self._reached("evaluated")
        started = time.perf_counter()
        step = self._process(engine, rows)
        processed = time.perf_counter()
        self._reached("processed")
        self._commit(group[-1].last, step)
        self._state.put_back(version, engine)
        self._reached("committed")
        # What was joined in parts is gone by now: a restart evaluates it once more.
        if self._snapshot is not None and are_evaluated(rows).all():
            self._snapshot.add(
                self._plans.get(version),
                rows,
                horizon_us=engine.horizon_us(watermark_us(group)),
                needed_from=partial(engine.needed_from, watermark_us(group)),
            )
        summary = StepSummary(
            through=group[-1].last,
            documents=rows.num_rows,
            matches=len(step.matches),
            dead_letters=len(step.dead_letters),
            pauses=len(step.pauses),
            process_s=processed - started,
            commit_s=time.perf_counter() - processed,
            segments=tuple(group),
            matches_by_query=Counter(match.query for match in step.matches),
            ticks=pc.sum(pc.equal(rows.column("stream"), CLOCK)).as_py(),
        )
        _log_dead_letters(step.dead_letters)
        self._on_step(summary)
        return summary

    def _process(self, engine: JoinEngine, rows: pa.Table) -> StepResult:
        """Have a batch joined, in parts where its witnesses were too many to be passed here."""
        parts = in_sub_batches(self._spool, self._plans.get, rows, self._limits)
        return StepResult.of_parts([engine.process(part, self._spool.documents) for part in parts])

    def _commit(self, through: int, step: StepResult) -> None:
        if not self._outbox.commit(after=self._through, through=through, step=step):
            raise PipelineError(f"another process has committed segment {self._through + 1}")
        self._through = through

    def _done(self) -> list[Segment]:
        return [s for s in self._spool.all_segments() if s.last <= self._through]

    def _evaluate(self, after: int, through: int) -> pa.Table:
        [slices] = slice_segments(self._spool, after, through, parallelism=1)
        batches = evaluated(self._plans.get, slices, limits=self._limits)
        return pa.Table.from_batches(batches, WITNESS_SCHEMA)


def _log_dead_letters(dead_letters: Sequence[tuple[int, str]]) -> None:
    for docid, reason in dead_letters[:_LOGGED_MAX]:
        fields = {"stage": "evaluation", "docid": docid}
        _log.warning("a document is a dead letter: %s", reason, extra=fields)
    if len(dead_letters) > _LOGGED_MAX:
        _log.warning("%d more documents are dead letters", len(dead_letters) - _LOGGED_MAX)


def _rows_of(witnesses: pa.Table, first_docid: int, last_docid: int) -> pa.Table:
    docids = witnesses.column("docid").to_numpy()
    kept = (docids >= first_docid) & (docids <= last_docid)
    # Rows that are committed may have spelled out shapes that the others have.
    rows = witnesses if kept.all() else compacted(witnesses, kept)
    if rows.num_rows != last_docid - first_docid + 1:
        raise PipelineError(
            f"{rows.num_rows} of the documents {first_docid} to {last_docid} have been evaluated"
        )
    return rows


def _by_version(segments: list[Segment]) -> list[list[Segment]]:
    """Group neighbours of one registry version."""
    return [list(group) for _, group in groupby(segments, key=attrgetter("registry_version"))]
