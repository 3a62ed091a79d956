"""Accept documents: number them, find repetitions, fix their times, and put them on the disk.

    number    lines -> rows with docid, key, event time, W, and a receipt for each line (decides);
              which of them repeat a document, and the keys of the others, `acceptedkeys` knows
    append    rows -> the spool, durable; then the receipts may be given (does)

Invariants: a receipt is given only when its document is durable; there is one writer; what a line
becomes depends on the documents before it and its arrival time, not on how lines are grouped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from broker.documents.acceptedkeys import (
    AcceptedKeys,
    DocumentKey,
    HashedLine,
    RepeatedDocument,
    SegmentKeys,
)
from broker.documents.dedup import DEDUP_HORIZON_US
from broker.documents.document import (
    CLOCK,
    FIRST_WATERMARK_US,
    DocumentError,
    DocumentLine,
    check_stream,
)
from broker.documents.late import LateDocuments, Newest, TooLate, never
from broker.documents.loads import check_load
from broker.documents.segment import SEGMENT_SCHEMA
from broker.documents.spool import SpoolWriter
from broker.documents.stored import stream_at
from xscl.table import Table

__all__ = ["DOCUMENT_BYTES_MAX", "Ingest", "IngestOutcome", "Receipt"]

DOCUMENT_BYTES_MAX = 8 << 20
"""Larger documents are refused.  The largest items of real feeds are near 1 MB."""


class IngestOutcome(Enum):
    """What became of a line."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to one line.  A duplicate has the docid of the document that it repeats.

    One that `is_late` is older than anything that can still be joined with it.  One that
    `is_settled` came when its time was settled already for a query that decides.
    """

    outcome: IngestOutcome
    docid: int | None = None
    key: str | None = None
    reason: str | None = None
    is_late: bool = False
    is_settled: bool = False


LOADS = "TABLE."
"""What the names of streams begin with whose documents are loads of tables."""


class Ingest:
    """Turns lines into numbered documents in the spool.  One at a time; the spool is its memory.

    `closed_streams` are the streams that queries publish; they take no documents from outside.
    `tables` are the tables that can be loaded, None where all can; of `created` it is known what a
    load may say.
    `recorded_time_us` is the largest time on a line so far, which only recorded streams need.
    `too_late` says which documents are of no use, to be told and counted; they are accepted.
    `waits_for_time` says whether a tick would change anything.
    """

    def __init__(
        self,
        spool: SpoolWriter,
        *,
        dedup_horizon_us: int | None = DEDUP_HORIZON_US,
        document_bytes_max: int = DOCUMENT_BYTES_MAX,
        recorded_time_us: int | None = None,
    ) -> None:
        self._spool = spool
        self._document_bytes_max = document_bytes_max
        self._keys = AcceptedKeys(spool, dedup_horizon_us)
        self.recorded_time_us = recorded_time_us
        self.closed_streams: Collection[str] = ()
        self.tables: Collection[str] | None = None
        self.created: Mapping[str, Table] = {}
        self.too_late: TooLate = never
        self.settled: TooLate = never
        self.waits_for_time: Callable[[], bool] = lambda: True
        self._settled: Counter[str] = Counter()
        self._late: Counter[str] = Counter()
        self._newest = Newest(spool.watermark_us, stream_at(spool, spool.watermark_us))

    def append(
        self, lines: Sequence[DocumentLine], *, arrival_us: int | None = None, registry_version: int
    ) -> list[Receipt]:
        """Accept lines as one segment and return their receipts; their documents are durable.

        Documents arrive at `arrival_us`, a microsecond apart, so that documents without a time
        follow each other.  Without it the stream is a recorded one: each line brings its arrival,
        or arrives at the largest time on it or an earlier line.  A line that is refused has the
        reason in its receipt and does not hold up the others.  On `OSError` (a full disk) nothing
        has been accepted.
        """
        hashed = list(map(HashedLine.of, lines))
        keys = self._keys.begin(hashed, arrival_us=arrival_us)
        rows = _AcceptedRows(self._spool.next_docid, self._newest, self.too_late, self.settled)
        newest = self._spool.newest
        if arrival_us is not None and newest is not None:
            arrival_us = max(arrival_us, newest.arrival_us + 1)
        receipts = []
        for line in hashed:
            try:
                next_us = None if arrival_us is None else arrival_us + rows.count
                receipts.append(self._number(line, next_us, keys, rows))
            except DocumentError as error:
                receipts.append(Receipt(IngestOutcome.REFUSED, reason=str(error)))
        if rows.count:
            batch = rows.batch()
            segment = self._spool.append(batch, registry_version=registry_version)
            self._keys.remember(segment, batch)
            self._newest = rows.newest
            self._late += rows.late
            self._settled += rows.settled
        return receipts

    @property
    def late(self) -> LateDocuments:
        """The documents that were too late, since this was made."""
        known = self._newest.end_us != FIRST_WATERMARK_US
        newest = self._newest if known else None
        return LateDocuments(dict(self._late), newest, dict(self._settled))

    @property
    def remembered(self) -> tuple[int, int]:
        """How many documents are remembered to recognise repetitions, and the bytes they take."""
        return self._keys.remembered

    def _number(
        self, hashed: HashedLine, arrival_us: int | None, keys: SegmentKeys, rows: _AcceptedRows
    ) -> Receipt:
        line = hashed.line
        if line.time_us is not None:
            self.recorded_time_us = _latest(self.recorded_time_us, line.time_us)
        self._check(line)
        if arrival_us is None:
            arrival_us = self._recorded_arrival(line)
        key = keys.take(hashed, rows.next_docid)
        if isinstance(key, RepeatedDocument):
            return Receipt(IngestOutcome.DUPLICATE, docid=key.docid)
        return rows.add(hashed, key, arrival_us)

    def _check(self, line: DocumentLine) -> None:
        if len(line.xml) > self._document_bytes_max:
            raise DocumentError(
                f"a document of {len(line.xml)} bytes; the limit is {self._document_bytes_max}"
            )
        check_stream(line.stream)
        if line.stream == CLOCK and not line.is_tick:
            raise DocumentError(f"stream {CLOCK!r} is the broker's own")
        if line.stream in self.closed_streams:
            raise DocumentError(f"stream {line.stream!r} is published by a query")
        table = line.stream.removeprefix(LOADS)
        if self.tables is not None and table != line.stream and table not in self.tables:
            raise DocumentError(f"no query uses a table {table!r}")
        if table != line.stream and table in self.created:
            check_load(self.created[table], line.xml)

    def _recorded_arrival(self, line: DocumentLine) -> int:
        if line.arrival_us is not None:
            return line.arrival_us
        if self.recorded_time_us is None:
            raise DocumentError("a line without 'time' and 'arrival', and no time before it")
        return self.recorded_time_us


class _AcceptedRows:
    """The documents of one segment while it is put together."""

    def __init__(
        self, first_docid: int, newest: Newest, too_late: TooLate, settled: TooLate
    ) -> None:
        self._first_docid = first_docid
        self._too_late = too_late
        self._is_settled = settled
        self.newest = newest
        self.late: Counter[str] = Counter()
        self.settled: Counter[str] = Counter()
        self._rows: list[tuple[object, ...]] = []

    @property
    def count(self) -> int:
        return len(self._rows)

    @property
    def next_docid(self) -> int:
        """The number of the next document."""
        return self._first_docid + len(self._rows)

    def add(self, hashed: HashedLine, key: DocumentKey, arrival_us: int) -> Receipt:
        """Add a document; return its receipt."""
        docid = self.next_docid
        line, hashes = hashed.line, hashed.hashes
        claimed_us, watermark_us = line.time_us, self.newest.end_us
        end_us = arrival_us if claimed_us is None else min(claimed_us, arrival_us)
        if claimed_us is not None and claimed_us <= arrival_us:
            claimed_us = None
        self._rows.append(
            (
                line.stream,
                key.text,
                end_us,
                arrival_us,
                claimed_us,
                watermark_us,
                None if hashes is None else hashes.identity,
                None if hashes is None else hashes.content,
                key.revision,
                line.xml,
            )
        )
        is_late = not line.is_tick and self._too_late(line.stream, end_us, watermark_us)
        if is_late:
            self.late[line.stream] += 1
        is_settled = not line.is_tick and self._is_settled(line.stream, end_us, watermark_us)
        if is_settled:
            self.settled[line.stream] += 1
        if end_us > watermark_us:
            self.newest = Newest(end_us, line.stream)
        return Receipt(
            IngestOutcome.ACCEPTED,
            docid=docid,
            key=key.text,
            is_late=is_late,
            is_settled=is_settled,
        )

    def batch(self) -> pa.RecordBatch:
        """Return the rows as `SEGMENT_SCHEMA`."""
        columns = zip(*self._rows, strict=True)
        arrays = [
            pa.array(column, field.type)
            for column, field in zip(columns, SEGMENT_SCHEMA, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SEGMENT_SCHEMA)


def _latest(time_us: int | None, other_us: int) -> int:
    return other_us if time_us is None else max(time_us, other_us)
