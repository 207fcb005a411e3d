"""OTLP protobuf becomes rows; what is malformed costs as little as it can."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st

from otlp_bodies import AT_NS, body, key_values, request, trace_id
from ragotel.store.encodings import TooLargeError
from ragotel.store.otlp_json import decode_json
from ragotel.store.otlp_protobuf import decode_protobuf
from ragotel.store.otlp_rows import Event, Link, Origin, OtlpError, SpanRow, encode_rows


def full_request():
    message = request({"trace": "t", "attributes": {"k": "v", "n": 3, "l": ["a", 1.5]}})
    message.resource_spans[0].scope_spans[0].scope.version = "1.2"
    span = message.resource_spans[0].scope_spans[0].spans[0]
    span.parent_span_id = b"\x01" * 8
    span.trace_state = "a=b"
    span.kind = 3
    span.status.code = 2
    span.status.message = "failed"
    span.events.add(time_unix_nano=AT_NS + 1, name="e", attributes=key_values({"x": True}))
    span.links.add(trace_id=b"\x02" * 16, span_id=b"\x03" * 8, attributes=key_values({"y": b"z"}))
    return message


FULL_ROW = SpanRow(
    start_ns=AT_NS,
    duration_ns=5_000_000,
    trace_id=trace_id("t").hex(),
    span_id=trace_id(("t", 0))[:8].hex(),
    parent_span_id="01" * 8,
    trace_state="a=b",
    name="answer",
    kind="Client",
    origin=Origin("bot", {"service.name": "bot"}, "ragotel", "1.2"),
    attributes={"k": "v", "n": "3", "l": '["a",1.5]'},
    status_code="Error",
    status_message="failed",
    events=(Event(AT_NS + 1, "e", {"x": "true"}),),
    links=(Link("02" * 16, "03" * 8, "", {"y": "eg=="}),),
)


def test_every_field_of_a_span_is_read() -> None:
    """Ids as lower-case hex, times in nanoseconds, kinds and codes by the exporter's names."""
    decoded = decode_protobuf(full_request().SerializeToString())
    assert (decoded.rows, decoded.rejected_count) == ([FULL_ROW], 0)


attributes = st.dictionaries(
    st.text(),
    st.recursive(
        st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    ),
)


@settings(deadline=None)
@given(attributes)
def test_protobuf_and_json_of_one_message_give_the_same_rows(given: dict) -> None:
    """The encoding on the wire makes no difference to what is stored."""
    message = request({"trace": "t", "attributes": given, "kind": 2})
    as_json = json.dumps(MessageToDict(message)).encode()
    assert decode_protobuf(message.SerializeToString()).rows == decode_json(as_json).rows


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 400))
def test_no_damage_raises_anything_but_otlp_error(noise: bytes, start: int, stop: int) -> None:
    """Bytes put into, and cut out of, a message end as rows, as counted spans or as OtlpError."""
    whole = full_request().SerializeToString()
    damaged = whole[: min(start, stop)] + noise + whole[max(start, stop) :]
    try:
        decoded = decode_protobuf(damaged)
    except OtlpError:
        return
    assert len(decoded.rows) + decoded.rejected_count <= len(damaged)


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_body_cut_short_is_refused_whole(cut: int) -> None:
    """Nobody can know what the lost end held."""
    with pytest.raises(OtlpError, match="cut short"):
        decode_protobuf(body({})[:-cut])


def test_text_is_no_protobuf() -> None:
    """A JSON body under protobuf's name is refused with a reason."""
    with pytest.raises(OtlpError, match="not an OTLP protobuf message"):
        decode_protobuf(b'{"resourceSpans": []}')


def _sized(tag: bytes, data: bytes) -> bytes:
    size, length = len(data), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return tag + bytes(length) + bytes([size]) + data


def test_a_malformed_span_costs_itself() -> None:
    """Its neighbours in the same batch are stored."""
    good = request({"trace": "a"}).resource_spans[0].scope_spans[0].spans[0].SerializeToString()
    spans = _sized(b"\x12", good) + _sized(b"\x12", b"\x4a\x7fcut") + _sized(b"\x12", good)
    decoded = decode_protobuf(_sized(b"\x0a", _sized(b"\x12", spans)))
    assert [row.trace_id for row in decoded.rows] == [trace_id("a").hex()] * 2
    assert dict(decoded.reasons) == {"malformed span (cut short)": 1}


def test_invalid_utf8_is_repaired() -> None:
    """One bad byte in one text costs that byte, not the batch."""
    whole = body({"attributes": {"k": "XX"}}).replace(b"XX", b"\xffX")
    assert decode_protobuf(whole).rows[0].attributes == {"k": "\ufffdX"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"trace_id": b""}, "no trace id"),
        ({"trace_id": b"\0" * 16}, "no trace id"),
        ({"trace_id": b"x" * 2_000_000}, "trace id of 2000000 bytes instead of 16"),
        ({"span_id": b"x"}, "span id of 1 bytes instead of 8"),
        ({"parent_span_id": b"x" * 9}, "parent span id of 9 bytes instead of 8"),
        ({"start_time_unix_nano": 2**63}, "start time beyond the year 2262"),
    ],
)
def test_a_span_that_cannot_be_stored_is_counted(fields: dict, reason: str) -> None:
    """Its reason names what is wrong; the span beside it is stored."""
    decoded = decode_protobuf(body({"trace": "good"}, fields))
    assert [row.trace_id for row in decoded.rows] == [trace_id("good").hex()]
    assert decoded.message == f"1 spans rejected: 1 x {reason}"


