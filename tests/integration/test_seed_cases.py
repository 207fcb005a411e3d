"""Worked cases and published figures: decorated functions in, exactly the stated verdicts out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from own_database import own_database
from ragotel.store import Store
from ragotel.triage.ablations import load_ablations
from ragotel.triage.probes import load_probes
from seed_service import Case, Told, probe_line, read_case, serve, serving, tell, write

FACTS = json.loads((Path(__file__).parent / "seed_cases.json").read_text("utf-8"))
CASES = {case["name"]: case for case in FACTS["requests"]}
TEAM = "team-seats"
VIEWS = ("triage_requests", "triage_passages", "triage_budgets", "triage_score_gaps")


@dataclass
class Worked:
    """What the store said of all worked cases: rows of each view by the case's name."""

    views: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    states: list[str] = field(default_factory=list)
    statements: dict[str, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def worked(engine: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worked]:
    """All worked cases through the service into one store, which is asked once."""
    with own_database(engine):
        yield work(engine, tmp_path_factory.mktemp("worked"))


def work(store: Store, folder: Path) -> Worked:
    """Ask every case, then every view; what is read here no later test can change."""
    requests = ask_all(store, folder)
    names = {request_id: name for name, request_id in requests.items()}
    found = Worked()
    for view in VIEWS:
        rows = store.rows(f"select * from {view}")
        found.views[view] = {names[row["request_id"]]: row for row in rows}
        assert len(found.views[view]) == len(rows)
    found.states = ablate(store, folder, requests[TEAM])
    found.statements = {
        "right": store.scalar(
            "select length(stating_keys) from rag_claim_texts where label_id = {label:String}",
            {"label": TEAM},
        ),
        "wrong": len(found.views["triage_requests"][TEAM]["competing_chunk_ids"]),
    }
    return found


def ask_all(store: Store, folder: Path) -> dict[str, str]:
    """Send every case through the service and load what is known about it; the request ids."""
    told, requests, probes = Told(), {}, []
    for facts in CASES.values():
        case = read_case(facts)
        with serving(store, folder, content_mode="full" if case.is_prompt_recorded else "off"):
            requests[case.name] = serve(case)(case.question, "ana").request_id
        told.label(case, requests[case.name])
        if "probe" in facts:
            probes.append(probe_line(case, requests[case.name], facts["probe"]))
    tell(store, folder, told)
    assert not load_probes(store, [write(folder, "probes", *probes)]).refused
    return requests


def ablate(store: Store, folder: Path, request_id: str) -> list[str]:
    """The state of team-seats: not ablated, right with gold alone, wrong with gold alone."""
    question = "select state from triage_requests where label_id = {label:String}"
    states = [store.scalar(question, {"label": TEAM})]
    for is_correct in (True, False):
        line = {"request_id": request_id, "label_id": TEAM, "mode": "gold_only"}
        path = write(folder, "ablations", {**line, "correct": is_correct})
        assert not load_ablations(store, [path]).refused
        states.append(store.scalar(question, {"label": TEAM}))
    return states


VIEW_OF = {
    "budget_left_tokens": "triage_budgets",
    "score_spread_top5": "triage_score_gaps",
    "score_gap_1_2": "triage_score_gaps",
    "score_gap_2_3": "triage_score_gaps",
    "gold_gap_below_k": "triage_score_gaps",
}
"""Where a figure stands; the others are columns of triage_requests."""
AFTER = "state_after_gold_only_correct"
RENAMED = {
    "state_before_ablation": "state",
    # These have tests of their own below.
    "rerank_reachable_within_50": None,
    "statements": None,
    AFTER: None,
}


@pytest.mark.parametrize("name", CASES)
def test_a_worked_case_gives_exactly_its_stated_verdict(worked: Worked, name: str) -> None:
    """Every figure that a case states stands in the view that answers for it."""
    expected: dict[str, dict[str, Any]] = {}
    for key, value in CASES[name]["expect"].items():
        column = RENAMED.get(key, key)
        if column is not None:
            expected.setdefault(VIEW_OF.get(key, "triage_requests"), {})[column] = value
    found = {
        view: {column: worked.views[view][name][column] for column in columns}
        for view, columns in expected.items()
    }
    assert found == expected


def test_requests_and_passages_agree(worked: Worked) -> None:
    """A label with one passage has one verdict: both views say the same of every worked case."""
    shared = [
        *("request_id", "label_id", "matched_by", "bucket", "state", "attribution", "loss_stage"),
        *("drop_reason", "recall_class", "gold_rank", "deep_rank", "near_miss", "top_k"),
        *("k_prompt", "sent_count", "sent_tokens", "budget_tokens", "grade", "missing"),
        *("decided_by", "rerank_reachable_within"),
    ]
    rows = {
        view: {
            name: {column: row[column] for column in shared}
            for name, row in worked.views[view].items()
        }
        for view in ("triage_requests", "triage_passages")
    }
    assert rows["triage_passages"] == rows["triage_requests"]
    assert {name: row["label_id"] for name, row in rows["triage_passages"].items()} == {
        name: name for name in CASES
    }
    assert {row["matched_by"] for row in rows["triage_requests"].values()} == {"grade"}


def test_the_budget_view_draws_the_line_where_the_budget_cut(worked: Worked) -> None:
    """Three passages of 1,900 tokens fit into 6,000; the view names the first that did not."""
    expected = {
        "candidate_ids": [c["id"] for c in CASES["hardware-returns"]["candidates"]],
        "is_sent": [1, 1, 1, 0, 0, 0],
        "sent_count": 3,
        "sent_tokens": 5700,
        "budget_tokens": 6000,
        "budget_left_tokens": 300,
        "first_refused_chunk_id": "hardware/warranty.md#coverage",
        "reranked_after_truncation": False,
    }
    row = worked.views["triage_budgets"]["hardware-returns"]
    assert {column: row[column] for column in expected} == expected
    assert row["running_tokens"][:3] == [1900, 3800, 5700]


def test_an_ablation_tells_distraction_from_misuse(worked: Worked) -> None:
    """Right with the gold passage alone is state 2b, wrong with it alone is state 3."""
    expect = CASES[TEAM]["expect"]
    assert worked.states == [expect["state_before_ablation"], expect[AFTER], "3"]


def test_sent_passages_are_counted_for_and_against_the_claim(worked: Worked) -> None:
    """One sent passage states the ten seats, two state what the wrong answer said."""
    assert worked.statements == CASES[TEAM]["expect"]["statements"]


def test_a_reranker_of_fifty_would_have_reached_rank_40(worked: Worked) -> None:
    """Rank 40 is within the fifty that a reranker could read, and within no twenty."""
    row = worked.views["triage_requests"]["rank-40-on-top-10"]
    assert row["rerank_reachable_within"] == 50
    assert CASES["rank-40-on-top-10"]["expect"]["rerank_reachable_within_50"] is True


def test_the_published_distribution_comes_out_as_shares(store: Store, tmp_path: Path) -> None:
    """A hundred labelled requests of one day: 3/12/1/6/78 percent, and they sum to a hundred."""
    wanted = FACTS["distribution"]["baseline_percent"]
    told = Told()
    with serving(store, tmp_path, fixed=True):
        for bucket, count in wanted.items():
            for number in range(count):
                case = case_of(bucket, f"{bucket}-{number}")
                reply = serve(case)(case.question, f"user-{number}")
                told.label(case, reply.request_id)
    tell(store, tmp_path, told)
    columns = "bucket, requests, labelled_requests, share_percent"
    rows = store.rows(f"select {columns} from dist_buckets order by bucket")
    assert rows == [
        {
            "bucket": bucket,
            "requests": count,
            "labelled_requests": 100,
            "share_percent": float(count),
        }
        for bucket, count in sorted(wanted.items())
    ]
    assert sum(row["share_percent"] for row in rows) == 100


def case_of(bucket: str, name: str) -> Case:
    """A question whose verdict must be *bucket*."""
    gold_rank = None if bucket in ("corpus_gap", "retrieval_miss") else 2
    facts: dict[str, Any] = {
        "name": name,
        "gold_span": f"answer {name}",
        "gold_rank": gold_rank,
        "gold_in_sent_list": bucket != "context_problem",
        "gold_in_index": bucket != "corpus_gap",
        "graded_correct": bucket == "passed",
    }
    return read_case(facts)


def test_the_cases_are_those_of_the_labelled_corpora(shared_dir: Path) -> None:
    """The facts kept beside this test are those of the shared cases, none left out."""
    shared = json.loads((shared_dir / "cases" / "seed_cases.json").read_text("utf-8"))
    entries = [{k: v for k, v in case.items() if k != "source"} for case in shared["requests"]]
    percent = shared["distribution"]["baseline_percent"]
    figures = {
        name: {k: v for k, v in figure.items() if k != "source"}
        for name, figure in shared.items()
        if isinstance(figure, dict)
    }
    stated = {**figures, "requests": entries, "distribution": {"baseline_percent": percent}}
    assert stated == FACTS
