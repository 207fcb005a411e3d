"""Files of OTLP, whatever wrote them, are loaded whole; what cannot be read is named."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict

from otlp_bodies import body, request, trace_id
from ragotel.errors import InputError
from ragotel.store import Store
from ragotel.store.encodings import _zstd
from ragotel.store.load import load_files


def document(name: str) -> dict:
    return MessageToDict(request({"trace": name, "name": name}))


def names(store: Store) -> list[str]:
    return [row["SpanName"] for row in store.rows("select SpanName from otel_traces order by 1")]


LINES = b"".join(json.dumps(document(name)).encode() + b"\n" for name in "abc")
PRETTY = json.dumps(document("a"), indent=2).encode()
MESSAGES = [body({"trace": name, "name": name}) for name in "abc"]


def varint_framed(messages: list[bytes]) -> bytes:
    framed = b""
    for message in messages:
        size, head = len(message), b""
        while size > 127:
            head += bytes([size & 127 | 128])
            size >>= 7
        framed += head + bytes([size]) + message
    return framed


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (LINES, "abc"),
        (LINES.replace(b"\n", b"\r\n\r\n"), "abc"),
        (b"\xef\xbb\xbf" + LINES, "abc"),
        (PRETTY, "a"),
        (PRETTY + b"\n" + json.dumps(document("b"), indent=1).encode(), "ab"),
        (json.dumps([document("a"), document("b")]).encode(), "ab"),
        (json.dumps([document("a"), document("b")], indent=2).encode(), "ab"),
        (MESSAGES[0], "a"),
        (MESSAGES[0] + MESSAGES[1], "ab"),
        (varint_framed(MESSAGES), "abc"),
        (b"".join(len(m).to_bytes(4, "big") + m for m in MESSAGES), "abc"),
        (varint_framed([body({"trace": "a", "name": "a", "attributes": {"k": "x" * 29}})]), "a"),
        (b"", ""),
        (b" \n\n", ""),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda data: _zstd().compress(data)])
def test_the_content_tells_what_a_file_is(
    store: Store, tmp_path: Path, data: bytes, expected: str, pack
) -> None:
    """JSON in any layout, protobuf in any framing, plain or packed, under any name."""
    file = tmp_path / "whatever.dat"
    file.write_bytes(pack(data))
    report = load_files(store, [str(file)])
    assert (report.span_count, report.rejected_count) == (len(expected), 0), report
    assert names(store) == list(expected)


def test_standard_input_is_a_file_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads it."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LINES)))
    assert load_files(store, ["-"]).as_dict()["files"][0] == {
        "file": "standard input",
        "spans": 3,
        "rejected": 0,
        "faults": [],
        "reasons": {},
    }


def test_a_half_written_last_line_costs_itself(store: Store, tmp_path: Path) -> None:
    """As does any other bad line: named by its number, the others are loaded."""
    file = tmp_path / "cut.jsonl"
    lines = LINES.splitlines(keepends=True)
    file.write_bytes(lines[0] + b"not json\n\n" + lines[1] + lines[2][:-20])
    report = load_files(store, [str(file)])
    assert (report.span_count, [fault.split(":")[0] for fault in report.files[0].faults]) == (
        2,
        ["line 2", "line 5"],
    )
    assert names(store) == ["a", "b"]


def test_a_bad_first_line_costs_itself(store: Store, tmp_path: Path) -> None:
    """Though it might have been the beginning of a document of many lines."""
    file = tmp_path / "first.jsonl"
    file.write_bytes(b'{"resourceSpans": [{"sco\n' + LINES)
    report = load_files(store, [str(file)])
    assert (names(store), report.rejected_count) == (["a", "b", "c"], 1)


@pytest.mark.parametrize(
    ("data", "stored", "fault"),
    [
        (gzip.compress(LINES, mtime=0)[:-9], None, "cut short"),
        (varint_framed(MESSAGES)[:-5], "ab", "message 3: cut short"),
        (MESSAGES[0][:-5], "", "cut short"),
        (b"\x89PNG\r\n\x1a\n" + bytes(99), "", "neither OTLP JSON nor OTLP protobuf"),
        (b"name,value\n1,2\n", "", "message 1"),
        (b'{"resourceMetrics": []}\n', "", "line 1: no resourceSpans"),
    ],
)
def test_what_cannot_be_read_is_named(
    store: Store, tmp_path: Path, data: bytes, stored: str | None, fault: str
) -> None:
    """With its place and its reason; what comes before it is loaded."""
    file = tmp_path / "bad"
    file.write_bytes(data)
    report = load_files(store, [str(file)])
    assert report.rejected_count >= 1
    assert fault in report.files[0].faults[-1]
    assert stored is None or names(store) == list(stored)


def test_rejected_spans_are_counted_by_reason(store: Store, tmp_path: Path) -> None:
    """Their neighbours in the same message are stored."""
    file = tmp_path / "partly"
    file.write_bytes(body({"name": "a"}, {"trace_id": b"x"}, {"trace_id": b"x"}))
    report = load_files(store, [str(file)])
    assert list(report.files[0].lines()) == [
        f"{file}: 2 spans rejected: trace id of 1 bytes instead of 16"
    ]
    assert names(store) == ["a"]


def test_a_missing_file_is_told_before_anything_is_loaded(store: Store, tmp_path: Path) -> None:
    """Half a load would be worse than none."""
    good = tmp_path / "good"
    good.write_bytes(LINES)
    with pytest.raises(InputError, match="no file"):
        load_files(store, [str(good), str(tmp_path / "missing")])
    assert names(store) == []


def test_old_times_keep_their_time(store: Store, tmp_path: Path) -> None:
    """A span of eleven years ago is stored at its own time, and its arrival apart."""
    file = tmp_path / "old"
    at_ns = 1_420_070_400_000_000_001
    span = {"trace": "old", "start_time_unix_nano": at_ns, "end_time_unix_nano": at_ns + 1}
    attributes = {"rag.schema": 1, "rag.stage": "request", "rag.request.id": "r"}
    file.write_bytes(body({**span, "attributes": attributes}))
    load_files(store, [str(file)])
    assert store.rows(
        "select trace_id, toString(started_at) as at, ingested_at > now() - 600 as fresh "
        "from rag_requests"
    ) == [{"trace_id": trace_id("old").hex(), "at": "2015-01-01 00:00:00.000000001", "fresh": 1}]


@pytest.mark.data
def test_real_captures_are_loaded_whole(store: Store, shared_dir: Path) -> None:
    """Traces of real instrumentations, as their exporters wrote them."""
    files = sorted((shared_dir / "cases" / "foreign_traces").glob("*.json"))
    if not files:
        pytest.skip("no captures there")
    expected = sum(
        len(scope["spans"])
        for file in files
        for resource in json.loads(file.read_text())["resourceSpans"]
        for scope in resource["scopeSpans"]
    )
    report = load_files(store, [str(file) for file in files])
    assert (report.span_count, report.rejected_count) == (expected, 0)
    assert store.scalar("select countIf(StatusCode = '' or SpanKind = '') from otel_traces") == 0
