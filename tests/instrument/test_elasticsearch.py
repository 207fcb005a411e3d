"""Elasticsearch: its real clients against a server on this machine that speaks its API."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("elasticsearch")

from corpus import QUESTION, TEXTS, embed, nearest
from elasticsearch import AsyncElasticsearch, Elasticsearch
from laws import Patched, assert_cancels, assert_fails, ids, kinds, same_result, scores

from ragotel.testing import Recorded

MATCH: Any = {"match": {"text": QUESTION}}
KNN: Any = {"field": "vector", "query_vector": embed(QUESTION), "k": 3}


def search(server: str, query: Any = MATCH, **options: Any) -> Any:
    client = Elasticsearch(server)
    return client.search(index="docs", query=query, size=options.pop("size", 3), **options)


async def async_search(server: str) -> Any:
    async with AsyncElasticsearch(server) as client:
        return await client.search(index="docs", query=MATCH, size=3)


def test_a_search_is_a_retrieval(recorded: Recorded, server: str) -> None:
    """Ids, scores, texts, question, k and index."""
    search(server)
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in nearest(QUESTION, 3)]
    assert scores(stage) == pytest.approx([score for _, score in nearest(QUESTION, 3)])
    assert (stage["rag.score.kind"], stage["rag.score.higher_is_better"]) == ("bm25", True)
    assert stage["gen_ai.retrieval.query.text"] == QUESTION
    assert stage["gen_ai.retrieval.top_k"] == 3
    assert stage["gen_ai.data_source.id"] == "docs"
    assert set(stage["rag.chunks"].values()) == {TEXTS[key] for key in ids(stage)}


def test_a_vector_search_has_no_question_and_no_kind(recorded: Recorded, server: str) -> None:
    """A vector tells neither the words nor the measure."""
    search(server, None, knn=KNN)
    stage = recorded.stage("retrieve")
    assert "gen_ai.retrieval.query.text" not in stage
    assert "rag.score.kind" not in stage


def test_counts_alone_are_no_search(recorded: Recorded, server: str) -> None:
    """Nothing was searched for where no hits are wanted."""
    search(server, size=0)
    assert kinds(recorded) == []


def test_the_async_client_records_the_same(recorded: Recorded, server: str) -> None:
    """It ends when it is awaited."""
    asyncio.run(async_search(server))
    assert ids(recorded.stage("retrieve")) == [key for key, _ in nearest(QUESTION, 3)]
    assert_cancels(recorded, "retrieve", lambda: async_search(server))


def test_failures_pass_on(recorded: Recorded) -> None:
    """The client's own exception is raised."""
    assert_fails(recorded, "retrieve", lambda: search("http://127.0.0.1:9"), Exception)


def test_results_are_the_same_with_and_without(server: str) -> None:
    """What the client returns is byte-identical."""
    same_result(lambda: search(server))
    same_result(lambda: asyncio.run(async_search(server)))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("elasticsearch")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("elasticsearch")
