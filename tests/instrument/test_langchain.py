"""LangChain: chains, retrievers, stores, compressors, prompts and models record themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("langchain_classic")

from corpus import QUESTION, TEXTS, embed, nearest, overlap
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from laws import Patched, dropped, ids, kinds, rows, same_result, scores

import ragotel
from ragotel.testing import Recorded

ANSWER = "You have 21 calendar days."
TEMPLATE = "Answer from these passages only.\n\n{context}\n\nQuestion: {question}"


class HashEmbeddings(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


class Overlap(BaseCrossEncoder):
    """A cross-encoder that counts common words."""

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return [overlap(query, text) for query, text in text_pairs]


class Counting(BaseChatModel):
    """A model whose stream tells its usage in parts, as Anthropic's does."""

    @property
    def _llm_type(self) -> str:
        return "counting"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kw: Any) -> Any:
        raise NotImplementedError

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kw: Any) -> Any:
        for text, asked, given in (("You have ", 72, 0), ("21 days.", 0, 6)):
            usage: Any = {"input_tokens": asked, "output_tokens": given, "total_tokens": 0}
            yield ChatGenerationChunk(message=AIMessageChunk(content=text, usage_metadata=usage))


class Rebuilding(BaseDocumentCompressor):
    """Keeps two documents, and builds them anew without their ids, as hosted rerankers do."""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Any = None
    ) -> Sequence[Document]:
        best = sorted(documents, key=lambda d: -overlap(query, d.page_content))[:2]
        return [
            Document(
                page_content=d.page_content,
                metadata={"relevance_score": overlap(query, d.page_content)},
            )
            for d in best
        ]


class Failing(BaseRetriever):
    error: Any = None

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        raise self.error

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        await asyncio.sleep(3600)
        return []


class Keyword(BaseRetriever):
    """A retriever of the service's own, without scores."""

    documents: list[Document]
    k: int = 3

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return sorted(self.documents, key=lambda d: -overlap(query, d.page_content))[: self.k]


def documents() -> list[Document]:
    return [Document(id=key, page_content=text) for key, text in TEXTS.items()]


def store() -> InMemoryVectorStore:
    made = InMemoryVectorStore(HashEmbeddings())
    made.add_documents(documents())
    return made


def model(*, parts: bool = False) -> GenericFakeChatModel:
    reply = AIMessage(
        content=ANSWER,
        response_metadata={"model_name": "fake-1", "finish_reason": "stop"},
        usage_metadata={"input_tokens": 120, "output_tokens": 6, "total_tokens": 126},
    )
    return GenericFakeChatModel(messages=iter([reply] * 8))


def joined(found: Sequence[Document]) -> str:
    return "\n\n".join(d.page_content for d in found)


def make_chain() -> Any:
    compressed = ContextualCompressionRetriever(
        base_compressor=CrossEncoderReranker(model=Overlap(), top_n=2),
        base_retriever=store().as_retriever(search_kwargs={"k": 4}),
    )
    prompt = ChatPromptTemplate.from_messages([("system", "Be brief."), ("human", TEMPLATE)])
    return (
        {"context": compressed | joined, "question": RunnablePassthrough()}
        | prompt
        | model()
        | StrOutputParser()
    )


