"""The plan of the next segment, while the registry changes between documents.

Invariant: a query's evaluation plan is on the disk before a document that it sees is accepted.
"""

from __future__ import annotations

from broker.documents.ingest import Ingest
from broker.pipeline.steps import Pipeline
from broker.registry.queries import Registry
from broker.registry.registered import Engines, loaded_tables, published_streams, tables_of

__all__ = ["Planning"]


class Planning:
    """What later documents are evaluated with.  To be used where documents are numbered."""

    def __init__(
        self, registry: Registry, engines: Engines, pipeline: Pipeline, ingest: Ingest
    ) -> None:
        self._registry = registry
        self._engines = engines
        self._pipeline = pipeline
        self._ingest = ingest
        ingest.too_late = engines.lateness.is_too_late
        ingest.settled = engines.lateness.is_settled
        ingest.waits_for_time = lambda: engines.lateness.is_decided
        self._version = 0
        self._is_planned = True

    def note_change(self) -> None:
        """Have later documents evaluated as the registry says now; raise what cannot be planned."""
        self._engines.compile(self._registry.revision())
        self._is_planned = False

    def version(self) -> int:
        """Return the registry version of the next segment; its plan is on the disk.

        A plan is as long as all queries together, so changes in a row are planned once.
        """
        if not self._is_planned:
            self.plan()
        return self._version

    def plan(self) -> None:
        """Write the plan of the registry as it is now."""
        version = self._registry.revision()
        self._pipeline.prepare(version)
        self._version = version
        self._ingest.closed_streams = published_streams(self._registry)
        self._ingest.tables = loaded_tables(self._registry)
        self._ingest.created = {each.name: each for each, _ in tables_of(self._registry)}
        self._is_planned = True
