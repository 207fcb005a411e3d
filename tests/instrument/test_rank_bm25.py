"""rank-bm25: the three variants."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("rank_bm25")

import rank_bm25
from corpus import QUESTION, TEXTS, words
from laws import Patched, assert_fails, ids, kinds, same_result, scores

import ragotel
from ragotel.testing import Recorded

VARIANTS = [rank_bm25.BM25Okapi, rank_bm25.BM25L, rank_bm25.BM25Plus]


def index(variant: Any = rank_bm25.BM25Okapi) -> Any:
    return variant([words(text) for text in TEXTS.values()])


def search(documents: Any = None, variant: Any = rank_bm25.BM25Okapi) -> Any:
    return index(variant).get_top_n(words(QUESTION), documents or list(TEXTS), n=3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_search_is_a_retrieval_with_its_scores(recorded: Recorded, variant: Any) -> None:
    """The library returns documents alone; the scores that it sorted by are kept."""
    found = search(variant=variant)
    all_scores = dict(zip(TEXTS, index(variant).get_scores(words(QUESTION)), strict=True))
    stage = recorded.stage("retrieve")
    assert ids(stage) == found
    assert scores(stage) == pytest.approx([all_scores[key] for key in found])
    assert (stage["rag.score.kind"], stage["rag.score.higher_is_better"]) == ("bm25", True)
    assert stage["gen_ai.retrieval.top_k"] == 3


def test_scores_alone_are_no_search(recorded: Recorded) -> None:
    """Scores of the whole corpus are no list of candidates."""
    index().get_scores(words(QUESTION))
    assert kinds(recorded) == []


def test_a_decorator_above_gives_one_stage(recorded: Recorded) -> None:
    """Decorator and library are one leg, with the library's scores."""

    @ragotel.retrieve(leg="bm25")
    def retrieve(question: str) -> Any:
        return search(list(TEXTS.values()))

    retrieve(QUESTION)
    assert kinds(recorded) == ["retrieve"]
    assert None not in scores(recorded.stage("retrieve"))
    assert recorded.stage("retrieve")["rag.score.kind"] == "bm25"


def test_failures_pass_on(recorded: Recorded) -> None:
    """The library's own exception is raised."""
    assert_fails(recorded, "retrieve", lambda: search(["one"]), AssertionError)


def test_results_are_the_same_with_and_without() -> None:
    """What a search returns is byte-identical."""
    same_result(search)
    same_result(lambda: index().get_scores(words(QUESTION)))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("rank_bm25")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("rank_bm25")
