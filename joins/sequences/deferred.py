"""Rows that wait for readers that cannot find anything yet, once for all of these.

A match of a chain under ANY, and one that is counted, has an element of each step.  While one of
them has no row within reach, its reader takes none of the others:

    kept     rows of a stream, batch by batch, while somebody waits that reads it
    watched  who waits watches the streams of one step that it misses, and is not looked at before
             rows of these come
    woken    it takes all that it has not taken, and goes on as others do, until it misses a step

> **Taken later, rows make the same matches.** None is found without the missing step, and what is
> found does not depend on batches.

`docs/repetition.md` has the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from joins.memory.durations import UNBOUNDED
from joins.memory.instance import Instance, read_instances
from joins.memory.slots import Ints

__all__ = ["Deferred", "DeferredRows"]


class _Retained(Protocol):
    @property
    def retained_us(self) -> int:
        """For how long what may decide is remembered."""


class _Needing(Protocol):
    """A reader; `needs` are the streams of each step, of which a match has an element."""

    @property
    def decision(self) -> _Retained: ...
    @property
    def needs(self) -> Sequence[frozenset[str]]: ...
    @property
    def streams(self) -> set[str]: ...
    @property
    def due_us(self) -> int | None: ...


R = TypeVar("R", bound=_Needing)


class DeferredRows:
    """Rows of a stream that came together in a batch, with their numbers."""

    def __init__(self, stream: str, table: pa.Table, numbers: Ints, batch: int) -> None:
        self.stream = stream
        self.table = table
        self.batch = batch
        self._numbers = numbers
        self.latest_us: int = pc.max(table.column("end_us")).as_py()
        self._rows: list[Instance] | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def rows(self) -> list[Instance]:
        """Return the rows, read once for all who take them."""
        if self._rows is None:
            self._rows = list(read_instances(self.table, self._numbers.tolist()))
        return self._rows


@dataclass(slots=True)
class _Kept(Generic[R]):
    """A stream: rows from the one numbered `first` on, who reads it, and who waits for it."""

    readers: dict[R, None] = field(default_factory=dict)
    watching: dict[R, None] = field(default_factory=dict)
    waiting: int = 0
    first: int = 0
    rows: list[DeferredRows] = field(default_factory=list)
    latest_us: int = -UNBOUNDED
    came_in: int = 0
    size: int = 0
    swept: int = 0

    @property
    def next(self) -> int:
        """The number of the rows that come next."""
        return self.first + len(self.rows)

    def drop(self, count: int) -> None:
        """Forget so many of the oldest rows."""
        self.first += count
        del self.rows[:count]
        self.size = sum(map(len, self.rows))


class Deferred(Generic[R]):
    """The rows of readers that miss something, by stream."""

    def __init__(self, lateness_us: int, swept: int) -> None:
        self._lateness_us = lateness_us
        self._swept_min = swept
        self._grown: set[str] = set()
        self._streams: dict[str, _Kept[R]] = {}
        self._known: dict[R, set[str]] = {}
        # Who waits, and from which rows of each stream on.
        self._since: dict[R, dict[str, int]] = {}
        self._batch = 1
        self._horizon_us = -UNBOUNDED

    def __contains__(self, stream: str) -> bool:
        return stream in self._streams

    def waits(self, reader: R) -> bool:
        """Return whether a reader misses something."""
        return reader in self._since

    # -- readers -------------------------------------------------------------------------------

    def follow(self, reader: R) -> None:
        """Have a reader be known with all of its streams; a new one waits if it misses a step."""
        streams = reader.streams
        known = self._known.get(reader)
        if known == streams:
            return
        self._known[reader] = streams
        for stream in streams - (known or set()):
            self._streams.setdefault(stream, _Kept()).readers[reader] = None
            if self.waits(reader):
                self._wait_for(reader, stream)
        if known is None and self._misses(reader):
            self._wait(reader)

    def leave(self, reader: R) -> None:
        """Forget a reader."""
        self._take(reader)
        for stream in self._known.pop(reader, set()):
            kept = self._streams[stream]
            del kept.readers[reader]
            if not kept.readers:
                del self._streams[stream]

    def _wait(self, reader: R) -> None:
        self._since[reader] = {}
        for stream in self._known[reader]:
            self._wait_for(reader, stream)
        self._watch(reader)

    def _wait_for(self, reader: R, stream: str) -> None:
        kept = self._streams[stream]
        self._since[reader][stream] = kept.next
        kept.waiting += 1

    def _watch(self, reader: R) -> bool:
        """Have a reader watch a step that it misses; return whether there is one."""
        misses = self._misses(reader)
        for stream in misses:
            self._streams[stream].watching[reader] = None
        return bool(misses)

    def _misses(self, reader: R) -> frozenset[str]:
        """Return the streams of a step without a row within reach; none where each has one."""
        from_us = self._from_us(reader)
        for need in reader.needs:
            some = [self._streams[stream] for stream in need]
            if all(own.came_in < self._batch and own.latest_us < from_us for own in some):
                return need
        return frozenset()

    def _from_us(self, reader: R) -> int:
        retained_us = reader.decision.retained_us
        if retained_us >= UNBOUNDED or self._horizon_us == -UNBOUNDED:
            return 1 - UNBOUNDED
        return self._horizon_us - retained_us - self._lateness_us

    def _take(self, reader: R) -> list[DeferredRows]:
        """Have a reader wait no more; return the rows that it has not taken."""
        from_us = self._from_us(reader)
        found: list[DeferredRows] = []
        for stream, since in self._since.pop(reader, {}).items():
            kept = self._streams[stream]
            rows = kept.rows[max(0, since - kept.first) :]
            # What comes late may stand before what is remembered, however early it ended.
            found += [e for e in rows if e.batch == self._batch or e.latest_us >= from_us]
            kept.waiting -= 1
            kept.watching.pop(reader, None)
            if not kept.waiting:
                kept.drop(len(kept.rows))
        return found

    # -- a batch -------------------------------------------------------------------------------

    def begin_batch(self) -> None:
        """Have nothing be new."""
        self._batch += 1

    def add(self, stream: str, table: pa.Table, numbers: Ints) -> None:
        """Take rows of a stream."""
        kept, rows = self._streams[stream], DeferredRows(stream, table, numbers, self._batch)
        kept.latest_us, kept.came_in = max(kept.latest_us, rows.latest_us), self._batch
        if kept.waiting:
            kept.rows.append(rows)
            kept.size += len(rows)
            self._grown.add(stream)

    def wake(self, streams: Iterable[str]) -> Iterator[tuple[R, list[DeferredRows]]]:
        """Yield who waits no more as rows of streams came, with all rows that it has not taken."""
        for stream in streams:
            kept = self._streams.get(stream)
            if kept is None:
                continue
            watching, kept.watching = kept.watching, {}
            for reader in watching:
                if not self._watch(reader):
                    yield reader, self._take(reader)

    def rest(self, readers: Iterable[R], horizon_us: int) -> list[R]:
        """Have those of some wait that miss a step from now on; return these."""
        self._horizon_us = horizon_us
        found = [
            each
            for each in readers
            if each.needs and not self.waits(each) and each.due_us is None and self._misses(each)
        ]
        for reader in found:
            self._wait(reader)
        grown, self._grown = self._grown & self._streams.keys(), set()
        for stream in grown:
            if self._streams[stream].size > max(self._swept_min, self._streams[stream].swept):
                self._sweep(stream)
        return found

    def _sweep(self, stream: str) -> None:
        """Forget the oldest rows of a stream that nobody can need who waits."""
        kept = self._streams[stream]
        waiting = [each for each in kept.readers if self.waits(each)]
        since = min((self._since[each][stream] for each in waiting), default=kept.next)
        from_us = min(map(self._from_us, waiting), default=UNBOUNDED)
        gone = max(0, since - kept.first)
        while gone < len(kept.rows) and kept.rows[gone].latest_us < from_us:
            gone += 1
        kept.drop(gone)
        kept.swept = 2 * kept.size
