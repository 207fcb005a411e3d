"""Show: one request as an engineer draws it on a whiteboard, from question to verdict.

Pipeline: evidence -> [triage] -> cli | server
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragotel.errors import InputError, NotFoundError
from ragotel.store import Store
from ragotel.text import normalise
from ragotel.triage import evidence
from ragotel.triage.neighbours import gold_neighbours
from ragotel.triage.pins import pins_of
from ragotel.triage.ranked import (
    Gold,
    Sent,
    candidates_of,
    gold_journeys,
    known_tokens,
    ranked_rows,
    sent_of,
)
from ragotel.triage.references import RequestKey, resolve_request

_WITHHELD = ("off", "hashed")
CHARS_PER_TOKEN = 4
"""What an estimated count is made of, as attributes.PROMPT_TOKENS_SOURCE says."""


@dataclass
class Picture:
    """Everything about one request; *verdicts* is empty where no label meets it.

    *sent* is what the prompt took, in its order; *pins* the index versions that served beside the
    newest; *statements*, where passages compete with the gold, what each sent one states;
    *neighbours*, on a miss, the gold chunk with those before and after it; *texts*, if
    asked for, the candidates' texts by hash; *texts_by_id* the chunks of which the request recorded
    the id alone, so that the text is the manifest's; *are_texts_withheld*: it sent no text at all,
    so that every text is a manifest's or another request's.
    """

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
    sent: list[dict[str, Any]] = field(default_factory=list)
    pins: list[dict[str, Any]] = field(default_factory=list)
    statements: list[dict[str, Any]] = field(default_factory=list)
    neighbours: list[dict[str, Any]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    texts_by_id: list[str] = field(default_factory=list)
    are_texts_withheld: bool = False


def show_request(
    store: Store,
    reference: str,
    *,
    span: str = "",
    label_id: str | None = None,
    with_texts: bool = False,
) -> Picture:
    """The picture of the request that *reference* means.

    Args:
        span: A claim to star instead of the label's.
        label_id: Only this label's verdict; it must meet the request.
        with_texts: Also the texts of all candidates.

    Raises:
        NotFoundError: There is no such request, or no such label meets it.
        InputError: The reference means several requests, or the span is blank.
    """
    if span and not normalise(span).strip():
        raise InputError("--span is blank: give the text that states the fact.")
    key = resolve_request(store, reference)
    stages, flow = evidence.stages_of(store, key), evidence.flow_of(store, key)
    verdicts, passages = _verdicts(store, key, label_id)
    labels = evidence.passages_of_labels(store, [row["label_id"] for row in verdicts])
    claims = [span] if span else sorted({claim for row in labels for claim in row["claims"]})
    shas = evidence.shas_in_manifest(store, flow["searched"], _nameless(stages))
    gold = Gold(
        chunk_ids=frozenset(() if span else _all(labels, "known_chunk_ids")),
        doc_ids=frozenset(() if span else _all(labels, "doc_ids")),
        has_claims=bool(claims),
        states_claim=evidence.states_claim(store, claims, _shas(stages, shas)),
    )
    by_span = {stage["span_id"]: stage for stage in stages}
    assemble = by_span.get(flow["prompt_span_id"])
    sent = sent_of(assemble, shas)
    prompt = evidence.prompt_of(store, key, assemble, claims)
    tokens = _tokens(store, stages, shas, prompt)
    return Picture(
        request=evidence.request_of(store, key),
        versions=_versions(by_span.get(flow["generation_span_id"]), flow),
        lists=[
            _list(by_span[span_id], ranked_rows(by_span[span_id], sent, gold, shas, tokens))
            for span_id in flow["list_span_ids"]
            if span_id in by_span
        ],
        prompt=prompt,
        stages=[_stage(stage) for stage in stages],
        gold=gold_journeys(stages, gold, shas, flow["prompt_span_id"]),
        claims=claims,
        verdicts=verdicts,
        passages=passages,
        grades=evidence.said_about(store, "rag_grades", "graded_at", key),
        complaints=evidence.said_about(store, "rag_complaints", "complained_at", key),
        sent=_sent(sent, gold),
        pins=pins_of(store, flow["searched"], gold.chunk_ids),
        statements=_statements(store, key, verdicts),
        neighbours=gold_neighbours(store, flow["searched"], _missed(labels, passages)),
        texts=evidence.texts_of(store, _shas(stages, shas)) if with_texts else {},
        texts_by_id=sorted(shas),
        are_texts_withheld=any(
            by_span[span_id]["content_mode"] in _WITHHELD
            for span_id in flow["list_span_ids"]
            if span_id in by_span
        ),
    )


def _tokens(
    store: Store,
    stages: Sequence[Mapping[str, Any]],
    shas: Mapping[str, str],
    prompt: Mapping[str, Any] | None,
) -> dict[str, int]:
    """The tokens of each chunk by id: of any list, else estimated where the prompt's were."""
    counted = known_tokens(stages)
    if prompt is None or prompt["tokens_source"] != "estimated":
        return counted
    rows = [row for stage in stages for row in candidates_of(stage, shas) if row["chunk_id"]]
    uncounted = {row["chunk_id"]: row["chunk_sha"] for row in rows if row["chunk_sha"]}
    chars = evidence.chars_of(store, set(uncounted.values()))
    estimated = {
        chunk_id: -(-chars[sha] // CHARS_PER_TOKEN)
        for chunk_id, sha in uncounted.items()
        if sha in chars
    }
    return {**estimated, **counted}


def _statements(store: Store, key: RequestKey, verdicts: Sequence[Any]) -> list[dict[str, Any]]:
    competed = {row["label_id"] for row in verdicts if row["competing_chunk_ids"]}
    rows = evidence.statements_of(store, key) if competed else []
    return [row for row in rows if row["label_id"] in competed]


def _sent(sent: Sent, gold: Gold) -> list[dict[str, Any]]:
    """What the prompt took, in its order, each with whether it states the claim."""
    rows = sorted(sent.rows.values(), key=lambda row: row["position"])
    return [
        {
            **row,
            "states_claim": gold.states(row["chunk_sha"]),
            "is_gold_id": gold.names(row["chunk_id"], row["doc_id"], row["chunk_sha"]),
        }
        for row in rows
    ]


def _missed(labels: Sequence[Any], passages: Sequence[Any]) -> list[dict[str, Any]]:
    """The gold passages that were not found, or whose chunk was sent without the claim."""
    missed = {
        (row["label_id"], row["passage"])
        for row in passages
        if row["bucket"] in ("corpus_gap", "retrieval_miss")
        or row["attribution"] == "chunking"
        or row["in_ranked_list"] is False
    }
    return [row for row in labels if (row["label_id"], row["passage"]) in missed]


def _verdicts(store: Store, key: RequestKey, label_id: str | None) -> tuple[list[Any], list[Any]]:
    verdicts, passages = evidence.verdicts_of(store, key)
    if label_id is None:
        return verdicts, passages
    verdicts = [row for row in verdicts if row["label_id"] == label_id]
    if not verdicts:
        raise NotFoundError(
            f"The label {label_id!r} does not meet this request; "
            f"`ragotel labels attach {key.request_id or key.trace_id} {label_id}` makes it."
        )
    return verdicts, [row for row in passages if row["label_id"] == label_id]


def _nameless(stages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Ids of candidates that came without their text's hash."""
    return {
        chunk_id
        for stage in stages
        for chunk_id, sha in zip(stage["chunk_ids"], stage["candidate_shas"], strict=True)
        if chunk_id and not sha
    }


def _shas(stages: Sequence[Mapping[str, Any]], shas: Mapping[str, str]) -> set[str]:
    known = {row["chunk_sha"] for stage in stages for row in candidates_of(stage, shas)}
    return (known | set(shas.values())) - {""}


def _all(rows: Sequence[Mapping[str, Any]], column: str) -> set[str]:
    return {value for row in rows for value in row[column]}


def _versions(generation: Mapping[str, Any] | None, flow: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "indexes": [{"name": name, "version": version} for name, version in flow["searched"]],
        "model": generation["model"] if generation else "",
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
