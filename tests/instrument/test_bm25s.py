"""bm25s: an index with and without its corpus."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("bm25s")

import bm25s
from corpus import QUESTION, TEXTS
from laws import Patched, assert_fails, ids, kinds, same_result, scores

import ragotel
from ragotel.testing import Recorded


def search(corpus: Any = None, **options: Any) -> Any:
    made = bm25s.BM25(corpus=corpus)
    made.index(bm25s.tokenize(list(TEXTS.values()), show_progress=False), show_progress=False)
    asked = bm25s.tokenize(QUESTION, show_progress=False)
    return made.retrieve(asked, k=3, show_progress=False, **options)


def test_a_search_is_a_retrieval(recorded: Recorded) -> None:
    """With the service's ids as corpus, the ids are those; the scores are BM25's."""
    documents, found = search(list(TEXTS))
    stage = recorded.stage("retrieve")
    assert ids(stage) == list(documents[0])
    assert scores(stage) == pytest.approx(found[0].tolist())
    assert (stage["rag.score.kind"], stage["rag.score.higher_is_better"]) == ("bm25", True)
    assert stage["gen_ai.retrieval.top_k"] == 3


def test_a_corpus_of_texts_or_records_is_read(recorded: Recorded) -> None:
    """Texts are told from ids, and records have both."""
    documents, _ = search(list(TEXTS.values()))
    stage = recorded.stage("retrieve")
    assert list(stage["rag.chunks"].values()) == list(documents[0])
    assert all(key.startswith("sha256:") for key in ids(stage))
    recorded.clear()
    records = [{"id": key, "text": text} for key, text in TEXTS.items()]
    documents, found = search(records)
    assert ids(recorded.stage("retrieve")) == [one["id"] for one in documents[0]]
    assert scores(recorded.stage("retrieve")) == pytest.approx(found[0].tolist())


def test_without_scores_they_are_null(recorded: Recorded) -> None:
    """`return_as="documents"` gives no scores, and none are invented."""
    search(list(TEXTS), return_as="documents")
    assert scores(recorded.stage("retrieve")) == [None, None, None]


def test_a_decorator_above_gives_one_stage(recorded: Recorded) -> None:
    """Places in the index never stand beside the function's own ids."""

    @ragotel.retrieve(leg="bm25")
    def retrieve(question: str) -> list[tuple[str, float]]:
        places, found = search()
        keys = list(TEXTS)
        return [(keys[p], float(s)) for p, s in zip(places[0], found[0], strict=True)]

    returned = retrieve(QUESTION)
    assert kinds(recorded) == ["retrieve"]
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in returned]
    assert stage["rag.score.kind"] == "bm25"


def test_failures_pass_on(recorded: Recorded) -> None:
    """The library's own exception is raised."""
    assert_fails(recorded, "retrieve", lambda: search(return_as="nothing"), ValueError)


def test_results_are_the_same_with_and_without() -> None:
    """What a search returns is byte-identical."""
    same_result(search)
    same_result(lambda: search(list(TEXTS)))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("bm25s")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("bm25s")
