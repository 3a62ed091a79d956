"""The head of a segment's file: what is known of a segment without reading its documents.

    magic and format version   12 bytes
    header length, checksum    8 bytes
    header                     JSON: `Segment`, and length and checksum of the payload

Invariant: a later format version is refused, never guessed.

Spark's reader of the spool needs no more than this, so nothing of Arrow is imported here.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

__all__ = [
    "FORMAT_VERSION",
    "HEAD_BYTES_MAX",
    "SUFFIX",
    "LaterFormatError",
    "Segment",
    "SegmentError",
    "encode_header",
    "parse_header",
    "read_header",
    "segment_of",
]

FORMAT_VERSION = 1

HEAD_BYTES_MAX = 4096
"""How much of a file is read for its head."""

SUFFIX = ".segment"
"""The end of a segment's file name."""

_MAGIC = b"XSCLSEG\n"
_FIXED = struct.Struct("<8sIII")
_ALIGNMENT = 8


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
        return f"{self.first:012d}-{self.last:012d}{SUFFIX}"


def encode_header(segment: Segment, payload: memoryview) -> list[bytes]:
    """Return the bytes before the payload, in pieces."""
    fields_ = {
        **asdict(segment),
        "payload_bytes": payload.nbytes,
        "payload_checksum": zlib.crc32(payload),
    }
    header = json.dumps(fields_).encode()
    header += b" " * (-(_FIXED.size + len(header)) % _ALIGNMENT)
    return [_FIXED.pack(_MAGIC, FORMAT_VERSION, len(header), zlib.crc32(header)), header]


def read_header(path: Path) -> Segment:
    """Return the header of a segment file; raise `SegmentError` where it is damaged."""
    with path.open("rb") as file:
        header, payload_at = parse_header(path, file.read(HEAD_BYTES_MAX))
    size = path.stat().st_size
    if size != payload_at + header["payload_bytes"]:
        raise SegmentError(path, f"has {size} bytes, not those that its header names")
    return segment_of(header)


def segment_of(header: dict[str, Any]) -> Segment:
    """Return what a header says of its segment."""
    nbytes = header.get("nbytes", header["payload_bytes"])  # earlier releases did not say
    return Segment(
        **{f.name: header[f.name] for f in fields(Segment) if f.name != "nbytes"}, nbytes=nbytes
    )


def parse_header(path: Path, start: bytes) -> tuple[dict[str, Any], int]:
    """Return the header at the start of a file, and where its payload is."""
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
