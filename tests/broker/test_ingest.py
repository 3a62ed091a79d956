from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.numbering import number_documents

from broker.documents.disk import Disk
from broker.documents.document import (
    FIRST_WATERMARK_US,
    DocumentError,
    DocumentLine,
    parse_document_line,
)
from broker.documents.ingest import Ingest, IngestOutcome, Receipt
from broker.documents.segment import document_batch
from broker.documents.spool import SpoolWriter

HOUR_US = 3_600_000_000


def line(
    xml: str = "<v/>",
    *,
    time: int | None = None,
    arrival: int | None = None,
    key: str | None = None,
    stream: str = "S",
) -> DocumentLine:
    return DocumentLine(stream, xml.encode(), time, arrival, key)


@pytest.fixture
def spool(tmp_path: Path) -> SpoolWriter:
    return SpoolWriter(tmp_path / "spool", Disk(is_durable=False))


def stored(spool: SpoolWriter) -> list[dict[str, object]]:
    return [
        row
        for segment in spool.all_segments()
        for row in document_batch(segment, spool.rows(segment)).to_pylist()
    ]


def test_the_same_key_and_content_is_one_document(spool: SpoolWriter) -> None:
    ingest = Ingest(spool)
    first = ingest.append([line(key="a"), line(key="a")], arrival_us=1, registry_version=1)
    again = ingest.append([line(key="a")], arrival_us=2, registry_version=1)
    assert first == [Receipt(IngestOutcome.ACCEPTED, 1, "a"), Receipt(IngestOutcome.DUPLICATE, 1)]
    assert again == [Receipt(IngestOutcome.DUPLICATE, 1)]


def test_the_same_key_with_other_content_is_a_revision(spool: SpoolWriter) -> None:
    ingest = Ingest(spool)
    lines = [line(f"<v>{i}</v>", key="a") for i in range(3)]
    receipts = ingest.append(lines, arrival_us=1, registry_version=1)
    assert [receipt.key for receipt in receipts] == ["a", "a#2", "a#3"]
    [back] = ingest.append(lines[:1], arrival_us=2, registry_version=1)
    assert back == Receipt(IngestOutcome.DUPLICATE, 1)


def test_documents_of_one_request_without_times_follow_each_other(spool: SpoolWriter) -> None:
    ingest = Ingest(spool)
    ingest.append([line(), line(), line()], arrival_us=100, registry_version=1)
    ingest.append([line()], arrival_us=101, registry_version=1)
    ingest.append([line()], arrival_us=500, registry_version=1)
    assert [row["end_us"] for row in stored(spool)] == [100, 101, 102, 103, 500]


@pytest.mark.parametrize("sizes", [(6,), (1, 5), (2, 2, 2), (1, 1, 1, 1, 1, 1)])
def test_arrivals_do_not_depend_on_how_lines_are_grouped(
    spool: SpoolWriter, sizes: tuple[int, ...]
) -> None:
    lines = [line(time=None if n % 2 else n) for n in range(6)]
    ingest = Ingest(spool)
    for size in sizes:
        ingest.append([lines.pop(0) for _ in range(size)], arrival_us=50, registry_version=1)
    assert [row["end_us"] for row in stored(spool)] == [0, 51, 2, 53, 4, 55]


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1979-12-31"])
def test_a_time_before_1980_is_none(text: str) -> None:
    fields = {"stream": "S", "xml": "<v/>", "time": text, "arrival": text}
    read = parse_document_line(json.dumps(fields))
    assert (read.time_us, read.arrival_us) == (None, None)


def test_a_field_that_there_is_not_is_refused_and_one_that_lists_have_is_not() -> None:
    fields = {"stream": "S", "xml": "<v/>", "docid": 7}
    assert parse_document_line(json.dumps(fields)) == DocumentLine("S", b"<v/>")
    with pytest.raises(DocumentError, match="a document line has no 'Key', 'tme': its fields are"):
        parse_document_line(json.dumps(fields | {"tme": "2026-01-01", "Key": "a"}))


