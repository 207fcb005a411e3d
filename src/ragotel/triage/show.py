"""Show: one request as an engineer draws it on a whiteboard, from question to verdict.

Pipeline: rag_requests, rag_stages, rag_prompts, triage views -> [triage] -> cli | server
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragotel.errors import InputError, NotFoundError
from ragotel.store import Store
from ragotel.text import normalise
from ragotel.triage.ranked import (
    Gold,
    candidates_of,
    gold_journeys,
    ranked_rows,
    sent_of,
)
from ragotel.triage.references import RequestKey, resolve_request

_BY_KEY = "where trace_id = {trace_id:String} and request_id = {request_id:String}"
_LISTS = ("retrieve", "fuse", "rerank", "blend", "filter", "assemble")
_NO_STEPS: dict[str, Any] = {
    "prompt_span_id": "",
    "generation_span_id": "",
    "list_span_ids": [],
    "searched": [],
    "top_k": None,
    "degraded": False,
    "reranked_after_truncation": False,
}


@dataclass
class Picture:
    """Everything about one request; *verdicts* is empty where no label meets it."""

    request: dict[str, Any]
    versions: dict[str, Any]
    lists: list[dict[str, Any]]
    prompt: dict[str, Any] | None
    stages: list[dict[str, Any]]
    gold: list[dict[str, Any]]
    claims: list[str]
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    passages: list[dict[str, Any]] = field(default_factory=list)
    grades: list[dict[str, Any]] = field(default_factory=list)
    complaints: list[dict[str, Any]] = field(default_factory=list)


def show_request(
    store: Store, reference: str, *, span: str = "", label_id: str | None = None
) -> Picture:
    """The picture of the request that *reference* means.

    Args:
        span: A claim to star instead of the label's.
        label_id: Only this label's verdict; it must meet the request.

    Raises:
        NotFoundError: There is no such request, or no such label meets it.
        InputError: The reference means several requests, or the span is blank.
    """
    if span and not normalise(span).strip():
        raise InputError("--span is blank: give the text that states the fact.")
    key = resolve_request(store, reference)
    stages = _ask(
        store, f"select * from rag_stages final {_BY_KEY} order by started_at, ended_at", key
    )
    flows = _ask(store, f"select * from rag_request_flows {_BY_KEY}", key)
    flow = flows[0] if flows else _NO_STEPS
    verdicts, passages = _verdicts(store, key, label_id)
    labels = _labels(store, [row["label_id"] for row in verdicts])
    claims = [span] if span else sorted({claim for row in labels for claim in row["claims"]})
    shas = _shas_of_nameless(store, stages, flow["searched"])
    gold = _gold(store, labels, claims, stages, shas, has_span=bool(span))
    by_span = {stage["span_id"]: stage for stage in stages}
    sent = sent_of(by_span.get(flow["prompt_span_id"]), shas)
    return Picture(
        request=_request(store, key),
        versions=_versions(stages, flow),
        lists=[
            _list(by_span[span_id], ranked_rows(by_span[span_id], sent, gold, shas))
            for span_id in flow["list_span_ids"]
            if span_id in by_span
        ],
        prompt=_prompt(store, key, flow["prompt_span_id"], claims, by_span),
        stages=[_stage(stage) for stage in stages],
        gold=gold_journeys(stages, gold, shas, flow["prompt_span_id"]),
        claims=claims,
        verdicts=verdicts,
        passages=passages,
        grades=_said_about(store, "rag_grades", "graded_at", key),
        complaints=_said_about(store, "rag_complaints", "complained_at", key),
    )


def _ask(store: Store, sql: str, key: RequestKey, **more: Any) -> list[dict[str, Any]]:
    return store.rows(sql, {**key._asdict(), **more})


def _request(store: Store, key: RequestKey) -> dict[str, Any]:
    """The request's own row; of one whose root span never arrived, its ids only."""
    rows = _ask(store, f"select * from rag_requests final {_BY_KEY} limit 1", key)
    if not rows:
        return {**key._asdict(), "is_recorded": False}
    hidden = ("query_norm", "query_hash", "answer_norm")
    kept = {name: value for name, value in rows[0].items() if name not in hidden}
    return {**kept, "is_recorded": True}


