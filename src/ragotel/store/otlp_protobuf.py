"""OTLP protobuf: bytes of an ExportTraceServiceRequest or TracesData to rows, span by span.

Pipeline: wire -> [protobuf] -> rows -> otel_traces
Read by hand, not with generated classes: those refuse a whole batch for one bad byte in one text.

Source: opentelemetry-proto, trace/v1/trace.proto and common/v1/common.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeVar

from ragotel.store.otlp_rows import (
    SPAN_KINDS,
    STATUS_CODES,
    Attributes,
    Decoded,
    Event,
    Link,
    Origin,
    OtlpError,
    SpanRejectedError,
    SpanRow,
    checked_times,
    clamped_time,
)
from ragotel.store.otlp_values import MAX_DEPTH, value_text

Raw = TypeVar("Raw", bytes, memoryview)


class WireError(ValueError):
    """These bytes are not a protobuf message."""


def decode_protobuf(body: bytes) -> Decoded:
    """All spans of *body*; a span that is malformed in itself is counted in `reasons`.

    Raises:
        OtlpError: The frame around the spans is broken or cut short.
    """
    decoded = Decoded()
    try:
        for number, resource_spans in _messages(body):
            if number == 1:
                _resource_spans(resource_spans, decoded)
    except WireError as error:
        raise OtlpError(f"the body is not an OTLP protobuf message: {error}") from error
    return decoded


def _resource_spans(message: bytes, decoded: Decoded) -> None:
    refusal, resource = "", dict[str, str]()
    scopes: list[bytes] = []
    for number, value in _messages(message):
        if number == 1:
            try:
                resource = _attributes([item for key, item in _messages(value) if key == 1])
            except SpanRejectedError as error:
                refusal = f"resource: {error}"
        elif number == 2:
            scopes.append(value)
    for scope in scopes:
        _scope_spans(scope, resource, refusal, decoded)


def _scope_spans(message: bytes, resource: Attributes, refusal: str, decoded: Decoded) -> None:
    name = version = ""
    spans: list[bytes] = []
    for number, value in _messages(message):
        if number == 2:
            spans.append(value)
        elif number == 1:
            for key, item in _messages(value):
                if key == 1:
                    name = _text(item)
                elif key == 2:
                    version = _text(item)
    origin = Origin(resource.get("service.name", ""), resource, name, version)
    if refusal:
        decoded.reasons[refusal] += len(spans)
        return
    for span in spans:
        try:
            decoded.rows.append(_span(span, origin))
        except WireError as error:
            decoded.reasons[f"malformed span ({error})"] += 1
        except SpanRejectedError as error:
            decoded.reasons[str(error)] += 1


def _span(message: bytes, origin: Origin) -> SpanRow:
    trace_id = span_id = parent_id = b""
    trace_state = name = status_message = ""
    kind = start_ns = end_ns = status = 0
    attributes: list[bytes] = []
    events: list[Event] = []
    links: list[Link] = []
    for number, value in _fields(message):
        if isinstance(value, int):
            if number == 6:
                kind = value
            elif number == 7:
                start_ns = value
            elif number == 8:
                end_ns = value
        elif number == 9:
            attributes.append(value)
        elif number == 1:
            trace_id = value
        elif number == 2:
            span_id = value
        elif number == 3:
            trace_state = _text(value)
        elif number == 4:
            parent_id = value
        elif number == 5:
            name = _text(value)
        elif number == 11:
            events.append(_event(value))
        elif number == 13:
            links.append(_link(value))
        elif number == 15:
            for key, item in _fields(value):
                if key == 2 and isinstance(item, bytes):
                    status_message = _text(item)
                elif key == 3 and isinstance(item, int):
                    status = item
    start_ns, duration_ns = checked_times(start_ns, end_ns)
    return SpanRow(
        start_ns=start_ns,
        duration_ns=duration_ns,
        trace_id=_id(trace_id, 16, "trace id"),
        span_id=_id(span_id, 8, "span id"),
        parent_span_id=_id(parent_id, 8, "parent span id", may_lack=True),
        trace_state=trace_state,
        name=name,
        kind=SPAN_KINDS[kind] if kind < len(SPAN_KINDS) else "",
        origin=origin,
        attributes=_attributes(attributes),
        status_code=STATUS_CODES[status] if status < len(STATUS_CODES) else "",
        status_message=status_message,
        events=tuple(events),
        links=tuple(links),
    )


def _event(message: bytes) -> Event:
    at_ns, name, attributes = 0, "", []
    for number, value in _fields(message):
        if isinstance(value, int):
            at_ns = clamped_time(value) if number == 1 else at_ns
        elif number == 2:
            name = _text(value)
        elif number == 3:
            attributes.append(value)
    return Event(at_ns, name, _attributes(attributes))


def _link(message: bytes) -> Link:
    found: dict[int, bytes] = {}
    attributes: list[bytes] = []
    for number, value in _messages(message):
        if number == 4:
            attributes.append(value)
        else:
            found[number] = value
    trace_id, span_id = found.get(1, b"").hex(), found.get(2, b"").hex()
    return Link(trace_id, span_id, _text(found.get(3, b"")), _attributes(attributes))


def _id(raw: bytes, size: int, what: str, *, may_lack: bool = False) -> str:
    if len(raw) == size and any(raw):
        return raw.hex()
    if may_lack and not any(raw):
        return ""
    if len(raw) == size or not raw:
        raise SpanRejectedError(f"no {what}")
    raise SpanRejectedError(f"{what} of {len(raw)} bytes instead of {size}")


def _text(raw: Raw) -> str:
    return str(raw, "utf-8", "replace")


def _attributes(pairs: list[bytes]) -> Attributes:
    """Of the same key twice the last one counts, as in the exporter."""
    return {key: value_text(value) for key, value in map(_key_value, pairs)}


def _key_value(message: Raw, depth: int = 0) -> tuple[str, Any]:
    key, value = "", None
    for number, item in _messages(message):
        if number == 1:
            key = _text(item)
        elif number == 2:
            value = _any_value(item, depth)
    return key, value


def _any_value(message: Raw, depth: int) -> Any:
    """The Python value: str, bool, int, float, list, dict, bytes; None where nothing is set."""
    if depth > MAX_DEPTH:
        raise SpanRejectedError(f"attribute nested deeper than {MAX_DEPTH} levels")
    result: Any = None
    for number, value in _fields(message):
        if isinstance(value, int):
            if number == 2:
                result = value != 0
            elif number == 3:
                result = value - 2**64 if value >= 2**63 else value
            elif number == 4:
                result = struct.unpack("<d", value.to_bytes(8, "little"))[0]
        elif number == 1:
            result = _text(value)
        elif number == 5:
            # A view: each level of a nested value would otherwise copy all below it.
            items = _messages(memoryview(value))
            result = [_any_value(item, depth + 1) for key, item in items if key == 1]
        elif number == 6:
            pairs = [item for key, item in _messages(memoryview(value)) if key == 1]
            result = dict(_key_value(item, depth + 1) for item in pairs)
        elif number == 7:
            result = bytes(value)
    return result


def _messages(message: Raw) -> Iterator[tuple[int, Raw]]:
    """The length-delimited fields of *message*; others are passed over."""
    for number, value in _fields(message):
        if not isinstance(value, int):
            yield number, value


def _fields(message: Raw) -> Iterator[tuple[int, int | Raw]]:
    """Each field's number and value: int for varint and fixed types, bytes for length-delimited."""
    at, end = 0, len(message)
    while at < end:
        tag = message[at]
        at += 1
        if tag > 127:
            tag, at = _varint(message, at - 1, end)
        wire_type = tag & 7
        if tag < 8:
            raise WireError("a field without a number")
        if wire_type == 2:
            if at >= end:
                raise WireError("cut short")
            size = message[at]
            at += 1
            if size > 127:
                size, at = _varint(message, at - 1, end)
            if at + size > end:
                raise WireError("cut short")
            yield tag >> 3, message[at : at + size]
            at += size
        elif wire_type == 0:
            value, at = _varint(message, at, end)
            yield tag >> 3, value
        elif wire_type == 1 or wire_type == 5:
            size = 8 if wire_type == 1 else 4
            if at + size > end:
                raise WireError("cut short")
            yield tag >> 3, int.from_bytes(message[at : at + size], "little")
            at += size
        else:
            raise WireError(f"wire type {wire_type}")


def _varint(message: Raw, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= end:
            raise WireError("cut short")
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), at
        shift += 7
        if shift > 63:
            raise WireError("a number of more than ten bytes")