def test_keys_and_contents_whose_hashes_are_alike_are_told_apart(
    spool: SpoolWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "broker.documents.acceptedkeys.identity_hash", lambda stream, key: bytes(16)
    )
    monkeypatch.setattr("broker.documents.acceptedkeys.content_hash", lambda xml: bytes(16))
    ingest = Ingest(spool)
    given = [line(xml, key=key, stream=s) for s in "ST" for key in "ab" for xml in ("<v/>", "<w/>")]
    outcomes = []
    for one in [*given, *given]:
        [receipt] = ingest.append([one], arrival_us=1, registry_version=1)
        outcomes.append((receipt.outcome, receipt.docid, receipt.key))
    keys = ["a", "a#2", "b", "b#2"] * 2
    assert outcomes[:8] == [(IngestOutcome.ACCEPTED, i + 1, key) for i, key in enumerate(keys)]
    assert outcomes[8:] == [(IngestOutcome.DUPLICATE, i + 1, None) for i in range(8)]


def test_a_remembered_document_costs_28_bytes(spool: SpoolWriter) -> None:
    ingest = Ingest(spool)
    for i in range(40):
        ingest.append([line(key=f"{i}.{n}") for n in range(50)], arrival_us=i, registry_version=1)
    assert ingest.remembered == (2_000, 2_000 * 28)


def test_documents_without_a_key_are_never_taken_for_one_another(spool: SpoolWriter) -> None:
    receipts = Ingest(spool).append([line(), line()], arrival_us=1, registry_version=1)
    assert [receipt.key for receipt in receipts] == ["1", "2"]


def test_no_two_documents_of_a_stream_have_one_key(spool: SpoolWriter) -> None:
    ingest = Ingest(spool)
    given = [("<v/>", None), ("<v/>", "1"), ("<v/>", "4"), ("<v/>", None), ("<v/>", "4#2")]
    given += [("<v/>", "a"), ("<w/>", "a"), ("<v/>", "a#2"), ("<x/>", "b#2"), ("<v/>", "b")]
    given += [("<w/>", "b"), ("<v/>", "a#2")]
    receipts = [
        receipt
        for xml, key in given
        for receipt in ingest.append([line(xml, key=key)], arrival_us=1, registry_version=1)
    ]
    keys = ["1", "1#2", "4", "4#2", "4#2#2", "a", "a#2", "a#2#2", "b#2", "b", "b#3", None]
    assert [receipt.key for receipt in receipts] == keys
    assert receipts[-1] == Receipt(IngestOutcome.DUPLICATE, 8)


@pytest.mark.parametrize("beside", ["a", "c"])
def test_a_key_like_a_revision_is_passed_over_whatever_comes_with_it(
    spool: SpoolWriter, beside: str
) -> None:
    ingest = Ingest(spool)
    for xml in ("<v/>", "<w/>"):
        ingest.append([line(xml, key="a")], arrival_us=1, registry_version=1)
    lines = [line("<x/>", key=beside), line("<y/>", key="a#2")]
    receipts = ingest.append(lines, arrival_us=1, registry_version=1)
    assert [receipt.key for receipt in receipts] == [{"a": "a#3", "c": "c"}[beside], "a#2#2"]


def test_keys_of_different_streams_do_not_meet(spool: SpoolWriter) -> None:
    lines = [line(key="a"), line(key="a", stream="T")]
    receipts = Ingest(spool).append(lines, arrival_us=1, registry_version=1)
    assert [receipt.outcome for receipt in receipts] == [IngestOutcome.ACCEPTED] * 2


def test_a_repetition_is_recognised_after_a_restart(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path, Disk(is_durable=False))
    lines = [line("<v>1</v>", key="a"), line("<v>2</v>", key="a")]
    Ingest(spool).append(lines, arrival_us=1, registry_version=1)
    spool.close()
    ingest = Ingest(SpoolWriter(tmp_path, Disk(is_durable=False)))
    receipts = ingest.append([*lines, line("<v>3</v>", key="a")], arrival_us=2, registry_version=1)
    assert receipts == [
        Receipt(IngestOutcome.DUPLICATE, 1),
        Receipt(IngestOutcome.DUPLICATE, 2),
        Receipt(IngestOutcome.ACCEPTED, 3, "a#3"),
    ]


