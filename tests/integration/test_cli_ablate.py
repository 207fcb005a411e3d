"""`ragotel ablate`: the published figures, through recorded spans and a plain model and judge."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import ragotel as emit
from cli_store import Ran, run_in
from ragotel.store import Store
from ragotel.triage.grades import load_grades
from ragotel.triage.labels import load_labels
from seed_service import Hit, serving, write

# Eight wrong answers, six of them right with the gold passage alone; and a gold passage third of
# five and third of ten, over forty cases.
ABLATION = {"cases": 8, "distraction": 6, "misuse": 2, "distraction_delta": 0.75}
POSITION = {(3, 5): 34, (3, 10): 27}
CASES, POINTS_LOST = 40, 17.5

MODULE = '''
"""A plain model that quotes, and a plain judge; both look only at the texts that they are given."""
import re

prompts = []


def most_generous(prompt):
    """The largest number of days that any passage grants."""
    prompts.append(prompt)
    return max(re.findall(r"(\\d+) (?:calendar )?days", prompt), key=int) + " days"


async def most_similar(prompt):
    """The sentence with the most words of the question; of equal ones the first."""
    prompts.append(prompt)
    body, _, question = prompt.rpartition("Question: ")
    words = set(re.findall(r"\\w+", question.lower()))
    sentences = body.splitlines()[1:]
    yield max(sentences, key=lambda one: len(words & set(re.findall(r"\\w+", one.lower()))))


def judge(question, expected_answer, answer):
    return expected_answer in answer


def grader(question, expected_answer, answer, label):
    assert label["expected_answer"] == expected_answer and label["passages"]
    return "correct" if expected_answer in answer else "wrong"


def broken(prompt):
    prompts.append(prompt)
    raise ConnectionError("the model is away")
'''


@pytest.fixture
def ragotel(store: Store, capsys: Any) -> Callable[..., Ran]:
    return run_in(store, capsys)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the user's model and judges, fresh for each test."""
    (tmp_path / "ablated_bot.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import ablated_bot  # type: ignore[import-not-found]

    yield ablated_bot
    del sys.modules["ablated_bot"]


@dataclass
class Asked:
    """One question, the passages that its prompt holds in order, and what was answered."""

    name: str
    question: str
    texts: list[str]
    gold: int
    span: str
    expected: str
    answer: str
    grade: str
    request_id: str = ""
    footer: str = ""
    more: dict[str, Any] = field(default_factory=dict)


def answer_all(store: Store, folder: Path, cases: list[Asked], **settings: Any) -> None:
    """Record each case through a decorated service, then load its label and grade."""
    with serving(store, folder, **settings):
        for case in cases:
            case.request_id = serve(case)
    labels = [
        {
            "label_id": case.name,
            "set": "wrong",
            "question": case.question,
            "expected_answer": case.expected,
            "passages": [{"chunk_ids": [f"{case.name}#{case.gold}"], "spans": [case.span]}],
            **case.more,
        }
        for case in cases
    ]
    grades = [
        {"request_id": case.request_id, "label_id": case.name, "grade": case.grade}
        for case in cases
    ]
    assert not load_labels(store, [write(folder, "labels", *labels)]).refused
    assert not load_grades(store, [write(folder, "grades", *grades)]).refused


def serve(case: Asked) -> str:
    @emit.retrieve(leg="dense", index="docs", index_version="v7")
    def search(question: str, k: int) -> list[Hit]:
        return [Hit(f"{case.name}#{at}", 0.9, text) for at, text in enumerate(case.texts)][:k]

    @emit.assemble(template="answer", template_version="t1")
    def build_prompt(question: str, hits: list[Hit]) -> str:
        passages = "\n".join(hit.text for hit in hits)
        return f"Answer from these passages.\n{passages}{case.footer}\nQuestion: {question}"

    @emit.generate(model="plain")
    def complete(prompt: str) -> str:
        return case.answer

    @emit.request
    def answer(question: str) -> str:
        complete(build_prompt(question, search(question, k=len(case.texts))))
        return emit.current_request_id() or ""

    return answer(case.question)


def eight_wrong_answers() -> list[Asked]:
    """Six that another passage outweighs; two whose own passage states two numbers."""
    cases = []
    for number in range(8):
        thing = f"unit {chr(65 + number)}"
        is_misread = number >= 6
        gold = (
            f"{thing}: 14 days for standard plans, 30 days for Enterprise with active support."
            if is_misread
            else f"A customer gives {thing} back within 21 calendar days of delivery."
        )
        texts = [
            f"The refund for {thing} is paid within {number + 5} days.",
            gold,
            f"The warranty of {thing} covers {20 if is_misread else 90} days of use.",
        ]
        cases.append(
            Asked(
                name=f"case-{number}",
                question=f"How long may I keep {thing}?",
                texts=texts,
                gold=1,
                span="14 days" if is_misread else "21 calendar days",
                expected="14 days" if is_misread else "21 days",
                answer="30 days" if is_misread else "90 days",
                grade="wrong",
            )
        )
    return cases


def forty_questions() -> list[Asked]:
    """Six are answered wrongly for one of the first five passages, seven more for a later one."""
    cases = []
    for number in range(CASES):
        thing = f"unit {number}"
        texts = [f"Page {at} of {thing} is about its own matter." for at in range(10)]
        texts[0] = f"A customer keeps {thing} for {100 + number} moons."
        strong = f"How long a customer may keep {thing}: see page {number + 50}."
        if number < CASES - POSITION[3, 5]:
            texts[2] = strong
        elif number < CASES - POSITION[3, 10]:
            texts[7] = strong
        right = number >= CASES - POSITION[3, 10]
        cases.append(
            Asked(
                name=f"case-{number}",
                question=f"How long may a customer keep {thing}?",
                texts=texts,
                gold=0,
                span=f"{100 + number} moons",
                expected=f"{100 + number} moons",
                answer=texts[0] if right else strong,
                grade="correct" if right else "wrong",
            )
        )
    return cases


def test_the_published_ablation_comes_out(
    ragotel: Callable[..., Ran], store: Store, model: Any, tmp_path: Path
) -> None:
    """Six of eight wrong answers come right with the gold passage alone, none in full context."""
    cases = eight_wrong_answers()
    answer_all(store, tmp_path, cases)
    arguments = ("ablate", "--generator", "ablated_bot:most_generous", "--set", "wrong")
    judged = ("--judge", "ablated_bot:judge", "--mode", "gold_only", "--mode", "full")
    ran = ragotel(*arguments, *judged)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "8 cases, 16 runs.",
        "",
        "service      template  version  cases  right alone  right in full  distraction (2b)  "
        "misuse (3)   delta",
        "support-bot  answer    t1           8            6              0                 6  "
        "         2  75.0 %",
    ]
    first = cases[0]
    assert f"Answer from these passages.\n{first.texts[1]}\nQuestion: {first.question}" in (
        model.prompts
    )
    columns = "cases, distraction, misuse, distraction_delta"
    assert store.rows(f"select {columns} from dist_ablations") == [ABLATION]
    states = store.query(
        "select state, count() from triage_requests group by state order by state"
    ).result_rows
    assert list(states) == [("2b", 6), ("3", 2)]

    model.prompts.clear()
    again = ragotel(*arguments, *judged, "--json").json
    assert (again["asked"], again["done_before"], model.prompts) == (0, 16, [])
    assert again["ablations"][0]["distraction_delta"] == ABLATION["distraction_delta"]
    assert again["figures_of"] == "earlier runs"
    told = ragotel(*arguments, *judged)
    assert (told.code, told.out.splitlines()) == (
        0,
        [
            "Nothing was ablated: 16 runs done before (--again repeats them).",
            "",
            "Nothing of this is from this run; stored before:",
            *ran.out.splitlines()[2:],
        ],
    )


