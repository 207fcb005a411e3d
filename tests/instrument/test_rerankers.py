"""rerankers: its real base class, results and documents, with a ranker of the service's own."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("rerankers")

from corpus import QUESTION, TEXTS, overlap
from laws import Patched, assert_fails, ids, same_result
from rerankers.models.ranker import BaseRanker
from rerankers.results import RankedResults, Result
from rerankers.utils import prep_docs
from reranking import ask, assert_reranked

import ragotel
from ragotel.testing import Recorded


class OverlapRanker(BaseRanker):
    """Ranks by common words, as the package's own classes are written."""

    def __init__(self, model_name_or_path: str = "counting", verbose: int = 0) -> None:
        self.model_name = model_name_or_path

    def score(self, query: str, doc: str) -> float:
        return overlap(query, doc)

    def rank(self, query: str, docs: Any, doc_ids: Any = None) -> RankedResults:
        found = [Result(d, overlap(query, d.text)) for d in prep_docs(docs, doc_ids)]
        best = sorted(found, key=lambda one: -(one.score or 0))[:2]
        return RankedResults(best, query, has_scores=True)


def test_a_call_is_a_rerank(recorded: Recorded) -> None:
    """Without ids of the service's own, the candidates' are found by their texts."""
    ask(lambda question, texts: OverlapRanker().rank(question, texts))
    assert_reranked(recorded, model="counting")


def test_ids_that_were_given_are_kept(recorded: Recorded) -> None:
    """The package's own counting is no identity; ids that were given are."""
    OverlapRanker().rank(QUESTION, list(TEXTS.values()), list(TEXTS))
    best = sorted(TEXTS, key=lambda key: -overlap(QUESTION, TEXTS[key]))
    assert ids(recorded.stage("rerank")) == best[:2]
    recorded.clear()
    OverlapRanker().rank(QUESTION, list(TEXTS.values()))
    assert all(key.startswith("sha256:") for key in ids(recorded.stage("rerank")))


def test_failures_pass_on(recorded: Recorded) -> None:
    """The library's own exception is raised."""
    assert_fails(
        recorded, "rerank", lambda: OverlapRanker().rank(QUESTION, ["a", "b"], ["1"]), IndexError
    )


def test_results_are_the_same_with_and_without() -> None:
    """What a ranker returns is byte-identical."""
    same_result(lambda: OverlapRanker().rank(QUESTION, list(TEXTS.values())).results)


def test_a_class_keeps_its_own_method_afterwards(recorded: Recorded) -> None:
    """A subclass that is defined while the hooks are in place is hooked, and let go with them."""

    class Later(OverlapRanker):
        def rank(self, query: str, docs: Any, doc_ids: Any = None) -> RankedResults:
            return super().rank(query, docs, doc_ids)

    hooked = vars(Later)["rank"]
    Later().rank(QUESTION, list(TEXTS.values()))
    assert len(recorded.stages("rerank")) == 1
    ragotel.instrument.uninstrument()
    assert vars(Later)["rank"] is hooked.__wrapped__


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("rerankers")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("rerankers")
