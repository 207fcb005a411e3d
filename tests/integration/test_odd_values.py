"""What each way into the store does to odd values is what docs/collectors.md says."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from odd_values import (
    CASES,
    INVALID,
    INVALID_BYTES,
    LOST,
    PROMPTS,
    READ,
    READINGS,
    REFUSED,
    SIZES,
    STORED,
    SURROGATE,
    Case,
    expected,
    page_tables,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from test_collector import BUILT, Collector
from test_rotel import PACKAGE, running_rotel

from otlp_bodies import JSON, PROTOBUF, any_value, post, request, trace_id
from served import REPOSITORY, Served, wait_until

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
Send = Callable[[bytes, str], int]
"""A body and its content type to the status of the answer."""


def body(case: Case, way: str, *, as_json: bool) -> bytes:
    """One request with the one span of *case*."""
    attributes = case.attributes or {"odd": case.value}
    message = request({"trace": (way, case.name), "name": case.name, "attributes": attributes})
    resource = message.resource_spans[0].resource
    span = message.resource_spans[0].scope_spans[0].spans[0]
    if case.name == "no service.name":
        del resource.attributes[:]
    if case.name == "a key given twice":
        span.attributes[1].key = "odd"
    if case.name == "an event and a link":
        pair = KeyValue(key="k", value=any_value([1]))
        span.events.add(time_unix_nano=5, name="e", attributes=[pair])
        span.links.add(trace_id=b"\x02" * 16, span_id=b"\x03" * 8, attributes=[pair])
    if not as_json:
        return message.SerializeToString().replace(INVALID.encode(), INVALID_BYTES)
    text = json.dumps(in_json(message))
    return (
        text.encode()
        .replace(INVALID.encode(), INVALID_BYTES)
        .replace(SURROGATE.encode(), b"\\ud83d")
    )


def in_json(message: Any) -> dict[str, Any]:
    """OTLP's own JSON of a message with one span: ids in hex, where protobuf writes base64."""
    frame = message.resource_spans[0]
    span = frame.scope_spans[0].spans[0]
    made = {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "name": span.name,
        "startTimeUnixNano": str(span.start_time_unix_nano),
        "endTimeUnixNano": str(span.end_time_unix_nano),
        "attributes": _pairs(span.attributes),
        "events": [
            {"timeUnixNano": "5", "name": event.name, "attributes": _pairs(event.attributes)}
            for event in span.events
        ],
        "links": [
            {
                "traceId": link.trace_id.hex(),
                "spanId": link.span_id.hex(),
                "attributes": _pairs(link.attributes),
            }
            for link in span.links
        ],
    }
    scope = {"scope": {"name": frame.scope_spans[0].scope.name}, "spans": [made]}
    resource = {"attributes": _pairs(frame.resource.attributes)}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _pairs(pairs: Any) -> list[dict[str, Any]]:
    return [{"key": pair.key, "value": _value(pair.value)} for pair in pairs]


def _value(value: AnyValue) -> dict[str, Any]:
    kind = value.WhichOneof("value")
    if kind is None:
        return {}
    held: Any = getattr(value, kind)
    if kind == "array_value":
        held = {"values": list(map(_value, held.values))}
    elif kind == "kvlist_value":
        held = {"values": _pairs(held.values)}
    elif kind == "bytes_value":
        held = base64.b64encode(held).decode()
    elif kind == "int_value":
        held = str(held)
    elif kind == "double_value" and not math.isfinite(held):
        held = "NaN" if math.isnan(held) else "Infinity" if held > 0 else "-Infinity"
    return {kind.replace("_value", "Value"): held}


def over_http(url: str) -> Send:
    return lambda data, kind: post(url, data, kind).status


def over_grpc(address: str, channel: Any) -> Send:
    export = channel.unary_unary(EXPORT)

    def send(data: bytes, kind: str) -> int:
        try:
            export(data, timeout=120)
        except grpc.RpcError as error:
            return 400 if error.code() == grpc.StatusCode.INTERNAL else 500
        return 200

    return send


def arrived(served: Served, way: str, send: Send, *, as_json: bool) -> dict[str, Any]:
    """Send all cases and wait for them; what the tables then hold, by the case's name."""
    kind = JSON if as_json else PROTOBUF
    cases = [case for case in CASES if as_json or case.value != SURROGATE]
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda case: send(body(case, way, as_json=as_json), kind), cases))
    taken = {
        trace_id((way, case.name)).hex(): case
        for case, status in zip(cases, statuses, strict=True)
        if status == 200
    }
    assert set(statuses) <= {200, 400}, statuses
    names = ", ".join(f"'{one}'" for one in taken)
    stages = [case for case in taken.values() if case in READINGS]
    prompts = [case for case in taken.values() if case in PROMPTS]
    counts = {"otel_traces": len(taken), "rag_stages": len(stages) + len(prompts)}
    counts["rag_prompts"] = len(prompts)

    def counted() -> dict[str, int]:
        # What a collector inserts is seen in one table before it is in the next.
        asked = "select count() as n from {} where {} in ({})"
        return {
            table: served.sql(
                asked.format(table, "TraceId" if table == "otel_traces" else "trace_id", names)
            )[0]["n"]
            for table in counts
        }

    wait_until(lambda: counted() == counts, timeout_s=120)
    found: dict[str, Any] = {case.name: REFUSED for case in cases}
    for row in served.sql(
        "select TraceId as trace, ServiceName as service, Events.Attributes as events, "
        "Links.TraceId as links, arrayMap(key -> hex(key), mapKeys(SpanAttributes)) as keys, "
        "arrayMap(value -> if(length(value) < 5000, hex(value), toString(length(value))), "
        f"mapValues(SpanAttributes)) as texts from otel_traces where TraceId in ({names})"
    ):
        case = taken[row["trace"]]
        found[case.name] = stored(case, row)
    for row in served.sql(
        "select trace_id as trace, evidence, candidate_count as count, top_k, finish_reasons, "
        "arraySlice(arrayMap(id -> hex(id), chunk_ids), 1, 3) as ids, "
        "arraySlice(scores, 1, 3) as scores "
        f"from rag_stages where trace_id in ({names}) and stage != 'assemble'"
    ):
        found[taken[row["trace"]].name] = told(row)
    for row in served.sql(
        "select trace_id as trace, length(prompt) as bytes, isValidUTF8(prompt) as is_text, "
        f"hex(substring(prompt, 1, 12)) as head from rag_prompts where trace_id in ({names})"
    ):
        found[taken[row["trace"]].name] = (
            f"{row['bytes']} bytes, {'text' if row['is_text'] else 'no text'}: "
            f"{_shown(bytes.fromhex(row['head']))}"
        )
    return found


