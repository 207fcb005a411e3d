"""Pipelines: one random request, run over a small corpus, then recorded with random faults."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from plain import Hit, Label, Passage, Request, Stage

from ragotel.text import chunk_sha

MS = 1_000_000
TEMPLATE = ("Answer from the context alone.\n\n", "\n---\n", "\n\nQuestion: {}\nAnswer:")


@dataclass
class Version:
    index: str
    version: str
    chunks: dict[str, Any]
    """Chunk id to the chunk as this version holds it."""


@dataclass
class Corpus:
    name: str
    versions: list[Version] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)


class Run:
    """One request as it happens: a clock, the chunks that serve, the stages recorded so far."""

    def __init__(self, request: Request, label: Label, corpus: Corpus, rng: random.Random) -> None:
        self.request, self.label, self.rng = request, label, rng
        self.now = request.start_ns + MS
        number = rng.choice(["v1", "v2", "v3"])
        self.serving = [v for v in corpus.versions if v.version == number]
        self.chunks = {c.id: c for v in self.serving for c in v.chunks.values()}
        self.has_sha = rng.random() < 0.85
        self.has_docs = rng.random() < 0.6
        self.has_version = rng.random() < 0.93
        self.emits_texts = rng.random() < 0.6
        self.faults = rng.choices(["none", "some", "many"], [60, 30, 10])[0]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def has(self, kind: str) -> bool:
        return any(stage.stage == kind for stage in self.request.stages)

    def take_time(self, parallel: bool = False) -> tuple[int, int]:
        start = self.now + self.rng.randint(1, 5) * MS
        end = start + self.rng.randint(2, 40) * MS
        if not parallel:
            self.now = end
        return start, end

    def hit(self, id: str, score: float | None) -> Hit:
        chunk = self.chunks[id]
        return Hit(
            id=id,
            score=score,
            sha=chunk_sha(chunk.text) if self.has_sha else "",
            doc_id=chunk.doc_id if self.has_docs else "",
            tokens=len(chunk.text) // 4,
        )

    def record(self, stage: Stage, ids: list[str], hits: list[Hit] | None = None) -> None:
        """Write down what *stage* returned, now and then badly."""
        rng = self.rng
        scores = sorted((round(rng.random(), 3) for _ in ids), reverse=True)
        full = hits or [
            self.hit(id, s if rng.random() < 0.95 else None)
            for id, s in zip(ids, scores, strict=True)
        ]
        stage.hits, stage.count = full, len(full)
        stage.evidence = "whole" if full else "empty"
        if self.emits_texts and self.has_sha and stage.stage in ("retrieve", "rerank"):
            texts = [self.chunks[id].text for id in ids]
            stage.chunks = {chunk_sha(text): text for text in texts if rng.random() < 0.9}
        fault_rate = {"none": 0.0, "some": 0.12, "many": 0.4}[self.faults]
        if rng.random() < fault_rate:
            self._spoil(stage, full)
        elif full and rng.random() < 0.03:
            full[rng.randrange(len(full))].id = None
        self.request.stages.append(stage)

    def _spoil(self, stage: Stage, full: list[Hit]) -> None:
        text = json.dumps([wire_hit(hit) for hit in full])
        kind = self.rng.choice(["truncated", "malformed", "off", "not_recorded"])
        self.request.notes.append(f"{stage.name}: {kind}")
        if kind == "truncated" and full:
            stage.hits = full[: self.rng.randrange(len(full))]
            stage.list_text = json.dumps([wire_hit(hit) for hit in stage.hits])
            stage.evidence = "truncated"
            return
        stage.hits = []
        if kind == "malformed":
            cut = self.rng.randrange(1, max(2, len(text) - 1))
            spoiled = [text[:cut], '[{"id": "a", "score": NaN}]', "no list", '{"id": ']
            stage.list_text, stage.evidence = self.rng.choice(spoiled), "malformed"
        elif kind == "off":
            stage.list_text, stage.content_mode = "", "off"
            stage.evidence = "off" if full else "empty"
        else:
            stage.list_text, stage.count, stage.evidence = "", None, "not_recorded"


def wire_hit(hit: Hit) -> dict[str, Any]:
    """The candidate's object on the wire; unknown keys are left out, a null id is written."""
    known: dict[str, Any] = {"id": hit.id, "score": hit.score}
    for key in ("sha", "doc_id", "tokens", "chars", "kept_chars"):
        if getattr(hit, key) not in (None, ""):
            known[key] = getattr(hit, key)
    return known


