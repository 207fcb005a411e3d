"""The hand-written encoder against the generated protobuf classes."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragotel.delivery.otlp import INT64_MAX, INT64_MIN, Envelope, encode_span
from ragotel.model import SpanData
from ragotel.text import repair

any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=200)
values = st.one_of(
    any_text, st.booleans(), st.integers(), st.floats(), st.integers(INT64_MIN, INT64_MAX)
)
spans = st.builds(
    SpanData,
    trace_id=st.integers(1, 2**128 - 1),
    span_id=st.integers(1, 2**64 - 1),
    parent_span_id=st.integers(0, 2**64 - 1),
    name=any_text,
    kind=st.sampled_from([1, 3]),
    start_ns=st.integers(0, 2**63),
    end_ns=st.integers(0, 2**63),
    attributes=st.dictionaries(any_text, values, max_size=8),
    status_code=st.sampled_from([0, 1, 2]),
    status_message=any_text,
)


def decode(message: bytes) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    request.ParseFromString(message)
    return request


def value_of(any_value: Any) -> Any:
    return getattr(any_value, any_value.WhichOneof("value"))


def on_the_wire(value: Any) -> Any:
    """What the encoder promises to make of a value."""
    if isinstance(value, str):
        return repair(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return min(max(value, INT64_MIN), INT64_MAX)
    return value if math.isfinite(value) else str(value)


def as_span_data(span: Any) -> SpanData:
    return SpanData(
        trace_id=int.from_bytes(span.trace_id, "big"),
        span_id=int.from_bytes(span.span_id, "big"),
        parent_span_id=int.from_bytes(span.parent_span_id, "big"),
        name=span.name,
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes={pair.key: value_of(pair.value) for pair in span.attributes},
        status_code=span.status.code,
        status_message=span.status.message,
    )


@given(written=st.lists(spans, max_size=4))
def test_spans_survive_the_wire(written: list[SpanData]) -> None:
    """What the encoder writes is what protobuf reads, surrogates repaired, huge ints clipped."""
    message = Envelope({"service.name": "a"}, "ragotel", "1").message(
        [encode_span(span) for span in written]
    )
    scope = decode(message).resource_spans[0].scope_spans[0]
    expected = [
        SpanData(
            span.trace_id,
            span.span_id,
            span.parent_span_id,
            repair(span.name),
            span.kind,
            span.start_ns,
            span.end_ns,
            {repair(k): on_the_wire(v) for k, v in span.attributes.items()},
            span.status_code,
            repair(span.status_message),
        )
        for span in written
    ]
    assert [as_span_data(span) for span in scope.spans] == expected


def test_envelope_holds_resource_and_scope() -> None:
    """Every message names the service and the scope, whatever their lengths."""
    resource = {"service.name": "bot" * 100, "process.pid": 7, "ok": True, "share": 0.5}
    request = decode(Envelope(resource, "ragotel", "0.1.0").message([]))
    (resource_spans,) = request.resource_spans
    (scope_spans,) = resource_spans.scope_spans
    assert {p.key: value_of(p.value) for p in resource_spans.resource.attributes} == resource
    assert (scope_spans.scope.name, scope_spans.scope.version) == ("ragotel", "0.1.0")


def test_span_is_marked_sampled() -> None:
    """A receiver that obeys the sampled flag keeps the record."""
    message = Envelope({}, "ragotel", "").message(
        [encode_span(SpanData(1, 2, 0, "a", 1, 1, 2, {}))]
    )
    assert decode(message).resource_spans[0].scope_spans[0].spans[0].flags == 0x101
