"""Traces of documents for OpenTelemetry: where each of some documents spent its time.

    document     from its arrival to the commit of what it matches
      fetched    from when an item of a feed was read until the broker had taken it
      accepted   its group is written to the disk
      evaluated  its batch becomes witnesses
      joined     witnesses become matches
      committed  these are in the outbox
      sent       an attempt to hand over matches of which it is the newest document

The ids of a trace are functions of the broker and the document's number.  So stages in different
threads, and before and after a restart, are of one trace without anything being carried along, and
whether a document is traced is known of its number alone.

Without `tracing.endpoint` nothing of OpenTelemetry is imported.  Spans are sent by a thread of
their own; how many wait is bounded, and dropped beyond that.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from broker.delivery.worker import DeliveryEvent, DeliveryEventKind
from broker.documents.ingest import IngestOutcome, Receipt
from broker.pipeline.steps import StepSummary
from broker.settings.config import TracingSettings
from broker.settings.reader import SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

__all__ = ["Traces", "open_traces"]

_ATTEMPTS = (DeliveryEventKind.DELIVERED, DeliveryEventKind.FAILED, DeliveryEventKind.DEAD)

_Attributes = Mapping[str, str | int | float]


def open_traces(tracing: TracingSettings, key: bytes) -> Traces | None:
    """Return what sends traces to the collector of the settings, None where they name none.

    `key` is the broker's own.  Raises `SettingsError` where OpenTelemetry is not installed.
    """
    if not tracing.endpoint:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise SettingsError(
            "tracing.endpoint needs OpenTelemetry: pip install 'xscl-broker[otel]'"
        ) from error
    processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=tracing.endpoint))
    return Traces(processor, one_in=tracing.one_in, key=key)


class Traces:
    """The traces of one broker.  Safe for several threads."""

    def __init__(
        self,
        processor: SpanProcessor,
        *,
        one_in: int,
        key: bytes,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        from opentelemetry.sdk.resources import Resource

        self._processor = processor
        self._key = key
        self._bound = (1 << 64) // one_in
        self._now_us = now_us
        self._evaluated_us = (0, 0)
        self._resource = Resource.create({"service.name": "xscl"})

    def close(self) -> None:
        """Send what waits, and stop."""
        self._processor.shutdown()

    def fetched(self, docid: int, stream: str, began_us: int) -> None:
        """Note that an item of a feed, read at that time, was taken as a document just now."""
        if self._is_traced(docid):
            self._end("fetched", docid, began_us, self._now_us(), {"stream": stream})

    def accepted(self, seconds: float, receipts: Sequence[Receipt]) -> None:
        """Note that documents were written to the disk just now."""
        now_us = self._now_us()
        for receipt in receipts:
            docid = receipt.docid
            is_new = receipt.outcome is IngestOutcome.ACCEPTED and docid is not None
            if is_new and docid is not None and self._is_traced(docid):
                self._end("accepted", docid, now_us - round(seconds * 1e6), now_us, {})

    def evaluated(self, seconds: float, waited_s: float) -> None:
        """Note that a batch was evaluated so long ago; its documents come with `committed`."""
        ended_us = self._now_us() - round(waited_s * 1e6)
        self._evaluated_us = (ended_us - round(seconds * 1e6), ended_us)

    def committed(self, step: StepSummary) -> None:
        """Note that a step was committed just now: the ways of its documents are at their end."""
        now_us = self._now_us()
        joined_us = now_us - round(step.commit_s * 1e6)
        began_us = joined_us - round(step.process_s * 1e6)
        batch = {"documents": step.documents, "matches": step.matches}
        for docid, arrival_us in self._traced(step):
            self._end("evaluated", docid, *self._evaluated_us, {})
            self._end("joined", docid, began_us, joined_us, batch)
            self._end("committed", docid, joined_us, now_us, {})
            self._end("document", docid, arrival_us, now_us, {}, is_whole=True)

    def sent(self, event: DeliveryEvent) -> None:
        """Note an attempt that ended just now."""
        if event.kind not in _ATTEMPTS:
            return
        now_us = self._now_us()
        took_us = 0 if event.outcome is None else event.outcome.elapsed_us
        attributes: _Attributes = {
            "subscription": event.subscription.id,
            "query": event.subscription.query,
            "delivery": event.delivery_id,
            "attempt": event.number,
            "outcome": event.kind.value,
        }
        is_error = event.kind is not DeliveryEventKind.DELIVERED
        for docid in sorted({match.position for match in event.matches}):
            if self._is_traced(docid):
                began_us = now_us - took_us
                self._end("sent", docid, began_us, now_us, attributes, is_error=is_error)

    def _traced(self, step: StepSummary) -> Iterator[tuple[int, int]]:
        for segment in step.segments:
            for docid in range(segment.first_docid, segment.last_docid + 1):
                if self._is_traced(docid):
                    yield docid, segment.arrival_us

    def _is_traced(self, docid: int) -> bool:
        # The low half of the id decides, as in OpenTelemetry's own sampler by ratio.
        return self._ids(docid)[0] & ((1 << 64) - 1) < self._bound

    def _ids(self, docid: int) -> tuple[int, int]:
        """Return the id of a document's trace, and that of its span `document`."""
        digest = hashlib.blake2b(str(docid).encode(), key=self._key, digest_size=24).digest()
        return int.from_bytes(digest[:16], "big") or 1, int.from_bytes(digest[16:], "big") or 1

    def _end(
        self,
        name: str,
        docid: int,
        began_us: int,
        ended_us: int,
        attributes: _Attributes,
        *,
        is_whole: bool = False,
        is_error: bool = False,
    ) -> None:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        trace_id, document_id = self._ids(docid)
        flags = TraceFlags(TraceFlags.SAMPLED)
        whole = SpanContext(trace_id, document_id, is_remote=False, trace_flags=flags)
        own_id = RandomIdGenerator().generate_span_id()
        part = SpanContext(trace_id, own_id, is_remote=False, trace_flags=flags)
        span = ReadableSpan(
            name,
            context=whole if is_whole else part,
            parent=None if is_whole else whole,
            resource=self._resource,
            attributes={"docid": docid, **attributes},
            kind=SpanKind.CLIENT if name == "sent" else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR if is_error else StatusCode.UNSET),
            start_time=began_us * 1_000,
            end_time=max(began_us, ended_us) * 1_000,
        )
        self._processor.on_end(span)