def test_a_chain_is_one_request_with_its_stages(recorded: Recorded) -> None:
    """The record of an ordinary chain has what a verdict needs, without a decorator."""
    assert make_chain().invoke(QUESTION, {"metadata": {"user_id": "ana"}}) == ANSWER

    assert kinds(recorded) == ["request", "retrieve", "rerank", "assemble", "generate"]
    request = recorded.stage("request")
    assert (request["rag.query"], request["rag.answer"]) == (QUESTION, ANSWER)
    assert request["user.id"] == "ana"

    truth = nearest(QUESTION, 4)
    retrieve = recorded.stage("retrieve")
    assert ids(retrieve) == [key for key, _ in truth]
    assert scores(retrieve) == pytest.approx([score for _, score in truth])
    assert retrieve["rag.stage.name"] == "InMemoryVectorStore"
    assert retrieve["gen_ai.retrieval.query.text"] == QUESTION
    assert retrieve["gen_ai.retrieval.top_k"] == 4
    assert retrieve["rag.score.kind"] == "cosine"
    assert retrieve["rag.score.higher_is_better"] is True
    assert set(retrieve["rag.chunks"].values()) == {TEXTS[key] for key, _ in truth}

    rerank = recorded.stage("rerank")
    best = sorted((key for key, _ in truth), key=lambda key: -overlap(QUESTION, TEXTS[key]))
    assert ids(rerank) == best[:2]
    # CrossEncoderReranker throws its scores away; the model below still has them.
    assert scores(rerank) == [overlap(QUESTION, TEXTS[key]) for key in best[:2]]
    assert rerank["rag.score.kind"] == "cross_encoder"
    assert rerank["rag.limit"] == 2
    assert rerank["rag.candidates.in_count"] == 4
    assert dropped(rerank) == dict.fromkeys(best[2:], "top_n")

    assemble = recorded.stage("assemble")
    assert ids(assemble) == ids(rerank)
    passages = "\n\n".join(TEXTS[key] for key in ids(rerank))
    # The messages' texts alone: no model is sent a role in front of each.
    assert assemble["rag.prompt.text"] == (
        f"Be brief.\n\n{TEMPLATE.format(context=passages, question=QUESTION)}"
    )
    assert assemble["rag.prompt.version_source"] == "template"
    assert assemble["rag.candidates.in_count"] == 2

    generate = recorded.stage("generate")
    assert generate["gen_ai.usage.input_tokens"] == 120
    assert generate["gen_ai.usage.output_tokens"] == 6
    assert generate["gen_ai.request.model"] == "fake-1"
    assert generate["gen_ai.response.finish_reasons"] == ["stop"]


def test_async_and_streaming_chains_record_the_same(recorded: Recorded) -> None:
    """However a chain is run, its stages are the same."""

    async def streamed() -> str:
        return "".join([part async for part in make_chain().astream(QUESTION)])

    ways: list[Callable[[], str]] = [
        lambda: make_chain().invoke(QUESTION),
        lambda: asyncio.run(make_chain().ainvoke(QUESTION)),
        lambda: "".join(make_chain().stream(QUESTION)),
        lambda: asyncio.run(streamed()),
    ]
    records = []
    for ask in ways:
        recorded.clear()
        assert ask() == ANSWER
        assert kinds(recorded) == ["request", "retrieve", "rerank", "assemble", "generate"]
        assert recorded.stage("request")["rag.answer"] == ANSWER
        assert recorded.stage("generate")["rag.outcome"] == "ok"
        records.append([rows(recorded.stage(kind)) for kind in ("rerank", "assemble")])
        assert scores(recorded.stage("retrieve")) == pytest.approx(
            [score for _, score in nearest(QUESTION, 4)]
        )
    assert all(one[0] == records[0][0] for one in records)


def test_usage_told_in_parts_is_added_up(recorded: Recorded) -> None:
    """A stream's chunks each tell what is new."""
    assert "".join(str(chunk.content) for chunk in Counting().stream("how long?")) == (
        "You have 21 days."
    )
    stage = recorded.stage("generate")
    assert stage["gen_ai.usage.input_tokens"] == 72
    assert stage["gen_ai.usage.output_tokens"] == 6


def test_a_call_after_the_answer_is_no_generation(recorded: Recorded) -> None:
    """A judge that is asked once the answer is there gave no answer."""
    judge = GenericFakeChatModel(messages=iter([AIMessage("Yes, as asked.")]))

    @ragotel.request
    def answer(question: str) -> str:
        reply = str(model().invoke(question).content)
        assert judge.invoke(f"Is this right? {reply}").content == "Yes, as asked."
        return reply

    assert answer(QUESTION) == ANSWER
    assert [stage["gen_ai.usage.input_tokens"] for stage in recorded.stages("generate")] == [120]
    assert len(recorded.stages("model_call")) == 1


def test_documents_rebuilt_without_ids_are_matched_by_their_text(recorded: Recorded) -> None:
    """A reranker that loses the ids does not make new candidates."""
    retriever = ContextualCompressionRetriever(
        base_compressor=Rebuilding(), base_retriever=store().as_retriever()
    )
    found = ragotel.request(lambda question: retriever.invoke(question))(QUESTION)
    assert [d.id for d in found] == [None, None]
    retrieve, rerank = recorded.stage("retrieve"), recorded.stage("rerank")
    assert set(ids(rerank)) < set(ids(retrieve))
    assert scores(rerank) == [d.metadata["relevance_score"] for d in found]
    assert set(dropped(rerank)) == set(ids(retrieve)) - set(ids(rerank))


