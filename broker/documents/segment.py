"""One segment of the spool: a file of accepted documents, written once and never changed.

    head                       what `head` says: magic, version, and a `Segment`
    payload                    an Arrow IPC stream of one record batch of `SEGMENT_SCHEMA`

Document numbers are consecutive, so row `i` holds document `first_docid + i`: the columns are their
own index, and a document is found by arithmetic on the memory-mapped file.

Invariant: a segment holds at least one document.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.document import Document
from broker.documents.head import (
    HEAD_BYTES_MAX,
    Segment,
    SegmentError,
    encode_header,
    parse_header,
    segment_of,
)
from xpath_eval.witnesses import DOCUMENT_SCHEMA

__all__ = [
    "SEGMENT_BYTES_MAX",
    "SEGMENT_SCHEMA",
    "document_batch",
    "documents_as_rows",
    "encode_segment",
    "read_rows",
    "read_segments",
]

SEGMENT_BYTES_MAX = 64 << 20
"""Bytes of documents that are put into one segment, unless they come together in one request: a
segment is read, evaluated and joined as a whole, and must fit into memory and Arrow's offsets."""

SEGMENT_SCHEMA = pa.schema(
    [
        pa.field("stream", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("end_us", pa.int64(), nullable=False),
        pa.field("arrival_us", pa.int64(), nullable=False),
        pa.field("claimed_us", pa.int64()),
        pa.field("watermark_us", pa.int64(), nullable=False),
        pa.field("identity", pa.binary(16)),
        pa.field("content", pa.binary(16)),
        pa.field("revision", pa.int32(), nullable=False),
        pa.field("xml", pa.binary(), nullable=False),
    ]
)
"""A row per document.

`claimed_us` is set only where it was later than the arrival.  `identity` and `content` are hashes
of (stream, publisher's key) and of the XML, null without a publisher's key; `revision` counts the
earlier documents with that key.
"""


def encode_segment(segment: Segment, rows: pa.RecordBatch) -> list[bytes | memoryview]:
    """Return the bytes of a segment file, in pieces."""
    assert rows.num_rows == segment.documents > 0
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SEGMENT_SCHEMA) as writer:
        writer.write_batch(rows)
    payload = memoryview(sink.getvalue())
    return [*encode_header(segment, payload), payload]


def read_rows(path: Path, *, is_verified: bool = False) -> pa.RecordBatch:
    """Return the documents of a segment file, memory-mapped.

    The checksum is computed only where `is_verified`: it reads the whole file.
    """
    return _read(path, pa.memory_map(str(path)), is_verified=is_verified)[1]


def read_segments(path: Path, files: pa.Buffer) -> Iterator[tuple[Segment, pa.RecordBatch]]:
    """Yield what is in segment files that stand one behind the other, each with its documents.

    Their checksums are computed; `path` is for messages.
    """
    file = pa.BufferReader(files)
    while file.tell() < files.size:
        header, rows = _read(path, file, is_verified=True)
        yield segment_of(header), rows


def _read(
    path: Path, file: pa.NativeFile, *, is_verified: bool
) -> tuple[dict[str, Any], pa.RecordBatch]:
    """Return header and documents of the segment that begins here; go on behind it."""
    start = file.tell()
    header, payload_at = parse_header(path, file.read(HEAD_BYTES_MAX))
    file.seek(start + payload_at)
    payload = file.read_buffer(header["payload_bytes"])
    if payload.size != header["payload_bytes"]:
        raise SegmentError(path, "is cut short")
    if is_verified and zlib.crc32(memoryview(payload)) != header["payload_checksum"]:
        raise SegmentError(path, "does not have the checksum in its header")
    with pa.ipc.open_stream(payload) as reader:
        return header, reader.read_next_batch()


def document_batch(
    segment: Segment, rows: pa.RecordBatch, start: int = 0, stop: int | None = None
) -> pa.RecordBatch:
    """Return rows `start` to `stop` of a segment as documents, for the evaluation."""
    rows = rows.slice(start, None if stop is None else stop - start)
    count = rows.num_rows
    first = segment.first_docid + start
    columns = {
        "docid": pa.arange(first, first + count),
        "depth": pa.repeat(pa.scalar(0, pa.int32()), count),
        "match_id": pa.repeat("", count),
        "start_us": rows.column("end_us"),
        "revision": _revisions(rows),
    }
    arrays = [
        columns[field.name] if field.name in columns else rows.column(field.name)
        for field in DOCUMENT_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=DOCUMENT_SCHEMA)


def _revisions(rows: pa.RecordBatch) -> pa.Array:
    """Return how many documents each revises: none where it has no publisher's key.

    Such a document may be called `7#2`, where `7` is taken.
    """
    revisions, identities = rows.column("revision"), rows.column("identity")
    if not identities.null_count:
        return revisions
    return pc.if_else(identities.is_valid(), revisions, pa.scalar(0, pa.int32()))


_FIELDS = [(field.name, field.type) for field in DOCUMENT_SCHEMA]


def documents_as_rows(documents: Iterable[Document]) -> pa.RecordBatch:
    """Return documents for the evaluation, wherever they are from."""
    listed = list(documents)
    columns = [pa.array([getattr(one, name) for one in listed], type_) for name, type_ in _FIELDS]
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENT_SCHEMA)
