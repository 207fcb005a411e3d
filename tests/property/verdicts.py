"""The oracle's verdicts: rows of triage_passages and triage_requests from plain data."""

from __future__ import annotations

from oracle import (
    FAILING,
    FILTER_REASONS,
    Answer,
    Flow,
    Gold,
    Store,
    deep_rank,
    grade_of,
    matched_by,
)
from plain import Label, Stage, Verdict, World

BUCKET_OF_GRADE = {
    "correct": "passed",
    "wrong": "generation_error",
    "abstained": "generation_error",
    None: "ungraded",
}
MOVED_BY = {
    "fuse": "fused_beyond_cutoff",
    "rerank": "rerank_demoted",
    "blend": "blend_demoted",
    "filter": "filtered",
}
ATTRIBUTION = {
    "corpus_gap": "ingest",
    "retrieval_miss": "retrieval",
    "generation_error": "generation",
    "passed": "none",
    "ungraded": "none",
    "not_answerable": "none",
    "unknown": "unknown",
}


def judge(world: World) -> tuple[dict[tuple[str, ...], Verdict], dict[tuple[str, ...], Verdict]]:
    """(passages, requests): rows by (trace_id, request_id, label_id[, passage from 0])."""
    store = Store(world)
    labels = {label.label_id: label for label in world.labels}
    passages: dict[tuple[str, ...], Verdict] = {}
    requests: dict[tuple[str, ...], Verdict] = {}
    for request in world.requests:
        flow = Flow(request)
        for label_id, how in matched_by(store, request).items():
            label = labels[label_id]
            grade = grade_of(store, request, label)
            rows = [
                {**_judge_passage(world, store, flow, label, number, grade), "matched_by": how}
                for number in range(len(label.passages))
            ]
            key = (*request.key, label.label_id)
            for number, row in enumerate(rows):
                passages[(*key, str(number))] = row
            requests[key] = {**_judge_request(label, rows, grade), "matched_by": how}
    return passages, requests


def _judge_request(label: Label, rows: list[Verdict], grade: str | None) -> Verdict:
    if not label.answerable:
        bucket = "not_answerable"
    elif not rows:
        bucket = "unknown"
    else:
        found = [row["bucket"] for row in rows]
        failing = [bucket for bucket in FAILING if bucket in found]
        bucket = failing[0] if failing else "unknown" if "unknown" in found else found[0]
    deciding = next((n for n, row in enumerate(rows) if row["bucket"] == bucket), None)
    verdict: Verdict = {
        "bucket": bucket,
        "deciding_passage": deciding,
        "grade": grade,
        "abstained": grade == "abstained",
        "right_without_gold": grade == "correct" and bucket not in ("passed", "not_answerable"),
    }
    if deciding is not None:
        for name in (
            *("state", "attribution", "loss_stage", "drop_reason", "recall_class", "gold_rank"),
            *("deep_rank", "near_miss", "sent_count", "missing"),
        ):
            verdict[name] = rows[deciding][name]
        verdict["missing"] = verdict["missing"] | {
            word for row in rows for word in row["missing"] if word == "probe"
        }
    return verdict


