"""Trim: makes a span that no receiver would take small enough, so that its batch need not be lost.

Pipeline: worker -> [trim] -> otlp -> transport
"""

from __future__ import annotations

import json
from dataclasses import replace

from ragotel.delivery.otlp import encode_span
from ragotel.model import AttributeValue, SpanData

CONTENT_MODE = "rag.content_mode"
TRUNCATED = "truncated"
_SHORTEST_BYTES = 256
_MARK_BYTES = 64


def fit_span(span: SpanData, limit_bytes: int) -> tuple[SpanData, bytes]:
    """Encode *span* in at most *limit_bytes*; the span given back is another one where it was cut.

    A text keeps head and tail, a JSON list its first elements, a JSON object its first members,
    so that what is left can still be read. The counts beside a list tell what is missing.

    Raises:
        ValueError: it cannot be made small enough.
    """
    encoded = encode_span(span)
    if len(encoded) <= limit_bytes:
        return span, encoded
    attributes = dict(span.attributes)
    attributes[CONTENT_MODE] = TRUNCATED
    for _ in range(len(attributes) + 8):
        cut = replace(span, attributes=attributes)
        encoded = encode_span(cut)
        excess = len(encoded) - limit_bytes
        if excess <= 0:
            return cut, encoded
        key, size = _longest(attributes)
        if size <= _SHORTEST_BYTES:
            break
        # Aim a little lower, as JSON can only be cut between its elements.
        target = max(_SHORTEST_BYTES // 2, size - excess - _MARK_BYTES)
        attributes[key] = shorten(str(attributes[key]), target)
    raise ValueError(f"span {span.name} cannot be cut to {limit_bytes} bytes")


def _longest(attributes: dict[str, AttributeValue]) -> tuple[str, int]:
    sizes = {k: _size(v) for k, v in attributes.items() if isinstance(v, str)}
    key = max(sizes, key=sizes.__getitem__)
    return key, sizes[key]


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def shorten(text: str, target_bytes: int) -> str:
    """Cut *text* to *target_bytes* of UTF-8 or less: JSON between elements, else in the middle."""
    if text[:1] in "[{":
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, (list, dict)):
            return _shorten_json(value, target_bytes)
    cut = max(0, len(text) - target_bytes)
    mark = f"\n[ragotel cut {cut} characters]\n"
    room = max(0, target_bytes - len(mark))
    raw = text.encode("utf-8", "replace")
    head = raw[: room - room // 3].decode("utf-8", "ignore")
    tail = raw[len(raw) - room // 3 :].decode("utf-8", "ignore")
    return head + mark + tail


def _shorten_json(value: list[object] | dict[str, object], target_bytes: int) -> str:
    """Keep the first elements or members of *value* that fit together."""
    pieces: list[str] = []
    room = target_bytes - 2
    members = value.items() if isinstance(value, dict) else ((None, v) for v in value)
    for key, element in members:
        piece = json.dumps(element, ensure_ascii=False, separators=(",", ":"))
        if key is not None:
            piece = f"{json.dumps(key, ensure_ascii=False)}:{piece}"
        room -= _size(piece) + 1
        if room < 0:
            break
        pieces.append(piece)
    left, right = "{}" if isinstance(value, dict) else "[]"
    return left + ",".join(pieces) + right
