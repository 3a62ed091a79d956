"""Looks for a text in the documents of a spool, newest first, for a bounded time.

There is no index: columns of segments are gone through as a whole, which takes about a second for
a gigabyte.  What was not reached in time is gone on with from where it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.document import CLOCK, Document
from broker.documents.head import Segment
from broker.documents.places import texts_at
from broker.documents.spool import Spool
from broker.documents.stored import document_of
from broker.documents.wellformed import root_of
from joins import UNBOUNDED

__all__ = ["Found", "search"]

_SLICE = 10_000
"""Documents between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Found:
    """Documents, newest first, and the docid below which nothing was looked at; None at the end."""

    documents: list[Document]
    before: int | None


def search(
    spool: Spool,
    wanted: str = "",
    *,
    stream: str = "",
    place: str = "",
    before: int = UNBOUNDED,
    limit: int = 50,
    seconds: float = 0.2,
    now_s: Callable[[], float] = time.monotonic,
) -> Found:
    """Return the newest documents below a docid that have a text, in any case.

    With a `place` (`broker.documents.places`) the text is in an element or attribute there; an
    empty text is everywhere.  It ends after so many documents, or so many seconds.
    """
    ends_s = now_s() + seconds
    found: list[Document] = []
    for segment, first, rows in _slices(spool, before):
        mask = _mask(rows, wanted, stream)
        for at in reversed(pc.indices_nonzero(mask).to_pylist()):
            document = document_of(first + at, rows.slice(at, 1).to_pylist()[0])
            if not place or _has(document.xml, place, wanted):
                found.append(document)
            # Documents are parsed for places, which takes its time.
            if len(found) == limit or (place and now_s() > ends_s):
                return Found(found, document.docid)
        if now_s() > ends_s:
            is_end = first == segment.first_docid and segment == spool.all_segments()[0]
            return Found(found, None if is_end else first)
    return Found(found, None)


def _slices(spool: Spool, before: int) -> Iterator[tuple[Segment, int, pa.RecordBatch]]:
    """Yield parts of segments, newest first, each with the docid of its first row."""
    for segment in reversed(spool.all_segments()):
        stop = min(segment.documents, before - segment.first_docid)
        if stop <= 0:
            continue
        rows = spool.rows(segment)
        for end in range(stop, 0, -_SLICE):
            start = max(0, end - _SLICE)
            yield segment, segment.first_docid + start, rows.slice(start, end - start)


def _mask(rows: pa.RecordBatch, wanted: str, stream: str) -> pa.Array:
    streams = rows.column("stream")
    mask = pc.equal(streams, stream) if stream else pc.not_equal(streams, CLOCK)
    if wanted:
        # In bytes no letter but a to z has another case.
        texts = rows.column("xml").view(pa.string())
        has = pc.match_substring(texts, escape(wanted), ignore_case=True)
        mask = pc.and_(mask, has)
    return mask


def _has(xml: bytes, place: str, wanted: str) -> bool:
    root = root_of(xml)
    if root is None:
        return False
    folded = wanted.casefold()
    return any(folded in text.casefold() for text in texts_at(root, place))
