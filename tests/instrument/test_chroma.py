"""Chroma: local collections, and the async client against Chroma's own server class."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("chromadb")

import chromadb
from chromadb.api.models.AsyncCollection import AsyncCollection
from corpus import QUESTION, TEXTS, embed, nearest
from laws import Patched, assert_cancels, assert_fails, ids, kinds, rows, same_result, scores

import ragotel
from ragotel.testing import Recorded


class HashFunction(chromadb.EmbeddingFunction[Any]):
    def __init__(self) -> None:
        pass

    def __call__(self, input: Any) -> Any:
        return [embed(text) for text in input]


def collection(space: str = "cosine") -> Any:
    client = chromadb.EphemeralClient()
    name = f"docs-{space}"
    made = client.get_or_create_collection(
        name, configuration={"hnsw": {"space": space}}, embedding_function=HashFunction()
    )
    made.upsert(
        ids=list(TEXTS),
        documents=list(TEXTS.values()),
        metadatas=[{"doc_id": key.split("-")[0]} for key in TEXTS],
    )
    return made


def search(**options: Any) -> Any:
    return collection().query(query_texts=[QUESTION], n_results=3, **options)


def test_a_query_is_a_retrieval(recorded: Recorded) -> None:
    """Ids, distances with their direction, texts, k, filter and the collection's name."""
    search(where={"doc_id": {"$ne": "support"}})
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in nearest(QUESTION, 3)]
    assert scores(stage) == pytest.approx([1 - s for _, s in nearest(QUESTION, 3)], abs=1e-6)
    assert stage["rag.score.kind"] == "cosine_distance"
    assert stage["rag.score.higher_is_better"] is False
    assert stage["gen_ai.data_source.id"] == "docs-cosine"
    assert stage["gen_ai.retrieval.query.text"] == QUESTION
    assert stage["gen_ai.retrieval.top_k"] == 3
    assert stage["rag.filter"] == '{"where":{"doc_id":{"$ne":"support"}}}'
    assert set(stage["rag.chunks"].values()) == {TEXTS[key] for key in ids(stage)}


def test_what_was_not_asked_for_is_null(recorded: Recorded) -> None:
    """A query without distances and documents has ids alone."""
    search(include=["metadatas"])
    assert rows(recorded.stage("retrieve")) == [
        {"id": key, "score": None} for key, _ in nearest(QUESTION, 3)
    ]


def test_spaces_are_kinds_of_scores(recorded: Recorded) -> None:
    """Every space gives distances, each of its own kind."""
    kinds_of = {}
    for space in ("l2", "ip"):
        recorded.clear()
        collection(space).query(query_embeddings=[embed(QUESTION)], n_results=2)
        kinds_of[space] = recorded.stage("retrieve")["rag.score.kind"]
        assert recorded.stage("retrieve")["rag.score.higher_is_better"] is False
        assert "gen_ai.retrieval.query.text" not in recorded.stage("retrieve")
    assert kinds_of == {"l2": "l2", "ip": "dot_distance"}


def test_two_questions_in_one_call_are_one_list(recorded: Recorded) -> None:
    """Each candidate stands once, at its best rank."""
    collection().query(query_texts=[QUESTION, "When is support there?"], n_results=2)
    found = ids(recorded.stage("retrieve"))
    assert found[:2] == [nearest(QUESTION, 1)[0][0], nearest("When is support there?", 1)[0][0]]
    assert len(found) == len(set(found))


def test_a_decorator_above_gives_one_stage(recorded: Recorded) -> None:
    """A decorated search that returns bare texts has the client's ids and distances."""

    @ragotel.retrieve(leg="dense", index_version="7")
    def retrieve(question: str) -> list[str]:
        found: list[str] = collection().query(query_texts=[question], n_results=3)["documents"][0]
        return found

    retrieve(QUESTION)
    assert kinds(recorded) == ["retrieve"]
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in nearest(QUESTION, 3)]
    assert None not in scores(stage)
    assert stage["rag.score.higher_is_better"] is False
    assert stage["gen_ai.data_source.id"] == "docs-cosine"
    assert stage["rag.stage.name"] == "dense"


class AsyncServer:
    """Answers an AsyncCollection as Chroma's server would, from the local one."""

    def __init__(self, *, hang: bool = False) -> None:
        self.hang = hang

    async def _query(self, **request: Any) -> Any:
        if self.hang:
            await asyncio.sleep(3600)
        local = collection()
        return local._client._query(**{**request, "collection_id": local.id})


def async_collection(*, hang: bool = False) -> AsyncCollection:
    local = collection()
    server: Any = AsyncServer(hang=hang)
    return AsyncCollection(server, local._model, HashFunction())


def test_the_async_client_records_the_same(recorded: Recorded) -> None:
    """AsyncCollection's queries are stages, and end when they are awaited."""
    asyncio.run(async_collection().query(query_texts=[QUESTION], n_results=3))
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in nearest(QUESTION, 3)]
    assert stage["gen_ai.data_source.id"] == "docs-cosine"
    assert_cancels(
        recorded, "retrieve", lambda: async_collection(hang=True).query(query_texts=[QUESTION])
    )


def test_failures_pass_on(recorded: Recorded) -> None:
    """The library's own exception is raised."""
    assert_fails(recorded, "retrieve", lambda: search(include=["nothing"]), ValueError)


def test_results_are_the_same_with_and_without() -> None:
    """What a query returns is byte-identical."""
    same_result(search)
    same_result(lambda: asyncio.run(async_collection().query(query_texts=[QUESTION])))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("chroma")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("chroma")
