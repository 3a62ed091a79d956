"""Records become documents, once; a stand-in for Kafka has the schema of Spark's connector."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from support.examples import some

import broker.pipeline.kafka
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest, IngestOutcome, Receipt
from broker.documents.ingest_thread import Busy, IngestThread
from broker.documents.spool import Spool, SpoolWriter
from broker.pipeline.kafka import COLUMNS, RecordTaker, checkpoint_of, document_lines, records_of
from broker.settings.config import KafkaSettings, parse_settings

if TYPE_CHECKING:
    from broker.pipeline.spark import Records, Spark

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint,"
    " timestamp timestamp, timestampType int"
)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class StandIn(DataSource):
    """A topic with one partition: the lines of a file."""

    @classmethod
    def name(cls) -> str:
        return "kafka-stand-in"

    def schema(self) -> str:
        return SCHEMA

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:  # noqa: N802
        return StandInReader(self.options)


class StandInReader(SimpleDataSourceStreamReader):
    def __init__(self, options: Any) -> None:
        self.path = Path(options["path"])

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"0": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[Any, ...]], dict[str, int]]:
        end = {"0": len(self.path.read_text().splitlines())}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(  # noqa: N802
        self, start: dict[str, int], end: dict[str, int]
    ) -> Iterator[tuple[Any, ...]]:
        values = self.path.read_text().splitlines()
        rows = [
            (
                None,
                values[i].encode(),
                "news",
                0,
                i,
                datetime(2026, 1, 1, 12, i % 60, tzinfo=UTC),
                0,
            )
            for i in range(start["0"], end["0"])
        ]
        return iter(rows)


def table(*rows: tuple[int, int, bytes | None]) -> pa.Table:
    """Return records as the connector's rows, from (partition, offset, value)."""
    columns = [
        pa.array(["news"] * len(rows)),
        pa.array([p for p, _, _ in rows], pa.int32()),
        pa.array([o for _, o, _ in rows], pa.int64()),
        pa.array([NOON] * len(rows), pa.timestamp("us", "UTC")),
        pa.array([v for *_, v in rows], pa.binary()),
    ]
    return pa.table(columns, list(COLUMNS))


def test_records_are_given_to_ingest_some_bytes_at_a_time() -> None:
    given: list[int] = []

    def submit(lines: Sequence[DocumentLine]) -> Future[list[Receipt]]:
        given.append(len(lines))
        future: Future[list[Receipt]] = Future()
        future.set_result([Receipt(IngestOutcome.ACCEPTED)] * len(lines))
        return future

    records = [(0, offset, b"<v>%d</v>" % offset) for offset in range(7)]
    with mock.patch.object(broker.pipeline.kafka, "SEGMENT_BYTES_MAX", 20):
        RecordTaker(submit, "S").take(table(*records))
    assert given == [3, 3, 1]


def test_a_record_is_a_document_with_its_place_as_key_and_its_timestamp_as_time() -> None:
    lines = document_lines(table((1, 7, b"<b/>"), (0, 9, b"<a/>"), (0, 8, None)), "S")
    assert [(line.stream, line.key, line.xml) for line in lines] == [
        ("S", "news/0/9", b"<a/>"),
        ("S", "news/1/7", b"<b/>"),
    ]
    assert {line.time_us for line in lines} == {int(NOON.timestamp()) * 1_000_000}


class Broker:
    """Ingest on a directory, and records that flow into it."""

    def __init__(self, directory: Path, spark: Spark) -> None:
        self.directory = directory
        self.spark = spark
        self.writer = SpoolWriter(directory / "spool", Disk(is_durable=False))
        self.ingest = IngestThread(
            Ingest(self.writer, document_bytes_max=20), self.writer, registry_version=lambda: 1
        )
        self.ingest.start()

    def take_all(self, records: Records) -> list[str]:
        """Take what there is, stop, and return the keys of all documents of the spool."""
        taker = RecordTaker(self.ingest.submit, "S")
        query = self.spark.consume(
            records, taker.take, checkpoint=self.directory / "kafka-checkpoint"
        )
        query.finish()
        self.ingest.stop()
        self.writer.close()
        spool = Spool(self.directory / "spool")
        rows = [spool.rows(segment) for segment in spool.all_segments()]
        return [key for each in rows for key in each.column("key").to_pylist()]


@pytest.mark.spark
@pytest.mark.parametrize("lost", some([None, "kafka-checkpoint", "kafka-checkpoint/commits"], 1))
def test_records_that_are_read_again_are_the_same_documents(
    spark: Spark, tmp_path: Path, lost: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    from broker.pipeline.spark import Records

    # The worker that reads the source cannot import a test.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark._session.dataSource.register(StandIn)
    path = tmp_path / "topic"
    records = Records("kafka-stand-in", {"path": str(path)}, COLUMNS)
    path.write_text("<a/>\n<b/>\n<a>twenty bytes is all</a>\n<a/>\n")
    places = [f"news/0/{offset}" for offset in range(7)]
    assert Broker(tmp_path, spark).take_all(records) == [*places[:2], places[3]]
    assert "record news/0/2 was refused" in caplog.text
    if lost is not None:
        shutil.rmtree(tmp_path / lost)
    with path.open("a") as file:
        file.write("<e/>\n<f/>\n<a/>\n")
    assert Broker(tmp_path, spark).take_all(records) == [*places[:2], *places[3:]]


def test_a_topic_of_the_settings_is_what_the_connector_is_asked_for(tmp_path: Path) -> None:
    text = """[[kafka]]
servers = "one:9092,two:9092"
topic = "news"
stream = "S"
options = [{ name = "kafka.security.protocol", value = "SSL" }]
"""
    (topic,) = parse_settings(text, tmp_path / "xscl.toml").kafka
    assert records_of(topic).options == {
        "kafka.bootstrap.servers": "one:9092,two:9092",
        "subscribe": "news",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "20000",
        "kafka.security.protocol": "SSL",
    }
    assert checkpoint_of(tmp_path, topic) != checkpoint_of(tmp_path, replace(topic, stream="T"))


@pytest.mark.spark
def test_without_the_connector_the_message_says_so(spark: Spark, tmp_path: Path) -> None:
    from broker.pipeline.spark import SparkError

    topic = KafkaSettings("localhost:9092", "news", "S")
    with pytest.raises(SparkError, match="Spark cannot read kafka"):
        spark.consume(records_of(topic), print, checkpoint=tmp_path)


def test_a_record_waits_for_a_busy_broker_and_no_longer_than_it_runs() -> None:
    asked: list[int] = []

    def submit(lines: Sequence[DocumentLine]) -> Future[list[Receipt]]:
        asked.append(len(lines))
        if len(asked) == 1:
            raise Busy("the broker is behind", 0.01)
        taker.stop()
        raise Busy("the broker is stopping", 60.0)

    taker = RecordTaker(submit, "S")
    with pytest.raises(Busy, match="stopping"):
        taker.take(table((0, 1, b"<a/>")))
    assert asked == [1, 1]
