"""The spool: every accepted document, in segments, in the order of document numbers.

It is the log, the source of the streaming query and the store that outputs are built from.  One
process appends (it holds the lock); any number of processes read.

    append    encode the rows -> write, fsync, rename, fsync the directory -> the segment counts
    recover   remove half-written files, drop what a compaction has replaced, check the last segment
    compact   one file for several small neighbours of one registry version
    prune     delete the segments up to a number

Invariants: segment numbers and document numbers have no gaps between the oldest and the newest
segment; a file never changes; a document that was acknowledged is in a durable file.
"""

from __future__ import annotations

import fcntl
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.disk import Disk
from broker.documents.document import FIRST_WATERMARK_US
from broker.documents.head import SUFFIX, LaterFormatError, Segment, SegmentError, read_header
from broker.documents.listing import Listing, SpoolError, without_replaced
from broker.documents.segment import SEGMENT_BYTES_MAX, SEGMENT_SCHEMA, encode_segment, read_rows

__all__ = ["Spool", "SpoolError", "SpoolWriter"]

_OPEN_SEGMENTS_MAX = 64

_ATTEMPTS = 100
"""How often segments that merges take away are looked for; each time more has been read."""


class Spool(Listing):
    """The segments of a directory, for reading.  `refresh` sees what was appended since."""

    def __init__(self, directory: Path) -> None:
        self._open: OrderedDict[str, pa.RecordBatch] = OrderedDict()
        super().__init__(directory)

    def nbytes(self) -> int:
        """Return how much of the disk its files take."""
        with os.scandir(self.directory) as entries:
            return sum(_size(entry) for entry in entries)

    def rows(self, segment: Segment) -> pa.RecordBatch:
        """Return the rows of a segment; recently used files stay mapped."""
        rows = self._open.pop(segment.name, None)
        if rows is None:
            rows = read_rows(self.directory / segment.name)
        self._open[segment.name] = rows
        if len(self._open) > _OPEN_SEGMENTS_MAX:
            self._open.popitem(last=False)
        return rows

    def documents(self, docids: Iterable[int]) -> dict[int, bytes]:
        """Return the XML of documents by their numbers; a document that is gone is left out."""
        wanted = sorted(set(docids))
        found: dict[int, bytes] = {}
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._find([each for each in wanted if each not in found], found)
            except FileNotFoundError:
                # A compaction has replaced a file since the last refresh; what was read stays.
                if not left:
                    raise
                self.refresh()
            else:
                break
        return found

    def _find(self, docids: Sequence[int], found: dict[int, bytes]) -> None:
        """Add the XML of documents, which are given in the order of their numbers."""
        first = 0
        while first < len(docids):
            segment = self.segment_of(docids[first])
            if segment is None:
                first += 1
                continue
            last = bisect_right(docids, segment.last_docid, first)
            own, xml = docids[first:last], self.rows(segment).column("xml")
            if len(own) == 1:
                found[own[0]] = xml[own[0] - segment.first_docid].as_py()
            else:
                places = pa.array(own, pa.int64())
                texts = xml.take(pc.subtract(places, segment.first_docid))
                found.update(zip(own, texts.to_pylist(), strict=True))
            first = last


