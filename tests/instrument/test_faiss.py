"""FAISS: every class of index, with its metric and its direction."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("faiss")

import faiss
import numpy as np
from corpus import QUESTION, TEXTS, embed, nearest
from laws import Patched, assert_fails, ids, kinds, same_result, scores

import ragotel
from ragotel.testing import Recorded

VECTORS = np.array([embed(text) for text in TEXTS.values()], dtype="float32")
ASKED = np.array([embed(QUESTION)], dtype="float32")
PLACES = {key: place for place, key in enumerate(TEXTS)}


def index(made: Any) -> Any:
    if not made.is_trained:
        made.train(VECTORS)
    made.add(VECTORS)
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda: faiss.IndexFlatIP(64),
        lambda: faiss.IndexHNSWFlat(64, 8, faiss.METRIC_INNER_PRODUCT),
        lambda: faiss.index_factory(64, "IVF1,Flat", faiss.METRIC_INNER_PRODUCT),
        lambda: faiss.index_factory(64, "RR32,Flat", faiss.METRIC_INNER_PRODUCT),
    ],
)
def test_a_search_is_a_retrieval(recorded: Recorded, make: Any) -> None:
    """Whatever the class of the index, one search is one stage."""
    distances, places = index(make()).search(ASKED, 3)
    assert kinds(recorded) == ["retrieve"]
    stage = recorded.stage("retrieve")
    assert ids(stage) == [str(place) for place in places[0]]
    assert scores(stage) == pytest.approx(distances[0].tolist())
    assert (stage["rag.score.kind"], stage["rag.score.higher_is_better"]) == ("dot", True)
    assert stage["gen_ai.retrieval.top_k"] == 3


def test_ids_of_a_map_and_gaps(recorded: Recorded) -> None:
    """An IndexIDMap has ids of the service's own; -1 is no candidate; L2 is a distance."""
    made = faiss.IndexIDMap(faiss.IndexFlatL2(64))
    made.add_with_ids(VECTORS, np.arange(100, 100 + len(TEXTS)))
    made.search(ASKED, 10)
    stage = recorded.stage("retrieve")
    assert ids(stage) == [str(100 + PLACES[key]) for key, _ in nearest(QUESTION, 10)]
    assert (stage["rag.score.kind"], stage["rag.score.higher_is_better"]) == ("l2", False)
    assert stage["rag.candidates.count"] == len(TEXTS)


def test_a_decorator_above_gives_one_stage(recorded: Recorded) -> None:
    """Places never stand for ids: the decorated function's own ids stay, its scores get a kind."""

    @ragotel.retrieve(leg="dense")
    def search(question: str) -> list[tuple[str, float]]:
        distances, places = index(faiss.IndexFlatIP(64)).search(ASKED, 3)
        keys = list(TEXTS)
        return [(keys[p], float(d)) for d, p in zip(distances[0], places[0], strict=True)]

    @ragotel.retrieve(leg="bare")
    def bare(question: str) -> list[str]:
        _, places = index(faiss.IndexFlatIP(64)).search(ASKED, 3)
        return [list(TEXTS.values())[place] for place in places[0]]

    search(QUESTION)
    assert kinds(recorded) == ["retrieve"]
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in nearest(QUESTION, 3)]
    assert (stage["rag.score.kind"], stage["rag.score.higher_is_better"]) == ("dot", True)
    recorded.clear()
    bare(QUESTION)
    assert kinds(recorded) == ["retrieve"]
    assert scores(recorded.stage("retrieve")) == [None, None, None]


def test_a_large_batch_is_no_search(recorded: Recorded) -> None:
    """A thousand questions at once are a job of their own."""
    index(faiss.IndexFlatIP(64)).search(np.repeat(ASKED, 100, axis=0), 3)
    assert kinds(recorded) == []


def test_failures_pass_on(recorded: Recorded) -> None:
    """The library's own exception is raised."""
    made = index(faiss.IndexFlatIP(64))
    assert_fails(recorded, "retrieve", lambda: made.search(ASKED[:, :10], 3), AssertionError)


def test_results_are_the_same_with_and_without() -> None:
    """What a search returns is byte-identical."""
    same_result(lambda: index(faiss.IndexFlatIP(64)).search(ASKED, 3))
    same_result(lambda: index(faiss.IndexHNSWFlat(64, 8)).search(ASKED, 3))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("faiss")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("faiss")
