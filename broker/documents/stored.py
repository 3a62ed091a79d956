"""Documents of the spool as values, for questions about single ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from broker.documents.document import CLOCK, Document
from broker.documents.head import Segment
from broker.documents.spool import Spool

__all__ = [
    "document_of",
    "documents_between",
    "documents_of",
    "newest_documents",
    "stored_document",
    "stream_at",
]


def documents_of(spool: Spool, segment: Segment, *, after: int = 0) -> Iterator[Document]:
    """Yield the documents of a segment with numbers above `after`."""
    start = max(0, after + 1 - segment.first_docid)
    rows = spool.rows(segment).slice(start).to_pylist()
    for docid, row in enumerate(rows, segment.first_docid + start):
        yield document_of(docid, row)


def stored_document(spool: Spool, docid: int) -> Document | None:
    """Return one document, None where it was never accepted or is kept no more."""
    segment = spool.segment_of(docid)
    if segment is None:
        return None
    found = next(documents_of(spool, segment, after=docid - 1), None)
    return found if found is not None and found.docid == docid else None


def documents_between(spool: Spool, first: int, last: int) -> list[Document]:
    """Return the documents with numbers from `first` to `last` that are kept."""
    return [
        document
        for segment in spool.all_segments()
        if segment.first_docid <= last and segment.first_docid + segment.documents > first
        for document in documents_of(spool, segment, after=first - 1)
        if document.docid <= last
    ]


def newest_documents(spool: Spool, limit: int) -> list[Document]:
    """Return the newest documents in the order of their arrival, at most `limit`; no ticks."""
    waiting, chosen = limit, list[list[Document]]()
    for segment in reversed(spool.all_segments()):
        if waiting <= 0:
            break
        found = [each for each in documents_of(spool, segment) if each.stream != CLOCK]
        chosen.append(found)
        waiting -= len(found)
    newest = [document for found in reversed(chosen) for document in found]
    return newest[-limit:]


def stream_at(spool: Spool, end_us: int) -> str | None:
    """Return the stream of the first document with an event time, None where none is kept."""
    for segment in spool.all_segments():
        if segment.end_min_us <= end_us <= segment.end_max_us:
            rows = spool.rows(segment)
            at = pc.index(rows.column("end_us"), end_us).as_py()
            if at >= 0:
                return str(rows.column("stream")[at])
    return None


def document_of(docid: int, row: Mapping[str, Any]) -> Document:
    """Return the document that a row of `SEGMENT_SCHEMA` is."""
    return Document(
        docid=docid,
        stream=row["stream"],
        key=row["key"],
        start_us=row["end_us"],
        end_us=row["end_us"],
        arrival_us=row["arrival_us"],
        watermark_us=row["watermark_us"],
        xml=row["xml"],
        claimed_us=row["claimed_us"],
        revision=0 if row["identity"] is None else row["revision"],
    )
