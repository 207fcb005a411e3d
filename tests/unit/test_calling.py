"""A user's function is called by what its parameters are named, else by their order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import ragotel
from ragotel.errors import InputError
from ragotel.triage.ablating import JUDGE_ROLES
from ragotel.triage.calling import fit
from ragotel.triage.probing import ROLES

VALUES = {"question": "Q", "k": 7, "principal": "ana"}
JUDGED = {"question": "Q", "expected_answer": "E", "answer": "A", "label": {"label_id": "L"}}


class Index:
    def search(self, text: str, *, limit: int = 5, tenant: str = "") -> Any:
        return text, limit, tenant

    def __call__(self, query: str, top_k: int = 5) -> Any:
        return query, top_k


@ragotel.retrieve
def decorated(question: str, k: int = 5) -> Any:
    return question, k


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda question, k: (question, k), ("Q", 7)),
        (lambda words, top_k=5: (words, top_k), ("Q", 7)),
        (lambda index, query, k, user: (index, query, k, user), None),
        (lambda k, q: (q, k), ("Q", 7)),
        (lambda words, /, *, limit: (words, limit), ("Q", 7)),
        (lambda query, n_results, principal=None, **more: (query, n_results, principal), None),
        (Index().search, ("Q", 7, "ana")),
        (Index(), ("Q", 7)),
        (decorated, ("Q", 7)),
        (functools.partial(lambda a, b, k: (a, b, k), "A"), ("A", "Q", 7)),
    ],
)
def test_a_search_gets_question_k_and_principal(
    function: Callable[..., Any], got: tuple[Any, ...] | None
) -> None:
    """By name where it has one that is known; the question else as the first free one."""
    if got is None and "index" in function.__code__.co_varnames:
        with pytest.raises(InputError, match="also requires 'index'"):
            fit(function, "m:f", *ROLES)
        return
    positional, keywords = fit(function, "m:f", *ROLES).arguments(VALUES)
    assert function(*positional, **keywords) == (got or ("Q", 7, "ana"))


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (lambda question: question, "m:f has no parameter for the k; give a function of"),
        (lambda: 1, "takes nothing that can be seen"),
        (lambda question, k, client: 1, "also requires 'client'"),
    ],
)
def test_a_function_that_cannot_be_called_so_is_refused(
    function: Callable[..., Any], fault: str
) -> None:
    """One line says what it lacks and what is wanted."""
    with pytest.raises(InputError, match=fault):
        fit(function, "m:f", *ROLES)


@pytest.mark.parametrize(
    ("function", "got"),
    [
        (lambda question, expected_answer, answer: (question, expected_answer, answer), "QEA"),
        (lambda q, e, a: (q, e, a), "QEA"),
        (lambda question, answer, prediction: (question, prediction, answer), "QAE"),
        (lambda response, reference, query: (query, reference, response), "QEA"),
        (lambda q, e, a, label: (q, e, a, label), "QEAL"),
    ],
)
def test_a_judge_gets_what_was_expected_and_what_was_answered(
    function: Callable[..., Any], got: str
) -> None:
    """In (question, answer, prediction) the answer is the expected one."""
    letters = {"Q": "Q", "E": "E", "A": "A", "L": JUDGED["label"]}
    positional, keywords = fit(function, "m:f", *JUDGE_ROLES).arguments(JUDGED)
    assert function(*positional, **keywords) == tuple(letters[letter] for letter in got)
