"""Worlds: what a folder of files says that services sent and people wrote, put into a store.

spans.json is a short form of spans: lists are written as lists. The other files are those that the
commands load; `complaints`, `attachments` and `limits` are lines of what their commands take.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from ragotel import attributes
from ragotel.store import Store
from ragotel.triage.ablations import load_ablations
from ragotel.triage.complaints import attach_label, write_complaint
from ragotel.triage.grades import load_grades
from ragotel.triage.labels import load_labels
from ragotel.triage.limits import Limit, write_limit
from ragotel.triage.manifest import Version, load_manifest
from ragotel.triage.probes import load_probes
from ragotel.triage.references import RequestKey

NOON = datetime(2026, 11, 19, 12, 0, tzinfo=timezone.utc)
SERVICE = "bot"
COLUMNS = (
    *("Timestamp", "TraceId", "SpanId", "ParentSpanId", "SpanName", "ServiceName"),
    *("ScopeName", "SpanAttributes", "Duration", "StatusCode"),
)
_LOADERS: dict[str, Callable[..., Any]] = {
    "labels": load_labels,
    "grades": load_grades,
    "probes": load_probes,
    "ablations": load_ablations,
}


def deliver(store: Store, folder: Path) -> None:
    """Insert the spans of *folder*; a second time is what a service does after a timeout."""
    spans = json.loads((folder / "spans.json").read_text("utf-8"))
    store.insert("otel_traces", [span_row(**span) for span in spans], COLUMNS)


def tell(store: Store, folder: Path) -> None:
    """Load what people and jobs wrote."""
    for path in sorted(folder.glob("manifest.*.jsonl")):
        _, index, version, *parent = path.name.removesuffix(".jsonl").split(".")
        load_manifest(store, [str(path)], Version(index, version, *parent))
    for name, loader in _LOADERS.items():
        if (folder / f"{name}.jsonl").exists():
            assert not loader(store, [str(folder / f"{name}.jsonl")]).refused
    for line in _lines(folder / "complaints.jsonl"):
        write_complaint(store, _key(line), **line)
    for line in _lines(folder / "attachments.jsonl"):
        attach_label(store, _key(line), **line)
    for line in _lines(folder / "limits.jsonl"):
        write_limit(store, Limit(**line))


def _lines(path: Path) -> list[dict[str, Any]]:
    texts = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(text) for text in texts]


def _key(line: dict[str, Any]) -> RequestKey:
    """Take the request's reference out of *line*."""
    return RequestKey(line.pop("trace_id", ""), line.pop("request_id", ""))


def span_row(
    trace: str,
    request: str,
    span: str,
    parent: str,
    stage: str,
    at_ms: int,
    took_ms: int,
    attributes: dict[str, Any],
    service: str = SERVICE,
) -> tuple[Any, ...]:
    own = {"rag.schema": "1", "rag.stage": stage, "rag.request.id": request}
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in attributes.items()
    }
    return (
        *(NOON + timedelta(milliseconds=at_ms), trace, span, parent, f"rag.{stage}", service),
        *("ragotel", {**own, **texts}, took_ms * 1_000_000, "Ok"),
    )


KEYS = [
    value
    for name, value in vars(attributes).items()
    if name.isupper() and isinstance(value, str) and "." in value
]
"""Every attribute that a ragotel span may carry."""
STAGES = (
    *("request", "retrieve", "fuse", "rerank", "blend", "filter", "assemble", "generate"),
    *("ingest", "no such stage", "\0"),
)
JUNK = (
    "NaN",
    "null",
    "[]",
    "{}",
    '[{"id": "plans#0", "score": NaN}]',
    '[{"id": "plans#0", "score": 1e400}]',
    '[{"id": "plans#0", "score": 0.5}, {"id": "returns#0", "sco',
    '[null, 3, "plans#0", [], {"id": {"id": []}, "score": "high", "tokens": -1, "chars": 1e30}]',
    '{"sha256:0123456789abcdef": null, "": "text", "sha256:xyz": {}}',
    '"\\ud800"',
    "[" * 5000,
    "-1",
    "99999999999999999999999",
    "\ufffd\u0000\u202e",
    "true",
)


def junk_rows() -> Iterator[tuple[Any, ...]]:
    """Spans of every stage with the same junk in every attribute, a trace for each kind of it."""
    for number, junk in enumerate(JUNK):
        for place, stage in enumerate(STAGES):
            yield span_row(
                trace=f"junk-{number}",
                request=f"junk-{number}",
                span=f"junk-{number}-{place}",
                parent=f"junk-{number}-{(place + 5) % len(STAGES)}",
                stage=stage,
                at_ms=place,
                took_ms=number,
                attributes={
                    key: junk for key in KEYS if key not in ("rag.stage", "rag.request.id")
                },
                service="junk",
            )


def deliver_junk(store: Store) -> int:
    """Insert all junk; how many spans it is."""
    rows = list(junk_rows())
    store.insert("otel_traces", rows, COLUMNS)
    return len(rows)
