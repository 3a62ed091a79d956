"""Recorded document lines as numbered documents: what ingest would have made of them."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from broker.disk import Disk
from broker.document import Document, DocumentError, DocumentLine
from broker.ingest import Ingest
from broker.replay import ReadLine, ReplayError, read_document_lines
from broker.spool import SpoolWriter
from broker.stored import documents_of

__all__ = ["SAMPLE_DOCUMENTS", "ReplayError", "number_lines", "recent_documents"]

_LINES_AT_ONCE = 10_000

SAMPLE_DOCUMENTS = 20_000
"""Recent documents from which costs are estimated: some days of hundreds of feeds, read in 3 s."""


def recent_documents(path: Path, limit: int = SAMPLE_DOCUMENTS) -> list[Document]:
    """Return the last documents of a file of document lines, at most `limit` lines of them."""
    return list(number_lines(deque(read_document_lines([path]), limit)))


def number_lines(lines: Iterable[ReadLine]) -> Iterator[Document]:
    """Yield the documents of recorded lines with their numbers, keys, times and watermarks.

    Lines that are repetitions give nothing; a line that is not one raises `ReplayError`.
    """
    with tempfile.TemporaryDirectory(prefix="xscl-recorded-") as directory:
        writer = SpoolWriter(Path(directory), Disk(is_durable=False))
        ingest = Ingest(writer, dedup_horizon_us=None)
        iterator = iter(lines)
        while group := list(islice(iterator, _LINES_AT_ONCE)):
            first = writer.next_docid
            ingest.append([_line(*each) for each in group], registry_version=1)
            yield from _documents(writer, first)
        writer.close()


def _line(place: str, line: DocumentLine | DocumentError) -> DocumentLine:
    if isinstance(line, DocumentError):
        raise ReplayError(f"{place}: {line}")
    return line


def _documents(writer: SpoolWriter, first: int) -> Iterator[Document]:
    """Yield the documents from a number on."""
    for segment in writer.all_segments():
        if segment.first_docid < first:
            continue
        yield from documents_of(writer, segment)
