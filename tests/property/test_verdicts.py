"""The SQL verdicts equal an independent reading of the rules, for thousands of random pipelines."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from plain import Hit, Label, Request, Stage, World
from spans import insert_world
from verdicts import judge
from worlds import build_world

from ragotel.store import Store

REQUESTS_PER_WORLD = 60
WORLDS = int(os.environ.get("RAGOTEL_PROPERTY_WORLDS", "50"))
SEED = int(os.environ.get("RAGOTEL_PROPERTY_SEED", "20261119"))
SHOWN = int(os.environ.get("RAGOTEL_PROPERTY_SHOWN", "3"))

PASSAGE_COLUMNS = (
    *("bucket", "state", "attribution", "loss_stage", "drop_reason", "recall_class", "gold_rank"),
    *("deep_rank", "near_miss", "sent_count", "missing", "grade", "in_index", "in_ranked_list"),
    *("text_in_prompt", "id_in_prompt", "decided_by", "via_other_chunk", "matched_by"),
)
REQUEST_COLUMNS = (
    *("bucket", "state", "attribution", "loss_stage", "drop_reason", "recall_class", "gold_rank"),
    *("deep_rank", "near_miss", "sent_count", "missing", "grade", "deciding_passage", "matched_by"),
    *("abstained", "right_without_gold"),
)
PROMPT_TESTED = ("context_problem", "generation_error", "passed", "ungraded")

Rows = dict[tuple[str, ...], dict[str, Any]]


def read_rows(store: Store, view: str, keys: tuple[str, ...], columns: tuple[str, ...]) -> Rows:
    """The view's rows by key; a key that stands twice fails here."""
    found: Rows = {}
    for row in store.rows(f"select {', '.join({**dict.fromkeys((*keys, *columns))})} from {view}"):
        key = tuple(str(row[name]) for name in keys)
        if row.get("passage") == 0:  # a label without passages has one row, so that it is counted
            continue
        assert key not in found, f"{view} has two rows for {key}"
        found[key] = {name: row[name] for name in columns}
    return found


def plainly(name: str, value: Any, expected: Any, row: dict[str, Any]) -> Any:
    """*value* of a view in the oracle's terms: what the rules leave open is taken as expected."""
    if name == "missing":
        words = {"probe"} if any("probe" in word for word in value) else set()
        rest = [word for word in value if "probe" not in word]
        is_named = row["bucket"] == "unknown" and bool(rest)
        return words | ((expected - {"probe"}) if is_named else set())
    if name == "drop_reason":
        # Which stage's reason it is, is open where the cut-off decided and assembly dropped it.
        is_open = row["loss_stage"] == "unknown" or row["gold_rank"] is not None
        if not value and is_open and row["loss_stage"] != "assemble":
            return expected
        return expected if (value or None) in (expected or {None}) else value
    if name == "loss_stage" and expected == "unknown" and row["bucket"] != "passed":
        # Which stage it was where a list in between cannot be read, the views may infer.
        return expected
    if name == "decided_by" and row["bucket"] not in PROMPT_TESTED:
        return expected
    if name == "in_ranked_list" and row["bucket"] == "corpus_gap" and expected is None:
        return expected
    if name == "text_in_prompt" and value is None and row["decided_by"] == "hash":
        return expected
    if name == "via_other_chunk":
        is_open = expected is None or row["in_index"] is None
        return expected if is_open else value is not None
    if name in ("abstained", "right_without_gold"):
        return bool(value)
    if name == "deciding_passage":
        return value - 1 if value else None
    return None if value == "" else value


def differences(found: Rows, expected: Rows, columns: tuple[str, ...]) -> dict[Any, list[str]]:
    """Per key the columns that differ; a row that one side lacks differs as a whole."""
    different: dict[Any, list[str]] = {}
    for key in found.keys() | expected.keys():
        if key not in found or key not in expected:
            different[key] = ["only in SQL" if key in found else "not in SQL"]
            continue
        for name in columns:
            if name not in expected[key]:
                continue
            if name == "drop_reason" and expected[key]["loss_stage"] == "unknown":
                continue
            wanted = expected[key][name]
            value = plainly(name, found[key][name], wanted, found[key])
            if value != wanted:
                different.setdefault(key, []).append(f"{name}: SQL {value!r}, rules {wanted!r}")
    return different


