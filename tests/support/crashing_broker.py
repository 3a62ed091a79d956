"""A broker's files and its pipeline, in one thread: it may die at a point of its commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Self

import xscl
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.costs.budget import Budget
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.outbox import Outbox
from broker.pipeline.steps import Pipeline
from broker.registry.queries import Registry
from broker.registry.registered import Engines, check_among
from support.budgets import UNLIMITED

__all__ = ["POINTS", "Crash", "CrashAt", "CrashingBroker"]

POINTS = ("evaluated", "processed", "committed")


class Crash(BaseException):
    """The process dies."""


class CrashAt:
    """Dies when a point is reached for the nth time."""

    def __init__(self, point: str, visit: int) -> None:
        self._point = point
        self._left = visit

    def __call__(self, point: str) -> None:
        self._left -= point == self._point
        if self.has_crashed:
            raise Crash

    @property
    def has_crashed(self) -> bool:
        """Whether the point was reached as often."""
        return self._left <= 0


class CrashingBroker:
    """The files of a broker, and its pipeline."""

    def __init__(
        self,
        directory: Path,
        reached: Callable[[str], None] = lambda point: None,
        *,
        lateness_us: int,
        budget: Budget = UNLIMITED,
    ) -> None:
        self._files = ExitStack()
        self.registry = self._files.enter_context(closing(Registry(directory / "registry.db")))
        self.outbox = self._files.enter_context(closing(Outbox(directory / "outbox.db")))
        disk = Disk(is_durable=False)
        self.spool = self._files.enter_context(closing(SpoolWriter(directory / "spool", disk)))
        self.ingest = Ingest(self.spool)
        engines = Engines(
            self.registry, lateness_us=lateness_us, budget=budget, pauses=self.outbox.pauses
        )
        self.pipeline = Pipeline(
            Spool(directory / "spool"),
            self.outbox,
            engines.make,
            PlanStore(directory / "plans"),
            reached=reached,
            plan_of=engines.plan,
            follow=engines.follow,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._files.close()

    def register(self, name: str, text: str) -> None:
        [query] = xscl.parse(text, id=name)
        check_among(self.registry, query)
        point = self.spool.next_docid - 1
        self.registry.register(name, query.text, version=query.version, point=point)
        self.pipeline.prepare(self.registry.revision())

    def catch_up(
        self, statements: Mapping[str, str], lines: Sequence[DocumentLine], size: int = 6
    ) -> None:
        """Register, accept and process everything that is not there yet."""
        self.pipeline.recover(self.registry.revision())
        for name, text in statements.items():
            if not self.registry.history(name):
                self.register(name, text)
        if self.spool.next_docid == 1:
            self.accept(lines)
        self.drain(size)

    def accept(self, lines: Sequence[DocumentLine]) -> None:
        """Take documents, three in a segment."""
        for start in range(0, len(lines), 3):
            some_lines = lines[start : start + 3]
            receipts = self.ingest.append(some_lines, registry_version=self.registry.revision())
            assert all(receipt.docid for receipt in receipts)

    def drain(self, size: int = 6) -> None:
        """Process what was accepted, in batches of at most so many documents."""
        for _ in self.pipeline.drain(batch_documents_max=size):
            self.follow()

    def follow(self) -> None:
        """Do what is done between two batches."""

    def found(self) -> list[tuple[str, str]]:
        return [(match.query, match.id) for match in self.outbox.matches.find(limit=10_000)]

    def found_lines(self) -> list[tuple[str, str]]:
        """Return all matches, in the order of their lines."""
        found = self.outbox.matches.find(limit=10_000)
        return sorted((match.query, match.line) for match in found)