def build_request(
    name: str,
    start_ns: int,
    label: Label,
    corpus: Corpus,
    rng: random.Random,
    previous: Request | None,
) -> Request:
    """Run one request; now and then it shares its trace, or its request id, with *previous*."""
    trace_id, request_id = f"{rng.getrandbits(128):032x}", f"req-{name}"
    if previous is not None and rng.random() < 0.15:
        trace_id = previous.trace_id
    elif previous is not None and rng.random() < 0.05:
        request_id = previous.request_id
    request = Request(trace_id, request_id, start_ns, start_ns, user_id=rng.choice(["u1", "u2"]))
    run = Run(request, label, corpus, rng)
    if run.chance(0.07):
        request.notes.append("an earlier round with its own search and prompt")
        _round(run, assembled=1.0)
        run.now += 5 * MS
        _round(run, assembled=1.0)
    else:
        _round(run)
    if run.chance(0.04):
        request.notes.append("a later generation that failed")
        start, end = run.take_time()
        request.stages.append(Stage("generate", "retry", start, end, outcome="error"))
    request.end_ns = max([s.end_ns for s in request.stages], default=run.now) + MS
    return request


def _round(run: Run, assembled: float = 0.93) -> None:
    """Search, order, cut, assemble, generate."""
    ids = _search(run)
    if run.chance(assembled):
        sent = _assemble(run, ids)
        if run.chance(0.05):
            run.request.notes.append("assembled twice")
            sent = _assemble(run, sent)
    if run.chance(0.9):
        start, end = run.take_time()
        run.request.stages.append(Stage("generate", "llm", start, end))


def _search(run: Run) -> list[str]:
    rng = run.rng
    leg_count = rng.choices([0, 1, 2, 3], [3, 40, 42, 15])[0]
    if run.request.stages:
        leg_count = max(leg_count, 1)
    legs = [_leg(run, n, leg_count) for n in range(leg_count)]
    run.now = max([run.now, *(s.end_ns for s, _ in legs)])
    lists = [ids for stage, ids in legs if stage.outcome == "ok"]
    ids = _interleave(lists)
    has_late_leg = len(lists) > 1 and run.chance(0.04)
    if (len(lists) > 1 and run.chance(0.8)) or run.chance(0.05):
        # What cuts off where a leg stands beside the cut list, no rule says.
        ids = _ranking(run, "fuse", ids, 0.0 if has_late_leg else 0.7, shuffle=0.15)
    if has_late_leg:
        run.request.notes.append("a leg beside the fused list")
        late = _leg(run, 3, 1)[1]
        run.now = run.request.stages[-1].end_ns
        return _interleave([ids, late])
    for place in ("before", "rerank", "blend", "after"):
        if place in ("before", "after") and run.chance(0.18):
            ids = _filter(run, ids)
        elif place == "rerank" and run.chance(0.5):
            ids = _ranking(run, "rerank", ids, limit_chance=0.8, shuffle=0.7)
        elif place == "blend" and run.has("rerank") and run.chance(0.3):
            ids = _ranking(run, "blend", ids, limit_chance=0.3, shuffle=0.5)
    return ids


def _leg(run: Run, number: int, leg_count: int) -> tuple[Stage, list[str]]:
    rng = run.rng
    version = run.serving[number % len(run.serving)]
    parallel = leg_count > 1 and run.chance(0.8)
    start, end = run.take_time(parallel)
    stage = Stage("retrieve", ["dense", "bm25", "sparse", "late"][number], start, end)
    stage.index = version.index
    stage.version = version.version if run.has_version else ""
    stage.top_k = rng.choice([3, 5, 8, 10])
    pool = sorted(version.chunks)
    rng.shuffle(pool)
    golds = [id for p in run.label.passages for id in gold_ids(p, version)]
    for id in rng.sample(golds, len(golds)):
        if rng.random() < 0.6:
            pool.remove(id)
            pool.insert(rng.randint(0, min(len(pool), 12)), id)
    ids = pool[: stage.top_k]
    if run.chance(0.03):
        ids = []
    if leg_count > 1 and number == 0 and run.chance(0.08):
        stage.outcome = "error"
        run.request.stages.append(stage)
        return stage, []
    run.record(stage, ids)
    return stage, ids


