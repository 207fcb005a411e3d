"""Haystack: a pipeline's components record themselves as the stages of one request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("haystack")

from corpus import QUESTION, TEXTS, embed, nearest, overlap
from haystack import Document, Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.components.writers import DocumentWriter
from haystack.core.errors import PipelineRuntimeError
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from laws import Patched, dropped, ids, kinds, same_result, scores

import ragotel
from ragotel.testing import Recorded

ANSWER = "You have 21 calendar days."
TEMPLATE = (
    "{% for d in documents %}{{ d.content }}\n{% endfor %}\nAnswer this question: {{ question }}"
)


@component
class OverlapRanker:
    """Sorts by common words, and keeps the best."""

    def __init__(self, top_k: int = 2) -> None:
        self.top_k = top_k

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
        scored = [Document(id=d.id, content=d.content) for d in documents]
        for one in scored:
            one.score = overlap(query, one.content or "")
        return {"documents": sorted(scored, key=lambda d: -(d.score or 0))[: self.top_k]}


@component
class FixedChatGenerator:
    """A model that always answers the same."""

    def __init__(self, *, fail: bool = False) -> None:
        self.fail = fail

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        if self.fail:
            raise ValueError("no model")
        meta = {
            "model": "fixed-1",
            "finish_reason": "stop",
            "usage": {"prompt_tokens": 80, "completion_tokens": 6},
        }
        return {"replies": [ChatMessage.from_assistant(ANSWER, meta=meta)]}


def store() -> InMemoryDocumentStore:
    made = InMemoryDocumentStore(embedding_similarity_function="cosine")
    made.write_documents(
        [Document(id=key, content=text, embedding=embed(text)) for key, text in TEXTS.items()]
    )
    return made


def make_pipeline(*, fail: bool = False) -> Pipeline:
    documents = store()
    made = Pipeline()
    made.add_component("dense", InMemoryEmbeddingRetriever(documents, top_k=4))
    made.add_component("bm25", InMemoryBM25Retriever(documents, top_k=3))
    made.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion"))
    made.add_component("ranker", OverlapRanker())
    made.add_component(
        "prompt",
        ChatPromptBuilder([ChatMessage.from_user(TEMPLATE)], required_variables="*"),
    )
    made.add_component("llm", FixedChatGenerator(fail=fail))
    made.connect("dense.documents", "joiner.documents")
    made.connect("bm25.documents", "joiner.documents")
    made.connect("joiner.documents", "ranker.documents")
    made.connect("ranker.documents", "prompt.documents")
    made.connect("prompt.prompt", "llm.messages")
    return made


def data() -> dict[str, Any]:
    return {
        "dense": {"query_embedding": embed(QUESTION)},
        "bm25": {"query": QUESTION},
        "ranker": {"query": QUESTION},
        "prompt": {"question": QUESTION},
    }


def test_a_pipeline_is_one_request_with_its_stages(recorded: Recorded) -> None:
    """A pipeline's record has what a verdict needs, without a decorator."""
    result = make_pipeline().run(data())
    assert result["llm"]["replies"][0].text == ANSWER
    assert sorted(kinds(recorded)) == sorted(
        ["request", "retrieve", "retrieve", "fuse", "rerank", "assemble", "generate"]
    )
    request = recorded.stage("request")
    assert (request["rag.query"], request["rag.answer"]) == (QUESTION, ANSWER)

    legs = {stage["rag.stage.name"]: stage for stage in recorded.stages("retrieve")}
    assert ids(legs["dense"]) == [key for key, _ in nearest(QUESTION, 4)]
    assert scores(legs["dense"]) == pytest.approx([s for _, s in nearest(QUESTION, 4)])
    assert legs["dense"]["rag.score.kind"] == "cosine"
    assert legs["bm25"]["rag.score.kind"] == "bm25"
    assert legs["bm25"]["gen_ai.retrieval.query.text"] == QUESTION
    assert legs["bm25"]["gen_ai.retrieval.top_k"] == 3

    # Not named by its user, the store has a name of its own in every process: no name at all.
    assert "gen_ai.data_source.id" not in legs["bm25"]

    fuse, rerank = recorded.stage("fuse"), recorded.stage("rerank")
    both = set(ids(legs["dense"])) | set(ids(legs["bm25"]))
    assert set(ids(fuse)) == both
    assert fuse["rag.fuse.method"] == "rrf"
    best = sorted(ids(fuse), key=lambda key: -overlap(QUESTION, TEXTS[key]))
    assert ids(rerank) == best[:2]
    assert dropped(rerank) == dict.fromkeys(best[2:], "top_n")

    assemble = recorded.stage("assemble")
    assert ids(assemble) == best[:2]
    assert assemble["rag.candidates.in_count"] == 2
    assert assemble["rag.prompt.version_source"] == "template"
    generate = recorded.stage("generate")
    assert generate["gen_ai.usage.input_tokens"] == 80
    assert generate["gen_ai.response.finish_reasons"] == ["stop"]


