"""A hooked method passes for the method itself: copied, pickled, weakly held, compared."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from laws import kinds, same_result

import ragotel
from ragotel.testing import Recorded

PROMPT = ChatPromptTemplate.from_template("{x}")
WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda method: pickle.loads(pickle.dumps(method)),
    "pickled within": lambda method: pickle.loads(pickle.dumps(functools.partial(method))),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "weak": lambda method: weakref.WeakMethod(method)(),
    "deepcopy of its user": lambda method: copy.deepcopy(RunnableLambda(method)).invoke,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_bound_method_survives(way: str) -> None:
    """What comes out is called as what went in, with and without hooks."""
    same_result(lambda: WAYS[way](PROMPT.invoke)({"x": 1}).to_string())


def test_a_copy_records_as_the_method_itself(recorded: Recorded) -> None:
    """A method that went through a pickle or a deep copy is hooked still."""

    @ragotel.request
    def ask(question: str) -> str:
        for way in ("pickle", "deepcopy"):
            WAYS[way](PROMPT.invoke)({"x": question})
        return ""

    ask("q?")
    assert kinds(recorded) == ["request", "assemble", "assemble"]


def test_the_function_of_a_class_is_its_own_copy() -> None:
    """A function that is not bound is pickled by its name and copied as itself."""

    def look() -> Any:
        function = ChatPromptTemplate.invoke
        ways = [pickle.loads(pickle.dumps(function)), copy.copy(function), copy.deepcopy(function)]
        return [(way == function, way(PROMPT, {"x": 1}).to_string()) for way in ways]

    assert same_result(look) == repr([(True, "Human: 1")] * 3)


def test_it_shows_as_the_method() -> None:
    """Kind, signature, equality and names are those of the method."""
    same_result(
        lambda: (
            inspect.ismethod(PROMPT.invoke),
            inspect.iscoroutinefunction(PROMPT.ainvoke),
            str(inspect.signature(PROMPT.invoke)),
            PROMPT.invoke == PROMPT.invoke,
            hash(PROMPT.invoke) == hash(PROMPT.invoke),
            PROMPT.invoke.__self__ is PROMPT,
            PROMPT.invoke.__qualname__,
            PROMPT.invoke.__module__,
        )
    )
