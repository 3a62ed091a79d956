"""The numbers of a running broker: what was done, what waits, and what it takes.

A metric with a label for each stream or query shows those with most, so that a scrape stays small
however many there are.
"""

from __future__ import annotations

import heapq
import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version

from broker.documents.ingest import Ingest
from broker.documents.late import LateDocuments
from broker.documents.spool import SpoolWriter
from broker.matching.costs.budget import Budget
from broker.operations.metrics import label
from broker.operations.processes import process_figures
from broker.pipeline.outbox import Outbox
from broker.pipeline.steps import Pipeline, StepSummary
from feeds import FeedStore
from feeds.health import figures, healths
from xpath_eval.counters import Counters

__all__ = ["Figures", "build_figures", "late_figures", "query_figures"]

_STREAMS_MAX = 100
"""Streams that the metric of late documents names: anyone who publishes can make up more."""


_QUERIES_MAX = 50
"""Queries that a metric names."""


class Figures:
    """Counts what is committed, and reads the rest where it is; `evaluation` is to be added to.

    What is not committed when this is made counts as waiting.  `is_holding` says whether nothing
    is delivered because this is a copy.
    """

    def __init__(
        self,
        spool: SpoolWriter,
        outbox: Outbox,
        ingest: Ingest,
        feed_store: FeedStore,
        pipeline: Pipeline,
        *,
        budget: Budget,
        is_holding: Callable[[], bool],
    ) -> None:
        self._spool = spool
        self._outbox = outbox
        self._ingest = ingest
        self._feed_store = feed_store
        self._pipeline = pipeline
        self._budget = budget
        self._is_holding = is_holding
        self._started = time.monotonic()
        self._matches_by_query: Counter[str] = Counter()
        self._documents = self._matches = self._dead_letters = self._pauses = 0
        waiting = sum(segment.documents for segment in spool.segments(pipeline.through))
        self._evaluated_docid = spool.next_docid - 1 - waiting
        self.evaluation = Counters()

    def count(self, step: StepSummary) -> None:
        """Count a step that was committed."""
        self._documents += step.documents - step.ticks
        self._evaluated_docid += step.documents
        self._matches += step.matches
        self._matches_by_query.update(step.matches_by_query)
        self._dead_letters += step.dead_letters
        self._pauses += step.pauses

    @property
    def uptime_s(self) -> float:
        """For how long there have been figures."""
        return time.monotonic() - self._started

    @property
    def waiting(self) -> int:
        """How many documents are accepted and not yet evaluated."""
        return self._spool.next_docid - 1 - self._evaluated_docid

    def read(self) -> dict[str, float]:
        """Return the figures by the names of their metrics."""
        documents, nbytes = self._ingest.remembered
        shares = self._spent()
        return {
            **build_figures(),
            "uptime_seconds": self.uptime_s,
            "documents_evaluated_total": self._documents,
            "documents_waiting": self.waiting,
            "matches_total": self._matches,
            "dead_letters_total": self._dead_letters,
            "budget_pauses_total": self._pauses,
            "budget_spent_ratio": max(shares.values(), default=0.0),
            **query_figures("query_budget_spent_ratio", shares),
            **query_figures("query_matches_total", self._matches_by_query),
            "dead_letters": self._outbox.dead_letter_count(),
            "lag_seconds": self._lag_s(),
            "segments_committed": self._pipeline.through,
            "segments_accepted": self._spool.last,
            **self.evaluation.figures(),
            **{f"join_{name}": n for name, n in self._pipeline.join_figures.items()},
            "spool_segments": len(self._spool.all_segments()),
            "spool_bytes": self._spool.nbytes(),
            **late_figures(self._ingest.late),
            "dedup_entries": documents,
            "dedup_bytes": nbytes,
            "deliveries_held": float(self._is_holding()),
            **process_figures(),
            **figures(healths(self._feed_store, time.time_ns() // 1_000)),
        }

    def _lag_s(self) -> float:
        """Return how long ago the oldest document arrived that is not evaluated yet, or 0."""
        waiting = [s for s in self._spool.all_segments() if s.last > self._pipeline.through]
        return max(0.0, time.time() - waiting[0].arrival_us / 1e6) if waiting else 0.0

    def _spent(self) -> dict[str, float]:
        """Return the share of its budget that each query has used in the last block."""
        matches_max = self._budget.matches_per_1000_documents
        nbytes_max = self._budget.output_bytes_per_1000_documents
        shares: dict[str, float] = {}
        for one in self._outbox.spent():
            shares[one.query] = max(
                shares.get(one.query, 0.0),
                one.matches / matches_max if matches_max else 0.0,
                one.nbytes / nbytes_max if nbytes_max else 0.0,
            )
        return shares


def late_figures(late: LateDocuments) -> dict[str, float]:
    """Return how many documents were too late, or settled, for the streams with most of them."""
    return {
        f'{name}_documents_total{{stream="{label(stream)}"}}': count
        for name, counts in (("late", late.by_stream), ("settled", late.settled))
        for stream, count in Counter(counts).most_common(_STREAMS_MAX)
    }


def query_figures(metric: str, values: Mapping[str, float]) -> dict[str, float]:
    """Return a metric for the queries where it is largest, at most `_QUERIES_MAX`."""
    most = heapq.nlargest(_QUERIES_MAX, values.items(), key=lambda each: (each[1], each[0]))
    return {f'{metric}{{query="{label(query)}"}}': value for query, value in most if value}


@cache
def build_figures() -> dict[str, float]:
    """Return what this is: a figure that is 1, with versions as its labels."""
    own, spark = version("xscl-broker"), version("pyspark")
    labels = f'version="{own}",python="{platform.python_version()}",pyspark="{spark}"'
    return {f"build_info{{{labels}}}": 1.0}