def test_times_that_make_no_sense_cost_nothing() -> None:
    """An end before the start is no duration; an event beyond the store's time is moved into it."""
    message = request({"end_time_unix_nano": 5})
    message.resource_spans[0].scope_spans[0].spans[0].events.add(time_unix_nano=2**64 - 1)
    row = decode_protobuf(message.SerializeToString()).rows[0]
    assert (row.duration_ns, row.events[0].at_ns) == (0, 2**63 - 1)


def test_of_a_key_given_twice_the_last_value_counts() -> None:
    """As in the exporter, whose maps hold one value per key."""
    message = request({"attributes": {"k": "first"}})
    span = message.resource_spans[0].scope_spans[0].spans[0]
    span.attributes.extend(key_values({"k": "last"}))
    assert decode_protobuf(message.SerializeToString()).rows[0].attributes == {"k": "last"}


def test_a_value_nested_without_end_costs_its_span() -> None:
    """The process survives what would exhaust the stack."""
    value = b""
    for _ in range(5000):
        value = _sized(b"\x2a", _sized(b"\x0a", value))
    pair = _sized(b"\x0a", b"k") + _sized(b"\x12", value)
    good = request({"trace": "good"}).resource_spans[0].scope_spans[0].spans[0]
    bad = good.SerializeToString() + _sized(b"\x4a", pair)
    spans = _sized(b"\x12", bad) + _sized(b"\x12", good.SerializeToString())
    decoded = decode_protobuf(_sized(b"\x0a", _sized(b"\x12", spans)))
    assert [row.trace_id for row in decoded.rows] == [trace_id("good").hex()]
    assert dict(decoded.reasons) == {"attribute nested deeper than 64 levels": 1}


def test_unknown_kinds_and_codes_are_blank() -> None:
    """Numbers that the convention does not know cost nothing."""
    message = request({"kind": 5})
    raw = message.SerializeToString().replace(b"\x30\x05", b"\x30\x63")
    assert decode_protobuf(raw).rows[0].kind == ""


def _peak_bytes(work) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("tag", [b"\x2a", b"\x32"])
def test_a_nested_value_is_not_copied_at_every_level(tag: bytes) -> None:
    """A megabyte sixty lists or maps deep takes a few of them, not sixty."""
    value = _sized(b"\x0a", b"x" * 2**20)
    for _ in range(60):
        value = _sized(tag, _sized(b"\x0a", value if tag == b"\x2a" else _sized(b"\x12", value)))
    pair = _sized(b"\x0a", b"k") + _sized(b"\x12", value)
    good = request({"trace": "good"}).resource_spans[0].scope_spans[0].spans[0]
    span = good.SerializeToString() + _sized(b"\x4a", pair)
    message = _sized(b"\x0a", _sized(b"\x12", _sized(b"\x12", span)))
    assert len(decode_protobuf(message).rows[0].attributes["k"]) > 2**20
    assert _peak_bytes(lambda: decode_protobuf(message)) < 12 * 2**20


def test_rows_beyond_a_limit_are_refused() -> None:
    """Every row has a copy of its resource: a small message can be very many bytes of rows."""
    message = request(*({} for _ in range(1000)), service="s" * 10_000)
    rows = decode_protobuf(message.SerializeToString()).rows
    assert len(encode_rows(rows, 2**26)) == 1000
    with pytest.raises(TooLargeError, match="each with its resource, are larger than 1048576"):
        encode_rows(rows, 2**20)


def test_a_resource_nested_without_end_costs_its_spans() -> None:
    """Those of the resource beside it are stored, in both encodings."""
    value, as_dict = b"", dict[str, Any]()
    for _ in range(70):
        value = _sized(b"\x2a", _sized(b"\x0a", value))
        as_dict = {"arrayValue": {"values": [as_dict]}}
    pair = _sized(b"\x0a", b"k") + _sized(b"\x12", value)
    bad = request({"trace": "bad"}, {"trace": "bad"})
    good = request({"trace": "good"})
    frame = bad.resource_spans[0].SerializeToString() + _sized(b"\x0a", _sized(b"\x0a", pair))
    both = MessageToDict(bad)["resourceSpans"] + MessageToDict(good)["resourceSpans"]
    both[0]["resource"]["attributes"].append({"key": "k", "value": as_dict})
    for decoded in (
        decode_protobuf(_sized(b"\x0a", frame) + good.SerializeToString()),
        decode_json(json.dumps({"resourceSpans": both}).encode()),
    ):
        assert [row.trace_id for row in decoded.rows] == [trace_id("good").hex()]
        assert dict(decoded.reasons) == {"resource: attribute nested deeper than 64 levels": 2}
