"""Weaviate: its real queries and results, with the gRPC call to the server replaced."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

pytest.importorskip("weaviate")

from corpus import QUESTION, TEXTS, embed, nearest
from laws import Patched, assert_cancels, assert_fails, ids, same_result, scores
from weaviate.classes.query import MetadataQuery, Rerank
from weaviate.collections.query import _QueryCollection, _QueryCollectionAsync
from weaviate.proto.v1 import properties_pb2, search_get_pb2
from weaviate.util import _ServerVersion

from ragotel.testing import Recorded

UUIDS = {key: str(uuid.uuid5(uuid.NAMESPACE_URL, key)) for key in TEXTS}
ALL = MetadataQuery.full()


def reply(request: Any) -> Any:
    answer = search_get_pb2.SearchReply()
    for key, score in nearest(QUESTION, request.limit):
        one = answer.results.add()
        about = one.metadata
        about.id = UUIDS[key]
        about.id_as_bytes = uuid.UUID(UUIDS[key]).bytes
        if request.metadata.distance:
            about.distance, about.distance_present = 1 - score, True
        if request.metadata.score:
            about.score, about.score_present = score, True
        if request.HasField("rerank"):
            about.rerank_score, about.rerank_score_present = score * 2, True
        text = properties_pb2.Value(text_value=TEXTS[key])
        one.properties.non_ref_props.fields["text"].CopyFrom(text)
    return answer


class Connection:
    _weaviate_version = _ServerVersion(1, 34, 0)

    def grpc_search(self, request: Any) -> Any:
        if request.collection == "None":
            raise ValueError("no collection")
        return reply(request)


class AsyncConnection(Connection):
    async def grpc_search(self, request: Any) -> Any:
        await asyncio.sleep(3600 if request.collection == "Slow" else 0)
        return reply(request)


def queries(kind: Any = _QueryCollection, name: str = "Docs") -> Any:
    connection = Connection() if kind is _QueryCollection else AsyncConnection()
    return kind(connection, name, None, None, None, None, True)


def near_text(name: str = "Docs", **options: Any) -> Any:
    made = queries(name=name)
    return made.near_text(QUESTION, limit=3, return_metadata=ALL, **options)


async def async_near_vector(name: str = "Docs") -> Any:
    made = queries(_QueryCollectionAsync, name)
    return await made.near_vector(embed(QUESTION), limit=3, return_metadata=ALL)


def expected() -> list[str]:
    return [UUIDS[key] for key, _ in nearest(QUESTION, 3)]


def test_a_query_is_a_retrieval(recorded: Recorded) -> None:
    """Ids, distances, texts, question, k and collection."""
    near_text()
    stage = recorded.stage("retrieve")
    assert ids(stage) == expected()
    assert scores(stage) == pytest.approx([1 - s for _, s in nearest(QUESTION, 3)], abs=1e-6)
    assert stage["rag.score.higher_is_better"] is False
    assert "rag.score.kind" not in stage
    assert stage["gen_ai.retrieval.query.text"] == QUESTION
    assert stage["gen_ai.retrieval.top_k"] == 3
    assert stage["gen_ai.data_source.id"] == "Docs"
    assert set(stage["rag.chunks"].values()) == {TEXTS[key] for key, _ in nearest(QUESTION, 3)}


def test_operations_have_scores_of_their_own_kind(recorded: Recorded) -> None:
    """Without metadata asked for there are no scores; a rerank on the server is told."""
    queries().bm25(QUESTION, limit=2, return_metadata=ALL)
    assert recorded.stage("retrieve")["rag.score.kind"] == "bm25"
    recorded.clear()
    queries().near_text(QUESTION, limit=2)
    assert scores(recorded.stage("retrieve")) == [None, None]
    recorded.clear()
    near_text(rerank=Rerank(prop="text", query=QUESTION))
    stage = recorded.stage("retrieve")
    assert stage["rag.rerank.server_side"] is True
    assert (stage["rag.score.kind"], stage["rag.score.higher_is_better"]) == ("relevance", True)


def test_the_async_client_records_the_same(recorded: Recorded) -> None:
    """It ends when it is awaited."""
    asyncio.run(async_near_vector())
    assert ids(recorded.stage("retrieve")) == expected()
    assert_cancels(recorded, "retrieve", lambda: async_near_vector("Slow"))


def test_failures_pass_on(recorded: Recorded) -> None:
    """The client's own exception is raised."""
    assert_fails(recorded, "retrieve", lambda: near_text("None"), ValueError)


def test_results_are_the_same_with_and_without() -> None:
    """What the client returns is byte-identical."""

    def show(result: Any) -> str:
        return repr([(one.uuid, one.properties, one.metadata) for one in result.objects])

    same_result(near_text, show)
    same_result(lambda: asyncio.run(async_near_vector()), show)


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("weaviate")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("weaviate")
