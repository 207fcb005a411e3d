"""OTLP receivers over real sockets: what is stored, what is refused, what the sender hears."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import lz4.frame
import pytest
from google.protobuf.json_format import MessageToDict
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from otlp_bodies import AT_NS, JSON, any_value, body, post, rag_request, request, trace_id
from ragotel.store.encodings import _zstd
from served import Served

MEBIBYTE = 1 << 20


def names_of(served: Served, service_name: str) -> list[str]:
    rows = served.sql(
        f"select SpanName from otel_traces where ServiceName = '{service_name}' order by SpanName"
    )
    return [row["SpanName"] for row in rows]


def _peak_kib(served: Served) -> int:
    """The most memory that the server has held so far."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def test_a_span_is_readable_once_it_is_acknowledged(shared_server: Served) -> None:
    """The row holds what was sent, in the collector exporter's columns."""
    attributes = {"k": "v", "list": ["a", 1], "nul": "a\0b", "sql": "'; drop table x --", "e": "é"}
    message = request({"trace": "row", "attributes": attributes, "kind": 3}, service="row")
    reply = post(shared_server.otlp_http, message.SerializeToString())
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["content-type"] == "application/x-protobuf"
    assert shared_server.sql(
        "select * except (SpanId), toUnixTimestamp64Nano(Timestamp) as ns from otel_traces "
        "where ServiceName = 'row' settings output_format_json_quote_64bit_integers = 0"
    ) == [
        {
            "Timestamp": "2026-11-30 00:53:20.123456789",
            "TraceId": trace_id("row").hex(),
            "ParentSpanId": "",
            "TraceState": "",
            "SpanName": "answer",
            "SpanKind": "Client",
            "ServiceName": "row",
            "ResourceAttributes": {"service.name": "row"},
            "ScopeName": "ragotel",
            "ScopeVersion": "",
            "SpanAttributes": {**attributes, "list": '["a",1]'},
            "Duration": 5_000_000,
            "StatusCode": "Unset",
            "StatusMessage": "",
            "Events.Timestamp": [],
            "Events.Name": [],
            "Events.Attributes": [],
            "Links.TraceId": [],
            "Links.SpanId": [],
            "Links.TraceState": [],
            "Links.Attributes": [],
            "ns": AT_NS,
        }
    ]


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("zstd", lambda data: _zstd().compress(data)),
        ("lz4", lz4.frame.compress),
        ("identity", bytes),
    ],
)
def test_packed_bodies_are_unpacked(shared_server: Served, encoding: str, pack) -> None:
    """Protobuf and JSON, under every encoding that is understood."""
    name = f"packed-{encoding}"
    message = request({"name": "p"}, service=name)
    as_json = json.dumps(MessageToDict(request({"name": "j"}, service=name))).encode()
    data = pack(message.SerializeToString())
    replies = [
        post(shared_server.otlp_http, data, content_encoding=encoding),
        post(shared_server.otlp_http, pack(as_json), JSON, content_encoding=encoding),
    ]
    assert [(reply.status, reply.body) for reply in replies] == [(200, b""), (200, b"{}")]
    assert names_of(shared_server, name) == ["j", "p"]


@pytest.mark.parametrize("table", ["otel_traces", "rag_stages"])
def test_nothing_is_acknowledged_that_a_table_did_not_take(
    serve: Callable[..., Served], table: str
) -> None:
    """Too many parts, in the spans' table or a typed one: the sender is told to wait."""
    served = serve()
    assert post(served.otlp_http, rag_request(1)).status == 200
    served.command(f"alter table {table} modify setting parts_to_throw_insert = 1")
    assert post(served.otlp_http, rag_request(2)).status == 503
    served.command(f"alter table {table} reset setting parts_to_throw_insert")
    assert post(served.otlp_http, rag_request(2)).status == 200
    assert served.sql("select uniqExact(request_id) as n from rag_stages") == [{"n": 2}]


def test_grpc_takes_plain_and_packed_messages(shared_server: Served) -> None:
    """The answer comes when the spans are stored."""
    with grpc.insecure_channel(shared_server.otlp_grpc) as channel:
        stub = TraceServiceStub(channel)
        for name, compression in (("plain", None), ("packed", grpc.Compression.Gzip)):
            reply = stub.Export(
                request({"name": name}, service="grpc"), timeout=30, compression=compression
            )
            assert reply == service.ExportTraceServiceResponse()
    assert names_of(shared_server, "grpc") == ["packed", "plain"]


