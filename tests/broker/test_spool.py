from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.head import Segment, SegmentError
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolError, SpoolWriter

SECOND_US = 1_000_000


def line(number: int) -> DocumentLine:
    return DocumentLine("S", f"<v>{number}</v>".encode(), time_us=number * SECOND_US)


def fill(writer: SpoolWriter, sizes: Iterable[int], *, version: int = 1) -> None:
    ingest = Ingest(writer)
    for size in sizes:
        numbers = range(writer.next_docid, writer.next_docid + size)
        ingest.append([line(number) for number in numbers], registry_version=version)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def open_writer(directory: Path, **options: int) -> SpoolWriter:
    return SpoolWriter(directory, Disk(is_durable=False), **options)


def everything(spool: Spool) -> dict[int, bytes]:
    return spool.documents(range(100))


def expected(docids: Iterable[int]) -> dict[int, bytes]:
    return {docid: f"<v>{docid}</v>".encode() for docid in docids}


def test_documents_are_found_by_number_after_a_restart(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [3, 1, 4])
    writer.close()
    writer = open_writer(directory)
    fill(writer, [2])
    assert everything(Spool(directory)) == expected(range(1, 11))
    assert writer.watermark_us == 10 * SECOND_US


def test_a_reader_sees_what_is_appended_after_it_opened(directory: Path) -> None:
    writer = open_writer(directory)
    spool = Spool(directory)
    assert spool.last == 0
    fill(writer, [2])
    spool.refresh()
    assert [segment.name for segment in spool.segments()] == ["000000000001-000000000001.segment"]


def test_only_one_process_writes(directory: Path) -> None:
    first = open_writer(directory)
    with pytest.raises(SpoolError, match="another process"):
        open_writer(directory)
    first.close()
    open_writer(directory).close()


def test_what_a_crash_left_half_written_is_removed(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [2])
    writer.close()
    (directory / "000000000002-000000000002.segment.tmp").write_bytes(b"half")
    writer = open_writer(directory)
    assert sorted(path.name for path in directory.iterdir()) == [
        "000000000001-000000000001.segment",
        "lock",
    ]
    assert writer.last == 1


def test_a_torn_segment_that_nobody_has_processed_is_set_aside(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [2, 2])
    writer.close()
    newest = directory / "000000000002-000000000002.segment"
    newest.write_bytes(newest.read_bytes()[:-8])
    writer = open_writer(directory, processed=1)
    assert (writer.last, writer.next_docid) == (1, 3)
    assert newest.with_suffix(".torn").exists()
    fill(writer, [1])
    assert everything(writer) == expected([1, 2, 3])


def test_a_segment_of_a_later_release_stops_the_broker_and_is_left_as_it_is(
    directory: Path,
) -> None:
    writer = open_writer(directory)
    fill(writer, [2, 2])
    writer.close()
    newest = directory / "000000000002-000000000002.segment"
    later = bytearray(newest.read_bytes())
    later[8] += 1
    newest.write_bytes(later)
    with pytest.raises(SegmentError, match="has format 2"):
        open_writer(directory, processed=1)
    assert newest.read_bytes() == later


def test_a_damaged_segment_that_was_processed_stops_the_broker(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [2, 2])
    writer.close()
    newest = directory / "000000000002-000000000002.segment"
    newest.write_bytes(newest.read_bytes()[:-8])
    with pytest.raises(SpoolError, match="damaged"):
        open_writer(directory, processed=2)


def test_a_missing_segment_stops_the_broker(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [1, 1, 1])
    writer.close()
    (directory / "000000000002-000000000002.segment").unlink()
    with pytest.raises(SpoolError, match="nothing between"):
        open_writer(directory)


def test_compaction_changes_files_but_no_documents(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [2, 3, 1, 4])
    assert writer.compact(through=3, documents_max=6) == 3
    assert [(segment.first, segment.last) for segment in writer.all_segments()] == [(1, 3), (4, 4)]
    assert everything(Spool(directory)) == expected(range(1, 11))
    fill(writer, [1])
    writer.close()
    assert everything(open_writer(directory)) == expected(range(1, 12))


