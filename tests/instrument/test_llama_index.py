"""LlamaIndex: engines, retrievers, postprocessors, prompts and models record themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from corpus import QUESTION, TEXTS, embed, nearest, overlap
from laws import Patched, dropped, ids, kinds, same_result, scores
from llama_index.core import PromptTemplate, Settings, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

import ragotel
from ragotel.testing import Recorded

ANSWER = "You have 21 calendar days."


class HashEmbedding(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)


class Fixed(CustomLLM):
    """A model that always answers the same, with the usage of an OpenAI reply."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="fixed-1")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        raw = {"model": "fixed-1", "usage": {"prompt_tokens": 90, "completion_tokens": 6}}
        return CompletionResponse(text=ANSWER, raw=raw)

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        def parts() -> CompletionResponseGen:
            text = ""
            for word in ANSWER.split(" "):
                text = f"{text} {word}".strip()
                yield CompletionResponse(text=text, delta=word)

        return parts()


class OverlapRerank(BaseNodePostprocessor):
    """Sets its scores on the very nodes that came in, as LlamaIndex's own rerankers do."""

    top_n: int = 2

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        assert query_bundle is not None
        for node in nodes:
            node.score = overlap(query_bundle.query_str, node.node.get_content())
        return sorted(nodes, key=lambda n: -(n.score or 0))[: self.top_n]


