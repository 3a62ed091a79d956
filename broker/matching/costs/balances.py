"""What goes on from batch to batch: counts in the block begun, and pauses not yet told of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from broker.matching.costs.begun import Begun
from broker.matching.costs.budget import Budget, Pause, Spent
from broker.matching.queries.queryset import QuerySet
from joins import Processor

__all__ = ["Balances"]


class Balances:
    """What the queries of a set have spent in the block `begun`, and their pauses.

    Queries that reach back farthest are paused while the join of `processor` remembers too much.
    """

    def __init__(self, budget: Budget, queries: QuerySet, processor: Processor) -> None:
        self.budget = budget
        self.queries = queries
        self.processor = processor
        self.begun = Begun()
        self._pauses: list[Pause] = []

    def resume(self, spent: Iterable[Spent]) -> None:
        """Take over the counts of an earlier process; counts made since are dropped."""
        self.begun = Begun(spent)

    def pause(self, query: str, docid: int, reason: str) -> None:
        """Pause a query from a document on, and take it out of the set."""
        self._pauses.append(Pause(query, self.queries.revision(query), docid, reason))
        self.queries.remove(query)

    def pause_farthest(self, last_docid: int, horizon_us: int) -> None:
        """While too many documents are remembered, pause the queries with most of them.

        A document counts for the queries that reach back farthest of all that can use it.
        """
        most = self.budget.remembered_documents
        while self._remembered(most, horizon_us) > most > 0:
            retaining = self.processor.retaining(horizon_us)
            queries = self.queries.retaining(retaining.classes, retaining.retention_us)
            if not queries:
                return
            for query in queries:
                self.pause(
                    query,
                    last_docid + 1,
                    f"more than {most:,} documents are remembered (budget.remembered_documents),"
                    f" {retaining.documents:,} of them for queries like this one, which reaches"
                    " back farthest of all that can use them; shorten its window",
                )

    def _remembered(self, most: int, horizon_us: int) -> int:
        """Return how many instances queries can still use; up to `most` it may be too high."""
        stored = self.processor.figures()["documents"]
        return self.processor.remembered(horizon_us) if stored > most else stored

    def postpone(self, docid: int) -> None:
        """Move the pauses that nobody has been told of to a document.

        They came of documents whose matches were known.
        """
        self._pauses = [replace(pause, docid=docid) for pause in self._pauses]

    def pauses(self) -> list[Pause]:
        """Return the pauses that have not been returned before."""
        pauses, self._pauses = self._pauses, []
        return pauses