def test_the_published_positions_come_out(
    ragotel: Callable[..., Ran], store: Store, model: Any, tmp_path: Path
) -> None:
    """Third of five against third of ten: 34 and 27 of 40, which is 17.5 points."""
    answer_all(store, tmp_path, forty_questions())
    options = ("--mode", "position", "--positions", "3", "--of", "5,10", "--against", "3/5")
    ran = ragotel(
        *("ablate", "--generator", "ablated_bot:most_similar", "--judge", "ablated_bot:grader"),
        *("--set", "wrong", *options),
    )
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "40 cases, 80 runs.",
        "",
        "service      position  of  correct   n   share  points lost to 3 of 5",
        "support-bot         3   5       34  40  85.0 %                      0",
        "support-bot         3  10       27  40  67.5 %                   17.5",
    ]
    rows = store.query(
        "select position, of, correct, cases, round(points_lost_by_length, 9)\n"
        "from dist_positions order by of"
    ).result_rows
    assert list(rows) == [
        (3, 5, POSITION[3, 5], CASES, 0.0),
        (3, 10, POSITION[3, 10], CASES, POINTS_LOST),
    ]
    third = model.prompts[0].splitlines()[3]
    assert third.startswith("A customer keeps unit")
    asked = len(model.prompts)
    refused = ragotel(
        *("ablate", "--generator", "ablated_bot:most_similar", "--judge", "ablated_bot:grader"),
        *("--set", "wrong", "--mode", "position", "--positions", "3", "--against", "9/9"),
    )
    assert (refused.code, len(model.prompts)) == (2, asked)
    assert refused.err == (
        "ragotel: --against 9/9 is no row of the table: those asked for are 3/5, 3/10, those "
        "stored are 3/5, 3/10. (see: ragotel ablate --help)\n"
    )


