"""Foreign spans as OTLP, and the rows that they become, as a reader would list them by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragotel.store import Store
from ragotel.store.load import load_files

STARTED_NS = 1_796_000_000_000_000_000


@dataclass
class Foreign:
    """One span; *at* and *to* are milliseconds after the world's beginning."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    scope: str = ""
    span: str = "a"
    parent: str = ""
    trace: str = "1"
    kind: str = "SPAN_KIND_INTERNAL"
    at: int = 0
    to: int = 100
    events: Sequence[tuple[str, Mapping[str, Any]]] = ()
    event_at: int = 0
    """When the events were, in milliseconds after the span's start."""


def otlp(spans: Sequence[Foreign]) -> str:
    """The spans as one line of OTLP JSON."""
    scopes = [{"scope": {"name": span.scope}, "spans": [_span(span)]} for span in spans]
    resource = {"attributes": _attributes({"service.name": "helpdesk"})}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]})


def _span(span: Foreign) -> dict[str, Any]:
    return {
        "traceId": trace_id(span.trace),
        "spanId": span_id(span.span),
        "parentSpanId": span_id(span.parent) if span.parent else "",
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(STARTED_NS + span.at * 1_000_000),
        "endTimeUnixNano": str(STARTED_NS + span.to * 1_000_000),
        "attributes": _attributes(span.attributes),
        "events": [
            {
                "timeUnixNano": str(STARTED_NS + (span.at + span.event_at) * 1_000_000),
                "name": name,
                "attributes": _attributes(attributes),
            }
            for name, attributes in span.events
        ],
    }


def trace_id(name: str) -> str:
    return name.encode().hex().rjust(32, "0")


def span_id(name: str) -> str:
    return name.encode().hex().rjust(16, "0")


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": value}


def deliver(store: Store, folder: Path, spans: Sequence[Foreign], name: str = "spans") -> None:
    """Load the spans as `ragotel load` does."""
    path = folder / f"{name}.json"
    path.write_text(otlp(spans), "utf-8")
    report = load_files(store, [str(path)])
    assert (report.span_count, report.rejected_count) == (len(spans), 0)


REQUESTS = (
    *("trace_id", "request_id", "span_id", "session_id", "user_id", "query", "answer", "outcome"),
    *("content_mode", "convention"),
)
STAGES = (
    *("trace_id", "request_id", "span_id", "stage", "stage_name", "outcome", "query"),
    *("chunk_ids", "scores", "candidate_shas", "candidate_doc_ids", "candidate_count"),
    *("in_count", "evidence", "index_name", "index_version", "filter", "model", "provider"),
    *("top_k", "limit_count", "score_kind", "higher_is_better", "input_tokens"),
    *("output_tokens", "finish_reasons", "temperature", "time_to_first_token_ms"),
    *("content_mode", "convention"),
)
PROMPTS = (
    *("trace_id", "request_id", "span_id", "prompt", "chars", "tokens", "tokens_source"),
    *("content_mode", "is_whole", "template_name", "template_version", "convention", "evidence"),
)


def rows(store: Store, table: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of *table* in the order of their start, without what is empty."""
    found = store.rows(
        f"select {', '.join(columns)} from {table} final order by started_at, span_id"
    )
    return [
        {name: value for name, value in row.items() if value not in (None, "", [])} for row in found
    ]


def picture(store: Store) -> dict[str, Any]:
    """Everything that the foreign spans of *store* became."""
    return {
        "requests": rows(store, "rag_requests", REQUESTS),
        "stages": rows(store, "rag_stages", STAGES),
        "prompts": rows(store, "rag_prompts", PROMPTS),
        "texts": dict(
            store.query("select chunk_sha, text from rag_chunks final order by text").result_rows
        ),
    }
