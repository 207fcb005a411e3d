"""Questions about Python's language reference, with Haystack: one pipeline, two legs, a model.

    python app.py "What is the default tab size of str.expandtabs?"

What is ragotel's: the call of `configure`, and the decorator on `answer`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from haystack import Document, Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore

import ragotel

sys.path.append(str(Path(__file__).resolve().parents[1]))

from offline import (
    HAS_MODEL,
    INDEX,
    MODEL,
    PROMPT,
    VERSION,
    Encoder,
    extract,
    passages,
)

ragotel.configure(service="reference-haystack")

ENCODER = Encoder()
TEMPLATE = PROMPT.replace(
    "{passages}",
    "{% for one in documents[:5] %}[{{ one.id }}]\n{{ one.content }}\n\n{% endfor %}",
).replace("{question}", "{{ question }}")


@component
class SentenceTextEmbedder:
    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": ENCODER.encode([text])[0]}


@component
class ExtractiveChatGenerator:
    """Answers with one sentence of the prompt; no network."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        return {"replies": [ChatMessage.from_assistant(extract(messages[-1].text or ""))]}


def make_store() -> InMemoryDocumentStore:
    found = passages()
    vectors = ENCODER.encode([one["text"] for one in found])
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(
        [
            Document(id=one["chunk_id"], content=one["text"], embedding=vector)
            for one, vector in zip(found, vectors, strict=True)
        ]
    )
    return store


def make_generator() -> Any:
    if not HAS_MODEL:
        return ExtractiveChatGenerator()
    from haystack.components.generators.chat import OpenAIChatGenerator

    return OpenAIChatGenerator(model=MODEL)


def make_pipeline() -> Pipeline:
    store = make_store()
    made = Pipeline()
    made.add_component("embedder", SentenceTextEmbedder())
    made.add_component("dense", InMemoryEmbeddingRetriever(store, top_k=6))
    made.add_component("bm25", InMemoryBM25Retriever(store, top_k=6))
    made.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=8))
    made.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user(TEMPLATE)]))
    made.add_component("model", make_generator())
    made.connect("embedder.embedding", "dense.query_embedding")
    made.connect("bm25", "joiner")
    made.connect("dense", "joiner")
    made.connect("joiner", "prompt.documents")
    made.connect("prompt.prompt", "model.messages")
    return made


pipeline = make_pipeline()


@ragotel.request(index=INDEX, index_version=VERSION)
def answer(question: str, user_id: str) -> str:
    found = pipeline.run(
        {
            "embedder": {"text": question},
            "bm25": {"query": question},
            "prompt": {"question": question},
        }
    )
    return str(found["model"]["replies"][0].text)


if __name__ == "__main__":
    for question in sys.argv[1:]:
        print(answer(question, user_id="ana"))