def test_a_store_that_its_user_named_is_the_index(recorded: Recorded) -> None:
    """A name that was given is the name of the index."""
    documents = InMemoryDocumentStore(index="returns")
    documents.write_documents([Document(id=key, content=text) for key, text in TEXTS.items()])
    made = Pipeline()
    made.add_component("bm25", InMemoryBM25Retriever(documents, top_k=3))
    made.run({"bm25": {"query": QUESTION}})
    assert recorded.stage("retrieve")["gen_ai.data_source.id"] == "returns"


def test_an_async_pipeline_records_the_same(recorded: Recorded) -> None:
    """Also when its legs run side by side."""
    asyncio.run(make_pipeline().run_async(data()))
    assert sorted(kinds(recorded)) == sorted(
        ["request", "retrieve", "retrieve", "fuse", "rerank", "assemble", "generate"]
    )
    assert recorded.stage("request")["rag.query"] == QUESTION
    assert len(ids(recorded.stage("assemble"))) == 2


def test_a_pipeline_that_writes_is_no_request(recorded: Recorded) -> None:
    """Nobody asks anything when documents are written."""
    made = Pipeline()
    made.add_component("writer", DocumentWriter(InMemoryDocumentStore()))
    made.run({"writer": {"documents": [Document(content="text")]}})
    assert kinds(recorded) == []


def test_a_decorator_above_gives_one_request(recorded: Recorded) -> None:
    """One question has one request."""

    @ragotel.request
    def answer(question: str) -> str:
        return str(make_pipeline().run(data())["llm"]["replies"][0].text)

    assert answer(QUESTION) == ANSWER
    assert kinds(recorded).count("request") == 1


def test_failures_pass_on(recorded: Recorded) -> None:
    """The service's own exception is raised, and stage and request have ended with it."""
    with pytest.raises(PipelineRuntimeError, match="no model"):
        make_pipeline(fail=True).run(data())
    assert recorded.stage("generate")["rag.outcome"] == "error"
    assert recorded.stage("request")["rag.outcome"] == "error"


def test_a_cancelled_pipeline_ends_its_request(recorded: Recorded) -> None:
    """Hanging up is no error."""

    @component
    class SlowRetriever:
        @component.output_types(documents=list[Document])
        def run(self, query: str) -> dict[str, Any]:
            return {"documents": []}

        @component.output_types(documents=list[Document])
        async def run_async(self, query: str) -> dict[str, Any]:
            started.set()
            await asyncio.sleep(3600)
            return {"documents": []}

    async def hang_up() -> None:
        made = Pipeline()
        made.add_component("slow", SlowRetriever())
        task = asyncio.ensure_future(made.run_async({"slow": {"query": QUESTION}}))
        await started.wait()
        task.cancel()
        await task

    started = asyncio.Event()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(hang_up())
    assert recorded.stage("request")["rag.outcome"] == "cancelled"


def test_results_are_the_same_with_and_without() -> None:
    """Sync and async results are byte-identical."""
    same_result(lambda: make_pipeline().run(data(), include_outputs_from={"ranker", "prompt"}))
    same_result(lambda: asyncio.run(make_pipeline().run_async(data())))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("haystack")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("haystack")
