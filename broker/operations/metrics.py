"""How long documents spend on each stage of their way, as histograms for `/metrics`, and as traces.

ingest commit       a group of documents is written to the disk
spool wait          from a document's arrival until its batch is taken up
evaluation          a batch becomes witnesses
join, commit        witnesses become matches, and these are in the outbox
ingest to outbox    a document's way from its arrival to the commit of what it matches
outbox to delivery  from a match's commit until its receiver has it
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate

from broker.delivery.worker import DeliveryEvent, DeliveryEventKind
from broker.documents.ingest import Receipt
from broker.operations.helptexts import HELP
from broker.operations.traces import Traces
from broker.pipeline.steps import StepSummary

__all__ = ["Histogram", "Stages", "label", "render_metrics"]

_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300)
"""The promises are about 1 s and 2 s, so there are bounds at these."""


class Histogram:
    """Counts durations in seconds.  Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(_BOUNDS_S) + 1)
        self._sum_s = 0.0

    def observe(self, seconds: float, count: int = 1) -> None:
        """Count a duration that so many documents had."""
        with self._lock:
            self._counts[bisect_left(_BOUNDS_S, seconds)] += count
            self._sum_s += max(seconds, 0.0) * count

    def samples(self) -> Iterator[tuple[str, float]]:
        """Yield what Prometheus makes a histogram of: suffixes of its name, and values."""
        with self._lock:
            below, sum_s = list(accumulate(self._counts)), self._sum_s
        for bound, count in zip((*map(str, _BOUNDS_S), "+Inf"), below, strict=True):
            yield f'_bucket{{le="{bound}"}}', count
        yield "_sum", sum_s
        yield "_count", below[-1]


class Stages:
    """The histograms of one broker, and what fills them."""

    def __init__(
        self,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
        *,
        traces: Traces | None = None,
    ) -> None:
        self._now_us = now_us
        self._traces = traces
        self._taken_up_us = 0
        self.histograms: Mapping[str, Histogram] = {
            f"{name}_seconds": Histogram()
            for name in (
                "ingest_commit",
                "spool_wait",
                "evaluation",
                "join",
                "commit",
                "ingest_to_outbox",
                "outbox_to_delivery",
            )
        }

    def close(self) -> None:
        """Send the traces that wait."""
        if self._traces is not None:
            self._traces.close()

    def fetched(self, docid: int, stream: str, began_us: int) -> None:
        """Note that an item of a feed, read at that time, is a document."""
        if self._traces is not None:
            self._traces.fetched(docid, stream, began_us)

    def written(self, seconds: float, receipts: Sequence[Receipt]) -> None:
        """Note that a segment was written."""
        self.histograms["ingest_commit_seconds"].observe(seconds)
        if self._traces is not None:
            self._traces.accepted(seconds, receipts)

    def evaluated(self, seconds: float, waited_s: float) -> None:
        """Note that a batch was evaluated, and has just been taken up by the join.

        What it is made of comes with `committed`, before the next call.
        """
        self._taken_up_us = self._now_us() - round((seconds + waited_s) * 1e6)
        self.histograms["evaluation_seconds"].observe(seconds)
        if self._traces is not None:
            self._traces.evaluated(seconds, waited_s)

    def committed(self, step: StepSummary) -> None:
        """Note that a step was committed just now."""
        now_us = self._now_us()
        self.histograms["join_seconds"].observe(step.process_s)
        self.histograms["commit_seconds"].observe(step.commit_s)
        for segment in step.segments:
            waited_us, whole_us = (
                self._taken_up_us - segment.arrival_us,
                now_us - segment.arrival_us,
            )
            self.histograms["spool_wait_seconds"].observe(waited_us / 1e6, segment.documents)
            self.histograms["ingest_to_outbox_seconds"].observe(whole_us / 1e6, segment.documents)
        if self._traces is not None:
            self._traces.committed(step)

    def delivered(self, event: DeliveryEvent) -> None:
        """Note an event of delivery; one that ends a match's way is counted."""
        if event.kind is DeliveryEventKind.DELIVERED:
            for match in event.matches:
                took_us = self._now_us() - match.committed_us
                self.histograms["outbox_to_delivery_seconds"].observe(took_us / 1e6)
        if self._traces is not None:
            self._traces.sent(event)


def render_metrics(figures: Mapping[str, float], histograms: Mapping[str, Histogram]) -> str:
    """Return the text format of Prometheus; a figure is a counter where its name ends in `_total`.

    >>> print(render_metrics({"matches_total": 3}, {}), end="")
    # HELP xscl_matches_total matches found
    # TYPE xscl_matches_total counter
    xscl_matches_total 3
    """
    lines: list[str] = []
    before = ""
    for name, value in figures.items():
        metric = name.partition("{")[0]
        if metric != before:  # the series of one metric stand together
            kind = "counter" if metric.endswith("_total") else "gauge"
            lines += _help(metric)
            lines.append(f"# TYPE xscl_{metric} {kind}")
        before = metric
        lines.append(f"xscl_{name} {value:.17g}")
    for name, histogram in histograms.items():
        lines += _help(name)
        lines.append(f"# TYPE xscl_{name} histogram")
        lines += [f"xscl_{name}{suffix} {value:.17g}" for suffix, value in histogram.samples()]
    return "".join(f"{line}\n" for line in lines)


def label(text: str) -> str:
    r"""Return a text as it stands between the quotes of a label.

    >>> print(label('a "b" \\ c'))
    a \"b\" \\ c
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _help(name: str) -> list[str]:
    return [f"# HELP xscl_{name} {HELP[name]}"] if name in HELP else []