def test_a_bad_span_is_counted_and_its_neighbours_are_stored(shared_server: Served) -> None:
    """Both transports and both encodings say how many were rejected and why."""
    spans = ({"name": "good"}, {"name": "bad", "trace_id": b"x"})
    reason = "1 spans rejected: 1 x trace id of 1 bytes instead of 16"
    reply = post(shared_server.otlp_http, body(*spans, service="partly-http"))
    assert (reply.status, reply.rejected) == (200, (1, reason))
    with grpc.insecure_channel(shared_server.otlp_grpc) as channel:
        partial = TraceServiceStub(channel).Export(
            request(*spans, service="partly-grpc"), timeout=30
        )
    assert partial.partial_success.rejected_spans == 1
    assert partial.partial_success.error_message == reason
    document = MessageToDict(request(*spans, service="partly-json"))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["traceId"] = "xyz"
    as_json = post(shared_server.otlp_http, json.dumps(document).encode(), JSON)
    assert json.loads(as_json.body) == {
        "partialSuccess": {
            "rejectedSpans": "1",
            "errorMessage": "1 spans rejected: 1 x trace id of 3 characters is not 32 hex digits",
        }
    }
    assert [names_of(shared_server, f"partly-{way}") for way in ("http", "grpc", "json")] == [
        ["good"]
    ] * 3


@pytest.mark.parametrize(
    ("data", "kind", "headers", "status", "message"),
    [
        (body({})[:-3], "application/x-protobuf", {}, 400, "cut short"),
        (b"no protobuf", "application/x-protobuf", {}, 400, "not an OTLP protobuf message"),
        (b"{", JSON, {}, 400, "not JSON"),
        (b'{"resourceLogs": []}', JSON, {}, 400, "no resourceSpans"),
        (b"[]", JSON, {}, 400, "not an object with resourceSpans"),
        (b'{"resourceSpans": 5}', JSON, {}, 400, "resourceSpans is no list but int"),
        (b"x", "text/plain", {}, 415, "'text/plain' is neither"),
        (b"x", JSON, {"content_encoding": "br"}, 400, "'br' is not one of"),
        (b"no gzip", JSON, {"content_encoding": "gzip"}, 400, "not gzip"),
        (gzip.compress(b"{}", mtime=0)[:-4], JSON, {"content_encoding": "gzip"}, 400, "cut short"),
        (b"no zstd at all", JSON, {"content_encoding": "zstd"}, 400, "not zstd"),
    ],
)
def test_what_is_no_otlp_is_refused_with_a_reason(
    shared_server: Served, data: bytes, kind: str, headers: dict, status: int, message: str
) -> None:
    """A google.rpc.Status in the request's encoding; the server goes on."""
    reply = post(shared_server.otlp_http, data, kind, **headers)
    if kind == JSON:
        said = json.loads(reply.body)["message"]
    else:
        said = Status.FromString(reply.body).message
    assert (reply.status, message in said) == (status, True), said


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "lz4"])
def test_a_bomb_is_refused_before_it_has_gone_off(shared_server: Served, encoding: str) -> None:
    """A gibibyte of zeros in a small body costs neither the memory nor the server."""
    piece = b"\0" * MEBIBYTE
    if encoding in ("gzip", "deflate"):
        packer = zlib.compressobj(9, zlib.DEFLATED, 31 if encoding == "gzip" else 15)
        bomb = b"".join(packer.compress(piece) for _ in range(1024)) + packer.flush()
    elif encoding == "zstd":
        bomb = _zstd().compress(piece * 128) * 8
    else:
        bomb = lz4.frame.compress(piece * 128) * 8
    memory_before = _peak_kib(shared_server)
    reply = post(shared_server.otlp_http, bomb, content_encoding=encoding)
    assert reply.status == 413
    assert Status.FromString(reply.body).message == (
        "the body is larger than 67108864 bytes once unpacked"
    )
    assert _peak_kib(shared_server) - memory_before < 400 * 1024


