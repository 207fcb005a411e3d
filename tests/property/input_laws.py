"""Laws of input: what may come of any bytes that a receiver gets, of any object that a stage gives.

Each function raises AssertionError, or whatever was raised within, where its law is broken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from odd_objects import MOST_TOUCHED, Draw, build

import ragotel
from ragotel import attributes as at
from ragotel.store.backfill import foreign_traces
from ragotel.store.otlp_rows import (
    LATEST_NS,
    SPAN_KINDS,
    STATUS_CODES,
    Decoded,
    OtlpError,
    encode_rows,
)
from ragotel.testing import recording

_HEX = re.compile("[0-9a-f]+")
DECORATORS = (
    *(ragotel.request, ragotel.retrieve, ragotel.fuse, ragotel.rerank, ragotel.blend),
    *(ragotel.filter, ragotel.assemble, ragotel.generate, ragotel.ingest),
)
JSON_KEYS = (at.DOCUMENTS, at.CANDIDATES, at.DROPPED, at.CHUNKS, at.CITATIONS, at.TAGS)
MOST_SPAN_BYTES = 4 << 20


def hold_decoding(body: Any, decode: Callable[[Any], Decoded]) -> Decoded | None:
    """*body* ends as rows that can be inserted, as counted spans, or as OtlpError with one line."""
    try:
        decoded = decode(body)
    except OtlpError as error:
        refusal = str(error)
    else:
        refusal = ""
        hold_rows(decoded, len(body) if isinstance(body, bytes) else 1 << 20)
    if refusal:
        assert "\n" not in refusal
        assert len(refusal) < 500
        return None
    return decoded


def hold_rows(decoded: Decoded, body_bytes: int) -> None:
    """Rows have ids, times and names of the right form, and can be inserted."""
    for row in decoded.rows:
        assert len(row.trace_id) == 32, row.trace_id
        assert len(row.span_id) == 16, row.span_id
        assert len(row.parent_span_id) in (0, 16)
        assert all(map(_HEX.fullmatch, (row.trace_id, row.span_id, row.parent_span_id or "0")))
        assert 0 <= row.start_ns <= LATEST_NS
        assert 0 <= row.duration_ns < 2**64
        assert row.kind in (*SPAN_KINDS, "")
        assert row.status_code in (*STATUS_CODES, "")
        assert all(0 <= event.at_ns <= LATEST_NS for event in row.events)
    assert "\n" not in decoded.message
    assert len(decoded.message) < 2_000
    assert len(decoded.rows) + decoded.rejected_count <= body_bytes
    encoded = encode_rows(decoded.rows)
    assert len(encoded) == len(decoded.rows)
    assert foreign_traces(decoded.rows) <= {row.trace_id for row in decoded.rows}


def hold_reading(data: bytes) -> None:
    """Whatever goes into and comes out of a decorated function, the service gets that very object.

    Nothing is raised, each call has its span, spans have valid text and JSON of bounded size, and
    of a lazy sequence no more elements are made than the reader's limit.
    """
    draw = Draw(data)
    argument, result = build(draw), build(draw)
    # A stream is handed on step by step, in a wrapper.
    hold_recording(argument, list(result) if isinstance(result, Iterator) else result)
    for lazy in draw.touched:
        assert lazy.count <= MOST_TOUCHED * len(DECORATORS), lazy.count


def hold_recording(argument: Any, result: Any) -> None:
    """The same for one argument and one result."""
    with recording() as sink:
        for decorate in DECORATORS:
            recorded: Any = decorate(lambda value: result)
            assert recorded(argument) is result
        spans = sink.raw
    assert len(spans) == len(DECORATORS)
    for span in spans:
        assert span.attributes[at.OUTCOME] == "ok"
        size = 0
        for key, value in span.attributes.items():
            assert isinstance(value, (str, bool, int, float)), key
            if isinstance(value, str):
                size += len(value.encode())
            if key in JSON_KEYS:
                json.loads(str(value), parse_constant=_refuse)
        assert size < MOST_SPAN_BYTES, size


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} in a list")
