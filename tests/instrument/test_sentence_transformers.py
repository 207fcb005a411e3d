"""sentence-transformers: its real cross-encoder, with a tiny model of random weights.

Needs torch, which takes gigabytes: skipped where it is not installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

import torch
from corpus import QUESTION, TEXTS, words
from laws import Patched, assert_fails, dropped, ids, kinds, same_result, scores
from sentence_transformers import CrossEncoder
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

import ragotel
from ragotel.testing import Recorded


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("tiny-reranker")
    known = sorted({word for text in (*TEXTS.values(), QUESTION) for word in words(text)})
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, num_labels=1,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    return CrossEncoder(str(folder), device="cpu")


def rows() -> list[dict[str, str]]:
    return [{"id": key, "text": text} for key, text in TEXTS.items()]


def test_rank_is_a_rerank(recorded: Recorded, encoder: Any) -> None:
    """It answers with positions: the ids are those of the candidates with these texts."""

    @ragotel.retrieve
    def search(question: str) -> list[dict[str, str]]:
        return rows()

    @ragotel.request
    def answer(question: str) -> Any:
        texts = [row["text"] for row in search(question)]
        return encoder.rank(question, texts, top_k=2)

    found = answer(QUESTION)
    assert kinds(recorded) == ["request", "retrieve", "rerank"]
    stage = recorded.stage("rerank")
    keys = list(TEXTS)
    assert ids(stage) == [keys[row["corpus_id"]] for row in found]
    assert scores(stage) == pytest.approx([float(row["score"]) for row in found])
    assert stage["rag.limit"] == 2
    assert stage["rag.score.kind"] == "cross_encoder"
    assert len(dropped(stage)) == len(TEXTS) - 2
    assert "tiny-reranker" in stage["gen_ai.request.model"]


def test_scores_of_pairs_are_a_rerank(recorded: Recorded, encoder: Any) -> None:
    """A service that sorts by itself has one stage, its decorator's, with the model's scores."""

    @ragotel.rerank(limit=3)
    def best(question: str, found: list[dict[str, str]]) -> list[dict[str, str]]:
        given = encoder.predict([(question, row["text"]) for row in found])
        order = sorted(range(len(found)), key=lambda place: -given[place])
        return [found[place] for place in order[:3]]

    returned = best(QUESTION, rows())
    assert kinds(recorded) == ["rerank"]
    stage = recorded.stage("rerank")
    assert ids(stage) == [row["id"] for row in returned]
    assert scores(stage) == sorted(scores(stage), reverse=True)
    assert stage["rag.score.kind"] == "cross_encoder"


def test_failures_pass_on(recorded: Recorded, encoder: Any) -> None:
    """The library's own exception is raised."""
    assert_fails(recorded, "rerank", lambda: encoder.rank(QUESTION, [1, 2]), Exception)


def test_results_are_the_same_with_and_without(encoder: Any) -> None:
    """What the encoder returns is byte-identical."""
    same_result(lambda: encoder.rank(QUESTION, list(TEXTS.values())))
    same_result(lambda: encoder.predict([(QUESTION, text) for text in TEXTS.values()]).tolist())


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("sentence_transformers")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("sentence_transformers")
