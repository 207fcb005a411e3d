"""`ragotel retention`: what is old goes, unless somebody has said something about it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from cli_store import REQUESTS, TEXTS, TRACES, Ran, insert_spans, request_spans, run_in, write_lines
from ragotel.store import Store

TABLES = ("otel_traces", "rag_requests", "rag_stages", "rag_prompts", "rag_chunks")


@pytest.fixture
def command(store: Store, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """A store with a request of today, and two that are a hundred days old."""
    now = datetime.now(timezone.utc)
    for number, age in enumerate((0, 100, 100)):
        asked = now - timedelta(days=age)
        insert_spans(store, *request_spans(number, "ana", f"question {number}", "yes", asked))
    return run_in(store, capsys)


def left(store: Store) -> dict[str, int]:
    """How many rows each table has, duplicates counted once."""
    return {
        table: store.scalar(
            f"select count() from {table}{'' if table == 'otel_traces' else ' final'}"
        )
        for table in TABLES
    }


def numbers(ran: Ran) -> dict[str, tuple[int, int, int]]:
    """Rows older, exempt and deleted of the tables that have any."""
    rows: list[dict[str, Any]] = ran.json["tables"]
    found = {r["table_name"]: (r["older"], r["exempt"], r["deleted"]) for r in rows}
    return {table: row for table, row in found.items() if any(row)}


def test_all_is_kept_until_a_kind_is_set(store: Store, command: Callable[..., Ran]) -> None:
    """Nobody loses a record by an upgrade."""
    before = left(store)
    ran = command("retention", "apply", "--json")
    assert {row["days"] for row in ran.json["tables"]} == {None}
    assert left(store) == before


def test_old_requests_go_by_kind(store: Store, command: Callable[..., Ran]) -> None:
    """Traces and prompts of two requests go, their verdict's facts stay as long as they may."""
    for kind, days in (("traces", "30"), ("prompts", "90")):
        assert command("retention", "set", kind, days).code == 0
    expected = {
        "otel_traces": (8, 0, 8),
        "otel_traces_trace_id_ts": (2, 0, 2),
        "rag_prompts": (2, 0, 2),
    }
    before = left(store)
    assert numbers(command("retention", "show", "--json")) == expected
    assert left(store) == before
    assert numbers(command("retention", "apply", "--json")) == expected
    assert numbers(command("retention", "apply", "--json")) == {}
    assert left(store) == {**before, "otel_traces": 4, "rag_prompts": 1}


def test_what_somebody_spoke_about_is_exempt(store: Store, command: Callable[..., Ran]) -> None:
    """A complaint keeps its request whole, a grade too, also one that names the trace alone."""
    assert command("complaint", REQUESTS[1], "--text", "wrong").code == 0
    for kind in ("traces", "prompts", "requests"):
        assert command("retention", "set", kind, "30").code == 0
    assert numbers(command("retention", "apply", "--json")) == {
        "otel_traces": (8, 4, 4),
        "otel_traces_trace_id_ts": (2, 1, 1),
        "rag_prompts": (2, 1, 1),
        "rag_stages": (6, 3, 3),
        "rag_requests": (2, 1, 1),
    }
    found = store.query("select request_id from rag_requests order by request_id").result_rows
    assert [request for (request,) in found] == [REQUESTS[0], REQUESTS[1]]


def test_a_word_about_the_trace_is_enough(store: Store, command: Callable[..., Ran]) -> None:
    """A reference that names the trace alone exempts the requests in it."""
    store.insert("rag_grades", [(TRACES[2], "wrong")], ("trace_id", "grade"))
    command("retention", "set", "requests", "30")
    assert numbers(command("retention", "apply", "--json")) == {
        "rag_stages": (6, 3, 3),
        "rag_requests": (2, 1, 1),
    }


def test_a_label_s_question_exempts(
    store: Store, command: Callable[..., Ran], tmp_path: Path
) -> None:
    """A request that a label's question matches is labelled, whoever asked it."""
    label = {"label_id": "l", "question": "Question 2", "gold_text": TEXTS[next(iter(TEXTS))]}
    assert command("labels", "load", write_lines(tmp_path / "labels.jsonl", label)).code == 0
    command("retention", "set", "requests", "30")
    assert numbers(command("retention", "apply", "--json"))["rag_requests"] == (2, 1, 1)
    assert store.scalar(
        "select count() from rag_requests where request_id = {id:String}", {"id": REQUESTS[2]}
    )


def test_passages_in_use_are_exempt(store: Store, command: Callable[..., Ran]) -> None:
    """Old texts go only where no request and no manifest names them."""
    old = datetime.now(timezone.utc) - timedelta(days=400)
    store.insert(
        "rag_chunks",
        [("sha256:0123456789abcdef", "nobody's", old)],
        ("chunk_sha", "text", "first_seen_at"),
    )
    store.command(
        "alter table rag_chunks update first_seen_at = first_seen_at - "
        "toIntervalDay(400) where 1 settings mutations_sync = 2"
    )
    command("retention", "set", "chunks", "365")
    (row,) = numbers(command("retention", "apply", "--json")).values()
    assert row[2] == 1
    assert store.scalar("select uniqExact(chunk_sha) from rag_chunks") == len(TEXTS)


@pytest.mark.parametrize("words", [("prompts", "0"), ("prompts", "soon"), ("users", "30")])
def test_wrong_use(command: Callable[..., Ran], words: tuple[str, str]) -> None:
    """A kind or a number that cannot be is refused."""
    assert command("retention", "set", *words).code == 2


def test_forever(command: Callable[..., Ran]) -> None:
    """A limit can be taken back."""
    command("retention", "set", "prompts", "1")
    assert command("retention", "set", "prompts", "forever").out == "prompts are kept for good.\n"
    assert numbers(command("retention", "show", "--json")) == {}
