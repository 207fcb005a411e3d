"""OTLP JSON becomes rows, also where it is written as in the wild."""

from __future__ import annotations

import base64
import json

import pytest

from otlp_bodies import AT_NS, trace_id
from ragotel.store.otlp_json import decode_json
from ragotel.store.otlp_rows import Event, Link, OtlpError, SpanRow

TRACE, SPAN = trace_id("t"), trace_id("s")[:8]


def document(**span: object) -> bytes:
    whole = {
        "traceId": TRACE.hex(),
        "spanId": SPAN.hex(),
        "name": "answer",
        "startTimeUnixNano": str(AT_NS),
        "endTimeUnixNano": str(AT_NS + 7),
        **span,
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [whole]}]}]}).encode()


def only_row(body: bytes) -> SpanRow:
    decoded = decode_json(body)
    assert decoded.message == ""
    return decoded.rows[0]


def test_snake_case_names_and_numbers_mean_the_same_as_camel_case_and_text() -> None:
    """Keys in either case, 64-bit numbers as text or number, enums as number or name."""
    camel = document(
        kind="SPAN_KIND_CLIENT",
        parentSpanId="01" * 8,
        status={"code": "STATUS_CODE_OK", "message": "m"},
        attributes=[{"key": "n", "value": {"intValue": "5"}}],
        events=[{"timeUnixNano": "9", "name": "e"}],
        links=[{"traceId": "02" * 16, "spanId": "03" * 8}],
    )
    snake = {
        "trace_id": TRACE.hex().upper(),
        "span_id": SPAN.hex(),
        "parent_span_id": "01" * 8,
        "name": "answer",
        "start_time_unix_nano": AT_NS,
        "end_time_unix_nano": AT_NS + 7,
        "kind": 3,
        "status": {"code": 1, "message": "m"},
        "attributes": [{"key": "n", "value": {"int_value": 5}}],
        "events": [{"time_unix_nano": 9, "name": "e"}],
        "links": [{"trace_id": "02" * 16, "span_id": "03" * 8}],
        "unknown": {"ignored": 1},
    }
    other = {"resource_spans": [{"scope_spans": [{"spans": [snake]}]}]}
    row = only_row(camel)
    assert row == only_row(json.dumps(other).encode())
    assert row._asdict() == {
        **row._asdict(),
        "trace_id": TRACE.hex(),
        "kind": "Client",
        "status_code": "Ok",
        "attributes": {"n": "5"},
        "events": (Event(9, "e", {}),),
        "links": (Link("02" * 16, "03" * 8, "", {}),),
    }


def test_ids_in_base64_are_ids_too() -> None:
    """Protobuf's own JSON printer writes bytes so."""
    row = only_row(
        document(
            traceId=base64.b64encode(TRACE).decode(),
            spanId=base64.b64encode(SPAN).decode(),
            parentSpanId=base64.b64encode(b"\x01" * 8).decode(),
        )
    )
    assert (row.trace_id, row.span_id, row.parent_span_id) == (TRACE.hex(), SPAN.hex(), "01" * 8)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"stringValue": "a"}, "a"),
        ({"stringValue": "cut \ud83d"}, "cut \ufffd"),
        ({"intValue": "not a number"}, "not a number"),
        ({"intValue": 10**30}, "1" + "0" * 30),
        ({"doubleValue": "NaN"}, "NaN"),
        ({"doubleValue": 1e400}, "Infinity"),
        ({"boolValue": "true"}, "true"),
        ({"bytesValue": "AP8="}, "AP8="),
        ({"arrayValue": {}}, "[]"),
        ({"arrayValue": {"values": [{"intValue": 1}, {}]}}, "[1,null]"),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}}, '{"k":true}'),
        ({}, ""),
        (None, ""),
        ("bare", "bare"),
        ({"newValue": 1}, ""),
    ],
)
def test_junk_in_an_attribute_is_kept_as_text(value: object, text: str) -> None:
    """No value costs its span, let alone the batch."""
    assert only_row(document(attributes=[{"key": "k", "value": value}, 7])).attributes == {
        "k": text
    }


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"traceId": "xyz"}, "trace id of 3 characters is not 32 hex digits"),
        ({"traceId": "a" * 3_000_000}, "trace id of 3000000 characters is not 32 hex digits"),
        ({"traceId": None}, "no trace id"),
        ({"spanId": "0" * 16}, "no span id"),
        ({"startTimeUnixNano": "soon"}, "start time is no number"),
        ({"startTimeUnixNano": -1}, "start time beyond the year 2262"),
    ],
)
def test_a_span_that_cannot_be_stored_is_counted(fields: dict, reason: str) -> None:
    """Its reason names what is wrong."""
    assert dict(decode_json(document(**fields)).reasons) == {reason: 1}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"resourceSpans": [', "not JSON"),
        (b"[1]", "not an object with resourceSpans"),
        (b"[]", "not an object with resourceSpans"),
        (b'{"resourceSpans": 5}', "resourceSpans is no list but int"),
        (b'{"resourceSpans": [5]}', "resourceSpans has an element that is no object but int"),
        (b'{"resourceSpans": [{"scopeSpans": {}}]}', "scopeSpans is no list but dict"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": ""}]}]}', "spans is no list but str"),
        (b'{"' + b"k" * 10**6 + b'": 1}', "no resourceSpans, but 'k{40}…'"),
        (b'"text"', "not an object with resourceSpans"),
        (b'{"resourceLogs": []}', "no resourceSpans, but 'resourceLogs'"),
        (b"[" * 100_000, "nested too deep"),
        (b"\x0a\x02\x08\x01", "not JSON"),
    ],
)
def test_what_is_no_otlp_is_refused_with_a_reason(body: bytes, reason: str) -> None:
    """The sender learns what came instead."""
    with pytest.raises(OtlpError, match=reason):
        decode_json(body)


@pytest.mark.parametrize("body", [b"{}", b'{"resourceSpans": []}', b'{"resourceSpans": null}'])
def test_an_empty_message_is_a_message(body: bytes) -> None:
    """Nothing to store is nothing wrong."""
    assert (decode_json(body).rows, decode_json(body).rejected_count) == ([], 0)


def test_an_invalid_byte_is_repaired() -> None:
    """One bad byte in one text costs that byte."""
    assert only_row(document(name="XX").replace(b"XX", b"\xffX")).name == "\ufffdX"
