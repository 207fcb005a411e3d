"""OTLP: writes finished spans as protobuf bytes by hand, a tenth of the generated classes' cost.

Pipeline: recorder -> worker -> [otlp] -> transport -> receiver

Source: opentelemetry/proto/trace/v1/trace.proto, collector/trace/v1/trace_service.proto.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from struct import Struct

from ragotel.model import AttributeValue, SpanData
from ragotel.text import utf8

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
_UINT64 = 2**64
_pack_double = Struct("<d").pack
_pack_times = Struct("<BQBQ").pack

# Tags: (field number << 3) | wire type.
_SPAN_IN_SCOPE = b"\x12"
_TRACE_ID = b"\x0a\x10"
_SPAN_ID = b"\x12\x08"
_PARENT_ID = b"\x22\x08"
_START_TAG, _END_TAG = 0x39, 0x41
# Field 16, fixed32: sampled (0x01), and "is the parent remote" is known (0x100) and false.
_FLAGS = b"\x85\x01\x01\x01\x00\x00"
_ONE_BYTE = tuple(bytes((n,)) for n in range(128))
_SHORT = 120
_TRUE, _FALSE = b"\x12\x02\x10\x01", b"\x12\x02\x10\x00"


def varint(number: int) -> bytes:
    """Write *number* (0 to 2**64 - 1) in protobuf's base 128."""
    if number < 128:
        return _ONE_BYTE[number]
    if number < 16384:
        return bytes((number & 127 | 128, number >> 7))
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


@lru_cache(maxsize=1024)
def _key(name: str) -> bytes:
    raw = utf8(name)
    return b"\x0a" + varint(len(raw)) + raw


def _value(value: AttributeValue) -> bytes:
    """Write one AnyValue with its tag and length."""
    if isinstance(value, str):
        raw = utf8(value)
        size = varint(len(raw))
        return b"\x12" + varint(1 + len(size) + len(raw)) + b"\x0a" + size + raw
    if value is True:
        return _TRUE
    if value is False:
        return _FALSE
    if isinstance(value, int):
        number = varint(min(max(value, INT64_MIN), INT64_MAX) % _UINT64)
        return b"\x12" + varint(1 + len(number)) + b"\x18" + number
    if isinstance(value, float):
        if not math.isfinite(value):
            # Receivers that turn spans into JSON refuse the whole batch for one NaN.
            return _value(str(value))
        return b"\x12\x09\x21" + _pack_double(value)
    return _value(str(value))


def key_values(tag: bytes, attributes: Mapping[str, AttributeValue]) -> list[bytes]:
    """Write *attributes* as repeated KeyValue fields under *tag*, as pieces to be joined."""
    pieces: list[bytes] = []
    for name, value in attributes.items():
        kind = value.__class__
        if kind is str and len(value) > _LONG_CHARS:  # type: ignore[arg-type]
            # Neither hashed nor copied: it would cost more than all the rest.
            raw = utf8(value)  # type: ignore[arg-type]
            key, size = _key(name), varint(len(raw))
            inner = 1 + len(size) + len(raw)
            outer = varint(inner)
            whole = varint(len(key) + 1 + len(outer) + inner)
            pieces += (b"".join((tag, whole, key, b"\x12", outer, b"\x0a", size)), raw)
        else:
            known = _remembered.get((name, value, kind, tag))
            pieces.append(known or _key_value(tag, name, value))
    return pieces


_LONG_CHARS = 400
_remembered: dict[tuple[str, AttributeValue, type, bytes], bytes] = {}
"""Encoded attributes by content: most of a span's are the same as in the last request."""
_MAX_REMEMBERED = 2048


def _key_value(tag: bytes, name: str, value: AttributeValue) -> bytes:
    key, encoded = _key(name), _value(value)
    made = b"".join((tag, varint(len(key) + len(encoded)), key, encoded))
    if len(made) <= _SHORT:
        if len(_remembered) >= _MAX_REMEMBERED:
            _remembered.clear()
        _remembered[name, value, value.__class__, tag] = made
    return made


