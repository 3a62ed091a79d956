"""Recorded lines into the spool of a replay, group by group.

Invariants: the spool has one writer, and is the same whoever fills it: this process, or one beside
it (`fillingprocess`); a group is told of when its segment is in the spool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from broker.documents.disk import Disk
from broker.documents.document import DocumentError, DocumentLine
from broker.documents.ingest import Ingest, IngestOutcome
from broker.documents.recorded import ReadLine, read_document_lines
from broker.documents.segment import SEGMENT_BYTES_MAX
from broker.documents.spool import SpoolWriter
from broker.documents.sub_batches import in_sub_batches
from xscl.table import Table

__all__ = ["PROBLEMS_MAX", "REGISTRY_VERSION", "Filled", "Recording", "fill"]

REGISTRY_VERSION = 1
"""What segments of a replay name: its queries stay the same."""

PROBLEMS_MAX = 20
"""Lines of a group whose problems are told; of the others it is told how many they are."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What a spool is filled with: the lines of files, then the `last` ones, in groups.

    `closed_streams` and `tables` are those of the queries: see `Ingest`.
    """

    spool: Path
    documents: tuple[Path, ...]
    last: tuple[ReadLine, ...] = ()
    closed_streams: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    group_documents: int = 20_000

    def lines(self) -> Iterator[ReadLine]:
        """Yield the lines."""
        return chain(read_document_lines(self.documents), self.last)


@dataclass(slots=True)
class Filled:
    """What became of a group of lines, and the newest segment behind it."""

    through: int
    documents: int = 0
    duplicates: int = 0
    refused: int = 0
    problems: list[str] = field(default_factory=list)

    def refuse(self, place: str, reason: str) -> None:
        """Count a line that cannot be taken."""
        self.refused += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"{place}: {reason}")


def fill(recording: Recording, first_documents: int | None = None) -> Iterator[Filled]:
    """Put groups of lines into the spool, each as one segment; the first one may be smaller."""
    with closing(SpoolWriter(recording.spool, Disk(is_durable=False))) as writer:
        ingest = Ingest(writer, dedup_horizon_us=None)
        ingest.closed_streams = recording.closed_streams
        ingest.created = {table.name: table for table in recording.tables}
        lines = recording.lines()
        if first_documents is not None:
            first = min(first_documents, recording.group_documents)
            yield _append(ingest, writer, next(_groups(lines, first), []))
        for group in _groups(lines, recording.group_documents):
            yield _append(ingest, writer, group)


def _append(ingest: Ingest, writer: SpoolWriter, group: Sequence[ReadLine]) -> Filled:
    filled = Filled(0)
    places = [place for place, line in group if isinstance(line, DocumentLine)]
    lines = [line for _, line in group if isinstance(line, DocumentLine)]
    for place, line in group:
        if isinstance(line, DocumentError):
            filled.refuse(place, str(line))
    receipts = ingest.append(lines, registry_version=REGISTRY_VERSION)
    for place, line, receipt in zip(places, lines, receipts, strict=True):
        if receipt.outcome is IngestOutcome.ACCEPTED:
            filled.documents += not line.is_tick
        elif receipt.outcome is IngestOutcome.DUPLICATE:
            filled.duplicates += 1
        else:
            filled.refuse(place, receipt.reason or "")
    filled.through = writer.last
    return filled


def _groups(lines: Iterable[ReadLine], size: int) -> Iterator[list[ReadLine]]:
    """Yield lines in groups of at most a size, and of `SEGMENT_BYTES_MAX` and one document."""
    return in_sub_batches(lines, _nbytes, SEGMENT_BYTES_MAX, size)


def _nbytes(read: ReadLine) -> int:
    _, line = read
    return len(line.xml) if isinstance(line, DocumentLine) else 0
