"""OTLP rows: what one span becomes in `otel_traces`, and the bytes in which rows are inserted.

Pipeline: wire -> otlp_protobuf | otlp_json -> [rows] -> otel_traces -> typed tables -> views
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ragotel.store.encodings import TooLargeError

TABLE = "otel_traces"
FORMAT = "RowBinary"
"""The input format of `encode_rows`: one row after the other, no names, no separators."""

COLUMNS = (
    "Timestamp",
    "TraceId",
    "SpanId",
    "ParentSpanId",
    "TraceState",
    "SpanName",
    "SpanKind",
    "ServiceName",
    "ResourceAttributes",
    "ScopeName",
    "ScopeVersion",
    "SpanAttributes",
    "Duration",
    "StatusCode",
    "StatusMessage",
    "Events.Timestamp",
    "Events.Name",
    "Events.Attributes",
    "Links.TraceId",
    "Links.SpanId",
    "Links.TraceState",
    "Links.Attributes",
)
INSERT_STATEMENT = f"insert into {TABLE} ({', '.join(f'`{name}`' for name in COLUMNS)})"

SPAN_KINDS = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
STATUS_CODES = ("Unset", "Ok", "Error")
LATEST_NS = 2**63 - 1
"""Nanoseconds since 1970 that DateTime64(9) holds: until April 2262."""

Attributes = dict[str, str]


class Event(NamedTuple):
    """A span event; *at_ns* is Unix time in nanoseconds."""

    at_ns: int
    name: str
    attributes: Attributes


class Link(NamedTuple):
    """A span link; ids as lower-case hex."""

    trace_id: str
    span_id: str
    trace_state: str
    attributes: Attributes


class Origin(NamedTuple):
    """What the spans of one scope have in common."""

    service_name: str
    resource_attributes: Attributes
    scope_name: str
    scope_version: str


class SpanRow(NamedTuple):
    """One row of `otel_traces`: times in Unix nanoseconds, ids as lower-case hex."""

    start_ns: int
    duration_ns: int
    trace_id: str
    span_id: str
    parent_span_id: str
    trace_state: str
    name: str
    kind: str
    origin: Origin
    attributes: Attributes
    status_code: str
    status_message: str
    events: tuple[Event, ...] = ()
    links: tuple[Link, ...] = ()


class SpanRejectedError(ValueError):
    """This span cannot be stored; the message is the reason. It costs no other span."""


class OtlpError(ValueError):
    """The whole body is not what it says it is; the message is one line."""


@dataclass
class Decoded:
    """The spans of one body, and how many of it were refused for which reasons."""

    rows: list[SpanRow] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def rejected_count(self) -> int:
        return (
            self.reasons.total() if hasattr(self.reasons, "total") else sum(self.reasons.values())
        )

    @property
    def message(self) -> str:
        """One line that says what was refused and why; '' where nothing was."""
        if not self.reasons:
            return ""
        named = [f"{count} x {reason}" for reason, count in self.reasons.most_common(5)]
        more = f" and {len(self.reasons) - 5} further reasons" if len(self.reasons) > 5 else ""
        return f"{self.rejected_count} spans rejected: {'; '.join(named)}{more}"

    def extend(self, other: Decoded) -> None:
        self.rows += other.rows
        self.reasons.update(other.reasons)


def checked_times(start_ns: int, end_ns: int) -> tuple[int, int]:
    """The start and the duration in nanoseconds; an end before the start gives 0.

    Raises:
        SpanRejectedError: The start lies beyond what the store's time type holds.
    """
    if not 0 <= start_ns <= LATEST_NS:
        raise SpanRejectedError("start time beyond the year 2262")
    return start_ns, max(0, min(end_ns, 2**64 - 1) - start_ns)


def clamped_time(at_ns: int) -> int:
    """An event's time, moved into what the store's time type holds: it never costs its span."""
    return min(max(at_ns, 0), LATEST_NS)


def encode_rows(rows: Iterable[SpanRow], limit_bytes: int | None = None) -> list[bytes]:
    """Each row as RowBinary in the order of `COLUMNS`; an insert takes them joined.

    Lone surrogates must have been repaired before.

    Raises:
        TooLargeError: Together they would have more than *limit_bytes*: each row has a copy of its
            resource, so that few bytes on the wire can be very many rows.
    """
    encoded: list[bytes] = []
    left = limit_bytes
    origins: dict[int, tuple[Origin, bytes, bytes]] = {}
    for row in rows:
        # Spans of one scope share their origin object, so its bytes are made once.
        entry = origins.get(id(row.origin))
        if entry is None:
            entry = origins[id(row.origin)] = (row.origin, *_origin(row.origin))
        encoded.append(_row(row, entry[1], entry[2]))
        if left is not None:
            left -= len(encoded[-1])
            if left < 0:
                raise TooLargeError(
                    f"the spans, each with its resource, are larger than {limit_bytes} bytes"
                )
    return encoded


_INT64 = struct.Struct("<q").pack
_UINT64 = struct.Struct("<Q").pack
_NO_EVENTS_NO_LINKS = b"\0" * 7
_SMALL = [bytes((number,)) for number in range(128)]


def _row(row: SpanRow, resource: bytes, scope: bytes) -> bytes:
    parts = [
        _INT64(row.start_ns),
        _texts(row.trace_id, row.span_id, row.parent_span_id, row.trace_state, row.name, row.kind),
        resource,
        scope,
        _map(row.attributes),
        _UINT64(row.duration_ns),
        _texts(row.status_code, row.status_message),
    ]
    if not row.events and not row.links:
        return b"".join((*parts, _NO_EVENTS_NO_LINKS))
    size = _varint(len(row.events))
    parts += (size, *(_INT64(event.at_ns) for event in row.events))
    parts += (size, _texts(*(event.name for event in row.events)))
    parts += (size, *(_map(event.attributes) for event in row.events))
    size = _varint(len(row.links))
    parts += (size, _texts(*(link.trace_id for link in row.links)))
    parts += (size, _texts(*(link.span_id for link in row.links)))
    parts += (size, _texts(*(link.trace_state for link in row.links)))
    parts += (size, *(_map(link.attributes) for link in row.links))
    return b"".join(parts)


def _origin(origin: Origin) -> tuple[bytes, bytes]:
    resource = _texts(origin.service_name) + _map(origin.resource_attributes)
    return resource, _texts(origin.scope_name, origin.scope_version)


def _map(attributes: Mapping[str, str]) -> bytes:
    parts = [_varint(len(attributes))]
    for key, value in attributes.items():
        raw_key, raw_value = key.encode(), value.encode()
        parts += (_varint(len(raw_key)), raw_key, _varint(len(raw_value)), raw_value)
    return b"".join(parts)


def _texts(*texts: str) -> bytes:
    parts: list[bytes] = []
    for text in texts:
        raw = text.encode()
        parts += (_varint(len(raw)), raw)
    return b"".join(parts)


def _varint(number: int) -> bytes:
    if number < 128:
        return _SMALL[number]
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)
