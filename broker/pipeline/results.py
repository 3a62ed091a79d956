"""Where the pipeline keeps what it finds, as the pipeline sees it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from broker.documents.document import Document
from broker.matching.costs.budget import Spent
from broker.matching.outcomes.kept import Note
from broker.matching.stepresult import StepResult
from broker.tables.store import RowChange

__all__ = ["Results"]


class Results(Protocol):
    """The committed results; `broker.pipeline.outbox.Outbox` keeps them for good."""

    def through(self) -> int:
        """Return the number of the last segment whose results are here."""

    def commit(self, *, after: int, through: int, step: StepResult) -> bool:
        """Keep the results of the segments (after, through]; False if they are here already."""

    def spent(self) -> list[Spent]:
        """Return what queries have spent in the last block of documents."""

    def rows(self) -> Iterable[RowChange]:
        """Return the rows of all tables."""

    def notes(self) -> Iterable[Note]:
        """Return what statements with LIMIT and DISJOINT have given and still look back at."""

    def published(self, *, after: int, through: int) -> list[Document]:
        """Return the documents published at positions in (after, through], in order."""
