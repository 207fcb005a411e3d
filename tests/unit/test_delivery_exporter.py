"""The delivery with a user's own OpenTelemetry exporter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry import context
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import StatusCode

from ragotel.delivery import Counters, Delivery, Tally
from ragotel.delivery.otlp import Envelope
from ragotel.delivery.over_exporter import ExporterTransport
from ragotel.model import SpanData
from ragotel.settings import resolve_settings
from requests_to_deliver import FakeRequest


class FakeExporter(SpanExporter):
    """Keeps spans; the first exports meet *failures* in turn: an exception, or False."""

    def __init__(self, *failures: Exception | bool) -> None:
        self.failures = list(failures)
        self.spans: list[ReadableSpan] = []
        self.was_suppressed: list[Any] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.was_suppressed.append(context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY))
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, Exception):
            raise failure
        if failure is False:
            return SpanExportResult.FAILURE
        self.spans += spans
        return SpanExportResult.SUCCESS


def open_transport() -> ExporterTransport:
    envelope = Envelope({"service.name": "bot"}, "ragotel", "0.1")
    return ExporterTransport(resolve_settings(exporter=FakeExporter()), envelope)


def deliver(exporter: FakeExporter, *requests: FakeRequest) -> Counters:
    delivery = Delivery(resolve_settings(service_name="bot", exporter=exporter))
    for request in requests:
        delivery.submit(request)
    delivery.flush()
    delivery.shutdown()
    return delivery.counters()


def test_span_becomes_the_sdk_s_form() -> None:
    """Ids, parent, kind, status, times, attributes, scope and resource are carried over."""
    transport = open_transport()
    span, _, _ = transport.encode(SpanData(1, 2, 3, "a", 3, 4, 5, {"k": "v"}, 2, "boom"), 10_000)
    assert (span.context.trace_id, span.context.span_id, span.parent.span_id) == (1, 2, 3)
    assert (span.name, span.kind, span.start_time, span.end_time) == ("a", SpanKind.CLIENT, 4, 5)
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "boom")
    assert dict(span.attributes) == {"k": "v"}
    assert (span.instrumentation_scope.name, span.resource.attributes["service.name"]) == (
        "ragotel",
        "bot",
    )


def test_over_sized_span_is_cut_for_an_exporter_too() -> None:
    """Whatever the exporter speaks, no span is larger than a message may be."""
    big = SpanData(1, 2, 0, "a", 1, 4, 5, {"text": "x" * 50_000})
    span, size, was_cut = open_transport().encode(big, 10_000)
    assert was_cut
    assert size <= 10_000
    assert span.attributes["rag.content_mode"] == "truncated"


def test_exporter_that_fails_once_loses_nothing() -> None:
    """An exception or a failure of the exporter is tried again and never ends the worker."""
    for failure in (RuntimeError("boom"), False):
        exporter = FakeExporter(failure)
        counters = deliver(exporter, FakeRequest(1), FakeRequest(2))
        assert [span.attributes["n"] for span in exporter.spans] == [1, 2]
        assert counters == Counters(Tally(2, 2), Tally(2, 2), {})


def test_exporter_that_keeps_failing_is_counted() -> None:
    """A message that fails again and again is given up, and the next one is delivered."""
    exporter = FakeExporter(*[RuntimeError("boom")] * 5)
    delivery = Delivery(resolve_settings(exporter=exporter))
    delivery.submit(FakeRequest(1))
    assert not delivery.flush(30)
    delivery.submit(FakeRequest(2))
    assert delivery.flush()
    delivery.shutdown()
    assert delivery.counters().lost == {"export_failed": Tally(1, 1)}
    assert [span.name for span in exporter.spans] == ["ragotel.loss", "rag.request"]


def test_own_calls_are_not_instrumented() -> None:
    """Auto-instrumentation of HTTP clients sees that our export is not to be recorded."""
    exporter = FakeExporter()
    deliver(exporter, FakeRequest(1))
    assert exporter.was_suppressed == [True]
    assert context.get_value(context._SUPPRESS_INSTRUMENTATION_KEY) is None


def test_callback_that_fails_harms_nobody() -> None:
    """A fault in a callback of on_loss is logged, and the others are still called."""
    seen: list[str] = []
    exporter = FakeExporter()
    delivery = Delivery(resolve_settings(exporter=exporter))
    delivery.on_loss(lambda cause, spans, requests: 1 / 0)
    delivery.on_loss(lambda cause, spans, requests: seen.append(cause))
    delivery.submit(FakeRequest(1, fails=True))
    delivery.submit(FakeRequest(2))
    delivery.flush()
    delivery.shutdown()
    assert seen == ["encode_failed"]
    assert [s.attributes["n"] for s in exporter.spans if s.name == "rag.request"] == [2]


def test_submit_never_raises() -> None:
    """Something that is no request at all is refused without an exception."""
    delivery = Delivery(resolve_settings(exporter=FakeExporter()))
    assert delivery.submit(None) is False  # type: ignore[arg-type]
    delivery.shutdown()


def test_shutdown_twice_is_harmless() -> None:
    """The second call finds nothing to do."""
    delivery = Delivery(resolve_settings(exporter=FakeExporter()))
    delivery.submit(FakeRequest(1))
    delivery.shutdown()
    delivery.shutdown()
    assert delivery.counters() == Counters(Tally(1, 1), Tally(1, 1), {})


def test_tight_loop_loses_nothing() -> None:
    """A loop that never waits, of many times the queue's size, makes way for the worker."""
    exporter = FakeExporter()
    delivery = Delivery(resolve_settings(exporter=exporter, queue_bytes=2_000_000))
    for n in range(3000):
        assert delivery.submit(FakeRequest(n, "x" * 8_000, span_count=2))
    assert delivery.flush(60)
    delivery.shutdown()
    assert delivery.counters() == Counters(Tally(6000, 3000), Tally(6000, 3000), {})
