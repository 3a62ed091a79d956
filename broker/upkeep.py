"""Keep the spool small: merge little segments, delete what nobody can need any more.

A segment may go when everything in it is behind all of these:

    processed    its results are committed
    windows      no document that is still to come can join one of its documents
    backfills    a registration that looks back has been over it
    repetition   a document that is sent again is recognised from the spool after a restart
    retention    what the operator wants to keep in any case, by arrival time

Segments go oldest first, so numbers have no gaps.  Merging is for the number of files: a broker
that takes a few documents a second writes a file for each of them.

Invariant: this changes which files there are, never which matches are found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from broker.segment import Segment
from broker.spool import SpoolWriter

__all__ = ["SEGMENT_DOCUMENTS", "Needs", "maintain", "prunable"]

SEGMENT_DOCUMENTS = 20_000
"""What small segments are merged into: large enough that a month of them is a short list."""

_MERGES_MAX = 4
"""Merges in one go: ingest waits meanwhile, some 50 ms for each."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What is still needed.

    That is every document behind segment `through`, every one with an event time from `event_us`
    on, every one that arrived at or after `arrival_us`, and those from `docid` on, where given.
    """

    through: int
    event_us: int
    arrival_us: int
    docid: int | None = None


def prunable(segments: Iterable[Segment], needs: Needs) -> int:
    """Return the last segment of those, from the oldest on, that nobody needs; 0 if there is none.

    >>> old = Segment(1, 1, 1, 10, 1, end_min_us=0, end_max_us=5, watermark_us=5, arrival_us=7)
    >>> prunable([old], Needs(through=1, event_us=6, arrival_us=8))
    1
    >>> prunable([old], Needs(through=1, event_us=5, arrival_us=8))
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


def maintain(spool: SpoolWriter, needs: Needs) -> tuple[int, int]:
    """Delete and merge segments; return how many files were deleted, and how many merged.

    To be run by the one writer, between two segments.
    """
    pruned = spool.prune(prunable(spool.all_segments(), needs))
    merged = 0
    for _ in range(_MERGES_MAX):
        merged += spool.compact(through=needs.through, documents_max=SEGMENT_DOCUMENTS)
    return pruned, merged
