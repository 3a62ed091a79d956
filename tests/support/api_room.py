"""The broker's API on real files, without a pipeline: tests commit matches themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from oracle.lines import as_found

from broker.api.backend import Backend
from broker.documents.ingest import Ingest
from broker.documents.ingest_thread import IngestThread
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.match import Match, MatchDocument
from broker.matching.queries.queryset import InForce
from broker.matching.stepresult import StepResult
from broker.pipeline.outbox import Outbox
from broker.registry.queries import Registry
from broker.registry.registered import Engines
from broker.registry.streams import Streams

T = TypeVar("T")


class Room:
    """Registry, outbox and ingest of a broker, and the backend of its API."""

    def __init__(self, directory: Path) -> None:
        self.spool = SpoolWriter(directory / "spool")
        self.registry = Registry(directory / "registry.db")
        self.outbox = Outbox(directory / "outbox.db")
        self.numbering = Ingest(self.spool)
        self.ingest = IngestThread(
            self.numbering, self.spool, registry_version=self.registry.revision, linger_s=0
        )
        self.unready: str | None = None
        self.committed = asyncio.Condition()
        self.backend = Backend(
            registry=self.registry,
            outbox=self.outbox,
            ingest=self.ingest,
            spool=Spool(directory / "spool"),
            streams=Streams(Spool(directory / "spool")),
            change=self._change,
            unready=lambda: self.unready,
            figures=lambda: {"documents_evaluated_total": 3.0},
            in_force=self._in_force,
            committed=self.committed,
        )

    def _in_force(self) -> tuple[int, InForce]:
        engines = Engines(self.registry, lateness_us=self.backend.lateness_us)
        version = self.registry.revision()
        return version, engines.make(version).queries.in_force()

    async def _change(
        self, action: Callable[[int], T], /, *, replan: bool = True, ahead: object = None
    ) -> T:
        return await asyncio.wrap_future(self.ingest.exclusively(action))

    async def commit(self, *matches: Match) -> None:
        """Commit matches, as a pipeline would."""
        through = self.outbox.through()
        self.outbox.commit(
            after=through, through=through + 1, step=StepResult([*map(as_found, matches)])
        )
        async with self.committed:
            self.committed.notify_all()

    def close(self) -> None:
        self.ingest.stop()
        for file in (self.outbox, self.registry, self.spool):
            file.close()


def match(number: int, query: str = "same") -> Match:
    documents = tuple(
        MatchDocument(docid, "news", f"k{docid}", docid * 1_000_000)
        for docid in (number, number + 1)
    )
    return Match(
        id=f"m{number}",
        query=query,
        start_us=0,
        end_us=1,
        documents=documents,
        roots=(0, 0),
        nodes={},
        witnesses=(),
        output="<match/>",
    )
