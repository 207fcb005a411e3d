"""FlashRank: its real ranker, with a session that counts common words in place of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flashrank")

import numpy as np
from corpus import QUESTION, TEXTS, overlap
from flashrank import Ranker, RerankRequest
from laws import Patched, assert_fails, dropped, ids, kinds, same_result, scores

import ragotel
from ragotel.testing import Recorded


class Encoded:
    def __init__(self, pair: list[str]) -> None:
        self.ids = [round(1000 * overlap(*pair))]
        self.type_ids = [1]
        self.attention_mask = [1]


class Tokenizer:
    def encode_batch(self, pairs: list[list[str]]) -> list[Encoded]:
        return [Encoded(pair) for pair in pairs]


class Session:
    """Stands for the ONNX model: FlashRank's models cannot be had without a download."""

    def run(self, _: Any, inputs: dict[str, Any]) -> list[Any]:
        return [inputs["input_ids"].astype(np.float32) / 100]


def ranker() -> Ranker:
    made: Any = object.__new__(Ranker)
    made.session, made.tokenizer, made.llm_model = Session(), Tokenizer(), None
    made.model_dir = Path("models") / "ms-marco-counting"
    made.logger = __import__("logging").getLogger("flashrank")
    return made  # type: ignore[no-any-return]


def passages() -> list[dict[str, Any]]:
    return [{"id": key, "text": text} for key, text in TEXTS.items()]


def rerank() -> list[dict[str, Any]]:
    return ranker().rerank(RerankRequest(query=QUESTION, passages=passages()))


def test_a_call_is_a_rerank(recorded: Recorded) -> None:
    """The list is sorted in place, and yet what went in is known as it was."""

    @ragotel.retrieve
    def search(question: str) -> list[dict[str, Any]]:
        return [{**row, "score": 0.5} for row in passages()]

    @ragotel.request
    def answer(question: str) -> list[dict[str, Any]]:
        return ranker().rerank(RerankRequest(query=question, passages=search(question)))[:3]

    answer(QUESTION)
    assert kinds(recorded) == ["request", "retrieve", "rerank"]
    retrieve, stage = recorded.stage("retrieve"), recorded.stage("rerank")
    assert (ids(retrieve), scores(retrieve)) == (list(TEXTS), [0.5] * len(TEXTS))
    best = sorted(TEXTS, key=lambda key: -overlap(QUESTION, TEXTS[key]))
    assert ids(stage) == best
    assert scores(stage) == sorted(scores(stage), reverse=True)
    assert stage["rag.candidates.in_count"] == len(TEXTS)
    assert stage["rag.score.kind"] == "cross_encoder"
    assert stage["gen_ai.request.model"] == "ms-marco-counting"
    assert stage["rag.rerank.effect"] == "reordered"
    assert dropped(stage) == {}


def test_a_decorator_above_gives_one_stage(recorded: Recorded) -> None:
    """A decorated reranker that returns bare ids has the library's scores."""

    @ragotel.rerank(model="mine")
    def best(question: str, found: list[dict[str, Any]]) -> list[str]:
        ranked = ranker().rerank(RerankRequest(query=question, passages=found))
        return [row["text"] for row in ranked[:2]]

    best(QUESTION, passages())
    assert kinds(recorded) == ["rerank"]
    stage = recorded.stage("rerank")
    assert len(ids(stage)) == 2
    assert None not in scores(stage)
    assert stage["gen_ai.request.model"] == "mine"


def test_failures_pass_on(recorded: Recorded) -> None:
    """The library's own exception is raised."""
    asked = RerankRequest(query=QUESTION, passages=[{"id": "1"}])
    assert_fails(recorded, "rerank", lambda: ranker().rerank(asked), KeyError)


def test_results_are_the_same_with_and_without() -> None:
    """What a call returns is byte-identical."""
    same_result(rerank)


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("flashrank")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("flashrank")
