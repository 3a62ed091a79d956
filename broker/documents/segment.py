"""One segment of the spool: a file of accepted documents, written once and never changed.

    magic and format version   12 bytes
    header length, checksum    8 bytes
    header                     JSON: `Segment`, and length and checksum of the payload
    payload                    an Arrow IPC stream of one record batch of `SEGMENT_SCHEMA`

Document numbers are consecutive, so row `i` holds document `first_docid + i`: the columns are their
own index, and a document is found by arithmetic on the memory-mapped file.

Invariants: a segment holds at least one document; a later format version is refused, never guessed.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from xpath_eval.witnesses import DOCUMENT_SCHEMA

__all__ = [
    "FORMAT_VERSION",
    "SEGMENT_BYTES_MAX",
    "SEGMENT_SCHEMA",
    "LaterFormatError",
    "Segment",
    "SegmentError",
    "document_batch",
    "encode_segment",
    "read_header",
    "read_rows",
]

FORMAT_VERSION = 1

SEGMENT_BYTES_MAX = 64 << 20
"""Bytes of documents that are put into one segment, unless they come together in one request: a
segment is read, evaluated and joined as a whole, and must fit into memory and Arrow's offsets."""

_MAGIC = b"XSCLSEG\n"
_FIXED = struct.Struct("<8sIII")
_ALIGNMENT = 8

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


class SegmentError(RuntimeError):
    """A segment file is torn, damaged or of a later format."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class LaterFormatError(SegmentError):
    """A segment file is whole, for all that is known, and of a later format."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What is known of a segment without reading its documents.

    `first` and `last` are segment numbers and differ only after compaction.  `registry_version`
    names the queries that its documents are evaluated with.  `watermark_us` is `W` of the document
    after the last one; `arrival_us` the latest arrival up to here; `nbytes` the bytes of its rows.
    """

    first: int
    last: int
    first_docid: int
    documents: int
    registry_version: int
    end_min_us: int
    end_max_us: int
    watermark_us: int
    arrival_us: int
    nbytes: int = 0

    @property
    def last_docid(self) -> int:
        """The number of its last document."""
        return self.first_docid + self.documents - 1

    @property
    def name(self) -> str:
        """Its file name; names sort like segment numbers."""
        return f"{self.first:012d}-{self.last:012d}.segment"


def encode_segment(segment: Segment, rows: pa.RecordBatch) -> list[bytes | memoryview]:
    """Return the bytes of a segment file, in pieces."""
    assert rows.num_rows == segment.documents > 0
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SEGMENT_SCHEMA) as writer:
        writer.write_batch(rows)
    payload = memoryview(sink.getvalue())
    fields_ = {
        **asdict(segment),
        "payload_bytes": payload.nbytes,
        "payload_checksum": zlib.crc32(payload),
    }
    header = json.dumps(fields_).encode()
    header += b" " * (-(_FIXED.size + len(header)) % _ALIGNMENT)
    fixed = _FIXED.pack(_MAGIC, FORMAT_VERSION, len(header), zlib.crc32(header))
    return [fixed, header, payload]


def read_header(path: Path) -> Segment:
    """Return the header of a segment file; raise `SegmentError` where it is damaged."""
    with path.open("rb") as file:
        header, payload_at = _parse_header(path, file.read(4096))
    size = path.stat().st_size
    if size != payload_at + header["payload_bytes"]:
        raise SegmentError(path, f"has {size} bytes, not those that its header names")
    header.setdefault("nbytes", header["payload_bytes"])  # earlier releases did not say
    return Segment(**{field.name: header[field.name] for field in fields(Segment)})


def read_rows(path: Path, *, is_verified: bool = False) -> pa.RecordBatch:
    """Return the documents of a segment file, memory-mapped.

    The checksum is computed only where `is_verified`: it reads the whole file.
    """
    mapped = pa.memory_map(str(path))
    header, payload_at = _parse_header(path, mapped.read(4096))
    mapped.seek(payload_at)
    payload = mapped.read_buffer(header["payload_bytes"])
    if payload.size != header["payload_bytes"]:
        raise SegmentError(path, "is cut short")
    if is_verified and zlib.crc32(memoryview(payload)) != header["payload_checksum"]:
        raise SegmentError(path, "does not have the checksum in its header")
    with pa.ipc.open_stream(payload) as reader:
        return reader.read_next_batch()


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
    }
    arrays = [
        columns[field.name] if field.name in columns else rows.column(field.name)
        for field in DOCUMENT_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=DOCUMENT_SCHEMA)


def _parse_header(path: Path, start: bytes) -> tuple[dict[str, Any], int]:
    if len(start) < _FIXED.size:
        raise SegmentError(path, "is cut short")
    magic, version, length, checksum = _FIXED.unpack_from(start)
    if magic != _MAGIC:
        raise SegmentError(path, "is not a segment")
    if version > FORMAT_VERSION:
        reason = f"has format {version}; this version reads up to {FORMAT_VERSION}"
        raise LaterFormatError(path, reason)
    header = start[_FIXED.size : _FIXED.size + length]
    if zlib.crc32(header) != checksum:
        raise SegmentError(path, "has a damaged header")
    return json.loads(header), _FIXED.size + length
