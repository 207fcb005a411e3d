"""Services built on frameworks, without a decorator: the store's verdicts on their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("langchain_classic")
pytest.importorskip("llama_index.core")
pytest.importorskip("haystack")

import test_haystack
import test_langchain
import test_llama_index
from corpus import QUESTION, overlap
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from llama_index.core.query_engine import RetrieverQueryEngine

from own_database import own_database
from ragotel import instrument
from ragotel.store import Store
from ragotel.triage.grades import load_grades
from ragotel.triage.labels import load_labels
from seed_service import serving, write

GOLD = "returns-1"
LABEL = {
    "label_id": "returns",
    "question": QUESTION,
    "passages": [{"chunk_ids": [GOLD], "spans": ["21 calendar days"]}],
}


def chain(k: int, top_n: int) -> Any:
    """LangChain: the k nearest, of which a cross-encoder keeps the best."""
    found = ContextualCompressionRetriever(
        base_compressor=CrossEncoderReranker(model=test_langchain.Overlap(), top_n=top_n),
        base_retriever=test_langchain.store().as_retriever(search_kwargs={"k": k}),
    )
    prompt = ChatPromptTemplate.from_template(test_langchain.TEMPLATE)
    asked = {"context": found | test_langchain.joined, "question": RunnablePassthrough()}
    return (asked | prompt | test_langchain.model()).invoke(QUESTION)


def engine_of(k: int, top_n: int) -> Any:
    """LlamaIndex: the same."""
    test_llama_index.Settings.embed_model = test_llama_index.HashEmbedding()
    test_llama_index.Settings.llm = test_llama_index.Fixed()
    return RetrieverQueryEngine.from_args(
        test_llama_index.index().as_retriever(similarity_top_k=k),
        node_postprocessors=[test_llama_index.OverlapRerank(top_n=top_n)],
    ).query(QUESTION)


def pipeline(k: int, top_n: int) -> Any:
    """Haystack: two legs, fused, then a ranker."""
    made = test_haystack.make_pipeline()
    made.get_component("dense").top_k = k
    made.get_component("bm25").top_k = k
    made.get_component("ranker").top_k = top_n
    return made.run(test_haystack.data())


FLOWS: dict[str, Callable[[int, int], Any]] = {
    "langchain": chain,
    "llama_index": engine_of,
    "haystack": pipeline,
}


MODULES = {
    "langchain": test_langchain,
    "llama_index": test_llama_index,
    "haystack": test_haystack,
}


def _upside_down(query: str, text: str) -> float:
    """A reranker that prefers what fits least."""
    return -overlap(query, text)


@pytest.fixture(scope="module")
def verdicts(engine: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Any, Any]]:
    """Each framework three times: gold in the prompt, lost by the reranker, never found."""
    folder = tmp_path_factory.mktemp("frameworks")
    with own_database(engine):
        cases: dict[Any, str] = {}
        with serving(engine, folder) as sink:
            for name, ask in FLOWS.items():
                for case, k in {"sent": 4, "lost": 4, "missed": 1}.items():
                    with pytest.MonkeyPatch.context() as patch:
                        if case == "lost":
                            patch.setattr(MODULES[name], "overlap", _upside_down)
                        ask(k, 2)
                    (request,) = [
                        span.attributes["rag.request.id"]
                        for span in sink.raw
                        if span.attributes["rag.stage"] == "request"
                        and span.attributes["rag.request.id"] not in cases.values()
                    ]
                    cases[name, case] = str(request)
        instrument.uninstrument()
        grades = [
            {"request_id": request, "label_id": "returns", "grade": "wrong", "source": "human"}
            for request in cases.values()
        ]
        load_labels(engine, [write(folder, "labels", LABEL)])
        load_grades(engine, [write(folder, "grades", *grades)])
        rows = {row["request_id"]: row for row in engine.rows("select * from triage_requests")}
        yield {case: rows[request] for case, request in cases.items()}


@pytest.mark.parametrize("name", FLOWS)
def test_the_verdict_is_that_of_the_flow(verdicts: dict[Any, Any], name: str) -> None:
    """What was in the prompt, what the reranker lost, and what no leg found are told apart."""
    sent, lost, missed = (verdicts[name, case] for case in ("sent", "lost", "missed"))
    assert (sent["bucket"], sent["loss_stage"]) == ("generation_error", "none")
    assert sent["sent_count"] == 2
    assert (lost["bucket"], lost["loss_stage"]) == ("retrieval_miss", "rerank_demoted")
    assert missed["loss_stage"] == "not_retrieved_by_any_leg"
