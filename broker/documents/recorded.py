"""Files of recorded document lines, and the numbered documents that ingest would make of them."""

from __future__ import annotations

import gzip
import tempfile
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from broker.documents.disk import Disk
from broker.documents.document import (
    CLOCK,
    Document,
    DocumentError,
    DocumentLine,
    parse_recorded_line,
)
from broker.documents.ingest import Ingest, IngestOutcome
from broker.documents.spool import SpoolWriter
from broker.documents.stored import documents_of

__all__ = [
    "SAMPLE_DOCUMENTS",
    "ReadLine",
    "RecordedError",
    "count_lines",
    "number_lines",
    "read_document_lines",
    "recent_documents",
]

_LINES_AT_ONCE = 10_000

_DAMAGED = EOFError, gzip.BadGzipFile, zlib.error

SAMPLE_DOCUMENTS = 20_000
"""Recent documents from which costs are estimated: some days of hundreds of feeds, read in 3 s."""


ReadLine = tuple[str, DocumentLine | DocumentError]
"""Where a line stands, and the line or why it is not one."""


class RecordedError(ValueError):
    """A recorded line is not one.  Its author can act on it."""


def read_document_lines(paths: Iterable[Path]) -> Iterator[ReadLine]:
    """Yield the lines of files in order; a line that is no document line comes as its error.

    Files are read as gzip where they begin like it, whatever they are called; `RecordedError` where
    such a file is damaged.
    """
    for path in paths:
        number = 0
        try:
            with _open(path) as file:
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        yield _read(f"{path}:{number}", line)
        except _DAMAGED as error:
            raise RecordedError(f"{path}:{number + 1}: {error}") from error


def _read(place: str, line: bytes) -> ReadLine:
    try:
        return place, parse_recorded_line(line)
    except DocumentError as error:
        return place, error


def count_lines(paths: Iterable[Path]) -> int:
    """Return how many lines files have, which is far cheaper than reading the documents."""
    total = 0
    for path in paths:
        with _open(path) as file, suppress(*_DAMAGED):
            while chunk := file.read(1 << 20):
                total += chunk.count(b"\n")
    return total


@contextmanager
def _open(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    """Open a file once: what is read from a pipe does not come again."""
    with path.open("rb") as file:
        if file.peek(2).startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=file) as packed:
                yield packed
        else:
            yield file


def recent_documents(path: Path, limit: int = SAMPLE_DOCUMENTS) -> list[Document]:
    """Return the documents of the last lines of a file, at most `limit` lines; no ticks."""
    last = deque(read_document_lines([path]), limit)
    return [each for each in number_lines(last) if each.stream != CLOCK]


def number_lines(lines: Iterable[ReadLine]) -> Iterator[Document]:
    """Yield the documents of recorded lines with their numbers, keys, times and watermarks.

    Lines that are repetitions give nothing; a line that is not one, or whose document would be
    refused, raises `RecordedError`.
    """
    with tempfile.TemporaryDirectory(prefix="xscl-recorded-") as directory:
        writer = SpoolWriter(Path(directory), Disk(is_durable=False))
        ingest = Ingest(writer, dedup_horizon_us=None)
        iterator = iter(lines)
        while group := list(islice(iterator, _LINES_AT_ONCE)):
            first = writer.next_docid
            receipts = ingest.append([_line(*each) for each in group], registry_version=1)
            for (place, _), receipt in zip(group, receipts, strict=True):
                if receipt.outcome is IngestOutcome.REFUSED:
                    raise RecordedError(f"{place}: {receipt.reason}")
            yield from _documents(writer, first)
        writer.close()


def _line(place: str, line: DocumentLine | DocumentError) -> DocumentLine:
    if isinstance(line, DocumentError):
        raise RecordedError(f"{place}: {line}")
    return line


def _documents(writer: SpoolWriter, first: int) -> Iterator[Document]:
    """Yield the documents from a number on."""
    for segment in writer.all_segments():
        if segment.first_docid < first:
            continue
        yield from documents_of(writer, segment)
