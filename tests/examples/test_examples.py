"""The examples that answer in a terminal: asked as their pages say, and with a model."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import asking
import pytest
from chat_server import Chat
from following import follow

from ragotel.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
FOUND = ("ungraded", "none", 1)
MISSED = ("retrieval_miss", "not_retrieved_by_any_leg", None)


class Example(NamedTuple):
    """One example, named by its folder."""

    page: str
    needs: tuple[str, ...]
    """Modules without which it cannot run."""
    verdicts: tuple[tuple[str, str, int | None], ...]
    """Bucket, loss stage and gold rank of each of `asking.QUESTIONS`."""


EXAMPLES = {
    "plain": Example(
        "docs/plain-python.md",
        ("bm25s",),
        (
            FOUND,
            MISSED,
            ("context_problem", "assemble", 6),
            ("retrieval_miss", "fusion_limit", None),
        ),
    ),
    "haystack": Example(
        "docs/haystack.md",
        ("haystack",),
        (FOUND, MISSED, MISSED, ("retrieval_miss", "fusion_limit", None)),
    ),
    "llama_index": Example(
        "docs/llama-index.md",
        ("llama_index.core",),
        (FOUND, MISSED, MISSED, ("retrieval_miss", "filtered", None)),
    ),
    "langchain": Example(
        "docs/langchain.md",
        ("langchain_classic", "langchain_openai"),
        (
            FOUND,
            MISSED,
            ("context_problem", "assemble", 6),
            ("context_problem", "fused_beyond_cutoff", 10),
        ),
    ),
}


@pytest.fixture(params=EXAMPLES)
def name(request: pytest.FixtureRequest) -> str:
    """An example whose libraries are installed."""
    chosen: str = request.param
    for module in EXAMPLES[chosen].needs:
        pytest.importorskip(module)
    return chosen


def test_rows_prompts_and_verdicts(name: str, store: Store, tmp_path: Path, chat: Chat) -> None:
    """Whole rows of every stage, the prompt that the model got, and where each passage was lost."""
    with asking.recording_to(store, tmp_path) as endpoint:
        chat.prompts.clear()
        printed = asking.ask(name, endpoint, asking.QUESTIONS, chat.url)
    asking.assert_recorded(store, name, printed, chat)
    expected = dict(zip(asking.QUESTIONS, EXAMPLES[name].verdicts, strict=True))
    assert asking.verdicts(store) == expected


def test_the_page_is_true(
    name: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its commands print what it shows, without a model; its code stands in the example."""
    follow(EXAMPLES[name].page, name, store, tmp_path, capsys)
