"""Questions about Python's language reference, with LangChain: two retrievers, a prompt, a model.

    python app.py "What is the default tab size of str.expandtabs?"

What is ragotel's: the call of `configure`, and the decorator on `answer`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bm25s
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

import ragotel

sys.path.append(str(Path(__file__).resolve().parents[1]))

from offline import (
    BUDGET_TOKENS,
    HAS_MODEL,
    INDEX,
    MODEL,
    PROMPT,
    VERSION,
    Encoder,
    extract,
    passages,
    tokens,
    words,
)

ragotel.configure(service="reference-langchain")


class SentenceEmbeddings(Embeddings):
    def __init__(self) -> None:
        self._encoder = Encoder()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._encoder.encode(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._encoder.encode([text])[0]


class BM25Retriever(BaseRetriever):
    """Keyword search over documents in memory."""

    documents: dict[Any, Document]
    index: Any
    k: int = 6

    @classmethod
    def from_documents(cls, documents: list[Document], **options: Any) -> BM25Retriever:
        index = bm25s.BM25(corpus=[{"id": one.id, "text": one.page_content} for one in documents])
        index.index([words(one.page_content) for one in documents], show_progress=False)
        return cls(documents={one.id: one for one in documents}, index=index, **options)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        known = [word for word in words(query) if word in self.index.vocab_dict]
        if not known:
            return []
        found, _ = self.index.retrieve([known], k=self.k, show_progress=False)
        return [self.documents[one["id"]] for one in found[0]]


class ExtractiveChatModel(BaseChatModel):
    """Answers with one sentence of the prompt; no network."""

    @property
    def _llm_type(self) -> str:
        return "extractive"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        message = AIMessage(extract(str(messages[-1].content)))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        first, *others = extract(str(messages[-1].content)).split(" ")
        for word in (first, *(f" {word}" for word in others)):
            yield ChatGenerationChunk(message=AIMessageChunk(word))


def make_retriever() -> EnsembleRetriever:
    documents = [
        Document(id=one["chunk_id"], page_content=one["text"], metadata={"source": one["doc_id"]})
        for one in passages()
    ]
    store = InMemoryVectorStore(SentenceEmbeddings())
    store.add_documents(documents)
    dense = store.as_retriever(search_kwargs={"k": 6})
    return EnsembleRetriever(
        retrievers=[BM25Retriever.from_documents(documents), dense], weights=[0.5, 0.5]
    )


def make_model() -> BaseChatModel:
    if not HAS_MODEL:
        return ExtractiveChatModel()
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=MODEL, stream_usage=True)


def pack(documents: list[Document]) -> str:
    """As many passages as the budget holds, best first."""
    kept: list[str] = []
    left = BUDGET_TOKENS
    for one in documents:
        left -= tokens(one.page_content)
        if left < 0:
            break
        kept.append(f"[{one.id}]\n{one.page_content}")
    return "\n\n".join(kept)


chain = (
    {"passages": make_retriever() | pack, "question": RunnablePassthrough()}
    | ChatPromptTemplate.from_template(PROMPT)
    | make_model()
    | StrOutputParser()
)


@ragotel.request(index=INDEX, index_version=VERSION)
def answer(question: str, user_id: str) -> Iterator[str]:
    yield from chain.stream(question)


if __name__ == "__main__":
    for question in sys.argv[1:]:
        for part in answer(question, user_id="ana"):
            print(part, end="", flush=True)
        print()