def gold_ids(passage: Passage, version: Version) -> list[str]:
    """Ids of the version's chunks that a retriever should like for *passage*."""
    return sorted(
        {
            chunk.id
            for chunk in version.chunks.values()
            if chunk.id in passage.chunk_ids
            or chunk.doc_id in passage.doc_ids
            or (not passage.has_ids and set(passage.spans) & set(chunk.claims))
            or (not passage.has_ids and not passage.spans and chunk.text == passage.text)
        }
    )


def _interleave(lists: list[list[str]]) -> list[str]:
    longest = max([len(ids) for ids in lists], default=0)
    return list(dict.fromkeys(ids[n] for n in range(longest) for ids in lists if n < len(ids)))


def _ranking(run: Run, kind: str, ids: list[str], limit_chance: float, shuffle: float) -> list[str]:
    rng = run.rng
    start, end = run.take_time()
    stage = Stage(kind, kind, start, end, in_count=len(ids))
    ordered = sorted(ids, key=lambda id: ids.index(id) + rng.uniform(0, 12 * shuffle))
    if run.chance(limit_chance):
        stage.limit = rng.choice([2, 3, 5, 8])
        kept, lost = ordered[: stage.limit], ordered[stage.limit :]
    elif run.chance(0.15):
        at = rng.randint(1, 6)
        kept, lost = ordered[:at], ordered[at:]
    else:
        kept, lost = ordered, []
    reason = rng.choice({"fuse": ["limit", "dedupe"]}.get(kind, ["top_n", "limit", "threshold"]))
    _drop(run, stage, lost, reason)
    run.record(stage, kept)
    return kept


def _filter(run: Run, ids: list[str]) -> list[str]:
    rng = run.rng
    start, end = run.take_time()
    reason = rng.choice(["permission", "threshold", "per_document_cap", "dedupe", "other"])
    stage = Stage("filter", f"filter {reason}", start, end, in_count=len(ids))
    kept = [id for id in ids if rng.random() < 0.75]
    _drop(run, stage, [id for id in ids if id not in kept], reason)
    run.record(stage, kept)
    return kept


def _drop(run: Run, stage: Stage, lost: list[str], reason: str) -> None:
    if lost and run.chance(0.85):
        stage.dropped = [(id, reason) for id in lost]


def _assemble(run: Run, ids: list[str]) -> list[str]:
    rng = run.rng
    start, end = run.take_time()
    stage = Stage("assemble", "answer", start, end, in_count=len(ids))
    stage.budget_tokens = rng.choice([30, 60, 100, 400])
    policy = rng.choice(["stop", "stop", "skip", "trim", "cap"])
    order = list(reversed(ids)) if run.chance(0.1) else list(ids)
    left, sent, lost, texts = stage.budget_tokens, [], [], []
    for id in order:
        text = run.chunks[id].text
        hit = run.hit(id, None)
        tokens = len(text) // 4
        kept = text if policy != "cap" else text[: rng.choice([40, 400])]
        if tokens > left and policy == "trim" and left > 5:
            kept = text[: left * 4]
        elif tokens > left and policy != "cap":
            lost.append(id)
            left = left if policy == "skip" else 0
            continue
        if len(kept) < len(text):
            hit.chars, hit.kept_chars = len(text), len(kept)
            hit.tokens = len(kept) // 4
        left -= len(kept) // 4
        sent.append(hit)
        texts.append(kept)
    _drop(run, stage, lost, rng.choice(["budget", "budget", "dedupe"]))
    prompt = TEMPLATE[0] + TEMPLATE[1].join(texts) + TEMPLATE[2].format(run.request.request_id)
    _keep_prompt(run, stage, prompt)
    sent_ids = [hit.id for hit in sent if hit.id is not None]
    run.record(stage, sent_ids, hits=sent)
    return sent_ids


def _keep_prompt(run: Run, stage: Stage, prompt: str) -> None:
    mode = run.rng.choices(
        ["full", "truncated", "redacted", "hashed", "off", ""], [70, 8, 4, 5, 8, 5]
    )[0]
    stage.content_mode = mode
    stage.prompt_chars = len(prompt) if mode else None
    if mode == "full":
        stage.prompt = prompt
    elif mode == "truncated":
        stage.prompt = f"{prompt[:120]} … {prompt[-60:]}"
    elif mode == "redacted":
        stage.prompt = "".join("#" if run.rng.random() < 0.1 else c for c in prompt)
