"""Spark of a running broker: what it reads, and the tasks that it carries out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

import pyarrow as pa

from broker.documents.ingest_thread import Submit
from broker.pipeline.kafka import RecordTaker, checkpoint_of, records_of
from broker.pipeline.shards import ShardTask
from broker.pipeline.spark import OnEvaluated, Spark, SparkQuery, StreamSource
from broker.service.startup import apart
from broker.settings.config import KafkaSettings, Settings
from joins.shards.orders import Answer

__all__ = ["Streaming", "watch"]

_WATCH_S = 0.5


class Streaming:
    """Spark, which is stopped with its queries when the stack is unwound."""

    def __init__(self, settings: Settings, stack: AsyncExitStack) -> None:
        self._settings = settings
        self._stack = stack
        self._spark: Spark | None = None

    async def start(self) -> None:
        """Start Spark."""
        log, master = self._settings.data / "spark-log", self._settings.spark.master
        has_shards = self._settings.shards > 1
        spark = await apart(lambda: Spark.start(log, master=master, has_shards=has_shards))
        self._stack.push_async_callback(asyncio.to_thread, spark.stop)
        self._spark = spark

    async def documents(
        self,
        source: StreamSource,
        step: Callable[[pa.Table], object],
        *,
        on_evaluated: OnEvaluated,
    ) -> SparkQuery:
        """Start to evaluate the documents of the spool; `step` gets the witnesses of each batch."""
        query = await asyncio.to_thread(
            self._started.stream,
            source,
            step,
            checkpoint=self._settings.data / "checkpoint",
            interval_s=self._settings.spark.interval.total_seconds(),
            on_evaluated=on_evaluated,
        )
        self._stack.push_async_callback(asyncio.to_thread, query.stop)
        return query

    async def topic(self, topic: KafkaSettings, submit: Submit) -> SparkQuery:
        """Start to read a topic of Kafka."""
        taker = RecordTaker(submit, topic.stream)
        query = await asyncio.to_thread(
            self._started.consume,
            records_of(topic),
            taker.take,
            checkpoint=checkpoint_of(self._settings.data / "kafka", topic),
            interval_s=self._settings.spark.interval.total_seconds(),
        )
        self._stack.push_async_callback(asyncio.to_thread, query.stop)
        self._stack.callback(taker.stop)
        return query

    def run_tasks(self, tasks: Sequence[ShardTask]) -> Sequence[Answer]:
        """Carry out tasks of shards, and return their answers."""
        return self._started.run_tasks(tasks)

    async def end_planners(self) -> None:
        """End processes in which Spark planned what it reads; none while it is being started."""
        if self._spark is not None:
            await asyncio.to_thread(self._spark.end_planners)

    @property
    def _started(self) -> Spark:
        assert self._spark is not None, "Spark has been started"
        return self._spark


async def watch(query: SparkQuery) -> None:
    """Return when a query ends; raise what made it fail."""
    while query.is_running:
        query.check()
        await asyncio.sleep(_WATCH_S)
    query.check()