def test_a_reranker_that_passes_its_input_through_is_told(recorded: Recorded) -> None:
    """One that falls back to what it was given changed nothing, and the record says so."""

    class FallingBack(BaseDocumentCompressor):
        def compress_documents(
            self, documents: Sequence[Document], query: str, callbacks: Any = None
        ) -> Sequence[Document]:
            return documents

    retriever = ContextualCompressionRetriever(
        base_compressor=FallingBack(), base_retriever=store().as_retriever()
    )
    ragotel.request(lambda question: retriever.invoke(question))(QUESTION)
    assert recorded.stage("rerank")["rag.rerank.effect"] == "identity"


def test_a_graph_is_one_request(recorded: Recorded) -> None:
    """LangGraph's nodes are the service's own; what they call is recorded."""
    graph = pytest.importorskip("langgraph.graph")

    class State(TypedDict, total=False):
        question: str
        context: list[Document]
        answer: str

    def retrieve(state: State) -> State:
        return {"context": store().as_retriever(search_kwargs={"k": 2}).invoke(state["question"])}

    def generate(state: State) -> State:
        prompt = ChatPromptTemplate.from_template(TEMPLATE)
        asked = prompt.invoke({"context": joined(state["context"]), "question": state["question"]})
        return {"answer": str(model().invoke(asked).content)}

    made = graph.StateGraph(State)
    made.add_sequence([retrieve, generate])
    made.add_edge(graph.START, "retrieve")
    app = made.compile()
    thread = {"configurable": {"thread_id": "t1"}}
    assert app.invoke({"question": QUESTION}, thread)["answer"] == ANSWER
    assert kinds(recorded) == ["request", "retrieve", "assemble", "generate"]
    request = recorded.stage("request")
    assert (request["rag.query"], request["rag.answer"]) == (QUESTION, ANSWER)
    assert request["gen_ai.conversation.id"] == "t1"
    assert ids(recorded.stage("assemble")) == [key for key, _ in nearest(QUESTION, 2)]


def test_an_ensemble_is_two_legs_and_a_fusion(recorded: Recorded) -> None:
    """The fused list comes from both legs, which keep their own."""
    legs = [store().as_retriever(search_kwargs={"k": 3}), Keyword(documents=documents())]
    retriever = EnsembleRetriever(retrievers=legs, weights=[0.5, 0.5])
    found = ragotel.request(lambda question: retriever.invoke(question))(QUESTION)
    assert kinds(recorded) == ["request", "retrieve", "retrieve", "fuse"]
    dense, keyword = recorded.stages("retrieve")
    assert (dense["rag.stage.name"], keyword["rag.stage.name"]) == (
        "InMemoryVectorStore",
        "Keyword",
    )
    assert scores(keyword) == [None, None, None]
    fuse = recorded.stage("fuse")
    assert ids(fuse) == [d.id for d in found]
    assert fuse["rag.candidates.in_count"] == len(set(ids(dense)) | set(ids(keyword)))


def test_a_decorator_above_gives_one_stage(recorded: Recorded) -> None:
    """Decorator, retriever and store are one retrieval, with the decorator's name and all ids."""

    @ragotel.retrieve(leg="dense", index="docs", index_version="7")
    def search(question: str, k: int = 3) -> list[Document]:
        return store().as_retriever(search_kwargs={"k": k}).invoke(question)

    @ragotel.request
    def answer(question: str) -> str:
        search(question)
        return ANSWER

    answer(QUESTION)
    assert kinds(recorded) == ["request", "retrieve"]
    stage = recorded.stage("retrieve")
    assert stage["rag.stage.name"] == "dense"
    assert stage["gen_ai.data_source.id"] == "docs"
    assert stage["rag.score.kind"] == "cosine"
    assert None not in scores(stage)


def test_a_chain_inside_of_a_request_opens_none(recorded: Recorded) -> None:
    """One question has one request."""

    @ragotel.request
    def answer(question: str) -> str:
        return str(make_chain().invoke(question))

    assert answer(QUESTION) == ANSWER
    assert kinds(recorded) == ["request", "retrieve", "rerank", "assemble", "generate"]


def test_a_store_that_is_asked_directly_is_a_stage(recorded: Recorded) -> None:
    """A search without a retriever is recorded too, with the scores it returned."""
    store().similarity_search_with_score(QUESTION, k=2)
    store().similarity_search(QUESTION, k=2)
    for stage in recorded.stages("retrieve"):
        assert ids(stage) == [key for key, _ in nearest(QUESTION, 2)]
        assert scores(stage) == pytest.approx([score for _, score in nearest(QUESTION, 2)])
        assert "rag.request.id" not in stage


