"""Ranks, recall and fusion by rank over recorded runs equal the ranks written down beside them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from replay import read_lines, replay
from spans import insert_world

from own_database import own_database
from ragotel.store import Store
from ragotel.triage.recall import KS

pytestmark = [pytest.mark.data, pytest.mark.slow]

RUNS = ("xquad_hard", "musique_b1000")


@dataclass
class Replayed:
    """One run in a store, its configuration, and the truth of each gold chunk by its label."""

    store: Store
    config: dict[str, Any]
    truth: dict[tuple[str, int], dict[str, Any]]
    fused: dict[str, list[str]]
    """Per label the whole fused order, also beyond the cut."""


@pytest.fixture(scope="module", params=RUNS)
def replayed(
    request: pytest.FixtureRequest,
    shared_dir: Path,
    engine: Store,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Replayed]:
    name, folder = request.param, shared_dir / "data"
    if not (folder / "runs" / name).is_dir():
        pytest.skip("the recorded runs are not beside the checkout")
    run = replay(folder, name)
    questions = read_lines(folder / "runs" / name / "questions.jsonl")
    candidates = read_lines(folder / "runs" / name / "candidates.jsonl.gz")
    with own_database(engine):
        insert_world(engine, run.world, tmp_path_factory.mktemp(name), random.Random(name))
        yield Replayed(
            engine,
            run.config,
            {
                (f"{name}/{question['qid']}", number): gold
                for question in questions
                for number, gold in enumerate(question["gold"], 1)
            },
            {f"{name}/{one['qid']}": [id for id, _ in one["fused"]] for one in candidates},
        )


def stage_rank(config: dict[str, Any], gold: dict[str, Any], stage: str) -> int | None:
    """The rank that telemetry can know: within what the stage returned."""
    keys = {"fuse": ("fused_rank", "fuse_k"), "final": ("rerank_rank", "rerank_k")}
    key, cut = keys.get(stage, (f"{stage}_rank", "leg_k"))
    rank = gold[key]
    return rank if rank is not None and rank <= config[cut] else None


def test_places_of_every_gold_passage(replayed: Replayed) -> None:
    """Rank in each leg, fused, at the end and in the prompt: as the run wrote them down."""
    rows = replayed.store.rows(
        "select label_id, passage, legs, fused_rank, final_rank, sent_position from rag_gold_places"
    )
    found = {
        (row["label_id"], row["passage"]): [
            *(rank for _, rank, _ in row["legs"]),
            *(row["fused_rank"], row["final_rank"], row["sent_position"]),
        ]
        for row in rows
    }
    expected = {
        key: [
            *(stage_rank(replayed.config, gold, one) for one in ("bm25", "dense", "fuse", "final")),
            gold["prompt_pos"],
        ]
        for key, gold in replayed.truth.items()
    }
    assert found == expected
    assert {tuple(leg for leg, _, _ in row["legs"]) for row in rows} == {("bm25", "dense")}


def test_recall_of_every_leg_and_stage(replayed: Replayed) -> None:
    """dist_recall at every k is the mean over the questions of the share of their gold chunks."""
    found = {
        (row["stage_name"], row["k"]): (row["requests"], round(row["recall"], 9))
        for row in replayed.store.rows(
            "select stage_name, k, requests, recall from dist_recall "
            "where grain = 'chunk' and stage != 'assemble'"
        )
    }
    last = "rerank" if replayed.config["rerank"] else "filter"
    names = {"bm25": "bm25", "dense": "dense", "fuse": "rrf", "final": last}
    expected = {}
    for stage, name in names.items():
        ranks: dict[str, list[int | None]] = {}
        for (label, _), gold in replayed.truth.items():
            ranks.setdefault(label, []).append(stage_rank(replayed.config, gold, stage))
        for k in KS:
            shares = [
                sum(rank is not None and rank <= k for rank in one) / len(one)
                for one in ranks.values()
            ]
            expected[name, k] = (len(shares), round(sum(shares) / len(shares), 9))
    assert found == expected


def test_fusion_by_rank_is_the_recorded_fusion(replayed: Replayed) -> None:
    """With the run's own constant the what-if order is the recorded one, ties in any order."""
    rows = replayed.store.rows(
        "select label_id, passage, recorded_rank, what_if_rank, what_if_rank_last, is_whole "
        "from what_if_rrf where rrf_k = {rrf_k:UInt32}",
        {"rrf_k": replayed.config["rrf_k"]},
    )
    assert all(row["is_whole"] for row in rows)
    found = {(row["label_id"], row["passage"]): row for row in rows}
    assert found.keys() == replayed.truth.keys()
    astray = []
    for (label, number), gold in replayed.truth.items():
        row = found[label, number]
        order = replayed.fused[label]
        place = order.index(gold["chunk_id"]) + 1 if gold["chunk_id"] in order else None
        first, last = row["what_if_rank"], row["what_if_rank_last"]
        is_right = place is None if first is None else place is not None and first <= place <= last
        if not is_right or row["recorded_rank"] != stage_rank(replayed.config, gold, "fuse"):
            astray.append((label, number, place, row))
    assert astray == []


def test_documents_come_from_the_manifest(replayed: Replayed) -> None:
    """No candidate names its document; only of a chunk in no manifest it stays unknown."""
    rows = replayed.store.rows(
        "select sum(requests) as readable, sum(unreadable_requests) as unreadable "
        "from dist_recall where grain = 'document' and k = 10 and stage = 'fuse'"
    )
    labels = {label for label, _ in replayed.truth}
    unknown = {label for (label, _), gold in replayed.truth.items() if not gold["in_index"]}
    assert rows == [{"readable": len(labels) - len(unknown), "unreadable": len(unknown)}]
