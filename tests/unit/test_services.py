"""One decorator on an existing class."""

from __future__ import annotations

from typing import Any

import pytest

import ragotel
from ragotel import attributes as at
from ragotel.errors import ConfigurationError
from ragotel.testing import Recorded


def hits(*ids: str) -> list[dict[str, Any]]:
    return [{"id": i, "score": 0.5, "text": f"the whole text of passage {i}"} for i in ids]


class Base:
    def rerank(self, query: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return found[:1]


def make(**names: Any) -> Any:
    @ragotel.service(**names)
    class Bot(Base):
        def answer(self, question: str, user_id: str = "u") -> str:
            found = self.dense(question) + self.sparse(question)
            return self.complete(self.build_prompt(question, self.rerank(question, found)))

        def dense(self, query: str) -> list[dict[str, Any]]:
            return hits("a", "b")

        @staticmethod
        def sparse(query: str) -> list[dict[str, Any]]:
            return hits("c")

        def build_prompt(self, query: str, found: list[dict[str, Any]]) -> str:
            return f"{found[0]['text']}\n{query}"

        def complete(self, prompt: str) -> str:
            return "done"

        def helper(self) -> str:
            return "untouched"

    return Bot


def stages(recorded: Recorded) -> list[tuple[str, str]]:
    return [(s["attributes"][at.STAGE], s["attributes"][at.STAGE_NAME]) for s in recorded.spans]


EXPECTED = [
    ("request", "answer"),
    ("retrieve", "dense"),
    ("retrieve", "sparse"),
    ("rerank", "rerank"),
    ("assemble", "build_prompt"),
    ("generate", "complete"),
]


def test_names_given_and_found_by_convention(recorded: Recorded) -> None:
    """Legs are a list of names; what is left out is found by convention, also inherited."""
    bot_class = make(retrieve=["dense", "sparse"], index="docs")
    assert bot_class().answer("q") == "done"
    assert stages(recorded) == EXPECTED
    assert recorded.stages("retrieve")[0][at.DATA_SOURCE] == "docs"
    assert recorded.stage("rerank")[at.IN_COUNT] == 3
    assert bot_class.helper.__qualname__.endswith("Bot.helper")


def test_the_base_class_stays_as_it_was(recorded: Recorded) -> None:
    """An inherited method is recorded on the decorated class alone."""
    make(retrieve="dense")
    Base().rerank("q", hits("a"))
    assert recorded.spans == []


def test_an_empty_list_leaves_a_stage_out(recorded: Recorded) -> None:
    """`rerank=[]` records no reranker although the class has one by convention."""
    make(retrieve="dense", rerank=[])().answer("q")
    assert ("rerank", "rerank") not in stages(recorded)


def test_decorating_twice_is_once(recorded: Recorded) -> None:
    """A method that is recorded already is not recorded twice."""
    bot_class = ragotel.service(retrieve=["dense", "sparse"])(make(retrieve=["dense", "sparse"]))
    bot_class().answer("q")
    assert stages(recorded) == EXPECTED


def test_a_name_that_the_class_lacks_is_an_error() -> None:
    """Said at once, with what to do."""
    with pytest.raises(ConfigurationError, match="Bot has no method 'serch' to record as retrieve"):
        make(retrieve="serch")


def test_a_class_without_a_request_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """Stages that would stand alone, and an option that no decorator has, are named at once."""

    @ragotel.service(indx_version="v1")
    class Bot:
        def search(self, question: str) -> list[str]:
            return [question]

        def respond(self, question: str) -> str:
            return self.search(question)[0]

    messages = [record.getMessage() for record in caplog.records if record.name == "ragotel"]
    assert any(text.startswith("Bot has no method that is a request") for text in messages)
    assert (
        "ragotel.retrieve has no option 'indx_version' (did you mean 'index_version'?); "
        "it is ignored" in messages
    )
    assert Bot().respond("same") == "same"