def stored(case: Case, row: dict[str, Any]) -> str:
    """What stands in otel_traces, as the page shows it."""
    texts = dict(zip(row["keys"], row["texts"], strict=True))
    if case.name == "no service.name":
        return row["service"] or "''"
    if case.name == "an event and a link":
        return f"{row['events'][0]['k']}, link to {row['links'][0][:4]}…"
    text = texts.get("" if case.name == "a key that is empty" else b"odd".hex().upper())
    if text is None:
        return LOST
    return f"{text} bytes" if case in SIZES else _shown(bytes.fromhex(text)) or "''"


def told(row: dict[str, Any]) -> str:
    """What rag_stages makes of a list, as the page shows it."""
    ids = ", ".join("null" if one is None else _shown(bytes.fromhex(one)) for one in row["ids"])
    scores = ", ".join("null" if one is None else f"{one:g}" for one in row["scores"])
    more = f", top_k {row['top_k']}" if row["top_k"] is not None else ""
    if row["finish_reasons"]:
        return ", ".join(row["finish_reasons"])
    if not row["ids"]:
        return str(row["evidence"])
    return f"{row['evidence']}, {row['count']}: {ids} ({scores}){more}"


def _shown(raw: bytes) -> str:
    text = raw.decode("utf-8", "backslashreplace")
    return "".join(
        one if one.isprintable() and one != "\uffff" else f"\\u{ord(one):04x}" for one in text
    )


def check(way: str, found: dict[str, Any]) -> None:
    wanted = {name: expected(name, way) for name in found}
    assert found == wanted


def test_direct_over_grpc(shared_server: Served) -> None:
    """`ragotel serve`, as most SDKs send."""
    with grpc.insecure_channel(shared_server.otlp_grpc) as channel:
        send = over_grpc(shared_server.otlp_grpc, channel)
        check("direct", arrived(shared_server, "grpc", send, as_json=False))


@pytest.mark.parametrize("as_json", [False, True])
def test_direct_over_http(shared_server: Served, as_json: bool) -> None:
    """The encoding makes no difference."""
    found = arrived(
        shared_server, f"http-{as_json}", over_http(shared_server.otlp_http), as_json=as_json
    )
    check("direct", found)


@pytest.mark.skipif(not BUILT.exists(), reason="the collector was not built (make collector)")
@pytest.mark.parametrize("as_json", [False, True])
def test_through_the_collector(shared_server: Served, tmp_path: Path, as_json: bool) -> None:
    """Its ClickHouse exporter writes into `ragotel serve`."""
    running = Collector(shared_server.url, tmp_path / "queue").start()
    try:
        found = arrived(
            shared_server, f"collector-{as_json}", over_http(running.otlp_http), as_json=as_json
        )
    finally:
        running.kill()
    check("collector", found)


@pytest.fixture
def rotel(shared_server: Served) -> Iterator[str]:
    with running_rotel(shared_server) as url:
        yield url


@pytest.mark.skipif(PACKAGE is None, reason="rotel has no package for this system")
def test_through_rotel(shared_server: Served, rotel: str) -> None:
    """Its own exporter writes into `ragotel serve`."""
    wait_until(lambda: _is_up(rotel), timeout_s=60)
    check("rotel", arrived(shared_server, "rotel", over_http(rotel), as_json=False))
    (half,) = (case for case in CASES if case.value == SURROGATE)
    assert post(rotel, body(half, "rotel", as_json=True), JSON).status == 400


def _is_up(url: str) -> bool:
    try:
        return post(url, request({"trace": "up"}).SerializeToString()).status == 200
    except OSError:
        return False


def test_the_page_has_the_table() -> None:
    """docs/collectors.md shows what is tested here, line by line."""
    page = (REPOSITORY / "docs" / "collectors.md").read_text("utf-8")
    for table in page_tables():
        assert table in page, f"docs/collectors.md must hold:\n\n{table}"


def test_every_case_has_its_line() -> None:
    """No case is sent whose outcome nobody has written down."""
    assert {case.name for case in CASES} == {*STORED, *READ}
    assert {case.name for case in (*READINGS, *PROMPTS)} == set(READ)