def test_a_repetition_behind_the_horizon_is_a_new_document(spool: SpoolWriter) -> None:
    ingest = Ingest(spool, dedup_horizon_us=HOUR_US)
    outcomes = [
        ingest.append([line(key="a")], arrival_us=arrival_us, registry_version=1)[0].outcome.value
        for arrival_us in (0, HOUR_US // 2, HOUR_US, 2 * HOUR_US, 3 * HOUR_US)
    ]
    assert outcomes == ["accepted", "duplicate", "duplicate", "accepted", "duplicate"]


def test_an_event_time_behind_the_arrival_is_set_back_to_it(spool: SpoolWriter) -> None:
    Ingest(spool).append([line(time=500), line(time=20)], arrival_us=100, registry_version=1)
    assert [row["end_us"] for row in stored(spool)] == [100, 20]
    assert [row["watermark_us"] for row in stored(spool)] == [FIRST_WATERMARK_US, 100]
    assert spool.rows(spool.all_segments()[0]).column("claimed_us").to_pylist() == [500, None]


def test_a_recorded_line_arrives_at_the_latest_time_so_far(spool: SpoolWriter) -> None:
    lines = [line(time=50), line(time=20), line(), line(arrival=30), line(time=70, arrival=60)]
    Ingest(spool).append(lines, registry_version=1)
    assert [row["end_us"] for row in stored(spool)] == [50, 20, 50, 30, 60]
    rows = spool.rows(spool.all_segments()[0])
    assert rows.column("arrival_us").to_pylist() == [50, 50, 50, 30, 60]


def test_a_recorded_line_without_any_time_is_refused(spool: SpoolWriter) -> None:
    refused, accepted = Ingest(spool).append([line(), line(time=1)], registry_version=1)
    assert refused.outcome is IngestOutcome.REFUSED
    assert "'time'" in (refused.reason or "")
    assert accepted.docid == 1


def test_a_document_that_is_too_large_is_refused_and_the_others_are_not(spool: SpoolWriter) -> None:
    ingest = Ingest(spool, document_bytes_max=10)
    receipts = ingest.append([line("<v>long</v>"), line()], arrival_us=1, registry_version=1)
    assert [receipt.outcome for receipt in receipts] == [
        IngestOutcome.REFUSED,
        IngestOutcome.ACCEPTED,
    ]
    assert receipts[0].reason == "a document of 11 bytes; the limit is 10"


def test_a_stream_that_a_query_publishes_takes_nothing_from_outside(spool: SpoolWriter) -> None:
    ingest = Ingest(spool)
    ingest.closed_streams = {"P"}
    [receipt] = ingest.append([line(stream="P")], arrival_us=1, registry_version=1)
    assert receipt.outcome is IngestOutcome.REFUSED


@pytest.mark.parametrize("stream", ["bad stream", "2nd", "a:b", "*", "x" * 201])
def test_a_stream_that_no_query_could_name_takes_nothing(spool: SpoolWriter, stream: str) -> None:
    [refused, receipt] = Ingest(spool).append(
        [line(stream=stream), line(stream="zürich-2026.a_b")], arrival_us=1, registry_version=1
    )
    assert (refused.outcome, receipt.outcome) == (IngestOutcome.REFUSED, IngestOutcome.ACCEPTED)
    assert "name" in (refused.reason or "")


def test_nothing_accepted_writes_no_segment(spool: SpoolWriter) -> None:
    Ingest(spool).append([], arrival_us=1, registry_version=1)
    assert spool.last == 0


lines = st.lists(
    st.builds(
        line,
        st.sampled_from(["<v>1</v>", "<v>2</v>", "<w/>"]),
        time=st.one_of(st.none(), st.integers(0, 50)),
        arrival=st.one_of(st.none(), st.integers(0, 50)),
        key=st.sampled_from([None, "a", "b", "a#2", "3", "4#2", "6"]),
        stream=st.sampled_from(["S", "T"]),
    ),
    max_size=12,
).map(lambda tail: [line(time=10), *tail])


@given(lines, st.lists(st.integers(1, 5), min_size=1))
def test_numbering_agrees_with_the_oracle_however_lines_are_grouped(
    tmp_path_factory: pytest.TempPathFactory, lines: list[DocumentLine], sizes: list[int]
) -> None:
    directory = tmp_path_factory.mktemp("spool")
    rest = lines
    for i in range(len(lines)):
        # A new writer each time: a restart between any two segments changes nothing either.
        spool = SpoolWriter(directory, Disk(is_durable=False))
        if i == 0:
            ingest = Ingest(spool)
        size = sizes[i % len(sizes)]
        ingest = Ingest(spool, recorded_time_us=ingest.recorded_time_us)
        ingest.append(rest[:size], registry_version=1)
        rest = rest[size:]
        spool.close()
    spool = SpoolWriter(directory, Disk(is_durable=False))
    assert [
        (row["docid"], row["stream"], row["key"], row["end_us"], row["watermark_us"], row["xml"])
        for row in stored(spool)
    ] == [
        (d.docid, d.stream, d.key, d.end_us, d.watermark_us, d.xml) for d in number_documents(lines)
    ]
    spool.close()
