"""Registration that looks back (`SINCE`): matches among documents accepted before it.

The pipeline finds every match whose newest document comes after a registration.  What a query
that was registered to see earlier documents has to find besides lies wholly among documents of
the spool.  An engine of that query alone goes over them here and commits what it finds.

A registration that looks back leaves a `Backfill` in the registry, in its own transaction; that is
taken away once everything is committed.  A crash in between repeats the work: match ids are the
same, and the outbox keeps each once.  What is found is numbered behind what is there already.

It waits until the pipeline has joined the documents that it goes over: what they publish is read in
the outbox, and who published it may be gone by then.

Invariant: what is found depends on what was asked for, never on when there is time for it.  So the
query is the one that was stated then, though it has been paused, restated or removed since; and
statements look back in their order, so that what one publishes is there for the next.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.document import parse_time
from broker.documents.segment import document_batch
from broker.documents.spool import Spool
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget
from broker.matching.engine import Engine
from broker.matching.match import FoundMatch, parameters_key
from broker.matching.queries.registration import RegisteredQuery
from broker.matching.stepresult import StepResult
from broker.pipeline.limits import DEFAULT_PIPELINE_LIMITS, PipelineLimits
from broker.pipeline.outbox import Outbox
from broker.registry.queries import Backfill, Registry
from broker.registry.registered import fits, queries_of, statement
from xpath_eval.stage import evaluate_batches
from xpath_eval.witnesses import WITNESS_SCHEMA
from xscl import XsclError
from xscl.query import Query, SelectKind

__all__ = [
    "LookBackError",
    "backfill",
    "check_unread",
    "first_waiting",
    "look_back",
    "retained_documents",
    "upstream",
]

_log = logging.getLogger(__name__)


class LookBackError(ValueError):
    """A registration cannot look back as it was asked to; the message says why."""


def look_back(spool: Spool, since: str) -> int:
    """Return the registration point that `since` asks for: a docid, an arrival time, or `all`.

    The point is never before the oldest document that the spool retains.  Raises `LookBackError`.
    """
    spool.refresh()
    segments = spool.all_segments()
    retained = segments[0].first_docid - 1 if segments else 0
    if since == "all":
        return retained
    if re.fullmatch(r"[0-9]{1,18}", since):
        return min(max(int(since), retained), spool.last_docid)
    try:
        arrival_us = parse_time(since)
    except ValueError as error:
        message = f"{since!r} is no document number, no arrival time, and not 'all'"
        raise LookBackError(message) from error
    return _last_before(spool, arrival_us, retained)


def _last_before(spool: Spool, arrival_us: int, point: int) -> int:
    """Return the last document that arrived before a time."""
    for segment in spool.all_segments():
        if segment.arrival_us >= arrival_us:
            arrivals = spool.rows(segment).column("arrival_us")
            return point + int(pc.sum(pc.less(arrivals, arrival_us)).as_py() or 0)
        point = segment.last_docid
    return point


def check_unread(registry: Registry, query: Query) -> None:
    """Raise `LookBackError` if a query is to look back and cannot.

    Those who read what it publishes would have to find again what they join with documents that
    come this late; and rows of tables are as they are now.
    """
    if query.tables:
        raise LookBackError("a query that uses tables cannot look back: rows have no past")
    if query.limit is not None or query.kind is SelectKind.DISJOINT:
        raise LookBackError(
            "a query with LIMIT or DISJOINT cannot look back: what it gives depends on what it gave"
        )
    if query.learns:
        raise LookBackError(
            "a query with DELAY learned cannot look back: how sure it is depends on what it learned"
        )
    if query.publish is None:
        return
    for other in queries_of(registry, registry.revision()):
        if other.query.id != query.id and query.publish in _streams(other):
            raise LookBackError(
                f"{other.query.id!r} reads {query.publish!r} already, and would miss what is "
                f"published late: do without looking back; or remove {other.query.id!r}, "
                f"look back with {query.id!r}, and then register {other.query.id!r} again, "
                f"looking back as well"
            )


def first_waiting(waiting: Sequence[Backfill]) -> int | None:
    """Return the oldest document that backfills still need, None if there is no backfill."""
    return min((each.point + 1 for each in waiting), default=None)


def backfill(
    registry: Registry,
    outbox: Outbox,
    spool: Spool,
    *,
    lateness_us: int,
    budget: Budget = DEFAULT_BUDGET,
    is_stopping: Callable[[], bool] = lambda: False,
) -> int:
    """Do the backfills of documents that are joined; return how many matches they found.

    One statement of a query comes after another.  Ends early once `is_stopping`; what is not
    finished then waits on.  A query that goes over the budget is paused, from the first document on
    that it did not look back at.
    """
    found = 0
    while waiting := _ready(registry, outbox, spool):
        those = [each for each in waiting if each.revision == waiting[0].revision]
        asked = _asked(registry, those)
        for step in _steps(asked, outbox, spool, those, lateness_us, budget):
            if is_stopping():
                return found
            matches = [match for match in step.matches if _is_asked(match, those)]
            ids = {match.id for match in matches}
            documents = [d for d in step.published if d.match_id in ids]
            next_docid = max(each.through for each in those) + 1
            pauses = [
                replace(pause, docid=next_docid, reason=f"looking back, {pause.reason}")
                for pause in step.pauses
            ]
            outbox.add(StepResult(matches, documents, pauses=pauses))
            found += len(matches)
        registry.finish_backfills(those)
    return found


def _is_asked(match: FoundMatch, waiting: Sequence[Backfill]) -> bool:
    """Return whether a match is among documents that its own assignment is to look back at."""
    return any(
        each.parameters == match.parameters
        and each.point < match.oldest
        and match.position <= each.through
        for each in waiting
    )


def _ready(registry: Registry, outbox: Outbox, spool: Spool) -> list[Backfill]:
    """Return the backfills that wait for nothing but their turn."""
    waiting = registry.backfills()
    if not waiting:
        return []
    through = outbox.through()
    spool.refresh()
    unjoined = next(iter(spool.segments(through)), None)
    if unjoined is None:
        return waiting
    return [each for each in waiting if each.through < unjoined.first_docid]


def _asked(registry: Registry, waiting: Sequence[Backfill]) -> RegisteredQuery | None:
    """Return the query that looks back, with the assignments that do; None if nobody does.

    One that this release cannot read is paused since the start, and gives its look-back up.
    """
    query_id = waiting[0].query
    try:
        stated = statement(registry, query_id, waiting[0].revision)
    except XsclError as error:
        reason = error.diagnostics[0].message
        _log.warning("query %s does not look back: %s", query_id, reason)
        return None
    if not stated.query.parameters:
        points = [each.point for each in waiting if each.parameters == parameters_key({})]
        return replace(stated, registration_point=min(points)) if points else None
    points_of: dict[str, int] = {}
    for each in waiting:
        if fits(stated.query, json.loads(each.parameters)):
            points_of[each.parameters] = min(each.point, points_of.get(each.parameters, each.point))
    if not points_of:
        return None  # nobody subscribes yet
    return replace(
        stated,
        registration_point=min(points_of.values()),
        assignments=tuple(map(json.loads, points_of)),
        assignment_points=tuple(points_of.values()),
    )


def _steps(
    asked: RegisteredQuery | None,
    outbox: Outbox,
    spool: Spool,
    waiting: Sequence[Backfill],
    lateness_us: int,
    budget: Budget,
) -> Iterator[StepResult]:
    """Yield what one query finds in retained documents, in order."""
    if asked is None:
        return
    alone = Engine([asked], lateness_us=lateness_us, budget=budget)
    spool.refresh()
    through = max(each.through for each in waiting)
    for batch in retained_documents(spool, asked.registration_point + 1, through):
        witnesses = pa.Table.from_batches(evaluate_batches(alone.plan, [batch]), WITNESS_SCHEMA)
        docids = witnesses.column("docid")
        published = outbox.published(after=docids[0].as_py() - 1, through=docids[-1].as_py())
        yield alone.process(witnesses, spool.documents, published)


def upstream(query: RegisteredQuery, others: Sequence[RegisteredQuery]) -> list[RegisteredQuery]:
    """Return the queries whose published streams a query reads, directly or through others."""
    publishers = {other.query.publish: other for other in others if other.query.publish}
    found: dict[str, RegisteredQuery] = {}
    behind = [query]
    while behind:
        for stream in _streams(behind.pop()) & publishers.keys():
            if stream not in found:
                found[stream] = publishers[stream]
                behind.append(publishers[stream])
    return list(found.values())


def _streams(registered: RegisteredQuery) -> set[str]:
    return {block.stream for block in registered.query.blocks}


def retained_documents(
    spool: Spool, docid: int, through: int, limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS
) -> Iterator[pa.RecordBatch]:
    """Yield the retained documents from one docid through another, some at a time."""
    segments = spool.all_segments()
    docid = max(docid, segments[0].first_docid) if segments else through + 1
    while docid <= through:
        segment = spool.segment_of(docid)
        if segment is None:
            spool.refresh()
            # Those behind all windows may have been deleted meanwhile.
            docid = max(docid, spool.all_segments()[0].first_docid)
            segment = spool.segment_of(docid)
            assert segment is not None, f"document {docid} is not in the spool"
        start = docid - segment.first_docid
        stop = min(segment.documents, through + 1 - segment.first_docid)
        stop = min(stop, start + limits.looked_back_documents)
        try:
            rows = spool.rows(segment)
        except FileNotFoundError:  # a compaction has replaced it
            spool.refresh()
            continue
        lengths = pc.binary_length(rows.column("xml").slice(start, stop - start)).to_numpy()
        fitting = int(np.searchsorted(np.cumsum(lengths), limits.looked_back_bytes))
        count = min(stop - start, 1 + fitting)
        yield document_batch(segment, rows, start, start + count)
        docid += count
