"""The example of LlamaIndex: asked as its page says, and with a model behind OpenAI's API."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("llama_index.core")
import asking
from chat_server import Chat
from following import follow

from ragotel.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
NAME, PAGE = "llama_index", "docs/llama-index.md"


def test_rows_prompts_and_verdicts(store: Store, tmp_path: Path, chat: Chat) -> None:
    """Whole rows of every stage, the prompt that the model got, and where each passage was lost."""
    with asking.recording_to(store, tmp_path) as endpoint:
        printed = asking.ask(NAME, endpoint, asking.QUESTIONS, chat.url)
    asking.assert_recorded(store, NAME, printed, chat)
    radix, glue, loop, size = asking.QUESTIONS
    assert asking.verdicts(store) == {
        radix: ("ungraded", "none", 1),
        glue: ("retrieval_miss", "not_retrieved_by_any_leg", None),
        loop: ("retrieval_miss", "not_retrieved_by_any_leg", None),
        size: ("retrieval_miss", "filtered", None),
    }


def test_the_page_is_true(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its commands print what it shows, without a model; its code stands in the example."""
    follow(PAGE, NAME, store, tmp_path, capsys)
