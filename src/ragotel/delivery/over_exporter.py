"""A user's own OpenTelemetry exporter: spans are turned into the SDK's form for it.

Pipeline: worker -> [over_exporter] -> SpanExporter -> wherever it sends
"""

from __future__ import annotations

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from ragotel.delivery.otlp import Envelope
from ragotel.delivery.transport import Answer
from ragotel.delivery.trim import fit_span
from ragotel.model import SpanData
from ragotel.settings import Settings

_KINDS = {1: SpanKind.INTERNAL, 2: SpanKind.SERVER, 3: SpanKind.CLIENT}
_STATUSES = {0: StatusCode.UNSET, 1: StatusCode.OK, 2: StatusCode.ERROR}


class ExporterTransport:
    """Hands ReadableSpans to the exporter, which does not tell what kind of failure it met."""

    overhead_bytes = 0
    can_close_after_fork = False

    def __init__(self, settings: Settings, envelope: Envelope) -> None:
        assert settings.exporter is not None
        self._exporter: SpanExporter = settings.exporter
        self._resource = Resource(dict(envelope.resource))
        self._scope = InstrumentationScope(envelope.scope_name, envelope.scope_version)

    def encode(self, span: SpanData, limit_bytes: int) -> tuple[ReadableSpan, int, bool]:
        size = sum(len(v) if isinstance(v, str) else 8 for v in span.attributes.values())
        size += 64 * len(span.attributes)
        if size <= limit_bytes // 4:
            return self._readable(span), size, False
        fitted, encoded = fit_span(span, limit_bytes)
        return self._readable(fitted), len(encoded), fitted is not span

    def _readable(self, span: SpanData) -> ReadableSpan:
        flags = TraceFlags(TraceFlags.SAMPLED)
        context = SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=flags)
        parent = None
        if span.parent_span_id:
            parent = SpanContext(span.trace_id, span.parent_span_id, False, flags)
        return ReadableSpan(
            name=span.name,
            context=context,
            parent=parent,
            resource=self._resource,
            attributes=dict(span.attributes),
            kind=_KINDS.get(span.kind, SpanKind.INTERNAL),
            status=Status(_STATUSES[span.status_code], span.status_message or None),
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=self._scope,
        )

    def message(self, pieces: list[ReadableSpan]) -> list[ReadableSpan]:
        return pieces

    def send(self, message: list[ReadableSpan], timeout_s: float) -> Answer:
        if self._exporter.export(message) is SpanExportResult.SUCCESS:
            return Answer("ok")
        return Answer("doubtful", f"{type(self._exporter).__name__} answered failure")

    def interrupt(self) -> None:
        """Nothing is known of how it waits."""

    def close(self) -> None:
        self._exporter.shutdown()
