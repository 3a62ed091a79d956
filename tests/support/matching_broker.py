"""The part of a broker that finds matches: registry, spool, pipeline and outbox, in one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import xscl
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget
from broker.matching.engine import Engine
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.limits import DEFAULT_PIPELINE_LIMITS, PipelineLimits
from broker.pipeline.lookback.backfill import backfill
from broker.pipeline.outbox import Outbox
from broker.pipeline.snapshot import Snapshot
from broker.pipeline.steps import Pipeline
from broker.registry.queries import QueryState, Registry
from broker.registry.registered import Engines
from broker.registry.subscription import Destination
from joins import Processor

__all__ = ["DAY_US", "PULL", "MatchingBroker", "items", "query_of"]

DAY_US = 86_400_000_000
PULL = Destination.parse("pull")


def query_of(text: str, name: str = "q") -> xscl.Query:
    """Return the one query of a text, under a name."""
    (parsed,) = xscl.parse(text, id=name)
    return parsed


def items(*titles: str, minute: int = 0) -> list[DocumentLine]:
    """Return an item for each title, a minute apart."""
    return [
        DocumentLine("S", f"<i><t>{title}</t></i>".encode(), (minute + n) * 60_000_000)
        for n, title in enumerate(titles)
    ]


class MatchingBroker:
    def __init__(
        self,
        directory: Path,
        *,
        lateness_us: int = DAY_US,
        snapshot: Snapshot | None = None,
        limits: MatchingLimits = DEFAULT_MATCHING_LIMITS,
        pipeline_limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS,
        budget: Budget = DEFAULT_BUDGET,
        processors: Callable[[], Processor | None] | None = None,
    ) -> None:
        self.lateness_us = lateness_us
        self.registry = Registry(directory / "registry.db")
        self.outbox = Outbox(directory / "outbox.db", now_us=lambda: 0)
        self.writer = SpoolWriter(directory / "spool", Disk(is_durable=False))
        self.spool = Spool(directory / "spool")
        self.ingest = Ingest(self.writer)
        engines = Engines(
            self.registry,
            lateness_us=lateness_us,
            limits=limits,
            budget=budget,
            pauses=self.outbox.pauses,
            processors=processors,
        )
        self._engines = engines
        self.engines_made = 0
        self.pipeline = Pipeline(
            Spool(directory / "spool"),
            self.outbox,
            self._make,
            PlanStore(directory / "plans"),
            plan_of=engines.plan,
            follow=engines.follow,
            snapshot=snapshot,
            limits=pipeline_limits,
        )
        self.pipeline.recover(self.registry.revision())

    def _make(self, registry_version: int) -> Engine:
        self.engines_made += 1
        return self._engines.make(registry_version)

    def close(self) -> None:
        self.registry.close()
        self.outbox.close()
        self.writer.close()

    @property
    def newest(self) -> int:
        return self.writer.next_docid - 1

    def register(
        self, query: xscl.Query, *, point: int | None = None, since: int | None = None
    ) -> None:
        point = self.newest if point is None else point
        self.registry.register(
            query.id, query.text, version=query.version, point=point, since=since
        )

    def subscribe(
        self, query: xscl.Query, values: Mapping[str, object], since: int | None = None
    ) -> None:
        self.registry.subscribe(query.id, PULL, point=self.newest, since=since, parameters=values)

    def set_state(self, query: xscl.Query, state: QueryState) -> None:
        self.registry.set_state(query.id, state, effective=self.newest)

    def take(self, lines: Sequence[DocumentLine], *, arrival_us: int | None = None) -> None:
        version = self.registry.revision()
        self.pipeline.prepare(version)
        self.ingest.append(lines, arrival_us=arrival_us, registry_version=version)
        list(self.pipeline.drain())

    def look_back(self) -> int:
        return backfill(self.registry, self.outbox, self.spool, lateness_us=self.lateness_us)

    def found(self) -> list[str]:
        return sorted(match.line for match in self.outbox.matches.find(limit=100_000))
