"""OTLP replies: what a receiver answers, in the encoding of the request.

Pipeline: OTLP receivers -> [reply] -> the sender
Source: opentelemetry-proto, docs/specification.md "OTLP/HTTP Response", google/rpc/status.proto.
"""

from __future__ import annotations

import json
from enum import IntEnum

PROTOBUF = "application/x-protobuf"
JSON = "application/json"


class RpcCode(IntEnum):
    """Codes of google.rpc.Status that the receivers use."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


def success(rejected_count: int, message: str, content_type: str) -> bytes:
    """An ExportTraceServiceResponse; with partial_success where spans were rejected."""
    if content_type == JSON:
        partial = {"rejectedSpans": str(rejected_count), "errorMessage": message}
        return json.dumps({"partialSuccess": partial} if rejected_count else {}).encode()
    if not rejected_count:
        return b""
    partial_bytes = b"\x08" + _varint(rejected_count) + b"\x12" + _sized(message.encode())
    return b"\x0a" + _sized(partial_bytes)


def failure(code: RpcCode, message: str, content_type: str) -> bytes:
    """A google.rpc.Status."""
    if content_type == JSON:
        return json.dumps({"code": int(code), "message": message}).encode()
    return b"\x08" + _varint(code) + b"\x12" + _sized(message.encode("utf-8", "replace"))


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)