def test_a_grpc_bomb_is_refused(shared_server: Served) -> None:
    """gRPC's own limit holds for what comes out of the packing."""
    huge = request({"attributes": {"k": any_value("x" * (65 * MEBIBYTE))}})
    with grpc.insecure_channel(
        shared_server.otlp_grpc, options=[("grpc.max_send_message_length", -1)]
    ) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            TraceServiceStub(channel).Export(huge, timeout=60, compression=grpc.Compression.Gzip)
        assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        with pytest.raises(grpc.RpcError) as raised:
            channel.unary_unary(
                "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            )(b"no protobuf", timeout=30)
        assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_body_over_the_limit_is_refused(shared_server: Served) -> None:
    """Its length tells; not a byte of it need be read."""
    reply = post(shared_server.otlp_http, b"\0" * (65 * MEBIBYTE))
    assert reply.status == 413


def test_junk_in_every_attribute_is_stored(shared_server: Served) -> None:
    """No text, number or list in ragotel's own attributes makes an insert fail."""
    junk: list[object] = [
        *("", "[", "NaN", "[NaN]", '[{"id": 1e400}]', '{"a": [', "\0", "\ufffd" * 9, "9" * 400),
        *(-1, 2**63 - 1, 1e308, float("nan"), float("-inf"), True, b"\xff\xfe", [], {}, [[[]]]),
        *("x" * 100_000, ["a", 1, {"b": 2.5}], "2026-13-45", "-0"),
    ]
    keys = [
        *("rag.schema", "rag.stage", "rag.request.id", "rag.stage.name", "rag.outcome", "rag.tags"),
        *("rag.candidates", "rag.candidates.count", "rag.candidates.in_count", "rag.dropped"),
        *("gen_ai.retrieval.documents", "gen_ai.retrieval.top_k", "rag.prompt.text", "rag.chunks"),
        *("rag.budget.tokens", "gen_ai.usage.input_tokens", "rag.query", "user.id", "rag.limit"),
        *("gen_ai.request.temperature", "rag.citations", "rag.loss.spans", "rag.loss.cause"),
        *("rag.ingest.docs_listed", "rag.ingest.mean_chars_per_doc", "rag.capture.errors"),
    ]
    stages = ("request", "retrieve", "fuse", "rerank", "assemble", "generate", "ingest", "unheard")
    for value in junk:
        spans = [
            {"trace": "junk", "attributes": {**dict.fromkeys(keys, value), "rag.stage": stage}}
            for stage in stages
        ]
        spans.append({"trace": "junk", "name": "ragotel.loss", "attributes": {"k": value}})
        reply = post(shared_server.otlp_http, body(*spans, service="junk"))
        assert (reply.status, reply.rejected) == (200, (0, "")), repr(value)[:60]
    assert len(names_of(shared_server, "junk")) == len(junk) * (len(stages) + 1)
    for table in ("rag_requests", "rag_stages", "rag_prompts"):
        assert shared_server.sql(f"select count() > 0 as filled from {table}") == [{"filled": 1}]


def test_ids_of_megabytes_are_stored(shared_server: Served) -> None:
    """What a service calls a request or a passage may have any length."""
    huge = "x" * (3 * MEBIBYTE)
    hits = json.dumps([{"id": huge, "score": 1}, {"id": "b", "score": 0.5}])
    span = {"rag.stage": "retrieve", "rag.request.id": huge, "rag.schema": 1}
    span |= {"gen_ai.retrieval.documents": hits, "rag.candidates.count": 2}
    assert post(shared_server.otlp_http, body({"attributes": span}, service="huge")).status == 200
    assert shared_server.sql(
        "select length(request_id) as id, arrayMap(x -> length(x), chunk_ids) as ids, evidence "
        "from rag_stages where service_name = 'huge'"
    ) == [{"id": 3 * MEBIBYTE, "ids": [3 * MEBIBYTE, 1], "evidence": "whole"}]


def test_times_from_everywhere_are_stored(shared_server: Served) -> None:
    """From 1970 to 2262 in one batch: more months than an insert may touch by default."""
    spans = [{"start_time_unix_nano": n * 2**63 // 150 + (n == 150)} for n in range(150)]
    assert post(shared_server.otlp_http, body(*spans, service="times")).status == 200
    assert shared_server.sql(
        "select count() as n, min(Timestamp) as first from otel_traces where ServiceName = 'times'"
    ) == [{"n": 150, "first": "1970-01-01 00:00:00.000000000"}]


def test_many_small_posts_make_few_parts(serve) -> None:
    """Two hundred posts at once end in a handful of inserts, and all are stored."""
    served = serve()
    served.command("system stop merges")
    with ThreadPoolExecutor(50) as pool:
        replies = list(
            pool.map(lambda n: post(served.otlp_http, rag_request(n, prompt_chars=500)), range(200))
        )
    assert {reply.status for reply in replies} == {200}
    assert served.sql("select count() as n, uniq(TraceId) as t from otel_traces") == [
        {"n": 1000, "t": 200}
    ]
    parts = served.sql(
        "select table, count() as parts from system.parts where database = 'ragotel' and active "
        "and table in ('otel_traces', 'rag_stages', 'rag_prompts', 'rag_requests') group by table"
    )
    assert {row["table"] for row in parts} == {
        "otel_traces",
        "rag_stages",
        "rag_prompts",
        "rag_requests",
    }
    assert max(int(row["parts"]) for row in parts) <= 20
