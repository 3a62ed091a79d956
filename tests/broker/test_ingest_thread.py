from __future__ import annotations

import errno
import queue
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from broker.documents import ingest_thread
from broker.documents.disk import Disk
from broker.documents.document import CLOCK, DocumentLine
from broker.documents.ingest import Ingest, IngestOutcome
from broker.documents.ingest_thread import Busy, IngestThread
from broker.documents.spool import SpoolWriter
from broker.documents.stored import documents_of


def line(number: int) -> DocumentLine:
    return DocumentLine("S", f"<v>{number}</v>".encode())


class SlowDisk(Disk):
    """A disk that writes when it is told to, and can be full."""

    def __init__(self) -> None:
        super().__init__(is_durable=False)
        self.may_write = threading.Event()
        self.may_write.set()
        self.is_writing = threading.Event()
        self.is_full = False
        self.probed: queue.Queue[int] = queue.Queue()

    def publish(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        self.is_writing.set()
        assert self.may_write.wait(10)
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().publish(path, chunks)

    def probe(self, directory: Path, nbytes: int) -> None:
        self.probed.put(nbytes)
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().probe(directory, nbytes)


class Stand:
    def __init__(self, directory: Path) -> None:
        self.disk = SlowDisk()
        self.spool = SpoolWriter(directory, self.disk)
        self.now_us = 1000
        self.version = 1
        self.behind: str | None = None
        self.thread = IngestThread(
            Ingest(self.spool),
            self.spool,
            registry_version=lambda: self.version,
            now_us=lambda: self.now_us,
            behind=lambda: self.behind,
            linger_s=0,
        )

    def hold(self) -> None:
        """Have the disk wait with a first document, so that what comes next queues up."""
        self.disk.may_write.clear()
        self.disk.is_writing.clear()
        self.thread.submit([line(0)])
        assert self.disk.is_writing.wait(10)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    stand = Stand(tmp_path)
    stand.thread.start()
    yield stand
    stand.disk.may_write.set()
    stand.thread.stop()


def test_a_receipt_comes_when_the_document_is_on_the_disk(stand: Stand) -> None:
    stand.disk.may_write.clear()
    future = stand.thread.submit([line(1)])
    assert stand.disk.is_writing.wait(10)
    assert not future.done()
    stand.disk.may_write.set()
    [receipt] = future.result(10)
    assert (receipt.outcome, receipt.docid) == (IngestOutcome.ACCEPTED, 1)
    assert stand.spool.documents([1]) == {1: b"<v>1</v>"}


def test_what_waits_for_the_disk_shares_one_segment(stand: Stand) -> None:
    stand.hold()
    futures = [stand.thread.submit([line(number)]) for number in range(1, 6)]
    stand.disk.may_write.set()
    assert [future.result(10)[0].docid for future in futures] == [2, 3, 4, 5, 6]
    assert stand.spool.last == 2


def test_too_much_waiting_is_refused_at_once(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_thread, "QUEUE_DOCUMENTS_MAX", 3)
    stand.hold()
    waiting = stand.thread.submit([line(1), line(2), line(3)])
    with pytest.raises(Busy, match="try again in 1 s"):
        stand.thread.submit([line(4)])
    stand.disk.may_write.set()
    assert len(waiting.result(10)) == 3
    assert stand.thread.submit([line(4)]).result(10)[0].docid == 5


def test_a_pipeline_that_is_behind_refuses_documents(stand: Stand) -> None:
    stand.behind = "100000 documents are not evaluated yet"
    with pytest.raises(Busy, match="not evaluated yet"):
        stand.thread.submit([line(1)])
    stand.behind = None
    assert stand.thread.submit([line(1)]).result(10)[0].docid == 1


def test_a_full_disk_is_an_answer_and_the_document_can_be_sent_again(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    stand.disk.is_full = True
    for _ in range(3):
        future = stand.thread.submit([line(1)])
        with pytest.raises(Busy, match="No space left"):
            future.result(10)
    # Whoever runs the broker hears of it, once a minute.
    (said,) = [each.getMessage() for each in caplog.records]
    assert said.startswith("no document is taken: the spool cannot be written")
    stand.disk.is_full = False
    assert stand.thread.submit([line(1)]).result(10)[0].docid == 1


def test_it_is_said_that_nothing_can_be_written_until_it_can(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_thread, "_PROBE_EVERY_S", 0.01)
    assert stand.thread.unwritable is None
    stand.disk.is_full = True
    failed = stand.thread.submit([line(1)])
    with pytest.raises(Busy):
        failed.result(10)
    # Nobody has to publish for it to be found out that there is room again.
    for _ in range(3):
        assert stand.disk.probed.get(timeout=10) == len(line(1).xml)
        assert "No space left" in (stand.thread.unwritable or "")
    stand.disk.is_full = False
    while stand.thread.unwritable is not None:
        threading.Event().wait(0.01)
    assert stand.spool.newest is None
    assert list(stand.spool.directory.glob("probe*")) == []


def test_arrival_times_never_step_back(stand: Stand) -> None:
    stand.thread.submit([line(1)]).result(10)
    stand.now_us = 500
    stand.thread.submit([line(2)]).result(10)
    assert [segment.arrival_us for segment in stand.spool.all_segments()] == [1000, 1001]


def test_a_change_of_queries_holds_from_the_docid_that_it_is_told(stand: Stand) -> None:
    stand.hold()

    def change(newest_docid: int) -> int:
        stand.version = 2
        return newest_docid

    before = stand.thread.submit([line(1)])
    changed = stand.thread.exclusively(change)
    after = stand.thread.submit([line(2)])
    stand.disk.may_write.set()
    assert before.result(10)[0].docid == changed.result(10) == 2
    assert after.result(10)[0].docid == 3
    assert [(s.first_docid, s.registry_version) for s in stand.spool.all_segments()] == [
        (1, 1),
        (2, 1),
        (3, 2),
    ]


def test_a_change_that_fails_fails_alone(stand: Stand) -> None:
    def change(newest_docid: int) -> int:
        raise ValueError("no such query")

    with pytest.raises(ValueError, match="no such query"):
        stand.thread.exclusively(change).result(10)
    assert stand.thread.submit([line(1)]).result(10)[0].docid == 1


def test_who_asks_no_more_holds_up_nobody(stand: Stand) -> None:
    done: list[int] = []
    stand.hold()
    gone, kept = stand.thread.submit([line(1)]), stand.thread.submit([line(2)])
    gone_action = stand.thread.exclusively(done.append)
    assert gone.cancel()
    assert gone_action.cancel()
    stand.disk.is_writing.clear()
    stand.disk.may_write.set()
    assert [receipt.docid for receipt in kept.result(10)] == [2]
    stand.disk.may_write.clear()
    stand.disk.is_writing.clear()
    late = stand.thread.submit([line(3)])
    assert stand.disk.is_writing.wait(10)
    assert not late.cancel()
    stand.disk.may_write.set()
    assert [receipt.docid for receipt in late.result(10)] == [3]
    assert stand.thread.submit([line(4)]).result(10)[0].docid == 4
    assert done == []


def test_stopping_writes_what_waits_and_takes_no_more(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    stand.thread.start()
    stand.hold()
    future = stand.thread.submit([line(1)])
    stand.disk.may_write.set()
    stand.thread.stop()
    assert future.result(0)[0].docid == 2
    with pytest.raises(Busy, match="stopping"):
        stand.thread.submit([line(2)])


def test_a_silent_clock_ticks_and_a_busy_one_does_not(tmp_path: Path) -> None:
    written: list[int] = []
    has_ticked = threading.Event()
    spool = SpoolWriter(tmp_path, Disk(is_durable=False))

    def now_us() -> int:
        if spool.next_docid > 2:
            has_ticked.set()
        return 1_000

    thread = IngestThread(
        Ingest(spool),
        spool,
        registry_version=lambda: 1,
        now_us=now_us,
        linger_s=0,
        tick_s=0.01,
        on_written=lambda seconds, receipts: written.append(len(receipts)),
    )
    thread.start()
    [receipt] = thread.submit([line(1)]).result(10)
    assert receipt.outcome is IngestOutcome.ACCEPTED
    assert has_ticked.wait(10)
    thread.stop()
    ticks = [d for s in spool.all_segments() for d in documents_of(spool, s) if d.stream == CLOCK]
    assert ticks
    assert all(d.xml == b"" and d.end_us == d.arrival_us for d in ticks)
    assert written == [1]


def test_nothing_ticks_where_nothing_waits_for_time(tmp_path: Path) -> None:
    """A tick would make what is recorded too late for those that follow in a minute."""
    spool = SpoolWriter(tmp_path, Disk(is_durable=False))
    ingest = Ingest(spool)
    asked: queue.Queue[None] = queue.Queue()

    def waits_for_time() -> bool:
        asked.put(None)
        return False

    ingest.waits_for_time = waits_for_time
    thread = IngestThread(ingest, spool, registry_version=lambda: 1, linger_s=0, tick_s=0.01)
    thread.start()
    for _ in range(3):
        asked.get(timeout=10)
    assert thread.submit([line(1)]).result(10)[0].docid == 1
    thread.stop()


def test_nobody_publishes_to_the_clock(stand: Stand) -> None:
    [receipt] = stand.thread.submit([DocumentLine(CLOCK, b"<v/>")]).result(10)
    assert receipt.outcome is IngestOutcome.REFUSED
    assert receipt.reason == "stream 'CLOCK' is the broker's own"
