"""The spool as a source of Spark's streaming: an offset is the number of a segment.

Spark runs it in Python processes of its own beside the driver, one for each question, and gives
each ten seconds to begin.  So this module imports little.  What is read is what the documents of
the spool become: a task that reads evaluates, so that one worker does both.

Invariant: an offset is handed out only for durable segments.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from broker.documents.listing import Listing
from broker.pipeline.slices import Slice, next_batch, slice_segments, tasks_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from broker.pipeline.limits import PipelineLimits
    from broker.pipeline.store.objects import StorePlace
    from broker.pipeline.store.packs import PackWriter

__all__ = ["FORMAT", "SpoolSource"]

FORMAT = "xscl-spool"
"""The name of the source."""

_EVALUATED = "witnesses binary, documents bigint, dead_letters bigint, left_out bigint"
"""`evaluation.EVALUATED_SCHEMA`, as Spark writes types."""


class SpoolSource(DataSource):
    """The spool as a source of Spark: rows are what evaluation finds in some documents."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns of what is found."""
        return _EVALUATED

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of the streaming query."""
        return _SpoolReader(self.options)


@dataclass
class _SlicesPart(InputPartition):
    slices: list[Slice]


class _SpoolReader(DataSourceStreamReader):
    """Offers segments as they appear, in a Python process of its own beside the driver."""

    def __init__(self, options: Any) -> None:
        self._directory = Path(options["spool"])
        self._through = int(options["through"])
        self._batch_documents_max = int(options["batchDocumentsMax"])
        self._batch_bytes_max = int(options["batchBytesMax"])
        self._parallelism = int(options["parallelism"])
        self._task_documents = int(options["taskDocuments"])
        self._task_bytes = int(options["taskBytes"])
        self._plans = Path(options["plans"])
        self._limits = bytes.fromhex(options["limits"])
        self._place = _place(options)
        self._packs = None if self._place is None else _writer(self._place, self._plans)
        self._spool: Listing | None = None
        self._is_warm = False

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"segment": self._through}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """Return the last segment of the next batch: at least one, then up to the batch size."""
        spool = self._refreshed()
        after = max(start["segment"], self._through)
        # The first batch takes seconds however small it is, and what is behind it waits.
        documents_max = self._batch_documents_max if self._is_warm else 1
        last = next_batch(spool.segments(after), documents_max, self._batch_bytes_max)
        self._is_warm = self._is_warm or last is not None
        return {"segment": after if last is None else last.last}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[_SlicesPart]:
        # A checkpoint behind the commit asks for segments that may have been pruned.
        after, through = max(start["segment"], self._through), end["segment"]
        if after >= through:
            return [_SlicesPart([])]
        spool = self._refreshed(through)
        segments = spool.segments(after, through)
        tasks = tasks_of(segments, self._task_documents, self._task_bytes)
        parts = slice_segments(spool, after, through, min(tasks, self._parallelism))
        if self._packs is not None:
            parts = self._packs.put(parts)
        return [_SlicesPart(slices) for slices in parts]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Evaluate the documents of a part; in a worker, which has imported what it takes."""
        from broker.pipeline.evaluation import evaluated_slices

        assert isinstance(partition, _SlicesPart)
        limits: PipelineLimits = pickle.loads(self._limits)
        return evaluated_slices(
            partition.slices, self._plans, self._parallelism, limits, self._place
        )

    def _refreshed(self, through: int | None = None) -> Listing:
        if self._spool is None:
            self._spool = Listing(self._directory)
        elif through is None or self._spool.last < through:
            self._spool.refresh()
        return self._spool


def _place(options: Any) -> StorePlace | None:
    """Return where tasks find what they read, where they do not read the spool."""
    if not options.get("packs"):
        return None
    from broker.pipeline.store.objects import StorePlace

    return StorePlace(options["store"], options["packs"])


def _writer(place: StorePlace, plans: Path) -> PackWriter:
    """Return who puts what tasks read into a store."""
    from broker.pipeline.store.packs import PackWriter

    return PackWriter(place, plans)
