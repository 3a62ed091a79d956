"""A batch of the pipeline: some segments of the spool, cut into even slices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from broker.documents.head import Segment
from broker.documents.listing import Listing

__all__ = ["Slice", "next_batch", "slice_segments", "tasks_of"]


class Slice(NamedTuple):
    """Rows `start` to `stop` of one segment file: the unit of work of a task."""

    path: str
    start: int
    stop: int


def next_batch(segments: Iterable[Segment], documents_max: int, bytes_max: int) -> Segment | None:
    """Return the last segment of the next batch.

    It has one segment at least, then up to `documents_max` and `bytes_max`.
    """
    last: Segment | None = None
    documents = nbytes = 0
    for segment in segments:
        documents += segment.documents
        nbytes += segment.nbytes
        if last is not None and (documents > documents_max or nbytes > bytes_max):
            break
        last = segment
    return last


def tasks_of(segments: Iterable[Segment], documents: int, nbytes: int) -> int:
    """Return how many tasks segments are worth, of about so many documents or bytes each."""
    listed = list(segments)
    by_documents = sum(segment.documents for segment in listed) / documents
    by_bytes = sum(segment.nbytes for segment in listed) / nbytes
    return max(1, round(by_documents), round(by_bytes))


def slice_segments(spool: Listing, after: int, through: int, parallelism: int) -> list[list[Slice]]:
    """Cut the rows of segments `(after, through]` into at most `parallelism` even parts."""
    segments = spool.segments(after, through)
    rows = sum(segment.documents for segment in segments)
    share = max(1, -(-rows // parallelism))
    parts: list[list[Slice]] = [[]]
    room = share
    for segment in segments:
        path = str(spool.directory / segment.name)
        start = 0
        while start < segment.documents:
            if room == 0:
                parts.append([])
                room = share
            stop = min(segment.documents, start + room)
            parts[-1].append(Slice(path, start, stop))
            room -= stop - start
            start = stop
    return [part for part in parts if part]
