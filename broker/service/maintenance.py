"""Keep the spool small: merge little segments, delete what nobody can need any more.

A segment may go when everything in it is behind all of these:

    processed    its results are committed
    windows      no document that is still to come can join one of its documents
    backfills    a registration that looks back has been over it, and none is being prepared
    repetition   a document that is sent again is recognised from the spool after a restart
    retention    what the operator wants to keep in any case, by arrival time

Segments go oldest first, so numbers have no gaps.  Merging is for the number of files: a broker
that takes a few documents a second writes a file for each of them.

Invariant: this changes which files there are, never which matches are found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from broker.documents.dedup import DEDUP_KEPT_US
from broker.documents.head import Segment
from broker.documents.ingest_thread import IngestThread
from broker.documents.spool import SpoolWriter
from broker.pipeline.lookback.backfill import first_waiting
from broker.pipeline.steps import Pipeline
from broker.registry.queries import Registry

__all__ = [
    "SEGMENT_DOCUMENTS",
    "Exclusively",
    "Maintenance",
    "RetentionNeeds",
    "at_once",
    "maintain",
    "prunable",
]

_log = logging.getLogger(__name__)

SEGMENT_DOCUMENTS = 20_000
"""What small segments are merged into: large enough that a month of them is a short list."""

_MERGES_MAX = 4
"""Merges in one go, each a quarter of a second of work."""


@dataclass(frozen=True, slots=True)
class RetentionNeeds:
    """What is still needed.

    That is every document behind segment `through`, every one with an event time from `event_us`
    on, every one that arrived at or after `arrival_us`, and those from `docid` on, where given.
    """

    through: int
    event_us: int
    arrival_us: int
    docid: int | None = None


def prunable(segments: Iterable[Segment], needs: RetentionNeeds) -> int:
    """Return the last segment of those, from the oldest on, that nobody needs; 0 if there is none.

    >>> old = Segment(1, 1, 1, 10, 1, end_min_us=0, end_max_us=5, watermark_us=5, arrival_us=7)
    >>> prunable([old], RetentionNeeds(through=1, event_us=6, arrival_us=8))
    1
    >>> prunable([old], RetentionNeeds(through=1, event_us=5, arrival_us=8))
    0
    """
    last = 0
    for segment in segments:
        is_needed = (
            segment.last > needs.through
            or segment.end_max_us >= needs.event_us
            or segment.arrival_us >= needs.arrival_us
            or (needs.docid is not None and segment.last_docid >= needs.docid)
        )
        if is_needed:
            break
        last = segment.last
    return last


Exclusively = Callable[[Callable[[int], Any]], Future[Any]]
"""Has the one writer run an action between two segments, with the newest docid."""


def at_once(action: Callable[[int], Any]) -> Future[Any]:
    """Run an action now: for who is the writer, or has none beside it."""
    future: Future[Any] = Future()
    future.set_result(action(0))
    return future


def maintain(
    spool: SpoolWriter, needs_now: Callable[[], RetentionNeeds], exclusively: Exclusively = at_once
) -> None:
    """Delete and merge segments while the writer goes on; it waits for deletions only.

    What is needed is asked where nobody can register to look back before it is deleted.  To be
    run by one thread at a time.
    """

    def prune(newest_docid: int) -> RetentionNeeds:
        needs = needs_now()
        spool.prune(prunable(spool.all_segments(), needs))
        return needs

    through = exclusively(prune).result().through
    for _ in range(_MERGES_MAX):
        group = spool.mergeable(through=through, documents_max=SEGMENT_DOCUMENTS)
        if not group:
            break
        exclusively(_adoption(spool, spool.merge(group))).result()


def _adoption(spool: SpoolWriter, merged: Segment) -> Callable[[int], None]:
    return lambda newest_docid: spool.adopt(merged)


class Maintenance:
    """The maintenance of a running broker: of its spool, and of the plans of what is in it."""

    def __init__(
        self, spool: SpoolWriter, pipeline: Pipeline, registry: Registry, ingest: IngestThread
    ) -> None:
        self._spool = spool
        self._pipeline = pipeline
        self._registry = registry
        self._ingest = ingest

    def once(self) -> None:
        """Tidy up what there is now; raises `Busy` where ingest is."""
        if self._spool.newest is None:
            return
        try:
            maintain(self._spool, self._needs, self._ingest.exclusively)
            self._ingest.exclusively(lambda newest_docid: self._pipeline.forget_plans()).result()
        except OSError as error:
            _log.warning("the spool was not tidied up: %s", error)

    def _needs(self) -> RetentionNeeds:
        newest, is_beside = self._spool.newest, self._pipeline.state.is_beside
        assert newest is not None
        return RetentionNeeds(
            through=self._pipeline.through,
            event_us=self._pipeline.horizon_us(),
            arrival_us=newest.arrival_us - DEDUP_KEPT_US,
            docid=0 if is_beside else first_waiting(self._registry.backfills()),
        )
