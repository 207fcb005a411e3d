"""Arms of a comparison as a service would send them: searches with ranked lists, as OTLP JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ragotel.store import Store
from ragotel.store.otlp_json import decode_json
from ragotel.store.otlp_rows import COLUMNS, TABLE, encode_rows
from ragotel.text import chunk_sha

START_NS = 1_830_000_000_000_000_000
"""2027-12-28 13:20:00 UTC: after every rule that a test registers now."""
MS = 1_000_000


@dataclass
class Asked:
    """One question put to one arm: what its last ranked list held, best first."""

    label_id: str
    hits: list[tuple[str, str]]
    """(chunk id, document id)"""
    arm: str = ""
    run_id: str = ""
    duration_ms: float = 200.0
    start_ns: int = START_NS
    repeat: int = 0
    question: str = ""
    is_labelled: bool = True
    rerank_effect: str = ""
    leg_outcome: str = "ok"
    superseded: tuple[str, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    """Chunk texts that are sent along, by chunk id."""
    list_text: str | None = None
    """The reranked list as it stands on the wire; None: the hits as JSON."""

    @property
    def request_id(self) -> str:
        names = [self.run_id, self.arm, self.label_id, str(self.repeat or "")]
        return "/".join(name for name in names if name)


def send(store: Store, asked: Iterable[Asked]) -> None:
    """Deliver *asked* as one OTLP request."""
    spans = [span for one in asked for span in _spans(one)]
    resource = {"attributes": [_pair("service.name", "search")]}
    scopes = [{"scope": {"name": "ragotel", "version": "1"}, "spans": spans}]
    body = {"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}
    decoded = decode_json(json.dumps(body).encode())
    assert not decoded.reasons
    rows = b"".join(encode_rows(decoded.rows))
    store.client.raw_insert(TABLE, COLUMNS, rows, fmt="RowBinary")


def _spans(one: Asked) -> list[dict[str, Any]]:
    end_ns = one.start_ns + round(one.duration_ms * MS)
    hits = [_hit(one, chunk_id, doc_id) for chunk_id, doc_id in one.hits]
    ranked = json.dumps(hits) if one.list_text is None else one.list_text
    root = {
        "rag.stage": "request",
        "rag.query": one.question or f"What is asked by {one.label_id}?",
        "rag.run.id": one.run_id,
        "rag.arm": one.arm,
        "rag.label.id": one.label_id if one.is_labelled else "",
        "rag.outcome": "ok",
    }
    leg = {
        "rag.stage": "retrieve",
        "rag.stage.name": "dense",
        "gen_ai.retrieval.top_k": 50,
        "gen_ai.data_source.id": "notes",
        "rag.index.version": "v1",
        "rag.outcome": one.leg_outcome,
    }
    if one.leg_outcome == "ok":
        leg |= {
            "gen_ai.retrieval.documents": json.dumps(hits),
            "rag.candidates.count": len(hits),
            "rag.chunks": json.dumps({chunk_sha(text): text for text in one.texts.values()}),
        }
    rerank = {
        "rag.stage": "rerank",
        "rag.stage.name": "rerank",
        "rag.candidates": ranked,
        "rag.candidates.count": len(hits),
        "rag.rerank.effect": one.rerank_effect,
        "rag.outcome": "ok",
    }
    return [
        _span(one, "", one.start_ns, end_ns, root),
        _span(one, "1", one.start_ns + 1 * MS, one.start_ns + 5 * MS, leg),
        _span(one, "2", one.start_ns + 6 * MS, one.start_ns + 9 * MS, rerank),
    ]


def _hit(one: Asked, chunk_id: str, doc_id: str) -> dict[str, Any]:
    hit: dict[str, Any] = {"id": chunk_id, "doc_id": doc_id}
    if chunk_id in one.texts:
        hit["sha"] = chunk_sha(one.texts[chunk_id])
    if one.superseded:
        hit["superseded"] = chunk_id in one.superseded
    return hit


def _span(
    one: Asked, number: str, start_ns: int, end_ns: int, attributes: dict[str, Any]
) -> dict[str, Any]:
    name = hashlib.sha256(one.request_id.encode()).hexdigest()
    own = {"rag.schema": 1, "rag.request.id": one.request_id}
    return {
        "traceId": name[:32],
        "spanId": hashlib.sha256(f"{name}{number}".encode()).hexdigest()[:16],
        "parentSpanId": hashlib.sha256(name.encode()).hexdigest()[:16] if number else "",
        "name": str(attributes["rag.stage"]),
        "kind": 1,
        "startTimeUnixNano": str(start_ns),
        "endTimeUnixNano": str(end_ns),
        "attributes": [
            _pair(key, value) for key, value in {**own, **attributes}.items() if value != ""
        ],
    }


def _pair(key: str, value: Any) -> dict[str, Any]:
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value)}}
