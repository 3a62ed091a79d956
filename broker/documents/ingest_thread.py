"""Accept documents from many callers at once: group commit, back-pressure, registry changes.

Everything that waits while one segment is written goes into the next one, so the cost of a flush
is shared.  A caller whose documents do not fit is told so at once (`Busy`), never kept waiting.

    submit         lines -> a future of their receipts, resolved when they are durable
    exclusively    an action between two segments; what it changes holds from a definite docid
    tick           a document without content, written when nothing else came for some time
    probe          as many bytes as could not be written, tried until they can be

Invariants: segments are written by this thread alone; arrival times never decrease.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from broker.documents.document import FIRST_WATERMARK_US, DocumentLine, tick
from broker.documents.ingest import Ingest, Receipt
from broker.documents.late import LateDocuments
from broker.documents.segment import SEGMENT_BYTES_MAX
from broker.documents.spool import SpoolWriter

__all__ = ["Busy", "IngestThread", "Submit"]

QUEUE_BYTES_MAX = 256 << 20
QUEUE_DOCUMENTS_MAX = 100_000
"""What may wait to be written; beyond it a caller gets `Busy`."""

LINGER_S = 0.02
"""How long a segment waits for more documents: a fifth of the time that one micro-batch takes."""

_TOLD_EVERY_S = 60.0
"""How often the log says that nothing can be written."""

_PROBE_EVERY_S = 1.0
"""How often it is tried whether something can be written again."""

_log = logging.getLogger(__name__)

T = TypeVar("T")

Submit = Callable[[Sequence[DocumentLine]], Future[list[Receipt]]]
"""Queues document lines; see `IngestThread.submit`."""


class Busy(RuntimeError):  # noqa: N818 - it is an answer, not a fault
    """The broker cannot take more documents now; try again after `retry_after_s`."""

    def __init__(self, reason: str, retry_after_s: float = 1.0) -> None:
        super().__init__(f"{reason}; try again in {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class _Submission:
    lines: Sequence[DocumentLine]
    nbytes: int
    future: Future[list[Receipt]]


@dataclass(frozen=True, slots=True)
class _Unwritten:
    """What the disk did not take, and why."""

    nbytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Action:
    run: Callable[[int], Any]
    future: Future[Any]


class IngestThread:
    """The one writer of a broker's spool.

    `registry_version` is read for each segment.  `behind` returns a reason when the pipeline is so
    far behind that no more documents should be taken, else None.  `on_written` gets the seconds
    that each segment took to be durable, and the receipts of its documents.  A tick is written
    when nothing has been for `tick_s`, unless that is 0 or nothing waits for time to pass.
    """

    def __init__(
        self,
        ingest: Ingest,
        spool: SpoolWriter,
        *,
        registry_version: Callable[[], int],
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        behind: Callable[[], str | None] = lambda: None,
        linger_s: float = LINGER_S,
        tick_s: float = 0.0,
        on_written: Callable[[float, Sequence[Receipt]], None] = lambda seconds, receipts: None,
    ) -> None:
        self._ingest = ingest
        self._spool = spool
        self._registry_version = registry_version
        self._now_us = now_us
        self._behind = behind
        self._linger_s = linger_s
        self._tick_s = tick_s or None
        self._told_s = -_TOLD_EVERY_S
        self._unwritten: _Unwritten | None = None
        self._on_written = on_written
        self._arrival_us = spool.newest.arrival_us if spool.newest else FIRST_WATERMARK_US
        self._queue: deque[_Submission | _Action] = deque()
        self._queued_bytes = 0
        self._queued_documents = 0
        self._is_stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)

    def start(self) -> None:
        """Begin to accept documents."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, then end."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._thread.join()

    @property
    def unwritable(self) -> str | None:
        """Why documents cannot be written, by the last try; None where they can."""
        return self._unwritten.reason if self._unwritten else None

    @property
    def late(self) -> LateDocuments:
        """The documents that came too late to be joined with anything, since the start."""
        return self._ingest.late

    def submit(self, lines: Sequence[DocumentLine]) -> Future[list[Receipt]]:
        """Queue lines; the future has their receipts once they are durable.

        Raises `Busy` if they do not fit, if the pipeline is behind or the broker is stopping.  The
        future fails with `Busy` if the disk does not take them; none of them is accepted then.
        """
        nbytes = sum(len(line.xml) for line in lines)
        reason = self._behind()
        with self._changed:
            if self._is_stopping:
                raise Busy("the broker is stopping", 5.0)
            if reason is not None:
                raise Busy(reason)
            if self._is_full(len(lines), nbytes):
                raise Busy(f"{self._queued_documents} documents are waiting to be written")
            submission = _Submission(lines, nbytes, Future())
            self._queued_bytes += nbytes
            self._queued_documents += len(lines)
            self._queue.append(submission)
            self._changed.notify()
        return submission.future

    def exclusively(self, action: Callable[[int], T]) -> Future[T]:
        """Run an action between two segments, with the last docid accepted so far."""
        future: Future[T] = Future()
        with self._changed:
            if self._is_stopping:
                raise Busy("the broker is stopping", 5.0)
            self._queue.append(_Action(action, future))
            self._changed.notify()
        return future

    def _is_full(self, documents: int, nbytes: int) -> bool:
        if not self._queue:
            return False
        return (
            self._queued_documents + documents > QUEUE_DOCUMENTS_MAX
            or self._queued_bytes + nbytes > QUEUE_BYTES_MAX
        )

    def _run(self) -> None:
        while True:
            with self._changed:
                rest_s = _PROBE_EVERY_S if self._unwritten else self._tick_s
                self._changed.wait_for(lambda: self._queue or self._is_stopping, rest_s)
                if not self._queue and self._is_stopping:
                    return
                is_silent = not self._queue
                if is_silent and not self._unwritten and not self._ingest.waits_for_time():
                    continue
                if (
                    not is_silent
                    and not self._is_stopping
                    and isinstance(self._queue[0], _Submission)
                ):
                    self._changed.wait_for(lambda: self._is_stopping, self._linger_s)
                group = [_Submission([tick()], 0, Future())] if is_silent else self._take()
            if is_silent and self._unwritten:
                self._probe(self._unwritten)
            else:
                self._perform(group)

    def _take(self) -> _Action | list[_Submission]:
        if isinstance(self._queue[0], _Action):
            action = self._queue.popleft()
            assert isinstance(action, _Action)
            return action
        group: list[_Submission] = []
        size = 0
        while self._queue and isinstance(head := self._queue[0], _Submission):
            if group and size + head.nbytes > SEGMENT_BYTES_MAX:
                break
            self._queue.popleft()
            group.append(head)
            size += head.nbytes
            self._queued_bytes -= head.nbytes
            self._queued_documents -= len(head.lines)
        return group

    def _perform(self, group: _Action | list[_Submission]) -> None:
        # Who has asked may be gone; from here on nobody can take back what was asked.
        if isinstance(group, _Action):
            if group.future.set_running_or_notify_cancel():
                _resolve(group.future, partial(group.run, self._spool.next_docid - 1))
            return
        group = [member for member in group if member.future.set_running_or_notify_cancel()]
        if not group:
            return
        try:
            receipts = self._write([line for member in group for line in member.lines])
        except OSError as error:
            self._tell(error)
            reason = f"the spool cannot be written: {error}"
            self._unwritten = _Unwritten(sum(member.nbytes for member in group) or 1, reason)
            for member in group:
                member.future.set_exception(Busy(reason, 5.0))
            return
        except BaseException as error:
            for member in group:
                member.future.set_exception(error)
            return
        self._unwritten = None
        start = 0
        for member in group:
            member.future.set_result(receipts[start : start + len(member.lines)])
            start += len(member.lines)

    def _probe(self, unwritten: _Unwritten) -> None:
        try:
            self._spool.probe(unwritten.nbytes)
        except OSError:
            return
        self._unwritten = None

    def _tell(self, error: OSError) -> None:
        """Log that nothing is taken, once in a while: publishers try again and again."""
        if time.monotonic() - self._told_s >= _TOLD_EVERY_S:
            self._told_s = time.monotonic()
            _log.error("no document is taken: the spool cannot be written: %s", error)

    def _write(self, lines: Sequence[DocumentLine]) -> list[Receipt]:
        # The clock may step back; arrival times do not.
        self._arrival_us = max(self._arrival_us, self._now_us())
        version = self._registry_version()
        started = time.perf_counter()
        receipts = self._ingest.append(lines, arrival_us=self._arrival_us, registry_version=version)
        if not all(line.is_tick for line in lines):
            self._on_written(time.perf_counter() - started, receipts)
        return receipts


def _resolve(future: Future[Any], action: Callable[[], Any]) -> None:
    try:
        future.set_result(action())
    except BaseException as error:
        future.set_exception(error)
