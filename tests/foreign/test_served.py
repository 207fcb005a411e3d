"""`ragotel serve` reads the traces of other instrumentations whole once they are quiet."""

from __future__ import annotations

import time
from typing import Any

from foreign_rows import Foreign, otlp, span_id
from test_requests import chain

from otlp_bodies import JSON, post
from served import Served

WAIT_S = 120


def asked(served: Served) -> list[dict[str, Any]]:
    return served.sql("select span_id, request_id, query from rag_requests order by started_at")


def staged(served: Served) -> list[tuple[Any, ...]]:
    rows = served.sql("select request_id, stage from rag_stages final order by started_at")
    return [tuple(row.values()) for row in rows]


def test_requests_of_one_trace_are_told_apart_by_and_by(server: Served) -> None:
    """Sent in three batches, two chains under one job become two requests with their stages."""
    job = Foreign("evaluate", span="j", to=50)
    for spans in (chain("a", "x?", "j"), chain("b", "y?", "j", at=20), [job]):
        reply = post(server.otlp_http, otlp(spans).encode(), JSON)
        assert reply.status == 200
    a, b = span_id("a"), span_id("b")
    requests = [
        {"span_id": a, "request_id": a, "query": "x?"},
        {"span_id": b, "request_id": b, "query": "y?"},
    ]
    stages = [(a, "retrieve"), (a, "generate"), (b, "retrieve"), (b, "generate")]
    # Rows are written anew before the old ones go, one table after the other.
    until = time.monotonic() + WAIT_S
    while (asked(server), staged(server)) != (requests, stages) and time.monotonic() < until:
        time.sleep(0.5)
    assert asked(server) == requests
    assert staged(server) == stages
