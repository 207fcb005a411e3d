"""Replay: recorded runs over labelled corpora as telemetry, and their truth in our words.

The taxonomies meet so (stage of a gold chunk -> bucket, loss stage):

- not_indexed -> corpus_gap, not_indexed
- leg_miss -> retrieval_miss, not_retrieved_by_any_leg
- fusion_cut -> retrieval_miss, fusion_limit
- rerank_cut -> retrieval_miss; rerank_demoted where fusion had it within the last cut-off, else
  fused_beyond_cutoff; without a reranker the cut is a filter: filtered, reason top_n
- budget_cut, truncated, in_prompt, split -> the prompt decides by the claim: where it stands there,
  the answer's grade gives the bucket (also if it stands there by way of another chunk, or survived
  the truncation); where not, context_problem, assemble: attributed to chunking for split chunks
  that were sent, to prompt-assembly for budget_cut and truncated.

A span that the corpus cuts inside a word ("Stanley" of "Stanleyville") is not in the prompt, as no
letter or digit may adjoin a claim; the tests count those questions.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oracle import states
from plain import Grade, Hit, Label, Manifest, ManifestRow, Passage, Request, Stage, World

from ragotel.text import chunk_sha

MS = 1_000_000
START_NS = 1_790_000_400_000_000_000
SETS = {"chunking_eval": [], "xquad_en": ["wiki_distractors"], "musique200": [], "ramdocs": []}
ORDER = (
    *("not_indexed", "leg_miss", "fusion_cut", "rerank_cut", "budget_cut", "split", "truncated"),
    "in_prompt",
)
BUCKETS = ("corpus_gap", "retrieval_miss", "context_problem")


@dataclass
class Expected:
    """What a request must be called, and which stated rule makes it differ from its stage."""

    bucket: str
    loss_stage: str
    attribution: str = ""
    """Of a context problem whose truth says why; '' elsewhere."""
    explained: str = ""


@dataclass
class Run:
    name: str
    config: dict[str, Any]
    world: World = field(default_factory=World)
    passages: dict[tuple[str, ...], Expected] = field(default_factory=dict)
    requests: dict[tuple[str, ...], Expected] = field(default_factory=dict)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def replay(folder: Path, name: str) -> Run:
    """Read the run *name* under the data *folder*."""
    config = json.loads((folder / "runs" / name / "config.json").read_text("utf-8"))
    run = Run(name, config)
    questions = list(read_lines(folder / "runs" / name / "questions.jsonl"))
    ranked = {
        line["qid"]: line for line in read_lines(folder / "runs" / name / "candidates.jsonl.gz")
    }
    texts = _texts(folder, config["set"], ranked, questions)
    golds = {
        line["qid"]: line["gold"]
        for line in read_lines(
            folder
            / config["set"]
            / ("questions.dev.jsonl" if config["set"] == "chunking_eval" else "questions.jsonl")
        )
    }
    removed = set(config["removed_chunk_ids"])
    rows = [
        ManifestRow(id, doc_id=doc_id, text=text, sha=chunk_sha(text))
        for id, (doc_id, text) in texts.items()
        if id not in removed
    ]
    run.world.manifests = [Manifest(name, "v1", "", rows)]
    for number, question in enumerate(questions):
        _add(run, number, question, ranked[question["qid"]], golds[question["qid"]], texts)
    return run


def _texts(
    folder: Path,
    set_name: str,
    ranked: dict[str, dict[str, Any]],
    questions: list[dict[str, Any]],
) -> dict[str, tuple[str, str]]:
    """Chunk id to (document id, text)."""
    if set_name != "chunking_eval":
        return {
            line["chunk_id"]: (line["doc_id"], line["text"])
            for one in (set_name, *SETS[set_name])
            for line in read_lines(folder / one / "passages.jsonl")
        }
    documents = {
        line["doc_id"]: line["text"]
        for line in read_lines(folder / set_name / "documents.dev.jsonl")
    }
    ids = {id for line in ranked.values() for leg in ("bm25", "dense") for id, _ in line[leg]}
    ids |= {id for q in questions for gold in q["gold"] for id in gold["overlapping_chunks"]}
    texts = {}
    for id in sorted(ids):
        doc_id, _, place = id.partition("@")
        start, _, end = place.partition("-")
        text = documents.get(doc_id, "")[int(start) : int(end)]
        # A document that was not kept still filled its place in the prompt.
        texts[id] = (doc_id, text or f"(the text of {id} is not kept here)")
    return texts


def _add(
    run: Run,
    number: int,
    question: dict[str, Any],
    ranked: dict[str, Any],
    golds: list[dict[str, Any]],
    texts: dict[str, tuple[str, str]],
) -> None:
    request = _request(run, number, question, ranked, texts)
    run.world.requests.append(request)
    prompt = next(s.prompt or "" for s in request.stages if s.stage == "assemble")
    label = Label(
        f"{run.name}/{question['qid']}",
        question["question"],
        _passages(question, golds),
        answerable=question["answerable"],
    )
    request.label_id = label.label_id
    run.world.labels.append(label)
    generated = question.get("generated")
    grade = None
    if generated:
        grade = "correct" if generated["correct"] else "wrong"
        if generated["abstained"]:
            grade = "abstained"
        run.world.grades.append(
            Grade(*request.key, label.label_id, grade, "exact", "run", request.end_ns)
        )
    _expect(run, (*request.key, label.label_id), question, label, prompt, grade)


def _passages(question: dict[str, Any], golds: list[dict[str, Any]]) -> list[Passage]:
    truth = question["gold"]
    if "overlapping_chunks" in (truth or [{}])[0]:
        return [
            Passage(chunk_ids=t["intact_chunks"] or t["overlapping_chunks"], spans=[g["text"]])
            for t, g in zip(truth, golds, strict=True)
        ]
    if question["gold_mode"] == "all":
        return [Passage(chunk_ids=[g["chunk_id"]], spans=[g["text"]]) for g in golds]
    if not golds:
        return []
    spans = sorted({g["text"] for g in golds if g.get("text")})
    return [Passage(chunk_ids=[g["chunk_id"] for g in golds], spans=spans)]


def _request(
    run: Run,
    number: int,
    question: dict[str, Any],
    ranked: dict[str, Any],
    texts: dict[str, tuple[str, str]],
) -> Request:
    config, start = run.config, START_NS + number * 10_000 * MS
    request = Request(
        f"{number + 1:032x}", f"{run.name}-{number}", start, start + 700 * MS, question["question"]
    )
    for name in ("bm25", "dense"):
        leg = Stage("retrieve", name, start + MS, start + 100 * MS, top_k=config["leg_k"])
        leg.index, leg.version = run.name, "v1"
        _fill(leg, ranked[name][: config["leg_k"]])
        request.stages.append(leg)
    fused, cut = ranked["fused"][: config["fuse_k"]], ranked["fused"][config["fuse_k"] :]
    stage = Stage("fuse", "rrf", start + 110 * MS, start + 120 * MS, limit=config["fuse_k"])
    stage.dropped = [(id, "limit") for id, _ in cut]
    request.stages.append(_fill(stage, fused))
    order = ranked["reranked"] or fused
    kind = "rerank" if config["rerank"] else "filter"
    stage = Stage(kind, kind, start + 130 * MS, start + 200 * MS, limit=config["rerank_k"])
    stage.dropped = [(id, "top_n") for id, _ in order[config["rerank_k"] :]]
    request.stages.append(_fill(stage, order[: config["rerank_k"]]))
    request.stages.append(_assemble(start, question, order[: config["rerank_k"]], texts))
    request.stages.append(Stage("generate", "extract", start + 300 * MS, start + 600 * MS))
    request.answer = (question.get("generated") or {}).get("text") or ""
    return request


def _fill(stage: Stage, ranked: list[list[Any]]) -> Stage:
    stage.hits = [Hit(id, score) for id, score in ranked]
    stage.count, stage.evidence = len(ranked), "whole" if ranked else "empty"
    return stage


def _assemble(
    start: int, question: dict[str, Any], handed: list[list[Any]], texts: dict[str, tuple[str, str]]
) -> Stage:
    stage = Stage("assemble", "prompt", start + 210 * MS, start + 220 * MS)
    kept = []
    for sent in question["prompt"]:
        text = texts[sent["chunk_id"]][1]
        hit = Hit(sent["chunk_id"], sha=chunk_sha(text), tokens=sent["tokens"])
        if sent["kept_chars"] is not None:
            hit.chars, hit.kept_chars = len(text), sent["kept_chars"]
            text = text[: sent["kept_chars"]]
        stage.hits.append(hit)
        kept.append(text)
    stage.count, stage.evidence = len(stage.hits), "whole" if stage.hits else "empty"
    sent_ids = {hit.id for hit in stage.hits}
    stage.dropped = [(id, "budget") for id, _ in handed if id not in sent_ids]
    stage.budget_tokens = question["budget"]
    stage.prompt = "\n\n".join([*kept, f"Question: {question['question']}"])
    stage.content_mode, stage.prompt_chars = "full", len(stage.prompt)
    return stage


def _expect(
    run: Run,
    key: tuple[str, ...],
    question: dict[str, Any],
    label: Label,
    prompt: str,
    grade: str | None,
) -> None:
    if not label.answerable:
        run.requests[key] = Expected("not_answerable", "none")
        return
    rows = []
    for number, passage in enumerate(label.passages):
        truth = question["gold"] if question["gold_mode"] != "all" else [question["gold"][number]]
        row = _expected_passage(run.config, truth, passage, prompt, grade)
        run.passages[(*key, str(number))] = row
        rows.append(row)
    found = [row.bucket for row in rows]
    bucket = next((bucket for bucket in BUCKETS if bucket in found), found[0])
    run.requests[key] = next(row for row in rows if row.bucket == bucket)


def _expected_passage(
    config: dict[str, Any],
    truth: list[dict[str, Any]],
    passage: Passage,
    prompt: str,
    grade: str | None,
) -> Expected:
    chunks = [chunk for gold in truth for chunk in gold.get("chunks", [gold])]
    chunks = [chunk for chunk in chunks if chunk["chunk_id"] in passage.chunk_ids]
    stage = max((chunk["stage"] for chunk in chunks), key=ORDER.index)
    if stage == "not_indexed":
        return Expected("corpus_gap", "not_indexed")
    if stage == "leg_miss":
        return Expected("retrieval_miss", "not_retrieved_by_any_leg")
    if stage == "fusion_cut":
        return Expected("retrieval_miss", "fusion_limit")
    if stage == "rerank_cut":
        best = min(chunk["fused_rank"] or 1 << 30 for chunk in chunks)
        is_within = best <= config["rerank_k"]
        cut = "rerank_demoted" if is_within else "fused_beyond_cutoff"
        return Expected("retrieval_miss", cut if config["rerank"] else "filtered")
    is_told = any(states(prompt, span) for span in passage.spans)
    is_split = any(gold.get("boundary_split") for gold in truth) and stage == "in_prompt"
    if not is_told:
        owner = {"budget_cut": "prompt-assembly", "truncated": "prompt-assembly"}.get(stage, "")
        if is_split:
            return Expected("context_problem", "assemble", "chunking")
        why = "" if owner else f"{stage}, claim not in the prompt"
        return Expected("context_problem", "assemble", owner, why)
    passed = {"correct": "passed", None: "ungraded"}.get(grade, "generation_error")
    why = "" if stage == "in_prompt" else f"{stage}, claim in the prompt"
    return Expected(passed, "none", "", why)