def test_a_prompt_told_by_no_template_is_what_the_model_is_asked(recorded: Recorded) -> None:
    """Without a template the exact messages are the prompt."""

    @ragotel.request
    def answer(question: str) -> str:
        found = store().as_retriever(search_kwargs={"k": 2}).invoke(question)
        return str(model().invoke(f"{joined(found)}\n\n{question}").content)

    assert answer(QUESTION) == ANSWER
    assert kinds(recorded) == ["request", "retrieve", "assemble", "generate"]
    assemble = recorded.stage("assemble")
    assert ids(assemble) == ids(recorded.stage("retrieve"))
    assert assemble["rag.prompt.text"].endswith(QUESTION)


def test_failures_and_cancellations_pass_on(recorded: Recorded) -> None:
    """The service's own exception is raised, and the stage has ended with it."""
    error = ValueError("no index")
    with pytest.raises(ValueError, match="no index") as caught:
        Failing(error=error).invoke(QUESTION)
    assert caught.value is error

    async def hang_up() -> None:
        task = asyncio.ensure_future(Failing().ainvoke(QUESTION))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(hang_up())
    assert [s["rag.outcome"] for s in recorded.stages("retrieve")] == ["error", "cancelled"]
    assert recorded.stages("retrieve")[0]["error.type"] == "ValueError"


def test_results_are_the_same_with_and_without() -> None:
    """Sync, async and streaming results are byte-identical."""

    async def streamed() -> list[str]:
        return [part async for part in make_chain().astream(QUESTION)]

    same_result(lambda: make_chain().invoke(QUESTION))
    same_result(lambda: asyncio.run(make_chain().ainvoke(QUESTION)))
    same_result(lambda: list(make_chain().stream(QUESTION)))
    same_result(lambda: asyncio.run(streamed()))
    same_result(lambda: store().similarity_search_with_score(QUESTION))


def test_uninstrumented_is_untouched(patched: Patched) -> None:
    """Every patched object is what it was."""
    patched.assert_reverted("langchain")


def test_targets_are_there(patched: Patched) -> None:
    """The installed release has all that the patch table names."""
    patched.assert_targets("langchain")


class Scoring(InMemoryVectorStore):
    """A store whose scores are what it was given."""

    given: Any = ()

    def similarity_search_with_score(self, query: str, k: int = 4, **kw: Any) -> Any:
        return [
            (Document(page_content=f"t{n}", id=f"d{n}"), one) for n, one in enumerate(self.given)
        ]


@pytest.mark.parametrize(
    ("given", "recorded_scores"),
    [
        (["0.5", "high"], [0.5, None]),
        ([float("nan"), 0.5], [None, 0.5]),
        ([None, 1], [None, 1]),
        ([object(), 10**400], [None, None]),
        ([], []),
    ],
)
def test_scores_of_any_kind_stay_with_their_documents(
    recorded: Recorded, given: list[Any], recorded_scores: list[Any]
) -> None:
    """A text that is no number is no score and no document of its own."""
    store = Scoring(HashEmbeddings())
    store.given = given
    assert [score for _, score in store.similarity_search_with_score("q")] == given
    stage = recorded.stage("retrieve")
    assert ids(stage) == [f"d{n}" for n in range(len(given))]
    assert scores(stage) == recorded_scores


MODES = (None, "values", "updates", "messages", ["updates", "messages"], ["values", "custom"])


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("key", ["messages", "answer", "generation"])
def test_a_graph_answers_alike_however_it_streams(recorded: Recorded, key: str, mode: Any) -> None:
    """States, updates and messages are parts of one answer; modes and nodes are no texts of it."""
    graph = pytest.importorskip("langgraph.graph")

    class State(TypedDict, total=False):
        question: str
        documents: list[str]
        answer: str
        generation: str

    model = GenericFakeChatModel(messages=iter([AIMessage(ANSWER)]))

    def think(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage("Let me see.")]} if key == "messages" else {"documents": []}

    def reply(state: Any) -> dict[str, Any]:
        said = model.invoke("q")
        return {key: [said] if key == "messages" else said.content}

    made = graph.StateGraph(graph.MessagesState if key == "messages" else State)
    made.add_node("think", think)
    made.add_node("reply", reply)
    made.add_edge(graph.START, "think")
    made.add_edge("think", "reply")
    made.add_edge("reply", graph.END)
    asked = {"messages": [("user", QUESTION)]} if key == "messages" else {"question": QUESTION}
    for _ in made.compile().stream(asked, stream_mode=mode):
        pass
    request = recorded.stage("request")
    assert (request["rag.query"], request.get("rag.answer")) == (QUESTION, ANSWER)


