"""Qdrant: the client's own local engine, sync and async."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("qdrant_client")

from corpus import QUESTION, TEXTS, embed, nearest
from laws import Patched, assert_cancels, assert_fails, ids, kinds, same_result, scores
from qdrant_client import AsyncQdrantClient, QdrantClient, models

import ragotel
from ragotel.testing import Recorded

COSINE = models.Distance.COSINE


def points() -> list[models.PointStruct]:
    return [
        models.PointStruct(id=place, vector=embed(text), payload={"chunk_id": key, "text": text})
        for place, (key, text) in enumerate(TEXTS.items(), start=100)
    ]


def client(distance: models.Distance = COSINE) -> QdrantClient:
    made = QdrantClient(":memory:")
    made.create_collection("docs", vectors_config=models.VectorParams(size=64, distance=distance))
    made.upsert("docs", points())
    return made


def search(distance: models.Distance = COSINE, **options: Any) -> Any:
    return client(distance).query_points("docs", query=embed(QUESTION), limit=3, **options)


def expected() -> list[str]:
    places = {key: str(place) for place, key in enumerate(TEXTS, start=100)}
    return [places[key] for key, _ in nearest(QUESTION, 3)]


def test_a_query_is_a_retrieval(recorded: Recorded) -> None:
    """Ids, similarities with their direction, texts, k, filter and the collection's name."""
    only = models.Filter(
        must_not=[models.FieldCondition(key="chunk_id", match=models.MatchValue(value="none"))]
    )
    search(query_filter=only)
    stage = recorded.stage("retrieve")
    assert ids(stage) == expected()
    assert scores(stage) == pytest.approx([s for _, s in nearest(QUESTION, 3)], abs=1e-6)
    assert stage["rag.score.kind"] == "cosine"
    assert stage["rag.score.higher_is_better"] is True
    assert stage["gen_ai.data_source.id"] == "docs"
    assert stage["gen_ai.retrieval.top_k"] == 3
    assert '"chunk_id"' in stage["rag.filter"]
    assert set(stage["rag.chunks"].values()) == {TEXTS[key] for key, _ in nearest(QUESTION, 3)}


def test_a_distance_is_better_when_lower(recorded: Recorded) -> None:
    """The direction is that of the collection's own measure."""
    search(models.Distance.EUCLID)
    stage = recorded.stage("retrieve")
    assert stage["rag.score.kind"] == "l2"
    assert stage["rag.score.higher_is_better"] is False
    assert scores(stage) == sorted(scores(stage))


def test_batches_and_groups_are_retrievals(recorded: Recorded) -> None:
    """Several searches in one call are one list; groups are read out."""
    request = models.QueryRequest(query=embed(QUESTION), limit=2)
    client().query_batch_points("docs", requests=[request, request])
    assert (
        len(ids(recorded.stage("retrieve"))) == 0
        or ids(recorded.stage("retrieve")) == (expected()[:2])
    )
    recorded.clear()
    client().query_points_groups(
        "docs", group_by="chunk_id", query=embed(QUESTION), limit=2, group_size=1
    )
    assert ids(recorded.stage("retrieve")) == expected()[:2]
    assert recorded.stage("retrieve")["gen_ai.retrieval.top_k"] == 2


def test_a_decorator_above_gives_one_stage(recorded: Recorded) -> None:
    """A decorated search with ids of its own keeps them, and takes the client's scores."""

    @ragotel.retrieve(leg="dense")
    def retrieve(question: str) -> list[dict[str, Any]]:
        return [
            {"id": hit.payload["chunk_id"], "text": hit.payload["text"]} for hit in search().points
        ]

    retrieve(QUESTION)
    assert kinds(recorded) == ["retrieve"]
    stage = recorded.stage("retrieve")
    assert ids(stage) == [key for key, _ in nearest(QUESTION, 3)]
    assert scores(stage) == pytest.approx([s for _, s in nearest(QUESTION, 3)], abs=1e-6)
    assert stage["rag.score.kind"] == "cosine"
    assert stage["gen_ai.data_source.id"] == "docs"


def test_two_searches_in_one_decorated_function_are_its_legs(recorded: Recorded) -> None:
    """The function's own list stays its own; the client's are stages inside of it."""

    @ragotel.request
    def answer(question: str) -> Any:
        return hybrid(question)

    @ragotel.retrieve(leg="hybrid")
    def hybrid(question: str) -> list[Any]:
        return [search().points[0], search(models.Distance.EUCLID).points[1]]

    answer(QUESTION)
    assert kinds(recorded) == ["request", "retrieve", "retrieve", "retrieve"]
    outer, first, second = recorded.stages("retrieve")
    assert (outer["rag.stage.name"], len(ids(outer))) == ("hybrid", 2)
    assert (len(ids(first)), len(ids(second))) == (3, 3)
    spans = {span["span_id"]: span for span in recorded.spans}
    inner = [s for s in spans.values() if s["attributes"]["rag.stage.name"] == "qdrant"]
    assert {spans[s["parent_span_id"]]["attributes"]["rag.stage.name"] for s in inner} == {"hybrid"}


async def async_client() -> AsyncQdrantClient:
    made = AsyncQdrantClient(":memory:")
    await made.create_collection(
        "docs", vectors_config=models.VectorParams(size=64, distance=COSINE)
    )
    await made.upsert("docs", points())
    return made


async def async_search() -> Any:
    return await (await async_client()).query_points("docs", query=embed(QUESTION), limit=3)


def test_the_async_client_records_the_same(recorded: Recorded) -> None:
    """Its searches are stages, and end when they are awaited."""
    asyncio.run(async_search())
    assert ids(recorded.stage("retrieve")) == expected()
    assert recorded.stage("retrieve")["rag.score.kind"] == "cosine"

    class Hanging(AsyncQdrantClient):
        def __init__(self) -> None:
            super().__init__(":memory:")
            self._client: Any = self

        async def query_batch_points(self, *args: Any, **kwargs: Any) -> Any:
            return None

    hanging = Hanging()
    hanging._client = type(
        "Server", (), {"query_points": lambda self, **request: asyncio.sleep(3600)}
    )()
    assert_cancels(
        recorded, "retrieve", lambda: hanging.query_points("docs", query=embed(QUESTION))
    )


def test_failures_pass_on(recorded: Recorded) -> None:
    """The library's own exception is raised."""
    assert_fails(
        recorded, "retrieve", lambda: client().query_points("none", query=[1.0]), ValueError
    )


def test_results_are_the_same_with_and_without() -> None:
    """What a query returns is byte-identical."""
    same_result(search)
    same_result(lambda: asyncio.run(async_search()))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("qdrant")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("qdrant")
