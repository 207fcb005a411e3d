"""Ablation cases: labelled requests with the prompt that was recorded and the passages in it.

Pipeline: triage_requests, rag_prompts, rag_stages, rag_chunks -> [triage] -> ablating

Nothing is retrieved again: the passages are those that the request recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragotel.store import Store
from ragotel.triage.claims import states_any
from ragotel.triage.evidence import shas_in_manifest, texts_of
from ragotel.triage.probe_targets import require_set
from ragotel.triage.prompt_parts import Passage
from ragotel.triage.references import RequestKey

WRONG = ("wrong", "abstained")
IN_PROMPT = ("generation_error", "passed", "ungraded")
"""The buckets of requests whose claim stood in the prompt."""
_BATCH = 100


@dataclass(frozen=True)
class Gold:
    """One passage that the label asks for: its acceptable ids and wordings."""

    chunk_ids: frozenset[str]
    doc_ids: frozenset[str]
    claims: tuple[str, ...]


@dataclass(frozen=True)
class Candidate:
    """A passage as a list of the request named it; *text* is None where it is not known."""

    id: str
    sha: str
    doc_id: str
    text: str | None
    kept_chars: int | None = None

    @property
    def passage(self) -> Passage:
        return Passage(self.id or self.sha, self.text or "", self.kept_chars)


@dataclass
class Case:
    """A labelled request; *prompt* is None where the whole of it was not recorded."""

    key: RequestKey
    label: dict[str, Any]
    question: str
    prompt: str | None = None
    sent: list[Candidate] | None = None
    """In prompt order; None where that list is not whole."""
    ranked: list[Candidate] = field(default_factory=list)
    """What the last lists before the prompt held, best first."""
    golds: list[Gold] = field(default_factory=list)

    @property
    def label_id(self) -> str:
        return str(self.label["label_id"])


def is_gold(candidate: Candidate, gold: Gold) -> bool:
    """Whether the label names *candidate*, by chunk, by document or by the hash of its text."""
    return (
        candidate.id in gold.chunk_ids
        or candidate.sha in gold.chunk_ids
        or candidate.doc_id in gold.doc_ids
    )


def states_gold(candidate: Candidate, gold: Gold) -> bool:
    """Whether the text of *candidate* states the claim of *gold*."""
    return candidate.text is not None and states_any(candidate.text, gold.claims)


def find_cases(
    store: Store,
    label_set: str,
    *,
    buckets: Sequence[str],
    grades: Sequence[str] = (),
    limit: int | None = None,
) -> list[Case]:
    """Requests of the set in *buckets* (and of *grades*, where given), the newest first.

    Raises:
        NotFoundError: There is no such label set.
    """
    require_set(store, label_set)
    rows = store.rows(
        "select trace_id, request_id, label_id, question from triage_requests\n"
        "where label_set = {label_set:String} and bucket in {buckets:Array(String)}\n"
        "    and (empty({grades:Array(String)}) or grade in {grades:Array(String)})\n"
        "order by started_at desc, trace_id, request_id, label_id\n"
        "limit {limit:UInt64}",
        {
            "label_set": label_set,
            "buckets": list(buckets),
            "grades": list(grades),
            "limit": limit or 2**63,
        },
    )
    labels = _labels(store, label_set)
    return [
        Case(
            key=RequestKey(row["trace_id"], row["request_id"]),
            label=labels[row["label_id"]][0],
            question=row["question"] or labels[row["label_id"]][0]["question"],
            golds=labels[row["label_id"]][1],
        )
        for row in rows
        if row["label_id"] in labels
    ]


def verdicts_of(store: Store, label_set: str) -> dict[str, int]:
    """How many requests of the set there are of each bucket."""
    rows = store.query(
        "select bucket, count() from triage_requests where label_set = {label_set:String}\n"
        "group by bucket order by bucket",
        {"label_set": label_set},
    ).result_rows
    return dict(rows)


def _labels(store: Store, label_set: str) -> dict[str, tuple[dict[str, Any], list[Gold]]]:
    rows = store.rows(
        "select label_id, passage, question, expected_answer, population, split, principal,\n"
        "    chunk_ids, spans, known_chunk_ids, doc_ids, claims\n"
        "from rag_label_passages where label_set = {label_set:String} and passage > 0\n"
        "order by label_id, passage",
        {"label_set": label_set},
    )
    found: dict[str, tuple[dict[str, Any], list[Gold]]] = {}
    for row in rows:
        known, docs, claims = (row.pop(name) for name in ("known_chunk_ids", "doc_ids", "claims"))
        shown = {"chunk_ids": row.pop("chunk_ids"), "doc_ids": docs, "spans": row.pop("spans")}
        del row["passage"]
        label, golds = found.setdefault(
            row["label_id"], ({**row, "set": label_set, "passages": []}, [])
        )
        label["passages"].append(shown)
        golds.append(Gold(frozenset(known), frozenset(docs), tuple(claims)))
    return found


def with_prompts(store: Store, cases: Sequence[Case]) -> Iterator[Case]:
    """*cases* with what was recorded of them, read a hundred at a time."""
    for start in range(0, len(cases), _BATCH):
        batch = cases[start : start + _BATCH]
        _read(store, batch)
        yield from batch


def _read(store: Store, cases: Sequence[Case]) -> None:
    keys = {
        "traces": sorted({case.key.trace_id for case in cases}),
        "requests": sorted({case.key.request_id for case in cases}),
    }
    flows = _by_request(
        store,
        "prompt_span_id, list_span_ids, searched from rag_request_flows",
        keys,
    )
    prompts = _by_request(store, "span_id, prompt, is_whole from rag_prompts final", keys)
    stages = _by_request(
        store,
        "span_id, stage, evidence, chunk_ids, candidate_shas, candidate_doc_ids,\n"
        "    candidate_kept_chars from rag_stages final",
        {**keys, "ingest": "ingest"},
        "and stage != {ingest:String}",
    )
    shas = {case.key: _shas(store, stages.get(case.key, []), flows.get(case.key)) for case in cases}
    texts = texts_of(store, {sha for named in shas.values() for sha in named.values()})
    for case in cases:
        _fill(
            case,
            (flows.get(case.key) or [{}])[0],
            {row["span_id"]: row for row in prompts.get(case.key, [])},
            {row["span_id"]: row for row in stages.get(case.key, [])},
            shas[case.key],
            texts,
        )


def _by_request(
    store: Store, what: str, parameters: Mapping[str, Any], more: str = ""
) -> dict[RequestKey, list[dict[str, Any]]]:
    rows = store.rows(
        f"select trace_id, request_id, {what}\n"
        "where trace_id in {traces:Array(String)} and request_id in {requests:Array(String)}\n"
        f"{more}",
        parameters,
    )
    found: dict[RequestKey, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(RequestKey(row["trace_id"], row["request_id"]), []).append(row)
    return found


def _shas(
    store: Store, stages: Sequence[Mapping[str, Any]], flows: Sequence[Mapping[str, Any]] | None
) -> dict[str, str]:
    """The hash of each candidate's text by its id; a hit without an id goes by the hash itself."""
    found: dict[str, str] = {}
    nameless: set[str] = set()
    for stage in stages:
        for chunk_id, sha in zip(stage["chunk_ids"], stage["candidate_shas"], strict=True):
            if sha:
                found.setdefault(chunk_id or sha, sha)
            elif chunk_id:
                nameless.add(chunk_id)
    left = nameless - found.keys()
    found.update({chunk_id: chunk_id for chunk_id in left if chunk_id.startswith("sha256:")})
    if left and flows:
        found.update(shas_in_manifest(store, flows[0]["searched"], left - found.keys()))
    return found


