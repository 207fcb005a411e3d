"""What a request says of its index holds for the searches that name none."""

from __future__ import annotations

from typing import Any

import pytest

import ragotel
from ragotel.testing import Recorded, recording

HITS = [{"id": "a", "text": "one"}]
INDEX = ("gen_ai.data_source.id", "rag.index.version")


@pytest.fixture
def recorded() -> Any:
    with recording() as sink:
        yield sink


def ask(recorded: Recorded, request: dict[str, Any], search: dict[str, Any]) -> tuple[Any, ...]:
    """Index and version on the search of a request."""

    @ragotel.retrieve(**search)
    def find(question: str) -> list[dict[str, str]]:
        return HITS

    @ragotel.request(**request)
    def answer(question: str, release: str = "v7") -> str:
        return str(find(question)[0]["text"])

    assert answer("how long?") == "one"
    return tuple(recorded.stage("retrieve").get(key) for key in INDEX)


def test_a_search_that_names_no_index_is_in_the_request_s(recorded: Recorded) -> None:
    """Name and version, given or asked for at the call, hold for a search without either."""
    assert ask(recorded, {"index": "docs", "index_version": "v7"}, {}) == ("docs", "v7")
    recorded.clear()
    asked = {"index": "docs", "index_version": lambda release: release}
    assert ask(recorded, asked, {"index": "docs"}) == ("docs", "v7")
    recorded.clear()
    assert ask(recorded, {"index_version": "v7"}, {"index": "other"}) == ("other", "v7")


def test_what_the_search_says_itself_stands(recorded: Recorded) -> None:
    """A search in another index has not the version of the request's."""
    request = {"index": "docs", "index_version": "v7"}
    assert ask(recorded, request, {"index": "other"}) == ("other", None)
    recorded.clear()
    assert ask(recorded, request, {"index_version": "v8"}) == ("docs", "v8")
    recorded.clear()
    assert ask(recorded, {}, {}) == (None, None)
