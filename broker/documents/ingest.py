"""Accept documents: number them, find repetitions, fix their times, and put them on the disk.

    number    lines -> rows with docid, key, event time, W, and a receipt for each line (decides)
    append    rows -> the spool, durable; then the receipts may be given (does)

Invariants: a receipt is given only when its document is durable; there is one writer; what a line
becomes depends on the documents before it and its arrival time, not on how lines are grouped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.dedup import (
    DEDUP_HORIZON_US,
    DedupIndex,
    KnownDocuments,
    content_hash,
    identity_hash,
)
from broker.documents.document import (
    FIRST_WATERMARK_US,
    DocumentError,
    DocumentLine,
    check_stream,
)
from broker.documents.keys import LIKE_DOCID, docid_of, document_key, is_like_another, readings
from broker.documents.late import LateDocuments, Newest, TooLate, never
from broker.documents.segment import SEGMENT_SCHEMA, Segment
from broker.documents.spool import SpoolWriter
from broker.documents.stored import stream_at

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

    One that `is_late` is older than anything that can still be joined with it.
    """

    outcome: IngestOutcome
    docid: int | None = None
    key: str | None = None
    reason: str | None = None
    is_late: bool = False


class Ingest:
    """Turns lines into numbered documents in the spool.  One at a time; the spool is its memory.

    `closed_streams` are those that queries publish; they take no documents from outside.
    `recorded_time_us` is the largest time on a line so far, which only recorded streams need.
    `too_late` says which documents are of no use, to be told and counted; they are accepted.
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
        self._dedup = DedupIndex(dedup_horizon_us)
        self.recorded_time_us = recorded_time_us
        self.closed_streams: Collection[str] = ()
        self.too_late: TooLate = never
        self._late: Counter[str] = Counter()
        self._newest = Newest(spool.watermark_us, stream_at(spool, spool.watermark_us))
        self._docids_are_keys = False  # some publisher's key could be a docid
        self._restore_dedup(dedup_horizon_us)

    def append(
        self, lines: Sequence[DocumentLine], *, arrival_us: int | None = None, registry_version: int
    ) -> list[Receipt]:
        """Accept lines as one segment and return their receipts; their documents are durable.

        Documents arrive at `arrival_us`, a microsecond apart, so that those without a time follow
        each other.  Without it the stream is a recorded one: each line brings
        its arrival, or arrives at the largest time on it or an earlier line.  A line that is
        refused has the reason in its receipt and does not hold up the others.  On `OSError` (a full
        disk) nothing has been accepted.
        """
        if arrival_us is not None:
            self._dedup.advance(arrival_us)
        hashes = [_hashes(line) for line in lines]
        known = self._dedup.find([each.identity for each in hashes if each is not None])
        rows = _AcceptedRows(self._spool.next_docid, self._newest, self.too_late)
        newest = self._spool.newest
        if arrival_us is not None and newest is not None:
            arrival_us = max(arrival_us, newest.arrival_us + 1)
        receipts = []
        for line, hashed in zip(lines, hashes, strict=True):
            past = None if hashed is None else known.get(hashed.identity)
            try:
                next_us = None if arrival_us is None else arrival_us + rows.count
                receipts.append(self._number(line, hashed, past, next_us, rows))
            except DocumentError as error:
                receipts.append(Receipt(IngestOutcome.REFUSED, reason=str(error)))
        if rows.count:
            batch = rows.batch()
            segment = self._spool.append(batch, registry_version=registry_version)
            self._remember(segment, batch)
            self._newest = rows.newest
            self._late += rows.late
        return receipts

    @property
    def late(self) -> LateDocuments:
        """The documents that were too late, since this was made."""
        known = self._newest.end_us != FIRST_WATERMARK_US
        return LateDocuments(dict(self._late), self._newest if known else None)

    @property
    def remembered(self) -> tuple[int, int]:
        """How many documents are remembered to recognise repetitions, and the bytes they take."""
        return len(self._dedup), self._dedup.nbytes

    def _number(
        self,
        line: DocumentLine,
        hashed: _Hashes | None,
        past: KnownDocuments | None,
        arrival_us: int | None,
        rows: _AcceptedRows,
    ) -> Receipt:
        if line.time_us is not None:
            self.recorded_time_us = _latest(self.recorded_time_us, line.time_us)
        self._check(line)
        if arrival_us is None:
            arrival_us = self._recorded_arrival(line)
        revision = 0
        if hashed is not None:
            earlier = self._earlier(line, hashed, past, rows)
            if earlier is not None:
                return Receipt(IngestOutcome.DUPLICATE, docid=earlier)
            revision = self._next_revision(line, past, rows)
        revision = self._free_revision(line, revision, rows)
        return rows.add(line, arrival_us, hashed, revision)

    def _check(self, line: DocumentLine) -> None:
        if len(line.xml) > self._document_bytes_max:
            raise DocumentError(
                f"a document of {len(line.xml)} bytes; the limit is {self._document_bytes_max}"
            )
        check_stream(line.stream)
        if line.stream in self.closed_streams:
            raise DocumentError(f"stream {line.stream!r} is published by a query")

    def _recorded_arrival(self, line: DocumentLine) -> int:
        if line.arrival_us is not None:
            return line.arrival_us
        if self.recorded_time_us is None:
            raise DocumentError("a line without 'time' and 'arrival', and no time before it")
        return self.recorded_time_us

    def _earlier(
        self, line: DocumentLine, hashed: _Hashes, past: KnownDocuments | None, rows: _AcceptedRows
    ) -> int | None:
        """Return the number of the document that a line repeats, None if it is new."""
        known = rows.known(line)
        if known is not None and line.xml in known.docids:
            return known.docids[line.xml]
        for docid, revision in past.with_content(hashed.content) if past else ():
            if self._has_key(docid, line, revision) and self._stored(docid, "xml") == line.xml:
                return docid
        return None

    def _next_revision(
        self, line: DocumentLine, past: KnownDocuments | None, rows: _AcceptedRows
    ) -> int:
        known = rows.known(line)
        if known is not None:
            return known.revision + 1
        for docid, revision in past.newest_first() if past else ():
            if self._has_key(docid, line, revision):
                return revision + 1
        return 0

    def _has_key(self, docid: int, line: DocumentLine, revision: int) -> bool:
        """Return whether a stored document has the stream and the key of a line."""
        return self._is_called(docid, line.stream, document_key(line.key, docid, revision))

    def _is_called(self, docid: int, stream: str, key: str) -> bool:
        return self._stored(docid, "stream") == stream and self._stored(docid, "key") == key

    def _free_revision(self, line: DocumentLine, revision: int, rows: _AcceptedRows) -> int:
        """Return the first revision from `revision` on whose key no other document has."""
        if line.key is None:
            may_be_taken = self._docids_are_keys
        else:
            may_be_taken = revision > 0 or is_like_another(line.key)
            self._docids_are_keys |= docid_of(line.key.partition("#")[0]) is not None
        while may_be_taken and self._is_taken(
            line.stream, document_key(line.key, rows.next_docid, revision), rows
        ):
            revision += 1
        return revision

    def _is_taken(self, stream: str, key: str, rows: _AcceptedRows) -> bool:
        may_have = (docid for reading in readings(key) for docid in self._called(stream, *reading))
        return rows.has(stream, key) or any(self._is_called(n, stream, key) for n in may_have)

    def _called(self, stream: str, name: str, revision: int) -> Iterator[int]:
        """Yield the documents that may have this publisher's key, or docid, and this revision."""
        docid = docid_of(name)
        if docid is not None:
            yield docid
        for candidates in self._dedup.find([identity_hash(stream, name)]).values():
            yield from (number for number, its in candidates.newest_first() if its == revision)

    def _stored(self, docid: int, column: str) -> object:
        segment = self._spool.segment_of(docid)
        if segment is None:
            return None
        return self._spool.rows(segment).column(column)[docid - segment.first_docid].as_py()

    def _restore_dedup(self, horizon_us: int | None) -> None:
        newest = self._spool.newest
        if newest is None:
            return
        since_us = None if horizon_us is None else newest.arrival_us - 2 * horizon_us
        for segment in self._spool.all_segments():
            if since_us is None or segment.arrival_us >= since_us:
                self._remember(segment, self._spool.rows(segment))

    def _remember(self, segment: Segment, rows: pa.RecordBatch) -> None:
        """Remember the documents of a segment that have a publisher's key."""
        docids = pa.arange(segment.first_docid, segment.last_docid + 1)
        table = pa.table([docids, *rows.columns], ["docid", *rows.schema.names])
        keyed = table.filter(pc.is_valid(table.column("identity")))
        if keyed.num_rows:
            like_docids = pc.match_substring_regex(keyed.column("key"), LIKE_DOCID)
            self._docids_are_keys |= pc.any(like_docids).as_py()
            self._dedup.add(
                b"".join(keyed.column("identity").to_pylist()),
                b"".join(keyed.column("content").to_pylist()),
                *(keyed.column(name).to_numpy() for name in ("revision", "docid", "arrival_us")),
            )


