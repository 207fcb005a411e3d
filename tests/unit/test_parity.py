"""`ragotel doctor --parity`: a traced function equals the untraced one, or the places are named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_store import Ran, write_lines
from ragotel.cli import run
from ragotel.triage.parity import differences

Command = Callable[..., Ran]
SERVICE = '''
import itertools
from dataclasses import dataclass

import ragotel

ragotel.configure(service="parity")
calls = itertools.count()


@dataclass
class Hit:
    id: str
    score: float


@ragotel.retrieve(leg="dense")
def search(question, k=3):
    print("searching", question)
    return [Hit(f"{question}-{rank}", 1 / (rank + 1)) for rank in range(k)]


@ragotel.retrieve
async def search_later(question):
    return [Hit(question, float("nan"))]


@ragotel.request
def stream(question):
    yield from question.split()


@ragotel.request
def answer(question):
    if question == "bad":
        raise ValueError("no answer")
    return {"hits": search(question), "text": question.upper()}


@ragotel.retrieve
def restless(question):
    return [(question, next(calls))]


@ragotel.retrieve
def settles(question):
    return [(question, 0 if next(calls) == 0 else 1)]


def plain(question):
    return [question]


class Bot:
    prefix = "re: "

    @ragotel.retrieve
    def find(self, question):
        return [self.prefix + question]


bot = Bot()


def seen_by(function):
    """A decorator that treats a recorded call otherwise: what parity is there to find."""
    function = ragotel.retrieve(function)

    def watched(question):
        hits = function(question)
        return hits[:1] if ragotel.current_request_id() else hits

    watched.__ragotel__, watched.__wrapped__ = True, function.__wrapped__
    return ragotel.request(watched)


@seen_by
def watched(question):
    return [Hit("a", 0.5), Hit("b", 0.25)]
'''


@pytest.fixture
def parity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Command:
    """`parity("search", "q1", "q2", *options)`: the command over a service of the test's own."""
    (tmp_path / "parity_service.py").write_text(SERVICE, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("parity_service", None)

    def command(function: str, *questions: str, options: tuple[str, ...] = ()) -> Ran:
        path = write_lines(tmp_path / "questions.txt", *questions)
        capsys.readouterr()
        target = f"parity_service:{function}"
        code = run(["doctor", "--parity", target, "--questions", path, *options])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return command


@pytest.mark.parametrize(
    "function", ["search", "search_later", "stream", "answer", "bot.find", "settles"]
)
def test_a_traced_function_proves_itself_equal(parity: Command, function: str) -> None:
    """Sync, async, stream, method and nested calls; an exception on both sides is equal too."""
    ran = parity(function, "how long?", "bad", '{"question": "and \\"json\\"?"}')
    second = "1 of them not at the first attempt\n" if function == "settles" else ""
    assert (ran.code, ran.out) == (0, f"3 of 3 equal\n{second}")


def test_a_difference_is_named_by_its_place(parity: Command) -> None:
    """Exit 1, the question, and where both results part."""
    ran = parity("watched", "q1")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "0 of 1 equal",
        "NO  q1",
        "      the result: 2 entries untraced, 1 entries traced",
    ]
    report = parity("watched", "q1", options=("--json",)).json
    assert (report["is_equal"], report["asked"], len(report["different"])) == (False, 1, 1)


def test_a_function_that_differs_from_itself_proves_nothing(parity: Command) -> None:
    """It is told apart from a fault of tracing, and is no proof either."""
    ran = parity("restless", "q1")
    assert ran.code == 1
    assert ran.out.splitlines()[:2] == ["0 of 1 equal", "--  q1"]
    assert "differ from call to call without tracing as well" in ran.out


def test_where_nothing_is_decorated_nothing_is_proved(parity: Command) -> None:
    """A plain function equals itself: exit 1 says that this is no parity."""
    ran = parity("plain", "q1")
    assert (ran.code, ran.out.splitlines()[0]) == (1, "1 of 1 equal")
    assert "nothing was recorded" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--parity", "parity_service:search"), "--parity needs --questions FILE or --set NAME"),
        (("--questions", "questions.txt"), "--questions and --set are questions for --parity."),
        (("--parity", "parity_service:nothing", "--questions", "questions.txt"), "is no function"),
        (("--parity", "parity_service:Hit", "--questions", "questions.txt"), "question alone"),
    ],
)
def test_wrong_use_is_told(
    parity: Command, capsys: Any, arguments: tuple[str, ...], said: str
) -> None:
    """One line on standard error, exit 2."""
    parity("search", "q1")
    code = run(["doctor", *arguments])
    assert (code, said in capsys.readouterr().err) == (2, True)


class Slotted:
    __slots__ = ("score",)

    def __init__(self, score: float) -> None:
        self.score = score


@pytest.mark.parametrize(
    ("plain", "traced", "places"),
    [
        ([1.0, float("nan")], [1.0, float("nan")], []),
        (Slotted(0.5), Slotted(0.5), []),
        (Slotted(0.5), Slotted(0.4), [".score: 0.5 untraced, 0.4 traced"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["['a'][1]: 2 untraced, 3 traced"]),
        (
            {"a": 1},
            {"b": 1},
            ["['a']: there untraced, missing traced", "['b']: missing untraced, there traced"],
        ),
        ((1,), [1], ["the result: a tuple (1,) untraced, a list [1] traced"]),
        (1, True, ["the result: a int 1 untraced, a bool True traced"]),
        (
            list(range(9)),
            list(range(1, 10)),
            [*(f"[{at}]: {at} untraced, {at + 1} traced" for at in range(5)), "..."],
        ),
    ],
)
def test_results_are_compared_value_by_value(plain: Any, traced: Any, places: list[str]) -> None:
    """Types count, NaN equals NaN, objects without `==` are compared by their fields."""
    assert list(differences(plain, traced)) == places


def test_arrays_are_compared_by_their_values() -> None:
    """`==` of arrays is an array; their lists tell."""
    numpy = pytest.importorskip("numpy")
    assert list(differences(numpy.array([1.0, 2.0]), numpy.array([1.0, 2.0]))) == []
    assert list(differences(numpy.array([1.0, 2.0]), numpy.array([1.0, 3.0]))) == [
        "[1]: 2.0 untraced, 3.0 traced"
    ]
