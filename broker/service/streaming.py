"""Spark of a running broker: what it reads, and the tasks that it carries out.

Where the settings name a store, tasks read and write there alone: below a folder of this broker's
own, `documents` is for what they evaluate, and `shards` for what they join.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from broker.documents.ingest_thread import Submit
from broker.pipeline.kafka import RecordTaker, checkpoint_of, records_of
from broker.pipeline.shards import Join, ShardTask, Tasks
from broker.pipeline.spark import OnEvaluated, Spark, SparkQuery, StreamSource
from broker.pipeline.store.objects import Objects, StorePlace
from broker.service.startup import apart
from broker.settings.config import KafkaSettings, Settings
from joins import Processor
from joins.shards.orders import Answer

__all__ = ["Streaming", "watch"]

_WATCH_S = 0.5


class Streaming:
    """Spark, which is stopped with its queries when the stack is unwound."""

    def __init__(self, settings: Settings, stack: AsyncExitStack, key: bytes) -> None:
        self._settings = settings
        self._stack = stack
        self._spark: Spark | None = None
        self._store = place_of(settings, key)
        shards = (
            self._store.below("shards") if self._store else StorePlace.of(settings.data / "shards")
        )
        self._tasks = Tasks(self.run_tasks, shards)

    async def start(self) -> None:
        """Start Spark, where the store can be used."""
        if self._store is not None:
            await apart(Objects(self._store).probe)
        log, master = self._settings.data / "spark-log", self._settings.spark.master
        has_shards = self._settings.shards > 1
        spark = await apart(lambda: Spark.start(log, master=master, has_shards=has_shards))
        self._stack.push_async_callback(asyncio.to_thread, spark.stop)
        self._spark = spark

    async def documents(
        self,
        plans: Path,
        step: Callable[[pa.Table], object],
        *,
        through: int,
        on_evaluated: OnEvaluated,
    ) -> SparkQuery:
        """Start to evaluate the documents of the spool; `step` gets the witnesses of each batch.

        They are the segments behind `through`.
        """
        packs = self._store and self._store.below("documents").below(uuid.uuid4().hex)
        source = StreamSource(self._settings.data / "spool", plans, through=through, packs=packs)
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

    def processor(self) -> Processor | None:
        """Return a join that is spread over tasks of Spark, where the settings ask for shards."""
        settings = self._settings
        join = Join(
            settings.lateness // timedelta(microseconds=1),
            settings.shards,
            settings.budget.pairs_max,
            spool=settings.data / "spool" if self._store is None else None,
        )
        return join.processor(self._tasks)

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


def place_of(settings: Settings, key: bytes) -> StorePlace | None:
    """Return the folder of a broker in its store, if it has one; two brokers have two keys."""
    address = settings.spark.store
    return StorePlace(address).below(f"broker-{key.hex()[:16]}") if address else None


async def watch(query: SparkQuery) -> None:
    """Return when a query ends; raise what made it fail."""
    while query.is_running:
        query.check()
        await asyncio.sleep(_WATCH_S)
    query.check()
