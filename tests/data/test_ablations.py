"""Distraction and misuse of recorded runs, by asking a plain extractive model with gold alone."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from extractive import by_rare_words, extract, states_one_of
from replay import read_lines, replay
from spans import insert_world

from ragotel.rehearsal import Rehearsal
from ragotel.store import Store
from ragotel.triage.ablating import GENERATOR_ROLES, JUDGE_ROLES, Ablator, Plan
from ragotel.triage.ablation_cases import WRONG, find_cases
from ragotel.triage.calling import fit

pytestmark = [pytest.mark.data, pytest.mark.slow]

# The cause that a run's truth names, and the state that the ablation gives, for the cases that the
# plain model answers as the run's own did. A sentence from a gold passage is quoted again with gold
# alone, so misuse is state 3 throughout. Distraction says there only that the quoted sentence stood
# in another passage; where the gold one alone does not bring the right sentence either, it is 3.
STATES: dict[str, dict[tuple[str, str], int]] = {
    "xquad_hard": {("distraction", "2b"): 5, ("distraction", "3"): 3, ("misuse", "3"): 105},
    "musique_b1000": {
        ("distraction", "2b"): 1,
        ("distraction", "3"): 2,
        ("misuse", "3"): 19,
        ("lost_in_cut", "3"): 1,
    },
    "ramdocs_b600": {("distraction", "2b"): 11, ("distraction", "3"): 11, ("misuse", "3"): 58},
}


def ablated(
    store: Store, folder: Path, name: str, tmp_path: Path
) -> tuple[list[tuple[str, str, bool]], Counter[str]]:
    """Cause, state and whether the full prompt was answered as recorded; and what was skipped."""
    run = replay(folder, name)
    insert_world(store, run.world, tmp_path, random.Random(name))
    questions = {
        f"{name}/{line['qid']}": line
        for line in read_lines(folder / "runs" / name / "questions.jsonl")
    }
    texts = [row.text for manifest in run.world.manifests for row in manifest.rows]

    def judge(question: str, expected_answer: str, answer: str, label: dict[str, Any]) -> bool:
        return states_one_of(questions[label["label_id"]]["answers"], answer)

    with Rehearsal() as rehearsal:
        ablator = Ablator(
            store,
            rehearsal,
            fit(extract(by_rare_words(texts)), "model", *GENERATOR_ROLES),
            fit(judge, "judge", *JUDGE_ROLES),
        )
        cases = find_cases(
            store, run.world.labels[0].label_set, buckets=("generation_error",), grades=WRONG
        )
        outcome = ablator.run(cases, Plan(("gold_only", "full")))
    assert outcome.failures == []
    # The word-by-word judge calls a few recorded answers right that the run's own called wrong.
    answers = dict(
        store.query(
            "select label_id, answer from rag_request_ablations where mode = 'full' and not correct"
        ).result_rows
    )
    states = store.query(
        "select label_id, state from triage_requests where state in ('2b', '3')"
    ).result_rows
    found = [
        (
            questions[label_id]["oracle_cause"],
            state,
            answers.get(label_id) == (questions[label_id]["generated"]["text"] or "").strip(),
        )
        for label_id, state in states
    ]
    return found, Counter(entry["reason"] for entry in outcome.skipped)


@pytest.mark.parametrize("name", STATES)
def test_ablation_tells_what_the_truth_calls_distraction_and_misuse(
    name: str, shared_dir: Path, store: Store, tmp_path: Path
) -> None:
    """Where the model answers as the run's did, misuse is state 3, and 2b is distraction."""
    if not (shared_dir / "data" / "runs" / name).is_dir():
        pytest.skip("the recorded runs are not beside the checkout")
    found, skipped = ablated(store, shared_dir / "data", name, tmp_path)
    counted = Counter((cause, state) for cause, state, is_as_recorded in found if is_as_recorded)
    assert dict(counted) == STATES[name]
    assert not skipped
