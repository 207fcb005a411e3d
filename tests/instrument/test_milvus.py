"""Milvus: its real clients and results, with the connection to the server replaced."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("pymilvus")

from corpus import QUESTION, TEXTS, embed, nearest
from laws import Patched, assert_cancels, assert_fails, ids, same_result, scores
from pymilvus import AsyncMilvusClient, MilvusClient, RRFRanker
from pymilvus.client.search_result import SearchResult
from pymilvus.grpc_gen import schema_pb2

from ragotel.testing import Recorded


def found(limit: int) -> SearchResult:
    best = nearest(QUESTION, limit)
    texts = schema_pb2.FieldData(type=schema_pb2.DataType.VarChar, field_name="text")
    texts.scalars.string_data.data.extend(TEXTS[key] for key, _ in best)
    data = schema_pb2.SearchResultData(
        num_queries=1,
        top_k=limit,
        scores=[score for _, score in best],
        topks=[len(best)],
        fields_data=[texts],
        output_fields=["text"],
        primary_field_name="chunk_id",
    )
    data.ids.str_id.data.extend(key for key, _ in best)
    return SearchResult(data)


class Connection:
    """Answers as the handler of a connection to a server does."""

    def search(self, collection_name: str, **options: Any) -> SearchResult:
        if collection_name == "none":
            raise ValueError("no collection")
        return found(options["limit"])

    def hybrid_search(self, collection_name: str, *args: Any, **options: Any) -> SearchResult:
        return found(options["limit"])


class AsyncConnection:
    async def search(self, collection_name: str, **options: Any) -> SearchResult:
        await asyncio.sleep(3600 if collection_name == "slow" else 0)
        return found(options["limit"])


def client(kind: Any, connection: Any) -> Any:
    made = object.__new__(kind)
    if kind is MilvusClient:
        made._get_connection = lambda: connection
    else:
        made._get_connection = lambda: asyncio.sleep(0, connection)
    made._with_cluster_id = lambda kwargs: kwargs
    made._generate_call_context = lambda **kwargs: None
    made._get_schema = lambda *args, **kwargs: ({}, 0)
    return made


def search(name: str = "docs", **options: Any) -> Any:
    made = client(MilvusClient, Connection())
    return made.search(name, [embed(QUESTION)], limit=3, **options)


async def async_search(name: str = "docs") -> Any:
    made = client(AsyncMilvusClient, AsyncConnection())
    return await made.search(name, [embed(QUESTION)], limit=3)


def test_a_search_is_a_retrieval(recorded: Recorded) -> None:
    """Ids, scores, texts, k, filter and collection; what is called a distance is a similarity."""
    search(filter="year > 2020", search_params={"metric_type": "COSINE"})
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in nearest(QUESTION, 3)]
    assert scores(stage) == pytest.approx([score for _, score in nearest(QUESTION, 3)], abs=1e-6)
    assert (stage["rag.score.kind"], stage["rag.score.higher_is_better"]) == ("cosine", True)
    assert stage["gen_ai.data_source.id"] == "docs"
    assert stage["gen_ai.retrieval.top_k"] == 3
    assert stage["rag.filter"] == "year > 2020"
    assert set(stage["rag.chunks"].values()) == {TEXTS[key] for key in ids(stage)}


def test_hybrid_and_async_searches_too(recorded: Recorded) -> None:
    """A fusion inside of the server is told by its scores' kind."""
    client(MilvusClient, Connection()).hybrid_search("docs", [], RRFRanker(), limit=2)
    assert recorded.stage("retrieve")["rag.score.kind"] == "rrf"
    assert ids(recorded.stage("retrieve")) == [key for key, _ in nearest(QUESTION, 2)]
    recorded.clear()
    asyncio.run(async_search())
    assert ids(recorded.stage("retrieve")) == [key for key, _ in nearest(QUESTION, 3)]
    assert_cancels(recorded, "retrieve", lambda: async_search("slow"))


def test_failures_pass_on(recorded: Recorded) -> None:
    """The client's own exception is raised."""
    assert_fails(recorded, "retrieve", lambda: search("none"), Exception)


def test_results_are_the_same_with_and_without() -> None:
    """What the client returns is byte-identical."""
    same_result(lambda: [dict(hit) for hit in search()[0]])
    same_result(search)


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("milvus")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("milvus")