@dataclass(frozen=True, slots=True)
class _Hashes:
    """What stands for a publisher's key in its stream, and for a document's content."""

    identity: bytes
    content: bytes


def _hashes(line: DocumentLine) -> _Hashes | None:
    if line.key is None:
        return None
    return _Hashes(identity_hash(line.stream, line.key), content_hash(line.xml))


@dataclass(slots=True)
class _Known:
    """The documents of one key in a segment that is put together: their contents and numbers."""

    revision: int
    docids: dict[bytes, int]


class _AcceptedRows:
    """The documents of one segment while it is put together."""

    def __init__(self, first_docid: int, newest: Newest, too_late: TooLate) -> None:
        self._first_docid = first_docid
        self._too_late = too_late
        self.newest = newest
        self.late: Counter[str] = Counter()
        self._rows: list[tuple[object, ...]] = []
        self._known: dict[tuple[str, str], _Known] = {}
        self._keys: set[tuple[str, str]] = set()

    @property
    def count(self) -> int:
        return len(self._rows)

    @property
    def next_docid(self) -> int:
        """The number of the next document."""
        return self._first_docid + len(self._rows)

    def has(self, stream: str, key: str) -> bool:
        """Return whether a document of a stream has a key."""
        return (stream, key) in self._keys

    def known(self, line: DocumentLine) -> _Known | None:
        """Return the documents with a line's stream and key."""
        return None if line.key is None else self._known.get((line.stream, line.key))

    def add(
        self, line: DocumentLine, arrival_us: int, hashed: _Hashes | None, revision: int
    ) -> Receipt:
        """Add a document; return its receipt."""
        docid = self.next_docid
        key = document_key(line.key, docid, revision)
        self._keys.add((line.stream, key))
        claimed_us, watermark_us = line.time_us, self.newest.end_us
        end_us = arrival_us if claimed_us is None else min(claimed_us, arrival_us)
        if claimed_us is not None and claimed_us <= arrival_us:
            claimed_us = None
        self._rows.append(
            (
                line.stream,
                key,
                end_us,
                arrival_us,
                claimed_us,
                watermark_us,
                None if hashed is None else hashed.identity,
                None if hashed is None else hashed.content,
                revision,
                line.xml,
            )
        )
        is_late = self._too_late(line.stream, end_us, watermark_us)
        if is_late:
            self.late[line.stream] += 1
        if end_us > watermark_us:
            self.newest = Newest(end_us, line.stream)
        if line.key is not None:
            known = self._known.setdefault((line.stream, line.key), _Known(revision, {}))
            known.revision = revision
            known.docids[line.xml] = docid
        return Receipt(IngestOutcome.ACCEPTED, docid=docid, key=key, is_late=is_late)

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