def encode_span(span: SpanData) -> bytes:
    """Write *span* as one element of ScopeSpans.spans, tag and length included."""
    name = utf8(span.name)
    pieces = [
        _TRACE_ID,
        span.trace_id.to_bytes(16, "big"),
        _SPAN_ID,
        span.span_id.to_bytes(8, "big"),
    ]
    if span.parent_span_id:
        pieces += (_PARENT_ID, span.parent_span_id.to_bytes(8, "big"))
    pieces += (
        b"\x2a",
        varint(len(name)),
        name,
        b"\x30",
        varint(span.kind),
        _pack_times(_START_TAG, span.start_ns, _END_TAG, span.end_ns),
    )
    pieces += key_values(b"\x4a", span.attributes)
    if span.status_code or span.status_message:
        pieces.append(_field(b"\x7a", _status(span)))
    pieces.append(_FLAGS)
    return b"".join((_SPAN_IN_SCOPE, varint(sum(map(len, pieces))), *pieces))


def _status(span: SpanData) -> bytes:
    message = utf8(span.status_message)
    text = _field(b"\x12", message) if message else b""
    return text + b"\x18" + varint(span.status_code)


def _field(tag: bytes, body: bytes) -> bytes:
    return tag + varint(len(body)) + body


class Envelope:
    """The part around the spans that is the same in every message: resource and scope."""

    def __init__(
        self, resource: Mapping[str, AttributeValue], scope_name: str, scope_version: str
    ) -> None:
        self.resource = resource
        self.scope_name = scope_name
        self.scope_version = scope_version
        self._resource = _field(b"\x0a", b"".join(key_values(b"\x0a", resource)))
        scope = _field(b"\x0a", utf8(scope_name)) + _field(b"\x12", utf8(scope_version))
        self._scope = _field(b"\x0a", scope)
        # Three tags with lengths of at most ten bytes each stand around them.
        self.overhead_bytes = len(self._resource) + len(self._scope) + 33

    def message(self, spans: list[bytes]) -> bytes:
        """Join encoded *spans* to one ExportTraceServiceRequest."""
        in_scope = len(self._scope) + sum(map(len, spans))
        scope_head = b"\x12" + varint(in_scope)
        in_resource = len(self._resource) + len(scope_head) + in_scope
        head = b"\x0a" + varint(in_resource) + self._resource + scope_head + self._scope
        return b"".join((head, *spans))


def halve_message(message: bytes) -> tuple[tuple[bytes, int], tuple[bytes, int]] | None:
    """Split what `Envelope.message` made into two messages, each with its number of spans.

    None: it holds a single span.
    """
    (_, resource_spans), *_ = _split(message)
    resource = [raw for tag, raw in _split_raw(resource_spans) if tag != 0x12]
    (in_scope,) = (body for tag, body in _split(resource_spans) if tag == 0x12)
    scope = [raw for tag, raw in _split_raw(in_scope) if tag != 0x12]
    spans = [raw for tag, raw in _split_raw(in_scope) if tag == 0x12]
    middle = len(spans) // 2
    if not middle:
        return None

    def made(some: list[bytes]) -> tuple[bytes, int]:
        inner = b"".join((*resource, _field(b"\x12", b"".join((*scope, *some)))))
        return _field(b"\x0a", inner), len(some)

    return made(spans[:middle]), made(spans[middle:])


def _split(message: bytes) -> list[tuple[int, bytes]]:
    """List tag and body of each field; all of them are length-delimited with tags of one byte."""
    return [(tag, raw[-size:] if size else b"") for tag, raw, size in _walk(message)]


def _split_raw(message: bytes) -> list[tuple[int, bytes]]:
    return [(tag, raw) for tag, raw, _ in _walk(message)]


def _walk(message: bytes) -> Iterator[tuple[int, bytes, int]]:
    at = 0
    while at < len(message):
        size, shift, end = 0, 0, at + 1
        while True:
            byte = message[end]
            end += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield message[at], message[at : end + size], size
        at = end + size
