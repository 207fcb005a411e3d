"""Verdicts on recorded runs over labelled corpora equal the truth written down beside them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from replay import Expected, Run, replay
from spans import insert_world
from verdicts import judge

from ragotel.store import Store

pytestmark = [pytest.mark.data, pytest.mark.slow]

# Where the claim decides otherwise than the chunk's stage. "In the prompt" without its claim: the
# corpus's span begins or ends inside a word, or is a paraphrase that no document states literally.
RUNS = {
    "xquad_hard": {
        "in_prompt, claim not in the prompt": 1,
        "truncated, claim in the prompt": 2,
    },
    "musique_b1000": {
        "in_prompt, claim not in the prompt": 1,
        "budget_cut, claim in the prompt": 11,
    },
    "ramdocs_b600": {"in_prompt, claim not in the prompt": 6},
    "chunking_200_dev": {"in_prompt, claim not in the prompt": 35},
}


@pytest.fixture(scope="module")
def runs(shared_dir: Path) -> dict[str, Run]:
    if not (shared_dir / "data" / "runs").is_dir():
        pytest.skip("the recorded runs are not beside the checkout")
    return {name: replay(shared_dir / "data", name) for name in RUNS}


def differences(
    found: dict[tuple[str, ...], dict[str, Any]], expected: dict[tuple[str, ...], Expected]
) -> list[str]:
    """One line per question that is called otherwise than its truth says."""
    lines = []
    for key in sorted(found.keys() | expected.keys()):
        row, wanted = found.get(key), expected.get(key)
        if row is None or wanted is None:
            lines.append(f"{key}: found {row}, expected {wanted}")
            continue
        said = (row["bucket"], row["loss_stage"], row.get("attribution"))
        truth = (wanted.bucket, wanted.loss_stage, wanted.attribution or said[2])
        if said != truth:
            lines.append(f"{key}: {said}, truth {truth}")
    return lines


@pytest.mark.parametrize("name", RUNS)
def test_the_rules_agree_with_the_truth(name: str, runs: dict[str, Run]) -> None:
    """The rules in plain Python call every gold passage and question what its truth says."""
    run = runs[name]
    passages, requests = judge(run.world)
    for row in requests.values():
        row.setdefault("loss_stage", "none")
    assert differences(passages, run.passages) == []
    assert differences(requests, run.requests) == []


@pytest.mark.parametrize("name", RUNS)
def test_the_store_agrees_with_the_truth(
    name: str, runs: dict[str, Run], store: Store, tmp_path: Path
) -> None:
    """Both triage views call every gold passage and question what its truth says."""
    run = runs[name]
    insert_world(store, run.world, tmp_path, random.Random(name))
    columns = "trace_id, request_id, label_id, bucket, loss_stage, attribution"
    found = {
        (row["trace_id"], row["request_id"], row["label_id"], str(row["passage"] - 1)): row
        for row in store.rows(f"select {columns}, passage from triage_passages")
        if row["passage"]
    }
    assert differences(found, run.passages) == []
    found = {
        (row["trace_id"], row["request_id"], row["label_id"]): row
        for row in store.rows(f"select {columns} from triage_requests")
    }
    assert differences(found, run.requests) == []


@pytest.mark.parametrize("name", RUNS)
def test_how_often_a_rule_departs_from_the_stage(name: str, runs: dict[str, Run]) -> None:
    """How often the claim decides otherwise than the chunk's stage is known and small."""
    counted = Counter(row.explained for row in runs[name].passages.values() if row.explained)
    assert dict(counted) == RUNS[name]
