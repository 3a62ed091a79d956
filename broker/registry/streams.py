"""What there is of each stream: how many documents are kept, how fast they come, who reads it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.document import CLOCK
from broker.documents.head import Segment
from broker.documents.spool import Spool
from broker.registry.queries import RegisteredText, Registry
from broker.registry.registered import parsed

__all__ = ["RECENT_US", "Stream", "Streams"]

RECENT_US = 300_000_000
"""What `recent` of a stream counts: long enough that the burst of one feed does not fill it."""

_EVERY_STREAM = "*"

_ATTEMPTS = 100
"""How often segments that merges take away are looked for; each time more of them are counted."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream.  Times are microseconds, None where no document is kept.

    `documents` are kept now, `recent` of them arrived in the last `RECENT_US`; `newest_us` is the
    largest event time.  `readers` is how many active queries read it, `publisher` the id of the
    one that publishes it.
    """

    name: str
    documents: int = 0
    recent: int = 0
    newest_docid: int = 0
    newest_us: int | None = None
    arrival_us: int | None = None
    readers: int = 0
    publisher: str | None = None

    @property
    def per_second(self) -> float:
        """How many documents a second came of late."""
        return self.recent / (RECENT_US / 1e6)


class Streams:
    """Counts the documents of a spool by stream; each segment that has grown old, once.

    Safe for several threads.  The spool is for this object alone.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._lock = threading.Lock()
        self._old: dict[str, list[Stream]] = {}
        self._users: tuple[int, Counter[str], dict[str, str]] = (-1, Counter(), {})

    def streams(self, registry: Registry, now_us: int) -> list[Stream]:
        """Return every stream that has documents, or that an active query names, by name.

        That of the clock is no stream of anybody's.
        """
        kept: dict[str, Stream] = {}
        for each in self._kept(now_us - RECENT_US):
            if each.name == CLOCK:
                continue
            before = kept.get(each.name)
            kept[each.name] = each if before is None else _sum(before, each)
        readers, publishers = self._users_of(registry)
        everywhere = readers[_EVERY_STREAM]
        return [
            replace(
                kept.get(name) or Stream(name),
                readers=readers[name] + everywhere,
                publisher=publishers.get(name),
            )
            for name in sorted({*kept, *readers, *publishers} - {_EVERY_STREAM})
        ]

    def _users_of(self, registry: Registry) -> tuple[Counter[str], dict[str, str]]:
        """Return how many queries read each stream, and which publishes it; counted once."""
        revision = registry.revision()
        with self._lock:
            if self._users[0] != revision:
                queries = registry.queries()
                self._users = (revision, _readers(queries), _publishers(queries))
            return self._users[1:]

    def _kept(self, since_us: int) -> list[Stream]:
        with self._lock:
            counted = dict(self._old)
            for left in reversed(range(_ATTEMPTS)):
                self._spool.refresh()
                try:
                    return self._count_all(counted, since_us)
                except FileNotFoundError:
                    # A compaction has replaced a file since the refresh; what was counted stays.
                    if not left:
                        raise
            raise AssertionError

    def _count_all(self, counted: dict[str, list[Stream]], since_us: int) -> list[Stream]:
        """Return the parts of all streams; of segments that are not `counted` they are added."""
        found, old = [], {}
        for segment in self._spool.all_segments():
            streams = counted.get(segment.name)
            if streams is None:
                streams = _count(segment, self._spool.rows(segment), since_us)
                counted[segment.name] = streams
            if segment.arrival_us <= since_us:
                old[segment.name] = streams
            found += streams
        self._old = old
        return found


def _count(segment: Segment, rows: pa.RecordBatch, since_us: int) -> list[Stream]:
    arrivals = rows.column("arrival_us")
    table = pa.table(
        {
            "stream": rows.column("stream"),
            "recent": pc.greater(arrivals, since_us).cast(pa.int64()),
            "docid": pa.arange(segment.first_docid, segment.last_docid + 1),
            "end_us": rows.column("end_us"),
            "arrival_us": arrivals,
        }
    )
    counted = table.group_by("stream").aggregate(
        [("docid", "count"), ("recent", "sum")]
        + [(name, "max") for name in ("docid", "end_us", "arrival_us")]
    )
    names = ("stream", "docid_count", "recent_sum", "docid_max", "end_us_max", "arrival_us_max")
    columns = [counted.column(name).to_pylist() for name in names]
    return [Stream(*row) for row in zip(*columns, strict=True)]


def _sum(one: Stream, other: Stream) -> Stream:
    """Return two parts of a stream as one; `other` has documents that came later."""
    return replace(
        other,
        documents=one.documents + other.documents,
        recent=one.recent + other.recent,
        newest_us=max(one.newest_us or 0, other.newest_us or 0),
    )


def _readers(queries: Iterable[RegisteredText]) -> Counter[str]:
    """Return how many queries read each stream; a query counts once."""
    return Counter(name for each in queries for name in {b.stream for b in parsed(each).blocks})


def _publishers(queries: Iterable[RegisteredText]) -> dict[str, str]:
    return {name: each.id for each in queries if (name := parsed(each).publish) is not None}