def _fill(
    case: Case,
    flow: Mapping[str, Any],
    prompts: Mapping[str, Mapping[str, Any]],
    stages: Mapping[str, Mapping[str, Any]],
    shas: Mapping[str, str],
    texts: Mapping[str, str],
) -> None:
    prompt = prompts.get(flow.get("prompt_span_id", ""))
    if prompt is not None and prompt["is_whole"] and prompt["prompt"]:
        case.prompt = prompt["prompt"]
    assemble = stages.get(flow.get("prompt_span_id", ""))
    if assemble is not None and assemble["evidence"] in ("whole", "empty"):
        case.sent = list(_candidates(assemble, shas, texts))
    ranked: dict[str, Candidate] = {}
    for span_id in flow.get("list_span_ids", ()):
        for candidate in _candidates(stages[span_id], shas, texts) if span_id in stages else ():
            ranked.setdefault(candidate.id or candidate.sha, candidate)
    case.ranked = list(ranked.values())


def _candidates(
    stage: Mapping[str, Any], shas: Mapping[str, str], texts: Mapping[str, str]
) -> Iterator[Candidate]:
    for chunk_id, own_sha, doc_id, kept_chars in zip(
        stage["chunk_ids"],
        stage["candidate_shas"],
        stage["candidate_doc_ids"],
        stage["candidate_kept_chars"],
        strict=True,
    ):
        sha = own_sha or shas.get(chunk_id or "", "")
        yield Candidate(chunk_id or "", sha, doc_id, texts.get(sha), kept_chars)
