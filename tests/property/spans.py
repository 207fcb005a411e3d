"""Spans: plain requests as OTLP JSON, as the attribute table says; worlds into a store."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipelines import wire_hit
from plain import Label, Manifest, Request, Stage, World

from ragotel.store import Store
from ragotel.store.otlp_json import decode_json
from ragotel.store.otlp_rows import COLUMNS, TABLE, encode_rows
from ragotel.triage import ablations, complaints, grades, labels, manifest, probes
from ragotel.triage.references import RequestKey

MODEL = "test-model"


def otlp_json(requests: Iterable[Request], service: str = "svc") -> dict[str, Any]:
    """One ExportTraceServiceRequest with the spans of *requests*."""
    spans = [span for request in requests for span in spans_of(request)]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [_pair("service.name", service)]},
                "scopeSpans": [{"scope": {"name": "ragotel", "version": "1"}, "spans": spans}],
            }
        ]
    }


def spans_of(request: Request) -> list[dict[str, Any]]:
    root_id = _span_id(request, "request")
    root = {
        "rag.stage": "request",
        "rag.stage.name": "answer",
        "rag.outcome": "ok",
        "rag.content_mode": "full",
        "rag.query": request.question,
        "rag.answer": request.answer,
        "user.id": request.user_id,
        "rag.label.id": request.label_id,
    }
    spans = [_span(request, root_id, "", "rag.request", request.start_ns, request.end_ns, root)]
    for number, stage in enumerate(request.stages):
        span_id = _span_id(request, f"{number}")
        name = f"retrieval {stage.index}" if stage.stage == "retrieve" else f"rag.{stage.stage}"
        span = _span(
            request, span_id, root_id, name, stage.start_ns, stage.end_ns, attributes_of(stage)
        )
        if stage.chunks:
            span["attributes"].append(_pair("rag.chunks", _json(stage.chunks)))
        spans.append(span)
    return spans


def attributes_of(stage: Stage) -> dict[str, Any]:
    """The stage's attributes; what was not recorded is left out."""
    found: dict[str, Any] = {
        "rag.stage": stage.stage,
        "rag.stage.name": stage.name,
        "rag.outcome": stage.outcome,
        "rag.content_mode": stage.content_mode,
        "rag.candidates.count": stage.count,
        "rag.candidates.in_count": stage.in_count,
        "rag.limit": stage.limit,
        "rag.rerank.effect": stage.effect,
        "rag.budget.tokens": stage.budget_tokens,
    }
    if stage.stage == "generate":
        found |= {"gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL}
        return found
    key = "rag.candidates"
    if stage.stage == "retrieve":
        key = "gen_ai.retrieval.documents"
        found |= {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.retrieval.top_k": stage.top_k,
            "gen_ai.data_source.id": stage.index,
            "rag.index.version": stage.version,
        }
    if stage.outcome == "ok":
        built = _json([wire_hit(hit) for hit in stage.hits])
        found[key] = built if stage.list_text is None else stage.list_text
    if stage.dropped is not None:
        found["rag.dropped"] = _json([{"id": id, "reason": why} for id, why in stage.dropped])
    if stage.stage == "assemble":
        found["gen_ai.prompt.name"] = "answer"
        found["rag.prompt.text"] = stage.prompt
        found["rag.prompt.chars"] = stage.prompt_chars
        if stage.content_mode:
            found["rag.prompt.sha256"] = hashlib.sha256(str(stage.prompt).encode()).hexdigest()
    return found


def insert_requests(store: Store, requests: list[Request], rng: random.Random) -> None:
    """Deliver *requests* as OTLP in shuffled batches, a fifth of them twice."""
    requests = list(requests)
    rng.shuffle(requests)
    for start in range(0, len(requests), 500):
        body = json.dumps(otlp_json(requests[start : start + 500])).encode()
        decoded = decode_json(body)
        assert not decoded.reasons
        encoded = encode_rows(decoded.rows)
        _insert_rows(store, encoded)
        _insert_rows(store, rng.sample(encoded, len(encoded) // 5))


def _insert_rows(store: Store, encoded: list[bytes]) -> None:
    store.client.raw_insert(TABLE, COLUMNS, b"".join(encoded), fmt="RowBinary")


def insert_world(store: Store, world: World, folder: Path, rng: random.Random) -> None:
    """Give *store* everything that *world* holds, through the loaders of the commands."""
    insert_requests(store, world.requests, rng)
    _load(store, labels.load_labels, folder / "labels.jsonl", map(label_line, world.labels))
    for one in world.manifests:
        load_manifest(store, one, folder / "manifest.jsonl")
    _load(
        store,
        grades.load_grades,
        folder / "grades.jsonl",
        (
            {**vars(g), "at_ns": None, "note": f"at {g.at_ns}"}
            for g in sorted(world.grades, key=lambda g: g.at_ns)
        ),
    )
    _load(
        store,
        probes.load_probes,
        folder / "probes.jsonl",
        (
            {**vars(p), "passage": p.passage + 1}
            for p in sorted(world.probes, key=lambda p: p.at_ns)
        ),
    )
    _load(
        store,
        ablations.load_ablations,
        folder / "ablations.jsonl",
        (vars(a) for a in sorted(world.ablations, key=lambda a: a.at_ns)),
    )
    for trace_id, request_id, label_id in world.complaints:
        key = RequestKey(trace_id, request_id)
        complaints.write_complaint(store, key, text="it was wrong", label_id=label_id)
    for trace_id, request_id, label_id in world.attachments:
        complaints.attach_label(store, RequestKey(trace_id, request_id), label_id)


def label_line(label: Label) -> dict[str, Any]:
    return {
        "label_id": label.label_id,
        "set": label.label_set,
        "principal": label.principal,
        "question": label.question,
        "answerable": label.answerable,
        "passages": [vars(passage) for passage in label.passages],
    }


def load_manifest(store: Store, one: Manifest, path: Path) -> None:
    """Load *one*; where it is not whole, a line of its file is broken."""
    lines = [
        {"chunk_id": r.chunk_id, "doc_id": r.doc_id, "text": r.text, "deleted": r.deleted}
        for r in one.rows
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text if one.is_whole else text + '{"chunk_id": \n', "utf-8")
    version = manifest.Version(one.index, one.version, one.parent)
    manifest.load_manifest(store, [str(path)], version)


def _load(store: Store, loader: Any, path: Path, lines: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    report = loader(store, [str(path)])
    assert not report.refused, report.refused[:3]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _span_id(request: Request, name: str) -> str:
    seed = f"{request.trace_id}/{request.request_id}/{name}"
    return hashlib.sha256(seed.encode()).hexdigest()[:16]


def _span(
    request: Request,
    span_id: str,
    parent_id: str,
    name: str,
    start_ns: int,
    end_ns: int,
    attributes: dict[str, Any],
) -> dict[str, Any]:
    attributes = {"rag.schema": 1, "rag.request.id": request.request_id, **attributes}
    return {
        "traceId": request.trace_id,
        "spanId": span_id,
        "parentSpanId": parent_id,
        "name": name,
        "kind": 3 if name.startswith("retrieval") else 1,
        "startTimeUnixNano": str(start_ns),
        "endTimeUnixNano": str(end_ns),
        "attributes": [
            _pair(key, value) for key, value in attributes.items() if value not in (None, "")
        ],
    }


def _pair(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"key": key, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    return {"key": key, "value": {"stringValue": value}}