def describe(world: World, key: tuple[str, ...], found: Rows, expected: Rows) -> str:
    """One case as a reader needs it: both rows, the label, the stages with gold ids starred."""
    request = next(r for r in world.requests if r.key == key[:2])
    label = next(x for x in world.labels if x.label_id == key[2])
    lines = [f"SQL   {found.get(key)}", f"rules {expected.get(key)}", f"notes {request.notes}"]
    lines += [f"label {json.dumps(vars(p))}" for p in label.passages]
    lines += [_stage_line(request, stage, label) for stage in request.stages]
    return "\n    ".join(lines)


def _stage_line(request: Request, stage: Stage, label: Label) -> str:
    def is_gold(hit: Hit) -> bool:
        return any(hit.id in p.chunk_ids or hit.doc_id in p.doc_ids for p in label.passages)

    at = [(ns - request.start_ns) // 1_000_000 for ns in (stage.start_ns, stage.end_ns)]
    hits = [
        f"{hit.id}{'*' if is_gold(hit) else ''}{'' if hit.kept_chars is None else ' cut'}"
        for hit in stage.hits
    ]
    facts = {
        "count": stage.count,
        "k": stage.top_k,
        "limit": stage.limit,
        "index": stage.index and f"{stage.index} {stage.version}",
        "sha": any(hit.sha for hit in stage.hits) or None,
        "doc": any(hit.doc_id for hit in stage.hits) or None,
        "texts": len(stage.chunks) or None,
        "dropped": stage.dropped,
        "mode": stage.content_mode,
        "prompt": stage.prompt,
    }
    known = " ".join(f"{k}={v!r}" for k, v in facts.items() if v not in (None, ""))
    place = f"{stage.name} {at[0]}-{at[1]} ms {stage.outcome} {stage.evidence}"
    return f"{stage.stage} {place}: {', '.join(hits)} | {known}"


@pytest.fixture
def filled(store: Store, tmp_path: Path) -> tuple[Store, World]:
    """A store with all worlds, and the same as plain data."""
    whole = World()
    for number in range(WORLDS):
        world = build_world(number, random.Random(f"{SEED}/{number}"), REQUESTS_PER_WORLD)
        for name, items in vars(whole).items():
            items.extend(getattr(world, name))
    insert_world(store, whole, tmp_path, random.Random(SEED))
    return store, whole


def test_verdicts_equal_the_rules(filled: tuple[Store, World]) -> None:
    """Every row of triage_passages and triage_requests says what the rules say."""
    store, world = filled
    passages, requests = judge(world)
    passages = {(*key[:3], str(int(key[3]) + 1)): row for key, row in passages.items()}
    assert len(requests) >= WORLDS * REQUESTS_PER_WORLD * 0.9
    report: list[str] = []
    for view, keys, columns, expected in (
        ("triage_passages", ("passage",), PASSAGE_COLUMNS, passages),
        ("triage_requests", (), REQUEST_COLUMNS, requests),
    ):
        keys = ("trace_id", "request_id", "label_id", *keys)
        found = read_rows(store, view, keys, columns)
        different = differences(found, expected, columns)
        if different:
            report.append(f"{view}: {len(different)} of {len(expected)} rows differ")
            report += _summary(different)
            for key in sorted(different)[:SHOWN]:
                case = describe(world, key, found, expected)
                report.append(f"{key}\n    {different[key]}\n    {case}")
    assert not report, "\n".join(report)


def _summary(different: dict[Any, list[str]]) -> list[str]:
    counts: dict[str, int] = {}
    for lines in different.values():
        for line in lines:
            counts[line] = counts.get(line, 0) + 1
    return [f"  {n} x {line}" for line, n in sorted(counts.items(), key=lambda c: -c[1])[:40]]