def _judge_passage(
    world: World, store: Store, flow: Flow, label: Label, number: int, grade: str | None
) -> Verdict:
    gold = Gold(store, flow, label.passages[number])
    prompt = flow.prompt
    in_prompt, decided_by = gold.in_prompt()
    found_deep, other_version = deep_rank(world, store, gold, label, number)
    in_list = gold.among(flow.final)
    if prompt is not None and (gold.among([prompt]) or gold.was_dropped(prompt)):
        in_list = True
    in_index = gold.in_manifests()
    recorded = [s for s in flow.request.stages if s.hits or s.dropped]
    if any(gold.among([s]) or gold.was_dropped(s) for s in recorded):
        in_index = True
    if in_list is None and in_index is not False and in_prompt and _may_be_there(gold):
        in_list = True
    if in_index is None and (in_list or found_deep is not None):
        in_index = True
    if in_index is None or (in_index and in_list is None):
        bucket = "unknown"
    elif not in_index:
        bucket = "corpus_gap"
    elif not in_list:
        bucket = "retrieval_miss"
    elif in_prompt is None:
        bucket = "unknown"
    else:
        bucket = BUCKET_OF_GRADE[grade] if in_prompt else "context_problem"
    bucket = bucket if label.answerable else "not_answerable"
    loss_stage, reasons = _loss(gold, in_index, in_list, in_prompt)
    if not label.answerable:
        loss_stage, reasons = "none", set()
    near = None
    if found_deep is not None and flow.k is not None:
        near = flow.k < found_deep <= 2 * flow.k
    missing = _missing(in_index, in_list, in_prompt) if bucket == "unknown" else set()
    return {
        "bucket": bucket,
        "state": _state(world, gold, label, bucket),
        "attribution": _attribution(gold, bucket),
        "loss_stage": loss_stage,
        "drop_reason": reasons,
        "recall_class": _recall_class(gold),
        "gold_rank": gold.rank(flow.final),
        "deep_rank": found_deep,
        "near_miss": near,
        "sent_count": _sent_count(prompt),
        "missing": missing | ({"probe"} if other_version else set()),
        "grade": grade,
        "in_index": in_index,
        "in_ranked_list": in_list,
        "text_in_prompt": in_prompt if decided_by in ("text", "hash") else None,
        "id_in_prompt": gold.among([prompt]) if prompt and gold.passage.has_ids else None,
        "decided_by": decided_by,
        "via_other_chunk": _via_other_chunk(gold, in_list, in_prompt),
    }


def _may_be_there(gold: Gold) -> bool:
    """Whether no list on the way, after the last one that has it, is known to lack it."""
    present = [gold.among(level) for level in gold.flow.levels()]
    last = max((n for n, value in enumerate(present) if value), default=0)
    return False not in present[last:]


def _missing(in_index: Answer, in_list: Answer, in_prompt: Answer) -> set[str]:
    """The test that could not be made; the views name its evidence in their own words."""
    if in_index is None:
        return {"index"}
    return {"list"} if in_list is None else {"prompt"} if in_prompt is None else set()


def _sent_count(prompt: Stage | None) -> int | None:
    if prompt is None:
        return None
    if prompt.count is not None:
        return prompt.count
    return len(prompt.hits) if prompt.evidence in ("whole", "empty", "truncated") else None


def _state(world: World, gold: Gold, label: Label, bucket: str) -> str | None:
    if bucket == "corpus_gap":
        return "1"
    if bucket == "context_problem":
        return "2a"
    if bucket == "retrieval_miss":
        lists = [s for s in gold.flow.all_lists if s.outcome == "ok" or s.hits]
        anywhere = any(gold.was_dropped(s) for s in lists) or gold.among(lists)
        return None if anywhere is None else "2a" if anywhere else "1"
    if bucket != "generation_error":
        return None
    key = (*gold.flow.request.key, label.label_id, "gold_only")
    runs = [a for a in world.ablations if (a.trace_id, a.request_id, a.label_id, a.mode) == key]
    if not runs:
        return "2b_or_3"
    return "2b" if max(runs, key=lambda a: a.at_ns).correct else "3"


def _attribution(gold: Gold, bucket: str) -> str:
    if bucket != "context_problem":
        return ATTRIBUTION[bucket]
    prompt = gold.flow.prompt
    assert prompt is not None
    sent = gold.among([prompt])
    if sent is False or not gold.passage.claims or (not sent and gold.was_dropped(prompt)):
        return "prompt-assembly"
    texts = [
        gold.has_claim(gold.text_of(hit))
        for stage in ([prompt] if sent else gold.flow.final)
        for hit in stage.hits
        if gold.is_gold(hit)
    ]
    if any(texts):
        return "prompt-assembly"
    if sent and texts and all(text is False for text in texts):
        return "chunking"
    return "unknown"


