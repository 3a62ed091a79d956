"""A broker without Spark, HTTP and clock, on real files, to which a history happens.

What must not show is a `Way`: the engine, shards, batches, where the process is started anew, and
the bounds at which the engines work in pieces, spill, forget and start again.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from support.budgets import UNLIMITED
from support.tiny_limits import random_limits, random_pipeline_limits

import xscl
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.lookback.backfill import backfill
from broker.pipeline.outbox import Outbox
from broker.pipeline.shards import Join
from broker.pipeline.snapshot import Snapshot
from broker.pipeline.steps import Pipeline
from broker.registry.queries import QueryState, Registry
from broker.registry.registered import Engines, check_among, parsed
from broker.registry.subscription import Destination
from histories.history import (
    Arrive,
    Change,
    Drain,
    Event,
    History,
    Register,
    Restart,
    Subscribe,
    Unsubscribe,
)
from joins.engines import DEFAULT_ENGINE, ENGINES, EngineName, Processor, make_processor
from xscl.query import Query

__all__ = ["Way", "random_way", "run_history"]

PULL = Destination.parse("pull")
STATES = {
    "pause": QueryState.PAUSED,
    "resume": QueryState.ACTIVE,
    "remove": QueryState.REMOVED,
}


@dataclass(frozen=True, slots=True)
class Way:
    """How a history happens.  With `restarts` the process ends behind so many of its events."""

    engine: EngineName = DEFAULT_ENGINE
    shards: int = 1
    segment_documents: int = 1
    batch_documents: int = 1_000
    restarts: frozenset[int] = frozenset()
    snapshot_documents: int = 4
    bounds_seed: int | None = None


def random_way(seed: int, engines: Sequence[EngineName] = ENGINES) -> Way:
    """Return one of the ways that must not show; mostly the default engine's, where it may be."""
    chance = random.Random(seed)
    # The engines in SQL take a second for what the default one does in fifty milliseconds.
    usual = [DEFAULT_ENGINE] * 12 if DEFAULT_ENGINE in engines else []
    engine = chance.choice([*usual, *engines])
    return Way(
        engine=engine,
        shards=chance.choice([1, 1, 3]) if engine == DEFAULT_ENGINE else 1,
        segment_documents=chance.choice([1, 1, 3]),
        batch_documents=chance.choice([1, 3, 1_000]),
        restarts=frozenset(chance.sample(range(1, 20), chance.choice([0, 0, 1, 3]))),
        snapshot_documents=chance.choice([1, 4, 1_000]),
        bounds_seed=chance.choice([None, seed]),
    )


def run_history(history: History, directory: Path, way: Way) -> list[str]:
    """Return the lines of all matches that a broker finds, sorted; its files go to a directory."""
    broker = _Broker(directory, history.lateness_us, way)
    try:
        for number, event in enumerate(history.events, 1):
            broker.take(event)
            if number in way.restarts:
                broker.restart()
        return broker.found()
    finally:
        broker.close()


class _Broker:
    """The files of a broker and its pipeline; what is not in the files outlives the process."""

    def __init__(self, directory: Path, lateness_us: int, way: Way) -> None:
        self._directory = directory
        self._lateness_us = lateness_us
        self._way = way
        self._limits, self._shard_limits = random_limits(way.bounds_seed)
        pipeline = random_pipeline_limits(way.bounds_seed)
        self._pipeline_limits = replace(pipeline, file_documents=way.snapshot_documents)
        self._names: dict[str, str] = {}
        self._recorded_us: int | None = None
        self._waiting: list[DocumentLine] = []
        self._open()

    def _open(self) -> None:
        directory = self._directory
        self._files = ExitStack()
        self._registry = self._files.enter_context(closing(Registry(directory / "registry.db")))
        self._outbox = self._files.enter_context(closing(Outbox(directory / "outbox.db")))
        disk = Disk(is_durable=False)
        self._spool = self._files.enter_context(closing(SpoolWriter(directory / "spool", disk)))
        self._ingest = Ingest(
            self._spool, dedup_horizon_us=None, recorded_time_us=self._recorded_us
        )
        engines = Engines(
            self._registry,
            lateness_us=self._lateness_us,
            budget=UNLIMITED,
            processors=self._processor if self._is_spread else None,
            limits=self._limits,
        )
        self._pipeline = Pipeline(
            Spool(directory / "spool"),
            self._outbox,
            engines.make,
            PlanStore(directory / "plans"),
            plan_of=engines.plan,
            follow=engines.follow,
            snapshot=Snapshot(directory / "state", disk=disk, limits=self._pipeline_limits),
            limits=self._pipeline_limits,
        )
        self._pipeline.recover(self._registry.revision())

    @property
    def _is_spread(self) -> bool:
        return self._way.engine != DEFAULT_ENGINE or self._way.shards > 1

    def _processor(self) -> Processor | None:
        way = self._way
        if way.engine != DEFAULT_ENGINE:
            return make_processor(way.engine, lateness_us=self._lateness_us)
        join = Join(self._lateness_us, way.shards, limits=self._shard_limits)
        return join.processor(None)

    def close(self) -> None:
        self._files.close()

    def restart(self) -> None:
        """End, with documents that are accepted and not joined, and go on."""
        self._accept()
        self._recorded_us = self._ingest.recorded_time_us
        self.close()
        self._open()

    def take(self, event: Event) -> None:
        """Have an event happen."""
        if isinstance(event, Arrive):
            self._waiting.append(event.line)
            if len(self._waiting) >= self._way.segment_documents:
                self._accept()
            return
        self._accept()
        match event:
            case Restart():
                self.restart()
            case Drain():
                self._drain()
            case _:
                self._change(event)
                self._pipeline.prepare(self._registry.revision())

    def found(self) -> list[str]:
        """Return the lines of all matches, sorted."""
        self._accept()
        self._drain()
        return sorted(match.line for match in self._outbox.matches.find(limit=1 << 40))

    @property
    def _newest(self) -> int:
        return self._spool.next_docid - 1

    def _accept(self) -> None:
        lines, self._waiting = self._waiting, []
        if lines:
            self._ingest.append(lines, registry_version=self._registry.revision())

    def _drain(self) -> None:
        for _ in self._pipeline.drain(batch_documents_max=self._way.batch_documents):
            pass
        self._look_back()

    def _change(self, event: Event) -> None:
        match event:
            case Register(query, since):
                self._register(query, since)
            case Change(verb, name):
                self._registry.set_state(name, STATES[verb], effective=self._newest)
            case Subscribe(name, query_id, values, since):
                self._subscribe(name, query_id, values, since)
            case Unsubscribe(name):
                self._registry.subscriptions.remove(self._names[name], until=self._newest)

    def _register(self, query: Query, since: int | None) -> None:
        check_among(self._registry, query)
        newest = self._newest
        since = None if since is None else min(since, newest)
        self._registry.register(
            query.id, query.text, version=query.version, point=newest, since=since
        )
        self._look_back()

    def _subscribe(
        self, name: str, query_id: str, values: Mapping[str, Any], since: int | None
    ) -> None:
        query = parsed(self._registry.query(query_id))
        made = self._registry.subscribe(
            query_id,
            PULL,
            point=self._newest,
            since=since,
            parameters=xscl.assignment(query, values),
        )
        self._names[name] = made.id
        self._look_back()

    def _look_back(self) -> None:
        """Look back over what has been joined; the rest waits."""
        backfill(
            self._registry,
            self._outbox,
            Spool(self._directory / "spool"),
            lateness_us=self._lateness_us,
            budget=UNLIMITED,
        )
