"""`ragotel compare`: a rule set in advance over recorded arms, adopt, reject or refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adoption
import pytest

from arms import send
from cli_store import Ran, run_in, write_lines
from own_database import step_into
from ragotel.store import Store
from ragotel.triage.labels import load_labels
from ragotel.triage.manifest import Version, load_manifest
from ragotel.triage.registry import register_rule
from ragotel.triage.rules import parse_rule

Command = Callable[..., Ran]
BASE = adoption.FACTS["base"]
FIGURES = {
    "golden_r5": ("golden", "recall@5"),
    "probe_truth5": ("probe", "truth@5"),
    "probe_lure_first": ("probe", "lure-first"),
    "incident_current3": ("incident", "current@3"),
    "incident_stale_first": ("incident", "stale-first"),
}


@pytest.fixture(scope="module")
def study(engine: Store, database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study's labels and four arms in one store, its rule registered before them."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "rule.toml").write_text(adoption.RULE, "utf-8")
    rule = parse_rule(adoption.RULE)
    assert register_rule(engine, rule, adoption.RULE).is_new
    path = write_lines(folder / "labels.jsonl", *adoption.labels())
    assert load_labels(engine, [path]).loaded == 334
    path = write_lines(folder / "manifest.jsonl", *adoption.manifest())
    load_manifest(engine, [path], Version("notes", "v1"))
    for arm in adoption.ARMS:
        send(engine, adoption.asked(arm))
    return folder


@pytest.fixture
def ragotel(study: Path, engine: Store, database: str, capsys: Any) -> Command:
    step_into(engine, database)
    return run_in(engine, capsys)


def metric(report: dict[str, Any], population: str, name: str) -> dict[str, Any]:
    (found,) = (one for one in report["populations"] if one["name"] == population)
    (row,) = (row for row in found["metrics"] if row["metric"] == name)
    return row


@pytest.mark.parametrize("facts", adoption.FACTS["arms"], ids=lambda facts: facts["arm"])
def test_a_fix_gets_the_verdict_of_the_rule_that_was_set_first(
    ragotel: Command, study: Path, facts: dict[str, Any]
) -> None:
    """Every rate, win, loss and latency is the study's, and so is each criterion that failed."""
    ran = ragotel("compare", "base", facts["arm"], "--rule", str(study / "rule.toml"), "--json")
    report = ran.json
    assert (ran.code, report["verdict"]) == (facts["verdict"] == "reject", facts["verdict"])
    assert report["failed"] == facts["failed"]
    assert [one["text"] for one in report["criteria"]] == adoption.FACTS["rule"]
    golden = metric(report, "golden", "recall@5")
    assert (golden["gained"], golden["lost"]) == (facts["wins"], facts["losses"])
    for key, (population, name) in FIGURES.items():
        row = metric(report, population, name)
        assert round(row["rate_a"], 4) == BASE[key]
        if key in facts:
            assert round(row["rate_b"], 4) == facts[key]
    latency = report["populations"][0]["latency"]
    assert (latency["p95_ms_a"], latency["p95_ms_b"]) == (
        BASE["golden_p95_ms"],
        facts["golden_p95_ms"],
    )


def test_every_rate_has_its_own_denominator(ragotel: Command, study: Path) -> None:
    """Truth is counted where the right file came back: 18 of 22 probes, then 20 of 23."""
    report = ragotel("compare", "base", "F1", "--rule", str(study / "rule.toml"), "--json").json
    counts = {
        name: [
            (row[f"numerator_{side}"], row[f"denominator_{side}"], row["gained"], row["lost"])
            for side in ("a", "b")
        ]
        for row in (metric(report, *figure) for figure in FIGURES.values())
        for name in [f"{row['population']} {row['metric']}"]
    }
    assert counts == {
        "golden recall@5": [(203, 232, 7, 3), (207, 232, 7, 3)],
        "probe truth@5": [(18, 22, 4, 2), (20, 23, 4, 2)],
        "probe lure-first": [(2, 11, 2, 0), (0, 11, 2, 0)],
        "incident current@3": [(65, 76, 2, 0), (67, 76, 2, 0)],
        "incident stale-first": [(3, 76, 0, 0), (3, 76, 0, 0)],
    }
    p_values = {
        name: f"{metric(report, *figure)['p_value']:.2g}"
        for name, figure in FIGURES.items()
        if name in ("golden_r5", "probe_truth5", "incident_current3")
    }
    assert p_values == {"golden_r5": "0.34", "probe_truth5": "0.69", "incident_current3": "0.5"}
    golden = metric(report, "golden", "recall@5")
    assert [round(golden[key], 4) for key in ("low_a", "high_a", "one_question_a")] == [
        *(0.8262, 0.9115, 0.0043)
    ]
    assert round(metric(report, "incident", "current@3")["one_question_a"], 3) == 0.013


def test_a_person_reads_the_verdict_and_what_failed(ragotel: Command, study: Path) -> None:
    """One table a population, each criterion with its figures, the verdict at the end."""
    ran = ragotel("compare", "base", "F2", "--rule", str(study / "rule.toml"))
    assert ran.code == 1
    lines = ran.out.splitlines()
    shown = [re.sub(r" +", " ", line) for line in lines]
    assert "golden: 232 questions asked in both arms, measurement half" in shown
    row = "recall@5 203/232 0.8750 0.826-0.912 204/232 0.8793 0.831-0.915 +0.0043 1 0 1 0.0043"
    assert row in shown
    assert "p95_ms 324 351 +27" in shown
    assert [line for line in lines if line.startswith("NO")] == [
        "NO  incident stale-first not higher  (3/76 = 0.0395 to 5/76 = 0.0658)",
        "NO  probe truth@5 not lower  (18/22 = 0.8182 to 17/23 = 0.7391)",
    ]
    assert lines[-1] == "reject F2: 2 of 7 criteria failed"
