from __future__ import annotations

import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from broker.delivery.attempt import Outcome, OutcomeKind
from broker.delivery.worker import DeliveryEvent, DeliveryEventKind
from broker.documents.head import Segment
from broker.documents.ingest import IngestOutcome, Receipt
from broker.operations.metrics import Stages
from broker.operations.traces import Traces, open_traces
from broker.pipeline.matchlog import CommittedMatch
from broker.pipeline.steps import StepSummary
from broker.registry.subscription import Destination, Subscription
from broker.settings.config import TracingSettings, parse_settings
from broker.settings.reader import SettingsError

SECOND_US = 1_000_000
NOON_US = 1_767_268_800 * SECOND_US
STEP = StepSummary(
    through=1,
    documents=2,
    matches=1,
    dead_letters=0,
    pauses=0,
    process_s=2.0,
    commit_s=1.0,
    segments=(Segment(1, 1, 1, 2, 0, 0, 0, 0, NOON_US),),
)


class Way:
    """Documents 1 and 2 on their way, at times that a test knows."""

    def __init__(self, one_in: int = 1, key: bytes = b"broker") -> None:
        self.now_us = NOON_US
        self.exporter = InMemorySpanExporter()
        processor = SimpleSpanProcessor(self.exporter)
        self.traces = Traces(processor, one_in=one_in, key=key, now_us=lambda: self.now_us)
        self.stages = Stages(lambda: self.now_us, traces=self.traces)

    def go(self) -> None:
        receipts = [
            Receipt(IngestOutcome.ACCEPTED, docid=1),
            Receipt(IngestOutcome.ACCEPTED, docid=2),
            Receipt(IngestOutcome.DUPLICATE, docid=1),
            Receipt(IngestOutcome.REFUSED),
        ]
        self.now_us = NOON_US + 1 * SECOND_US
        self.stages.written(0.5, receipts)
        self.stages.fetched(1, "news", NOON_US)
        # The batch before it was joined for a while.
        self.now_us = NOON_US + 5 * SECOND_US
        self.stages.evaluated(2.0, 1.0)
        self.now_us = NOON_US + 8 * SECOND_US
        self.stages.committed(STEP)
        for number, kind in ((1, DeliveryEventKind.FAILED), (2, DeliveryEventKind.DELIVERED)):
            self.now_us += SECOND_US
            self.stages.delivered(self.event(number, DeliveryEventKind.ATTEMPTED))
            self.stages.delivered(self.event(number, kind))

    def event(self, number: int, kind: DeliveryEventKind) -> DeliveryEvent:
        match = CommittedMatch(1, "m", "same", "{}", 2, 1, "{}", NOON_US)
        hook = Destination.parse("https://a.example/")
        subscription = Subscription("sub_1", "same", "{}", hook, 0)
        outcome = Outcome(OutcomeKind.DELIVERED, 200, elapsed_us=SECOND_US // 2)
        return DeliveryEvent(kind, "d", number, subscription, (match,), outcome)

    def spans(self, docid: int) -> list[ReadableSpan]:
        found = self.exporter.get_finished_spans()
        return [span for span in found if (span.attributes or {})["docid"] == docid]


def seconds(span: ReadableSpan) -> tuple[float, float]:
    assert span.start_time is not None
    assert span.end_time is not None
    return tuple((at // 1_000 - NOON_US) / SECOND_US for at in (span.start_time, span.end_time))


def test_a_document_has_a_span_for_each_stage_of_its_way() -> None:
    way = Way()
    way.go()
    assert {span.name: seconds(span) for span in way.spans(1)} == {
        "document": (0, 8),
        "fetched": (0, 1),
        "accepted": (0.5, 1),
        "evaluated": (2, 4),
        "joined": (5, 7),
        "committed": (7, 8),
    }
    sent = [span for span in way.spans(2) if span.name == "sent"]
    assert [seconds(span) for span in sent] == [(8.5, 9), (9.5, 10)]
    assert [span.status.status_code for span in sent] == [StatusCode.ERROR, StatusCode.UNSET]
    assert dict(sent[1].attributes or {})["subscription"] == "sub_1"


def test_the_spans_of_a_document_are_one_trace_below_one_span() -> None:
    way = Way()
    way.go()
    for docid in (1, 2):
        spans = way.spans(docid)
        (whole,) = (span for span in spans if span.parent is None)
        assert whole.name == "document"
        assert {span.context.trace_id for span in spans} == {whole.context.trace_id}
        parts = [span for span in spans if span is not whole]
        assert {span.parent.span_id for span in parts if span.parent} == {whole.context.span_id}
        assert len({span.context.span_id for span in spans}) == len(spans)
    assert way.spans(1)[0].context.trace_id != way.spans(2)[0].context.trace_id


def test_after_a_restart_a_document_goes_on_in_its_trace() -> None:
    first, second, other = Way(), Way(), Way(key=b"another broker")
    for way in (first, second, other):
        way.go()
    ids = [way.spans(1)[0].context.trace_id for way in (first, second, other)]
    assert ids[0] == ids[1] != ids[2]


def test_a_document_is_traced_whole_or_not_at_all() -> None:
    way = Way(one_in=4)
    way.stages.written(0.1, [Receipt(IngestOutcome.ACCEPTED, docid=n) for n in range(1, 2_001)])
    traced = {(span.attributes or {})["docid"] for span in way.exporter.get_finished_spans()}
    assert 400 < len(traced) < 600
    again = Way(one_in=4)
    again.go()
    for docid in (1, 2):
        assert bool(again.spans(docid)) == (docid in traced)


def test_without_an_endpoint_nothing_of_opentelemetry_is_imported() -> None:
    assert open_traces(TracingSettings(), b"broker") is None
    code = (
        "import sys, broker.service.lifecycle;"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_where_opentelemetry_is_missing_the_settings_are_at_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)
    with pytest.raises(SettingsError, match=r"pip install 'xscl-broker\[otel\]'"):
        open_traces(TracingSettings("http://127.0.0.1:4318/v1/traces"), b"broker")


@pytest.mark.parametrize(
    ("text", "message"),
    [('endpoint = "collector:4318"', "must begin with http"), ("one_in = 0", "at least 1")],
)
def test_settings_that_make_no_sense_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_settings(f"[tracing]\n{text}\n", tmp_path / "xscl.toml")


def test_a_collector_gets_the_spans() -> None:
    bodies: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}/v1/traces"
        traces = open_traces(TracingSettings(endpoint, one_in=1), b"broker")
        assert traces is not None
        traces.fetched(7, "news", NOON_US)
        traces.close()
        server.shutdown()
        thread.join()
    (request,) = map(ExportTraceServiceRequest.FromString, bodies)
    (resource,) = request.resource_spans
    service = {each.key: each.value.string_value for each in resource.resource.attributes}
    (span,) = resource.scope_spans[0].spans
    assert (service["service.name"], span.name) == ("xscl", "fetched")