def _verdicts(
    store: Store, key: RequestKey, label_id: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    verdicts = _ask(store, f"select * from triage_requests {_BY_KEY} order by label_id", key)
    if label_id is not None:
        verdicts = [row for row in verdicts if row["label_id"] == label_id]
        if not verdicts:
            raise NotFoundError(
                f"The label {label_id!r} does not meet this request; "
                f"`ragotel labels attach {key.request_id or key.trace_id} {label_id}` makes it."
            )
    if not verdicts:
        return [], []
    passages = _ask(
        store, f"select * from triage_passages {_BY_KEY} order by label_id, passage", key
    )
    wanted = {row["label_id"] for row in verdicts}
    return verdicts, [row for row in passages if row["label_id"] in wanted]


def _labels(store: Store, label_ids: Sequence[str]) -> list[dict[str, Any]]:
    if not label_ids:
        return []
    return store.rows(
        "select * from rag_label_passages where label_id in {label_ids:Array(String)}",
        {"label_ids": list(label_ids)},
    )


def _shas_of_nameless(
    store: Store, stages: Sequence[Mapping[str, Any]], searched: Sequence[Sequence[str]]
) -> dict[str, str]:
    """Text hashes, from the served version's manifest, of candidates that brought none."""
    ids = {
        chunk_id
        for stage in stages
        for chunk_id, sha in zip(stage["chunk_ids"], stage["candidate_shas"], strict=True)
        if chunk_id and not sha
    }
    found: dict[str, str] = {}
    for index_name, version in searched:
        if not ids or not version:
            continue
        rows = store.query(
            "select chunk_id, chunk_sha from rag_index_members\n"
            "where index_name = {index_name:String} and version = {version:String}\n"
            "    and chunk_id in {ids:Array(String)} and chunk_sha != ''",
            {"index_name": index_name, "version": version, "ids": sorted(ids)},
        ).result_rows
        found.update((chunk_id, sha) for chunk_id, sha in rows)
    return found


def _gold(
    store: Store,
    labels: Sequence[Mapping[str, Any]],
    claims: Sequence[str],
    stages: Sequence[Mapping[str, Any]],
    shas: Mapping[str, str],
    *,
    has_span: bool,
) -> Gold:
    wanted = sorted(
        {row["chunk_sha"] for stage in stages for row in candidates_of(stage, shas)} - {""}
        | set(shas.values())
    )
    states: dict[str, bool] = {}
    for start in range(0, len(wanted) if claims else 0, 300):
        rows = store.query(
            "select chunk_sha, max(arrayExists(\n"
            "    claim -> rag_contains(text_norm, trimBoth(rag_normalise(claim))),\n"
            "    {claims:Array(String)}\n"
            ")) from rag_chunks where chunk_sha in {shas:Array(String)} group by chunk_sha",
            {"claims": list(claims), "shas": wanted[start : start + 300]},
        ).result_rows
        states.update((sha, bool(found)) for sha, found in rows)
    return Gold(
        chunk_ids=frozenset(() if has_span else _all(labels, "known_chunk_ids")),
        doc_ids=frozenset(() if has_span else _all(labels, "doc_ids")),
        has_claims=bool(claims),
        states_claim=states,
    )


def _all(rows: Sequence[Mapping[str, Any]], column: str) -> set[str]:
    return {value for row in rows for value in row[column]}


def _versions(stages: Sequence[Mapping[str, Any]], flow: Mapping[str, Any]) -> dict[str, Any]:
    generation = next(
        (stage for stage in stages if stage["span_id"] == flow["generation_span_id"]), {}
    )
    return {
        "indexes": [{"name": name, "version": version} for name, version in flow["searched"]],
        "model": generation.get("model", ""),
        "top_k": flow["top_k"],
        "degraded": bool(flow["degraded"]),
        "reranked_after_truncation": bool(flow["reranked_after_truncation"]),
    }


def _list(stage: Mapping[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {**_stage(stage), "score_kind": stage["score_kind"], "candidates": rows}


def _stage(stage: Mapping[str, Any]) -> dict[str, Any]:
    names = (
        *("span_id", "stage", "stage_name", "started_at", "duration_ms", "outcome", "evidence"),
        *("candidate_count", "in_count", "model", "index_name", "index_version", "convention"),
    )
    return {name: stage[name] for name in names}


def _prompt(
    store: Store,
    key: RequestKey,
    span_id: str,
    claims: Sequence[str],
    by_span: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any] | None:
    """The prompt that fed the answer; claim_stands is null where it cannot be told."""
    rows = _ask(
        store,
        "select span_id, template_name, template_version, tokens, tokens_source, chars,\n"
        "    budget_tokens, content_mode, is_whole, evidence, sent_ids, sent_tokens, prompt,\n"
        "    arrayExists(\n"
        "        claim -> rag_contains(prompt_norm, trimBoth(rag_normalise(claim))),\n"
        "        {claims:Array(String)}\n"
        "    ) as claim_stands\n"
        f"from rag_prompts final {_BY_KEY} and span_id = {{span_id:String}}",
        key,
        claims=list(claims),
        span_id=span_id,
    )
    if not rows:
        return None
    row = rows[0]
    stands, whole = bool(row["claim_stands"]), bool(row["is_whole"])
    row["is_whole"] = whole
    row["claim_stands"] = (stands or (False if whole else None)) if claims else None
    row["sent_count"] = by_span[span_id]["candidate_count"] if span_id in by_span else None
    counts = row["sent_tokens"]
    known = row["evidence"] in ("whole", "empty") and all(count is not None for count in counts)
    row["passage_tokens"] = sum(counts) if known else None
    return row


def _said_about(store: Store, table: str, moment: str, key: RequestKey) -> list[dict[str, Any]]:
    """Rows about the request that name its trace, its request id, or both."""
    return _ask(
        store,
        f"select * from {table} final\n"  # noqa: S608 (a table of ours, values are bound)
        "where (trace_id = {trace_id:String} and request_id in ('', {request_id:String}))\n"
        "    or (trace_id = '' and request_id = {request_id:String} and request_id != '')\n"
        f"order by {moment}",
        key,
    )