class Failing(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        raise ValueError("no index")

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        await asyncio.sleep(3600)
        return []


@pytest.fixture(autouse=True)
def _models() -> None:
    Settings.embed_model = HashEmbedding()
    Settings.llm = Fixed()


def index() -> VectorStoreIndex:
    return VectorStoreIndex([TextNode(id_=key, text=text) for key, text in TEXTS.items()])


def engine(**options: Any) -> RetrieverQueryEngine:
    return RetrieverQueryEngine(
        index().as_retriever(similarity_top_k=4),
        node_postprocessors=[OverlapRerank(), SimilarityPostprocessor(similarity_cutoff=0.35)],
        response_synthesizer=get_response_synthesizer(**options),
    )


def test_a_query_is_one_request_with_its_stages(recorded: Recorded) -> None:
    """A query engine's record has what a verdict needs, without a decorator."""
    assert str(engine().query(QUESTION)) == ANSWER
    assert kinds(recorded) == ["request", "retrieve", "rerank", "filter", "assemble", "generate"]
    request = recorded.stage("request")
    assert (request["rag.query"], request["rag.answer"]) == (QUESTION, ANSWER)

    retrieve, truth = recorded.stage("retrieve"), nearest(QUESTION, 4)
    assert ids(retrieve) == [key for key, _ in truth]
    # The reranker has overwritten these on the nodes themselves since.
    assert scores(retrieve) == pytest.approx([score for _, score in truth])
    assert retrieve["gen_ai.retrieval.top_k"] == 4
    assert retrieve["rag.score.kind"] == "cosine"

    rerank = recorded.stage("rerank")
    best = sorted((key for key, _ in truth), key=lambda key: -overlap(QUESTION, TEXTS[key]))
    assert ids(rerank) == best[:2]
    assert scores(rerank) == [overlap(QUESTION, TEXTS[key]) for key in best[:2]]
    assert dropped(rerank) == dict.fromkeys(best[2:], "top_n")
    assert rerank["rag.rerank.effect"] == "reordered"

    kept = [key for key in best[:2] if overlap(QUESTION, TEXTS[key]) >= 0.35]
    assert ids(recorded.stage("filter")) == kept
    assert set(dropped(recorded.stage("filter")).values()) == {"threshold"}

    assemble = recorded.stage("assemble")
    assert ids(assemble) == kept
    assert all(TEXTS[key] in assemble["rag.prompt.text"] for key in kept)
    assert assemble["gen_ai.prompt.name"] == "text_qa"
    assert assemble["rag.prompt.version_source"] == "template"

    generate = recorded.stage("generate")
    assert generate["gen_ai.usage.input_tokens"] == 90
    assert generate["gen_ai.request.model"] == "fixed-1"


def test_async_and_streaming_queries_record_the_same(recorded: Recorded) -> None:
    """However the engine is asked, the stages are the same; the request ends with its stream."""
    assert str(asyncio.run(engine().aquery(QUESTION))) == ANSWER
    expected = ["request", "retrieve", "rerank", "filter", "assemble", "generate"]
    assert kinds(recorded) == expected
    recorded.clear()

    response: Any = engine(streaming=True).query(QUESTION)
    assert " ".join(response.response_gen) == ANSWER
    assert kinds(recorded) == expected
    assert recorded.stage("request")["rag.answer"] == ANSWER.replace(" ", "")
    assert recorded.stage("generate")["rag.outcome"] == "ok"


def chat_engine(model: Any = None) -> Any:
    return ContextChatEngine.from_defaults(retriever=index().as_retriever(), llm=model or Fixed())


def test_a_chat_that_streams_is_a_request(recorded: Recorded) -> None:
    """It ends when its whole answer is written, read by the service or not."""
    reply = chat_engine().stream_chat(QUESTION)
    assert " ".join(reply.response_gen) == ANSWER
    expected = ["request", "retrieve", "assemble", "generate"]
    assert kinds(recorded) == expected
    assert recorded.stage("request")["rag.query"] == QUESTION
    assert recorded.stage("request")["rag.answer"] == ANSWER.replace(" ", "")
    assert len(ids(recorded.stage("retrieve"))) == 2

    recorded.clear()
    unread = chat_engine().stream_chat(QUESTION)
    unread.write_response_to_history_thread.join()
    assert kinds(recorded) == expected
    assert recorded.stage("request")["rag.outcome"] == "ok"


def test_an_async_chat_that_streams_is_a_request(recorded: Recorded) -> None:
    """Its task writes the answer; the request ends with the task."""

    async def ask() -> str:
        reply = await chat_engine().astream_chat(QUESTION)
        return " ".join([part async for part in reply.async_response_gen()])

    assert asyncio.run(ask()) == ANSWER
    assert kinds(recorded) == ["request", "retrieve", "assemble", "generate"]
    assert recorded.stage("request")["rag.answer"] == ANSWER.replace(" ", "")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_chat_whose_stream_breaks_fails_its_request(recorded: Recorded) -> None:
    """The reader gets the model's exception, and the request has ended with it."""

    class Breaking(Fixed):
        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            def parts() -> Any:
                yield CompletionResponse(text="You", delta="You")
                raise ConnectionError("gone")

            return parts()

    reply = chat_engine(Breaking()).stream_chat(QUESTION)
    thread = reply.write_response_to_history_thread
    thread.join()
    with pytest.raises(ConnectionError, match="gone"):
        list(reply.response_gen)
    assert recorded.stage("request")["rag.outcome"] == "error"
    assert recorded.stage("request")["error.type"] == "ConnectionError"


def test_a_fusion_has_its_legs(recorded: Recorded) -> None:
    """Each query's leg is a stage, and what the limit cut is named."""
    fusion = QueryFusionRetriever(
        [index().as_retriever(similarity_top_k=3), index().as_retriever(similarity_top_k=2)],
        num_queries=1,
        similarity_top_k=2,
        mode="reciprocal_rerank",  # type: ignore[arg-type]
        use_async=False,
    )
    found = ragotel.request(lambda question: fusion.retrieve(question))(QUESTION)
    assert kinds(recorded) == ["request", "retrieve", "retrieve", "fuse"]
    fuse = recorded.stage("fuse")
    assert ids(fuse) == [one.node_id for one in found]
    assert fuse["rag.fuse.method"] == "rrf"
    assert fuse["rag.candidates.in_count"] == 3
    assert set(dropped(fuse).values()) == {"limit"}


def test_a_decorator_above_gives_one_stage(recorded: Recorded) -> None:
    """Decorator and retriever are one retrieval; model and client one generation."""

    @ragotel.retrieve(leg="dense", index="docs")
    def search(question: str) -> list[str]:
        return [n.node.get_content() for n in index().as_retriever().retrieve(question)]

    @ragotel.generate(model="mine")
    def complete(prompt: str) -> str:
        return str(Fixed().complete(prompt))

    @ragotel.request
    def answer(question: str) -> str:
        return complete(search(question)[0] + "\n" + question)

    assert answer(QUESTION) == ANSWER
    assert kinds(recorded) == ["request", "retrieve", "assemble", "generate"]
    retrieve = recorded.stage("retrieve")
    assert (retrieve["rag.stage.name"], ids(retrieve)) == (
        "dense",
        [key for key, _ in nearest(QUESTION, 2)],
    )
    assert None not in scores(retrieve)
    assert recorded.stage("generate")["gen_ai.request.model"] == "mine"
    assert recorded.stage("generate")["gen_ai.usage.input_tokens"] == 90


def test_failures_and_cancellations_pass_on(recorded: Recorded) -> None:
    """The service's own exception is raised, and the stage has ended with it."""
    with pytest.raises(ValueError, match="no index"):
        Failing().retrieve(QUESTION)

    async def hang_up() -> None:
        task = asyncio.ensure_future(Failing().aretrieve(QUESTION))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(hang_up())
    outcomes = [stage["rag.outcome"] for stage in recorded.stages("retrieve")]
    assert outcomes == ["error", "cancelled"]


def test_results_are_the_same_with_and_without() -> None:
    """Sync, async and streaming results are byte-identical."""

    def show(response: Any) -> str:
        nodes = [(n.node_id, n.score, n.node.get_content()) for n in response.source_nodes]
        return f"{response} {nodes} {type(response)}"

    def streamed() -> list[str]:
        response: Any = engine(streaming=True).query(QUESTION)
        return list(response.response_gen)

    def chat() -> ChatResponse:
        return Fixed().chat([ChatMessage(content="hello")])

    same_result(lambda: engine().query(QUESTION), show)
    same_result(lambda: list(chat_engine().stream_chat(QUESTION).response_gen))
    same_result(lambda: asyncio.run(engine().aquery(QUESTION)), show)
    same_result(streamed)
    same_result(chat)
    same_result(lambda: Fixed().predict(PromptTemplate("{a}"), a="x"))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("llama_index")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("llama_index")
