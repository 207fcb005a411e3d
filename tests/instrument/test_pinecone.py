"""Pinecone: its real clients against a server on this machine that speaks its API."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("pinecone")

import pinecone
from corpus import QUESTION, TEXTS, embed, nearest
from laws import Patched, assert_cancels, assert_fails, ids, same_result, scores
from pinecone.async_client.async_index import AsyncIndex
from pinecone.index import Index
from reranking import ask, assert_reranked

from ragotel.testing import Recorded


def query(server: str, top_k: int = 3) -> Any:
    index = Index(host=server, api_key="none")
    return index.query(top_k=top_k, vector=embed(QUESTION), filter={"a": 1}, include_metadata=True)


async def async_query(server: str) -> Any:
    async with AsyncIndex(host=server, api_key="none") as index:
        return await index.query(top_k=3, vector=embed(QUESTION), include_metadata=True)


def search(server: str, **options: Any) -> Any:
    index = Index(host=server, api_key="none")
    return index.search(namespace="shop", top_k=3, inputs={"text": QUESTION}, **options)


def test_a_query_is_a_retrieval(recorded: Recorded, server: str) -> None:
    """Ids, scores, texts, k and filter; the metric is the server's secret, and not guessed."""
    query(server)
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in nearest(QUESTION, 3)]
    assert scores(stage) == pytest.approx([score for _, score in nearest(QUESTION, 3)])
    assert stage["gen_ai.retrieval.top_k"] == 3
    assert stage["rag.filter"] == '{"a":1}'
    assert "rag.score.kind" not in stage
    assert set(stage["rag.chunks"].values()) == {TEXTS[key] for key in ids(stage)}
    recorded.clear()
    asyncio.run(async_query(server))
    assert ids(recorded.stage("retrieve")) == [key for key, _ in nearest(QUESTION, 3)]


def test_a_search_is_a_retrieval(recorded: Recorded, server: str) -> None:
    """Also with its text; a rerank inside of the same call is told by its scores' kind."""
    search(server)
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in nearest(QUESTION, 3)]
    assert stage["gen_ai.retrieval.query.text"] == QUESTION
    assert "rag.rerank.server_side" not in stage
    recorded.clear()
    search(server, rerank={"model": "bge", "top_n": 2, "rank_fields": ["chunk_text"]})
    assert recorded.stage("retrieve")["rag.rerank.server_side"] is True
    assert recorded.stage("retrieve")["rag.score.kind"] == "relevance"


def rerank(server: str, question: str, texts: list[str]) -> Any:
    made = pinecone.Pinecone(api_key="none", host=server)
    return made.inference.rerank("bge", question, texts, top_n=2)


def test_a_hosted_reranker_is_a_rerank(recorded: Recorded, server: str) -> None:
    """It answers with positions."""
    ask(lambda question, texts: rerank(server, question, texts))
    assert_reranked(recorded, model="bge")


def test_failures_and_cancellations_pass_on(recorded: Recorded, server: str) -> None:
    """The client's own exception is raised."""
    assert_fails(recorded, "retrieve", lambda: query(server, top_k=0), Exception)
    assert_cancels(recorded, "retrieve", lambda: async_query(server))


def test_results_are_the_same_with_and_without(server: str) -> None:
    """What the client returns is byte-identical."""

    def show(result: Any) -> str:
        return repr([(m.id, m.score, m.metadata) for m in result.matches])

    same_result(lambda: query(server), show)
    same_result(lambda: [(h.id, h.score) for h in search(server).result.hits])


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("pinecone")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("pinecone")
