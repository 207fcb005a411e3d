"""Questions about Python's language reference, with LlamaIndex: index, postprocessors, synthesizer.

    python app.py "What is the default tab size of str.expandtabs?"

What is ragotel's: the call of `configure`, and the decorator on `answer`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llama_index.core import PromptTemplate, Settings, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import CompletionResponse, CompletionResponseGen, LLMMetadata
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

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
    words,
)

ragotel.configure(service="reference-llama-index")


class SentenceEmbedding(BaseEmbedding):
    _encoder: Encoder = PrivateAttr(default_factory=Encoder)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._encoder.encode(texts)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._encoder.encode([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._encoder.encode([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class WordRerank(BaseNodePostprocessor):
    """Orders nodes by the share of the question's words that they have."""

    top_n: int = 4

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        asked = set(words(query_bundle.query_str)) if query_bundle else set()
        for one in nodes:
            one.score = len(asked & set(words(one.node.get_content()))) / (len(asked) or 1)
        return sorted(nodes, key=lambda one: -(one.score or 0.0))[: self.top_n]


class ExtractiveLLM(CustomLLM):
    """Answers with one sentence of the prompt; no network."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="extractive")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        return CompletionResponse(text=extract(prompt))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **options: Any
    ) -> CompletionResponseGen:
        answer = extract(prompt)
        yield CompletionResponse(text=answer, delta=answer)


class CompatibleLLM(CustomLLM):
    """A server that speaks OpenAI's chat API, whatever the version of the client."""

    model: str = MODEL

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.model)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:
        from openai import OpenAI

        messages: Any = [{"role": "user", "content": prompt}]
        reply = OpenAI().chat.completions.create(model=self.model, messages=messages)
        return CompletionResponse(text=reply.choices[0].message.content or "", raw=reply)

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **options: Any
    ) -> CompletionResponseGen:
        yield self.complete(prompt, formatted=True)


def make_nodes() -> Sequence[TextNode]:
    return [TextNode(id_=one["chunk_id"], text=one["text"]) for one in passages()]


Settings.embed_model = SentenceEmbedding(embed_batch_size=200)
Settings.llm = CompatibleLLM() if HAS_MODEL else ExtractiveLLM()

index = VectorStoreIndex(make_nodes())
engine = RetrieverQueryEngine(
    retriever=index.as_retriever(similarity_top_k=6),
    node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.2), WordRerank(top_n=4)],
    response_synthesizer=get_response_synthesizer(
        response_mode="compact",
        text_qa_template=PromptTemplate(
            PROMPT.replace("{passages}", "{context_str}").replace("{question}", "{query_str}")
        ),
    ),
)


@ragotel.request(index=INDEX, index_version=VERSION)
def answer(question: str, user_id: str) -> str:
    return str(engine.query(question))


if __name__ == "__main__":
    for question in sys.argv[1:]:
        print(answer(question, user_id="ana"))