def test_what_cannot_be_ablated_says_why(
    ragotel: Callable[..., Ran], store: Store, model: Any, tmp_path: Path
) -> None:
    """A second copy of a passage, several passages, too few others, a model that fails."""
    cases = eight_wrong_answers()[:3]
    cases[1].footer = f"\nMind this above all: {cases[1].texts[0]}"
    cases[2].more = {
        "passages": [
            {"chunk_ids": ["case-2#1"], "spans": ["21 calendar days"]},
            {"spans": ["90 days"]},
        ]
    }
    answer_all(store, tmp_path, cases)
    arguments = ("ablate", "--judge", "ablated_bot:judge", "--set", "wrong", "--generator")
    ran = ragotel(*arguments, "ablated_bot:broken", "--mode", "gold_only", "--mode", "full")
    assert (ran.code, len(model.prompts)) == (1, 3)  # case-1 by its full prompt
    assert "failed: " in ran.err
    assert "ConnectionError: the model is away" in ran.err
    assert store.scalar("select count() from rag_ablations") == 0
    assert ran.out == "Nothing was ablated: 3 runs failed, 1 runs skipped.\n"
    done = ragotel(*arguments, "ablated_bot:most_generous", "--json").json
    skipped = {entry["label_id"]: entry["reason"] for entry in done["skipped"]}
    assert skipped == {"case-1": "the passage case-1#0 stands in the prompt more than once"}
    assert (done["asked"], done["correct"]) == (2, {"gold_only": 1})
    wide = ragotel(*arguments, "ablated_bot:most_generous", "--mode", "position", "--json").json
    assert {entry["reason"] for entry in wide["skipped"]} == {
        "the passage case-1#0 stands in the prompt more than once",
        "the answer needs 2 passages: their position is not one",
        "4 other passages are wanted, 2 are recorded with a text",
        "9 other passages are wanted, 2 are recorded with a text",
    }


def test_a_set_without_cases_says_why(
    ragotel: Callable[..., Ran], store: Store, model: Any, tmp_path: Path
) -> None:
    """Nothing to ablate is told with the verdicts that the set has; a row needs its mode."""
    (case,) = eight_wrong_answers()[:1]
    case.grade = "correct"
    answer_all(store, tmp_path, [case])
    unmet = write(tmp_path, "unmet", {"label_id": "unmet", "set": "unmet", "question": "?"})
    assert not load_labels(store, [unmet]).refused
    arguments = ("ablate", "--generator", "ablated_bot:broken", "--judge", "ablated_bot:judge")
    assert ragotel(*arguments, "--set", "wrong") == Ran(
        0,
        "Nothing was ablated: no request of the set wrong was graded wrong though its claim stood "
        "in the prompt; its verdicts are passed 1 (--all takes those whose claim stood there).\n",
        "",
    )
    assert ragotel(*arguments, "--set", "unmet", "--mode", "position") == Ran(
        0,
        "Nothing was ablated: no request of the set unmet had its claim in the prompt; no request "
        "met a label of it.\n",
        "",
    )
    refused = ragotel(*arguments, "--set", "wrong", "--against", "3/5")
    assert (refused.code, refused.err) == (
        2,
        "ragotel: --against goes with --mode position. (see: ragotel ablate --help)\n",
    )
    refused = ragotel("ablate", "--set", "wrong", "--judge", "ablated_bot:judge")
    assert (refused.code, refused.err) == (
        2,
        "ragotel: Missing: --generator MODULE:FUNCTION. Files are loaded by `ragotel ablate load "
        "FILE`. (see: ragotel ablate --help)\n",
    )


def test_the_figures_are_those_of_the_labelled_corpora(shared_dir: Path) -> None:
    """The figures kept here are the shared ones."""
    shared = json.loads((shared_dir / "cases" / "seed_cases.json").read_text("utf-8"))
    ablation = shared["ablation"]
    assert {"cases": ablation["cases"], **ablation["expect"]} == ABLATION
    assert (ablation["gold_only_correct"], ablation["full_context_correct"]) == (6, 0)
    rows = {row["position"]: row["correct"] for row in shared["position"]["rows"]}
    assert rows == {f"{at} of {of}": correct for (at, of), correct in POSITION.items()}
    assert shared["position"]["expect_points_lost"] == POINTS_LOST
