"""Records of a Kafka topic as documents of a stream.

Spark's connector reads the topic; its records go through ingest like all documents, so they get
numbers, are durable before Spark notes how far it has read, and are pruned like others.  What Spark
reads again, after a crash or with its notes lost, is recognised: the key of a document is the
record's topic, partition and offset.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.document import DocumentLine
from broker.documents.ingest import IngestOutcome, Receipt
from broker.documents.ingest_thread import Busy, Submit
from broker.documents.segment import SEGMENT_BYTES_MAX
from broker.documents.sub_batches import in_sub_batches
from broker.pipeline.spark import Records
from broker.settings.config import KafkaSettings
from feeds.dates import usable

__all__ = ["COLUMNS", "RecordTaker", "checkpoint_of", "document_lines", "records_of"]

_log = logging.getLogger(__name__)

COLUMNS = ("topic", "partition", "offset", "timestamp", "value")
"""The columns of the connector's records that are read."""

RECORDS_MAX = 20_000
"""Records in a batch: they are in memory until they are durable."""


def records_of(topic: KafkaSettings) -> Records:
    """Return a topic as Spark's connector reads it."""
    options = {
        "kafka.bootstrap.servers": topic.servers,
        "subscribe": topic.topic,
        "startingOffsets": topic.begin,
        "maxOffsetsPerTrigger": str(RECORDS_MAX),
    }
    options.update({option.name: option.value for option in topic.options})
    return Records("kafka", options, COLUMNS)


def checkpoint_of(directory: Path, topic: KafkaSettings) -> Path:
    """Return where Spark notes how far a topic has been read; another topic has another place."""
    read = f"{topic.servers} {topic.topic} {topic.stream}"
    return directory / hashlib.sha256(read.encode()).hexdigest()[:16]


def document_lines(records: pa.Table, stream: str) -> list[DocumentLine]:
    """Return the documents of records, in the order of their offsets.

    The time of a document is its record's timestamp, where that is one: producers without a clock
    leave -1 or 0.  A record without a value is no document.
    """
    records = records.filter(pc.is_valid(records.column("value")))
    records = records.sort_by([("partition", "ascending"), ("offset", "ascending")])
    times = records.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    topics, partitions, offsets, _, values = (records.column(name).to_pylist() for name in COLUMNS)
    return [
        DocumentLine(stream, xml, usable(time_us), key=f"{topic}/{partition}/{offset}")
        for topic, partition, offset, time_us, xml in zip(
            topics, partitions, offsets, times.to_pylist(), values, strict=True
        )
    ]


class RecordTaker:
    """Gives records to ingest, and returns when they are durable."""

    def __init__(self, submit: Submit, stream: str) -> None:
        self._submit = submit
        self._stream = stream
        self._stopping = threading.Event()

    def take(self, records: pa.Table) -> None:
        """Accept records; waits while the broker is busy, and raises `Busy` when it stops."""
        # Records that came before a failure come again, and are recognised by their keys.
        every = document_lines(records, self._stream)
        for lines in in_sub_batches(every, lambda line: len(line.xml), SEGMENT_BYTES_MAX):
            for line, receipt in zip(lines, self._accept(lines), strict=True):
                if receipt.outcome is IngestOutcome.REFUSED:
                    fields = {"stage": "ingest", "stream": self._stream}
                    message = "record %s was refused: %s"
                    _log.warning(message, line.key, receipt.reason, extra=fields)

    def _accept(self, lines: Sequence[DocumentLine]) -> list[Receipt]:
        while True:
            try:
                return self._submit(lines).result()
            except Busy as busy:
                if self._stopping.wait(busy.retry_after_s):
                    raise

    def stop(self) -> None:
        """Wait no longer."""
        self._stopping.set()