class SpoolWriter(Spool):
    """The spool of the one process that appends to it.

    Opening it takes the lock (`SpoolError` if another process holds it), cleans up after a crash,
    and checks the newest segment: damaged and newer than `processed`, it is set aside (its writer
    never acknowledged it); otherwise it is an error.
    """

    def __init__(self, directory: Path, disk: Disk | None = None, *, processed: int = 0) -> None:
        self._disk = disk or Disk()
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = _take_lock(directory / "lock")
        self._disk.clean(directory)
        _set_aside_torn(directory, processed)
        super().__init__(directory)
        self.check_gaps()
        self._drop_replaced()

    def close(self) -> None:
        """Give up the lock."""
        self._lock.close()

    @property
    def next_docid(self) -> int:
        """The number that the next document gets."""
        return self.last_docid + 1

    @property
    def watermark_us(self) -> int:
        """`W` of the next document."""
        return self._segments[-1].watermark_us if self._segments else FIRST_WATERMARK_US

    def append(self, rows: pa.RecordBatch, *, registry_version: int) -> Segment:
        """Write rows of `SEGMENT_SCHEMA` as the next segment; on return they are durable."""
        segment = _describe(
            rows, self.newest, first_docid=self.next_docid, registry_version=registry_version
        )
        self._disk.publish(self.directory / segment.name, encode_segment(segment, rows))
        self._segments = [*self._segments, segment]
        return segment

    def probe(self, nbytes: int) -> None:
        """Try whether so many bytes could be appended; raise `OSError` if not."""
        self._disk.probe(self.directory, nbytes)

    def compact(self, *, through: int, documents_max: int) -> int:
        """Merge one run of small neighbours up to number `through`; return how many it had, or 0.

        Only segments of one registry version are merged, into a file of at most `documents_max`
        and `SEGMENT_BYTES_MAX`; those of more than half of either stay as they are, so nothing is
        copied over and over.
        """
        group = self.mergeable(through=through, documents_max=documents_max)
        if group:
            self.adopt(self.merge(group))
        return len(group)

    def mergeable(self, *, through: int, documents_max: int) -> list[Segment]:
        """Return the first run of segments that `compact` would merge."""
        return _mergeable([s for s in self._segments if s.last <= through], documents_max)

    def prune(self, through: int) -> int:
        """Delete the segments up to number `through`, but never the newest; return how many."""
        gone = [segment for segment in self._segments[:-1] if segment.last <= through]
        # Oldest first: a crash in between leaves no gap.
        for segment in gone:
            self._disk.remove(self.directory / segment.name)
        self._segments = self._segments[len(gone) :]
        return len(gone)

    def merge(self, group: list[Segment]) -> Segment:
        """Write one file for several segments; it counts once it is adopted.

        Any thread may do this while others append, but not while segments are pruned.
        """
        batches = [read_rows(self.directory / s.name, is_verified=True) for s in group]
        table = pa.Table.from_batches(batches, SEGMENT_SCHEMA).combine_chunks()
        merged = Segment(
            first=group[0].first,
            last=group[-1].last,
            first_docid=group[0].first_docid,
            documents=sum(segment.documents for segment in group),
            nbytes=sum(segment.nbytes for segment in group),
            registry_version=group[0].registry_version,
            end_min_us=min(segment.end_min_us for segment in group),
            end_max_us=max(segment.end_max_us for segment in group),
            watermark_us=group[-1].watermark_us,
            arrival_us=group[-1].arrival_us,
        )
        rows = table.to_batches()[0]
        self._disk.publish(self.directory / merged.name, encode_segment(merged, rows))
        return merged

    def adopt(self, merged: Segment) -> None:
        """Delete what a merged file replaces."""
        self._segments = without_replaced([*self._segments, merged])
        self._drop_replaced()

    def _drop_replaced(self) -> None:
        kept = {segment.name for segment in self._segments}
        for name in self._disk.names(self.directory):
            if name.endswith(SUFFIX) and name not in kept:
                self._disk.remove(self.directory / name)


def _describe(
    rows: pa.RecordBatch, previous: Segment | None, *, first_docid: int, registry_version: int
) -> Segment:
    ends = rows.column("end_us").to_numpy()
    arrivals = rows.column("arrival_us").to_numpy()
    number = previous.last + 1 if previous else 1
    return Segment(
        first=number,
        last=number,
        first_docid=first_docid,
        documents=rows.num_rows,
        nbytes=rows.nbytes,
        registry_version=registry_version,
        end_min_us=int(ends.min()),
        end_max_us=int(ends.max()),
        watermark_us=max(
            previous.watermark_us if previous else FIRST_WATERMARK_US, int(ends.max())
        ),
        arrival_us=max(
            previous.arrival_us if previous else FIRST_WATERMARK_US, int(arrivals.max())
        ),
    )


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except FileNotFoundError:  # a compaction was quicker
        return 0


def _mergeable(segments: list[Segment], documents_max: int) -> list[Segment]:
    """Return the first run of neighbours that is worth merging, or nothing."""
    group: list[Segment] = []
    documents = nbytes = 0
    for segment in segments:
        is_large = segment.documents > documents_max // 2 or segment.nbytes > SEGMENT_BYTES_MAX // 2
        is_fitting = not group or (
            documents + segment.documents <= documents_max
            and nbytes + segment.nbytes <= SEGMENT_BYTES_MAX
            and segment.registry_version == group[0].registry_version
        )
        if len(group) > 1 and (is_large or not is_fitting):
            break
        if is_large or not is_fitting:
            group, documents, nbytes = [], 0, 0
        if not is_large:
            group.append(segment)
            documents += segment.documents
            nbytes += segment.nbytes
    return group if len(group) > 1 else []


def _set_aside_torn(directory: Path, processed: int) -> None:
    names = sorted(name for name in os.listdir(directory) if name.endswith(SUFFIX))
    if not names:
        return
    path = directory / names[-1]
    try:
        read_header(path)
        read_rows(path, is_verified=True)
    except LaterFormatError:
        raise  # its documents were acknowledged
    except SegmentError as error:
        if int(names[-1][:12]) <= processed:
            raise SpoolError(f"a processed segment is damaged: {error}") from error
        path.rename(path.with_suffix(".torn"))


def _take_lock(path: Path) -> IO[bytes]:
    lock = path.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise SpoolError(
            f"another process writes to {path.parent}: a broker runs on this data directory;"
            " end it, or set another `data` in xscl.toml"
        ) from error
    return lock