def test_large_segments_are_not_copied_again(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [1, 1, 6, 1, 1])
    while writer.compact(through=5, documents_max=10):
        pass
    assert [(s.first, s.last) for s in writer.all_segments()] == [(1, 2), (3, 3), (4, 5)]


def test_a_reader_finds_documents_that_are_compacted_behind_its_back(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [2, 2])
    spool = Spool(directory)
    writer.compact(through=2, documents_max=100)
    assert everything(spool) == expected(range(1, 5))


def test_a_reader_finds_documents_that_are_compacted_again_and_again(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [1] * 12)
    sizes = [3, 6, 12]

    class Merged(Spool):
        """Has segments merged whenever it is to read one."""

        def rows(self, segment: Segment) -> pa.RecordBatch:
            if sizes:
                assert writer.compact(through=12, documents_max=sizes.pop(0))
            return super().rows(segment)

    assert everything(Merged(directory)) == expected(range(1, 13))
    assert not sizes


def test_compaction_keeps_segments_of_different_registry_versions_apart(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [1, 1], version=1)
    fill(writer, [1, 1], version=2)
    while writer.compact(through=4, documents_max=100):
        pass
    assert [(s.first, s.last, s.registry_version) for s in writer.all_segments()] == [
        (1, 2, 1),
        (3, 4, 2),
    ]


def test_a_crash_during_compaction_leaves_every_document_once(directory: Path) -> None:
    def stop_at(point: str) -> Callable[[str], None]:
        def reached(name: str) -> None:
            if name == point:
                raise KeyboardInterrupt

        return reached

    for point in ("file written", "file renamed", "file durable"):
        writer = open_writer(directory / point)
        fill(writer, [2, 2, 2])
        writer.close()
        doomed = SpoolWriter(directory / point, Disk(is_durable=False, reached=stop_at(point)))
        with pytest.raises(KeyboardInterrupt):
            doomed.compact(through=3, documents_max=100)
        doomed.close()
        # A reader in another process must not stumble over the leftovers either.
        assert everything(Spool(directory / point)) == expected(range(1, 7))
        assert everything(open_writer(directory / point)) == expected(range(1, 7))


def test_pruned_documents_are_gone_and_numbers_go_on(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [2, 2, 2])
    assert writer.prune(2) == 2
    writer.close()
    writer = open_writer(directory)
    assert everything(writer) == expected([5, 6])
    fill(writer, [1])
    assert (writer.last, writer.next_docid) == (4, 8)
    with pytest.raises(SpoolError, match="segment 1 is not in"):
        writer.segments(0)


def test_the_newest_segment_is_never_pruned(directory: Path) -> None:
    writer = open_writer(directory)
    fill(writer, [2])
    assert writer.prune(1) == 0


class FullDisk(Disk):
    """A disk without room for the next file."""

    def __init__(self) -> None:
        super().__init__(is_durable=False)
        self.is_full = False

    def _write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        if self.is_full:
            path.write_bytes(b"as much as fits")
            raise OSError(errno.ENOSPC, "No space left on device")
        super()._write(path, chunks)


def test_a_full_disk_accepts_nothing_and_loses_nothing(directory: Path) -> None:
    disk = FullDisk()
    writer = SpoolWriter(directory, disk)
    ingest = Ingest(writer)
    lines = [DocumentLine("S", b"<v>1</v>", time_us=1, key="k")]
    disk.is_full = True
    with pytest.raises(OSError, match="No space"):
        ingest.append(lines, registry_version=1)
    assert not list(directory.glob("*.segment*"))
    disk.is_full = False
    [receipt] = ingest.append(lines, registry_version=1)
    assert (receipt.docid, receipt.outcome.value) == (1, "accepted")
