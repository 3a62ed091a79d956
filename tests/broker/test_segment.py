from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest

import broker.documents.head
from broker.documents.head import Segment, SegmentError, read_header
from broker.documents.segment import SEGMENT_SCHEMA, document_batch, encode_segment, read_rows
from broker.documents.stored import document_of
from xpath_eval.witnesses import DOCUMENT_SCHEMA


def rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "stream": "S",
                "key": f"k{i}",
                "end_us": i,
                "arrival_us": i,
                "claimed_us": None,
                "watermark_us": i - 1,
                "identity": None,
                "content": None,
                "revision": 0,
                "xml": f"<v>{i}</v>".encode(),
            }
            for i in range(count)
        ],
        schema=SEGMENT_SCHEMA,
    )


def segment(count: int) -> Segment:
    return Segment(
        first=3,
        last=3,
        first_docid=11,
        documents=count,
        registry_version=2,
        end_min_us=0,
        end_max_us=count - 1,
        watermark_us=count - 1,
        arrival_us=count - 1,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / segment(4).name
    path.write_bytes(b"".join(encode_segment(segment(4), rows(4))))
    return path


def test_a_segment_comes_back_as_it_was_written(path: Path) -> None:
    assert read_header(path) == segment(4)
    assert read_rows(path, is_verified=True).equals(rows(4))


def test_a_segment_of_an_earlier_release_has_the_bytes_of_its_payload(tmp_path: Path) -> None:
    def without(described: Segment) -> dict[str, object]:
        return {k: v for k, v in dataclasses.asdict(described).items() if k != "nbytes"}

    path = tmp_path / segment(4).name
    with mock.patch.object(broker.documents.head, "asdict", without):
        path.write_bytes(b"".join(encode_segment(segment(4), rows(4))))
    found = read_header(path)
    assert found.nbytes > rows(4).nbytes
    assert replace(found, nbytes=0) == segment(4)


def test_rows_become_documents_with_consecutive_numbers(path: Path) -> None:
    batch = document_batch(read_header(path), read_rows(path), 1, 3)
    assert batch.schema == DOCUMENT_SCHEMA
    assert batch.to_pylist() == [
        {
            "docid": 11 + i,
            "depth": 0,
            "match_id": "",
            "stream": "S",
            "key": f"k{i}",
            "start_us": i,
            "end_us": i,
            "watermark_us": i - 1,
            "revision": 0,
            "xml": f"<v>{i}</v>".encode(),
        }
        for i in (1, 2)
    ]


def test_only_documents_of_a_publishers_key_are_revisions() -> None:
    found = rows(2).to_pylist()
    found[0] |= {"revision": 1, "identity": b"a" * 16, "content": b"b" * 16}
    found[1] |= {"revision": 1}  # it is called `12#2`, since somebody else's key is `12`
    batch = pa.RecordBatch.from_pylist(found, schema=SEGMENT_SCHEMA)
    assert document_batch(segment(2), batch).column("revision").to_pylist() == [1, 0]
    assert [document_of(11 + i, row).revision for i, row in enumerate(found)] == [1, 0]


def test_a_segment_cut_short_anywhere_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(SegmentError):
            read_header(path)


def test_a_changed_byte_anywhere_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    for at in range(0, len(whole), 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        with pytest.raises(SegmentError):
            read_rows(path, is_verified=True)


def test_a_later_format_is_refused(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[8] = 99
    path.write_bytes(whole)
    with pytest.raises(SegmentError, match="format 99"):
        read_header(path)
