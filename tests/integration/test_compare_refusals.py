"""What `ragotel compare` refuses, warns of, and leaves out of its figures; and `ragotel rules`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from arms import START_NS, Asked, send
from cli_store import Ran, run_in, write_lines
from own_database import step_into
from ragotel.store import Store
from ragotel.triage.labels import load_labels

Command = Callable[..., Ran]
GOLD, OTHER = ("gold", "d1"), ("other", "d9")
RULE = """\
name = "small"
{options}
[populations.small]
primary = "recall@1"
"""
EARLY_NS = 1_700_000_000_000_000_000
"""2023-11-14 22:13:20 UTC: before every rule that a test registers now."""


def label(number: int, **fields: Any) -> dict[str, Any]:
    question = f"What is asked by q{number}?"
    passages = [{"chunk_ids": ["gold"]}]
    own = {"label_id": f"q{number}", "set": "small", "question": question, "passages": passages}
    return {**own, **fields}


def run(arm: str, run_id: str, hits: list[int], **fields: Any) -> Iterator[Asked]:
    """Questions q0 to q3 as *arm* answered them: those in *hits* with the gold first."""
    for number in range(4):
        ranked = [GOLD, OTHER] if number in hits else [OTHER, GOLD]
        yield Asked(f"q{number}", ranked, arm=arm, run_id=run_id, **fields)


def arms() -> Iterator[Asked]:
    yield from run("base", "good", [0])
    yield from run("fix", "good", [0, 1])
    yield from run("late", "early", [0, 1], start_ns=EARLY_NS)
    yield from list(run("short", "good", [0, 1]))[:2]
    yield Asked(
        "q3",
        [OTHER],
        arm="short",
        run_id="good",
        question="Of no label?",
        repeat=1,
        is_labelled=False,
    )
    for repeat, hits in enumerate([[0, 1, 2], [0, 1], [0, 1, 3]]):
        yield from run("thrice", "good", hits, repeat=repeat)
    yield from list(run("broken", "good", [0, 1]))[:2]
    yield Asked("q2", [GOLD], arm="broken", run_id="good", leg_outcome="error")
    yield Asked("q3", [GOLD], arm="broken", run_id="good", rerank_effect="identity")
    yield from run("fix", "again", [0, 1, 2])
    yield from run("", "unnamed", [0])
    yield from run("twin", "twin", [0])
    yield from run("twin2", "twin2", [0])


@pytest.fixture(scope="module")
def filled(engine: Store, database: str, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("refusals")
    lines = [label(0, split="diagnosis"), label(1), label(2), label(3, population="rest")]
    assert not load_labels(engine, [write_lines(folder / "labels.jsonl", *lines)]).refused
    send(engine, arms())
    return engine


@pytest.fixture
def ragotel(filled: Store, database: str, capsys: Any) -> Command:
    step_into(filled, database)
    return run_in(filled, capsys)


def rule(folder: Path, options: str = "", text: str = RULE) -> str:
    path = folder / "rule.toml"
    path.write_text(text.format(options=options), "utf-8")
    return str(path)


def test_a_rule_that_came_after_an_arm_judges_nothing(ragotel: Command, tmp_path: Path) -> None:
    """It is registered at first sight, the comparison refused in a line that says how to go on."""
    path = rule(tmp_path, "alpha = 0.04")
    ran = ragotel("compare", "base", "late", "--rule", path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "was registered only now and 'late' began at 2023-11-14 22:13:20" in ran.err
    assert "run both arms again" in ran.err
    again = ragotel("compare", "base", "late", "--rule", path, "--json")
    assert (again.code, again.json["verdict"]) == (2, "refused")
    (reason,) = again.json["reasons"]
    assert "was registered at 20" in reason


def test_a_question_that_one_arm_lacks_is_told_and_not_lost(
    ragotel: Command, tmp_path: Path
) -> None:
    """Rates stand over what both were asked; a request without a label is counted apart."""
    text = '{options}name = "rest"\n[populations.rest]\nprimary = "recall@1"\n'
    ran = ragotel("compare", "base", "short", "--rule", rule(tmp_path, text=text), "--json")
    assert ran.code == 2
    assert ran.json["reasons"] == [
        "No question of the population 'rest' was asked in both arms; there are small."
    ]
    ran = ragotel("compare", "base", "short", "--rule", rule(tmp_path), "--json")
    assert (ran.code, ran.json["verdict"]) == (0, "adopt")
    assert ran.json["arms"][1]["unlabelled_requests"] == 1
    (population,) = ran.json["populations"]
    (row,) = population["metrics"]
    assert (row["numerator_a"], row["numerator_b"], row["denominator_b"]) == (1, 2, 2)
    assert ran.json["warnings"] == [
        "1 request of 'short' met no label: left out of every figure.",
        "small: 1 of 2 questions are of the diagnosis half, where causes were sought; "
        'split = "measurement" leaves them out.',
        "small: 1 question only in 'base', missing in 'short': neither won nor lost (q2).",
    ]


def both_rule() -> str:
    return '{options}name = "both"\n[populations.small]\nprimary = "recall@1"\n[populations.rest]\n'


def test_runs_with_a_failed_leg_or_an_idle_reranker_are_refused(
    ragotel: Command, tmp_path: Path
) -> None:
    """The requests are named, unless the rule allows them."""
    text = both_rule()
    ran = ragotel("compare", "base", "broken", "--rule", rule(tmp_path, text=text))
    assert ran.code == 2
    assert (
        "In 2 requests of 'broken' a leg failed or the reranker changed nothing "
        "(good/broken/q2, good/broken/q3)"
    ) in ran.err
    allowed = rule(tmp_path, "allow_degraded = true\n", text)
    ran = ragotel("compare", "base", "broken", "--rule", allowed)
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "adopt broken: all 2 criteria hold")


def test_the_diagnosis_half_is_compared_with_a_warning(ragotel: Command, tmp_path: Path) -> None:
    """Where causes were sought no gain is held out; the measurement half has no such question."""
    halves = {}
    for half in ("diagnosis", "measurement"):
        path = rule(tmp_path, f'split = "{half}"')
        found = ragotel("compare", "run:good", "run:again", "--rule", path, "--json")
        assert found.code == 2  # the run `good` asked each question in several arms
        path = rule(tmp_path, f'split = "{half}"\nrepeats = "majority"')
        report = ragotel("compare", "good/base", "again/fix", "--rule", path, "--json").json
        halves[half] = report["populations"][0]["questions"], report["warnings"][:1]
    assert halves["diagnosis"][1] == [
        "small: this is the diagnosis half, where causes were sought: not held out."
    ]
    assert not any("diagnosis" in warning for warning in halves["measurement"][1])
    assert halves["diagnosis"][0] + halves["measurement"][0] == 3


def test_repeats_vote_where_the_rule_says_so(ragotel: Command, tmp_path: Path) -> None:
    """Two of three win; the flips within the arm are told, and no vote is taken unasked."""
    ran = ragotel("compare", "base", "thrice", "--rule", rule(tmp_path))
    assert ran.code == 2
    assert "'thrice' asked a question up to 3 times" in ran.err
    path = rule(tmp_path, 'repeats = "majority"')
    ran = ragotel("compare", "base", "thrice", "--rule", path, "--json")
    (row,) = ran.json["populations"][0]["metrics"]
    assert (row["numerator_a"], row["numerator_b"], row["gained_labels"]) == (1, 2, ["q1"])
    assert (row["most_repeats_b"], row["flipped_b"]) == (3, 1)
    assert ("small recall@1: 1 question flipped between repeats within 'thrice'.") in ran.json[
        "warnings"
    ]
    assert "The rule does not judge these populations: rest (1)." in ran.json["warnings"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("base", "fxi"), "No request names the run or arm 'fxi'; did you mean 'fix'?"),
        (("base", "unnamed"), "'base' is an arm and 'unnamed' is a run: name both as arms"),
        (("base", "base"), "Both sides are 'base'; a comparison takes two."),
        (("twin", "twin2"), "write arm:twin and arm:twin2, or run:twin and run:twin2."),
    ],
)
def test_names_that_say_no_two_arms_are_refused(
    ragotel: Command, tmp_path: Path, names: tuple[str, str], said: str
) -> None:
    """An unknown name with the nearest one, an arm beside a run, one arm twice, two meanings."""
    ran = ragotel("compare", *names, "--rule", rule(tmp_path))
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert said in ran.err


def test_populations_are_pooled_only_where_the_rule_says_so(
    ragotel: Command, tmp_path: Path
) -> None:
    """The pool is a line and two criteria of its own; the populations stay apart beside it."""
    options = 'pool = ["small recall@1", "rest recall@1"]\nname = "pooled"\n'
    text = "{options}[populations.small]\n[populations.rest]\n"
    ran = ragotel("compare", "base", "fix", "--rule", rule(tmp_path, options, text), "--json")
    assert ran.code == 2  # `fix` ran twice
    path = rule(tmp_path, options, text)
    ran = ragotel("compare", "good/base", "again/fix", "--rule", path, "--json")
    assert (ran.code, ran.json["pooled"]) == (
        0,
        {"entries": ["small recall@1", "rest recall@1"], "gained": 2, "lost": 0, "p_value": 0.5},
    )
    assert [one["name"] for one in ran.json["populations"]] == ["small", "rest"]
    assert [one["text"] for one in ran.json["criteria"]] == [
        "pooled small recall@1 + rest recall@1 wins exceed losses",
        "no significant pooled loss (exact sign test, p below 0.05)",
    ]


def test_rules_are_kept_with_hash_and_time(store: Store, capsys: Any, tmp_path: Path) -> None:
    """A comment makes no new rule, a limit does; the first registration stands."""
    ragotel = run_in(store, capsys)
    first = ragotel("rules", "register", rule(tmp_path), "--json").json
    assert first["is_new"] is True
    same = ragotel("rules", "register", rule(tmp_path, "# a comment\nalpha = 0.05"), "--json").json
    assert same == {**first, "is_new": False}
    other = ragotel("rules", "register", rule(tmp_path, "alpha = 0.01"), "--json").json
    assert other["rule_hash"] != first["rule_hash"]
    listed = ragotel("rules", "list", "--json").json
    assert [row["rule_hash"] for row in listed] == [first["rule_hash"], other["rule_hash"]]
    assert listed[0]["registered_at"] == first["registered_at"]
    shown = ragotel("rules", "show", first["rule_hash"][:8])
    assert shown.out.splitlines()[1:] == RULE.format(options="").splitlines()
    assert "alpha = 0.01" in ragotel("rules", "show", "small").out
    unknown = ragotel("rules", "show", "smal")
    assert (unknown.code, "did you mean 'small'?" in unknown.err) == (1, True)
    assert START_NS > EARLY_NS
