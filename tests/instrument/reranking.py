"""A service that searches and then lets a hosted reranker choose, and what its record must say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from corpus import QUESTION, TEXTS, overlap
from laws import dropped, ids, kinds, scores

import ragotel
from ragotel.testing import Recorded


def ask(rerank: Callable[[str, list[str]], Any]) -> Any:
    """Search by the service's own function, then rerank bare texts."""

    @ragotel.retrieve
    def search(question: str) -> list[dict[str, str]]:
        return [{"id": key, "text": text} for key, text in TEXTS.items()]

    @ragotel.request
    def answer(question: str) -> Any:
        return rerank(question, [row["text"] for row in search(question)])

    return answer(QUESTION)


def assert_reranked(sink: Recorded, *, model: str) -> None:
    """The two best are named by the candidates' ids, the others were dropped."""
    assert kinds(sink) == ["request", "retrieve", "rerank"]
    stage = sink.stage("rerank")
    best = sorted(TEXTS, key=lambda key: -overlap(QUESTION, TEXTS[key]))
    assert ids(stage) == best[:2]
    assert scores(stage) == pytest.approx([overlap(QUESTION, TEXTS[key]) for key in best[:2]])
    assert dropped(stage) == dict.fromkeys(best[2:], "top_n")
    assert stage["rag.score.higher_is_better"] is True
    assert stage["gen_ai.request.model"] == model
    assert stage["rag.candidates.in_count"] == len(TEXTS)