def test_a_graph_whose_parts_say_nothing_has_no_answer(recorded: Recorded) -> None:
    """Nothing is made up from the names of modes and nodes."""
    graph = pytest.importorskip("langgraph.graph")

    class State(TypedDict, total=False):
        question: str
        found: int

    made = graph.StateGraph(State)
    made.add_node("count", lambda state: {"found": 3})
    made.add_edge(graph.START, "count")
    made.add_edge("count", graph.END)
    for _ in made.compile().stream({"question": QUESTION}, stream_mode=["updates", "debug"]):
        pass
    assert recorded.stage("request").get("rag.answer") is None


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("is_async", [False, True])
def test_each_input_of_a_batch_is_a_request(recorded: Recorded, size: int, is_async: bool) -> None:
    """Whatever thread or task a step runs in, its stage belongs to the request of its input."""
    store = InMemoryVectorStore(HashEmbeddings())
    store.add_documents([Document(page_content=text, id=key) for key, text in TEXTS.items()])
    fixed = [store.as_retriever(search_kwargs={"k": k}) for k in (2, 3)]
    searched: Any = ContextualCompressionRetriever(
        base_compressor=CrossEncoderReranker(model=Overlap(), top_n=1),
        base_retriever=EnsembleRetriever(retrievers=list(fixed), weights=[0.5, 0.5]),
    )
    context: Any = searched | (lambda found: found[0].page_content)
    beside: Any = RunnableLambda(lambda q: store.similarity_search_with_score(q, 1)[0][1])
    model = GenericFakeChatModel(messages=iter([AIMessage(f"a{n}") for n in range(size)]))
    parts: Any = {"context": context, "beside": beside, "question": RunnablePassthrough()}
    prompt = ChatPromptTemplate.from_template("{context} {beside} {question}")
    chain = parts | prompt | model | StrOutputParser()
    asked = [f"{QUESTION} {n}" for n in range(size)]
    who: Any = {"metadata": {"user_id": "ana"}}
    given = asyncio.run(chain.abatch(asked, who)) if is_async else chain.batch(asked, who)
    requests = recorded.stages("request")
    assert [(one["rag.query"], one["user.id"]) for one in requests] == [(q, "ana") for q in asked]
    assert [one["rag.answer"] for one in requests] == given
    for one in requests:
        mine = [
            span["attributes"]["rag.stage"]
            for span in recorded.spans
            if span["attributes"]["rag.request.id"] == one["rag.request.id"]
        ]
        stages = ["retrieve", "retrieve", "retrieve", "fuse", "rerank", "assemble", "generate"]
        assert sorted(mine) == sorted(["request", *stages])


def test_a_batch_keeps_its_exceptions(recorded: Recorded) -> None:
    """As the service asked for: raised, or in the place of the result."""

    def only_good(text: str) -> str:
        if text == "bad":
            raise ValueError(text)
        return text

    chain: Any = RunnableLambda(only_good) | StrOutputParser()
    with pytest.raises(ValueError, match="bad"):
        chain.batch(["good", "bad"])
    recorded.clear()
    good, bad = chain.batch(["good", "bad"], return_exceptions=True)
    assert (good, str(bad)) == ("good", "bad")
    outcomes = [(one["rag.query"], one["rag.outcome"]) for one in recorded.stages("request")]
    assert outcomes == [("good", "ok"), ("bad", "error")]
    assert chain.batch([]) == []


def test_a_batch_gives_what_it_would_give() -> None:
    """Results and what the service's own callbacks hear are the same."""

    def run() -> Any:
        heard: list[str] = []

        class Ear(BaseCallbackHandler):
            def on_chain_start(self, serialized: Any, inputs: Any, **kw: Any) -> None:
                heard.append(f"{kw.get('name')} {inputs}")

        chain: Any = RunnableLambda(str.upper).with_config(run_name="up") | StrOutputParser()
        config: Any = {"callbacks": [Ear()], "max_concurrency": 1, "tags": ["t"]}
        given = chain.batch(["a", "b"], config)
        assert len(config["callbacks"]) == 1
        return given, sorted(heard)

    same_result(run)
