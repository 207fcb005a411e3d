"""OTLP bodies for tests: spans described in a few words, as protobuf and as JSON."""

from __future__ import annotations

import hashlib
import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

AT_NS = 1_796_000_000_123_456_789
"""2026-11-30 00:53:20.123456789 UTC"""
PROTOBUF, JSON = "application/x-protobuf", "application/json"


def trace_id(name: object) -> bytes:
    return hashlib.md5(str(name).encode()).digest()


def any_value(value: Any) -> AnyValue:
    if isinstance(value, AnyValue):
        return value
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    made = AnyValue()
    if isinstance(value, list):
        made.array_value.SetInParent()
        made.array_value.values.extend(map(any_value, value))
    elif isinstance(value, dict):
        made.kvlist_value.SetInParent()
        made.kvlist_value.values.extend(key_values(value))
    return made


def key_values(attributes: dict[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def request(
    *spans: dict[str, Any], service: str = "bot", scope: str = "ragotel"
) -> ExportTraceServiceRequest:
    """A request with one scope; each span: trace (any name), attributes, other fields."""
    message = ExportTraceServiceRequest()
    resource_spans = message.resource_spans.add()
    resource_spans.resource.attributes.extend(key_values({"service.name": service}))
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = scope
    for number, given in enumerate(spans):
        fields = dict(given)
        name = fields.pop("trace", number)
        attributes = fields.pop("attributes", {})
        span = scope_spans.spans.add(
            trace_id=trace_id(name),
            span_id=trace_id((name, number))[:8],
            name="answer",
            start_time_unix_nano=AT_NS,
            end_time_unix_nano=AT_NS + 5_000_000,
        )
        span.attributes.extend(key_values(attributes))
        for key, value in fields.items():
            setattr(span, key, value)
    return message


def body(*spans: dict[str, Any], **scope: str) -> bytes:
    return request(*spans, **scope).SerializeToString()


def rag_request(number: int, *, prompt_chars: int = 16_000) -> bytes:
    """One answered question as ragotel sends it: five spans, fifty candidates, a prompt."""
    hits = json.dumps([{"id": f"c{n}-{number % 97}", "score": 1 - n / 64} for n in range(50)])
    words = "the hardware may be returned within days "
    prompt = (f"Question {number}: " + words * (1 + prompt_chars // len(words)))[:prompt_chars]
    common = {"rag.schema": 1, "rag.request.id": f"r{number}", "rag.outcome": "ok"}
    stages: list[dict[str, Any]] = [
        {"rag.stage": "request", "user.id": f"u{number % 50}", "rag.query": f"question {number}"},
        {"rag.stage": "retrieve", "gen_ai.retrieval.documents": hits, "rag.candidates.count": 50},
        {"rag.stage": "rerank", "rag.candidates": hits, "rag.candidates.count": 50},
        {"rag.stage": "assemble", "rag.prompt.text": prompt, "rag.budget.tokens": 6000},
        {"rag.stage": "generate", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 4000},
    ]
    return body(*({"trace": number, "attributes": {**common, **stage}} for stage in stages))


class Reply(NamedTuple):
    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def rejected(self) -> tuple[int, str]:
        """rejected_spans and error_message of a protobuf reply."""
        partial = ExportTraceServiceResponse.FromString(self.body).partial_success
        return partial.rejected_spans, partial.error_message


def post(url: str, data: bytes, content_type: str = PROTOBUF, **headers: str) -> Reply:
    """POST to /v1/traces; header names are written with underscores."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    sent = urllib.request.Request(
        f"{url}/v1/traces", data=data, headers={"Content-Type": content_type, **named}
    )
    try:
        with urllib.request.urlopen(sent, timeout=60) as reply:
            return Reply(reply.status, reply.read(), _lower(reply.headers))
    except urllib.error.HTTPError as error:
        return Reply(error.code, error.read(), _lower(error.headers))


def _lower(headers: Any) -> dict[str, str]:
    return {key.lower(): value for key, value in headers.items()}