def _recall_class(gold: Gold) -> str | None:
    stages = gold.flow.reranked
    present = gold.among(stages)
    if present is None:
        return None
    return "missing" if not present else "top" if gold.rank(stages) == 1 else "buried"


def _via_other_chunk(gold: Gold, in_list: Answer, in_prompt: Answer) -> Answer:
    if in_list is not False or not in_prompt or not gold.passage.has_ids:
        return False
    prompt = gold.flow.prompt
    assert prompt is not None
    # None: set, or not, as no chunk can be named.
    return any(gold.has_claim(gold.text_of(hit)) for hit in prompt.hits) or None


def _loss(gold: Gold, in_index: Answer, in_list: Answer, in_prompt: Answer) -> tuple[str, set[str]]:
    """The stage that lost it, and the reasons that this stage gives for the gold ids."""
    flow = gold.flow
    assembly = gold.reasons([flow.prompt]) if flow.prompt else set()
    if in_index is False:
        return "not_indexed", set()
    if in_list:
        if in_prompt:
            return "none", set()
        if gold.among(flow.final) and _is_beyond(gold, flow.final):
            return _mover(gold, flow.levels()), assembly
        return ("assemble", assembly) if in_prompt is False else ("unknown", set())
    levels = flow.levels()
    present = [gold.among(level) for level in levels]
    for number, level in enumerate(levels[1:]):
        if any(gold.was_dropped(stage) for stage in level):
            present[number] = True
            if present[number + 1] is None and _dropped_all(gold, levels[number], level):
                present[number + 1] = False
    if True not in present:
        known = bool(flow.legs) and present[0] is False
        return ("not_retrieved_by_any_leg" if known else "unknown"), set()
    last = max(n for n, value in enumerate(present) if value)
    if last + 1 >= len(levels) or present[last + 1] is not False:
        return "unknown", set()
    kind, reasons = levels[last + 1][0].stage, gold.reasons(levels[last + 1])
    if kind == "filter" or reasons & set(FILTER_REASONS):
        return "filtered", reasons
    if kind == "fuse":
        return "fusion_limit", reasons
    if flow.k is None:
        return MOVED_BY[kind], reasons
    return _mover(gold, levels[: last + 2]), reasons


def _dropped_all(gold: Gold, before: list[Stage], level: list[Stage]) -> bool:
    """Whether *level* dropped everything gold that the level before it can have handed on."""
    if (
        not gold.passage.doc_ids
        and set(gold.passage.chunk_ids) == gold.gold_ids
        and all(
            id in {dropped for stage in level for dropped, _ in stage.dropped or []}
            for id in gold.gold_ids
        )
    ):
        return True
    if any(stage.evidence not in ("whole", "empty") for stage in before):
        return False
    answers = {hit.id: gold.is_gold(hit) for stage in before for hit in stage.hits}
    dropped = {id for stage in level for id, _ in stage.dropped or []}
    return None not in answers.values() and all(
        id in dropped for id, answer in answers.items() if answer
    )


def _is_beyond(gold: Gold, stages: list[Stage]) -> bool:
    rank, k = gold.rank(stages), gold.flow.k
    return rank is not None and k is not None and rank > k


def _mover(gold: Gold, levels: list[list[Stage]]) -> str:
    """Who moved it past the cut-off: the stage after the last one that had it within."""
    k = gold.flow.k
    assert k is not None
    for number in range(len(levels) - 2, -1, -1):
        level, after = levels[number], levels[number + 1]
        rank = gold.rank(level)
        if rank is not None and rank <= k:
            kind = after[0].stage
            return MOVED_BY[kind]
        if any(stage.evidence not in ("whole", "empty") for stage in level):
            # The fusion moved it past the cut-off, or had it beyond like the legs: one name.
            return "unknown" if number or after[0].stage != "fuse" else "fused_beyond_cutoff"
    kinds = {stage.stage for level in levels for stage in level}
    return "fused_beyond_cutoff" if "fuse" in kinds else "retrieved_beyond_cutoff"
