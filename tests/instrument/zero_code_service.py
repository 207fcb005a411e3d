"""A plain service without a line of ragotel's, to be started by `opentelemetry-instrument`."""

from __future__ import annotations

import sys

import openai
from corpus import QUESTION, TEXTS, embed
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from opentelemetry import trace
from qdrant_client import QdrantClient, models


def main(address: str) -> None:
    store = QdrantClient(":memory:")
    size = models.VectorParams(size=64, distance=models.Distance.COSINE)
    store.create_collection("docs", vectors_config=size)
    store.upsert(
        "docs",
        [
            models.PointStruct(id=place, vector=embed(text), payload={"text": text})
            for place, text in enumerate(TEXTS.values())
        ],
    )
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none")

    def search(question: str) -> str:
        found = store.query_points("docs", query=embed(question), limit=3).points
        return "\n".join(hit.payload["text"] for hit in found)

    def complete(prompt: object) -> str:
        messages = [{"role": "user", "content": prompt.to_string()}]
        reply = client.chat.completions.create(model="fake-1", messages=messages)
        return reply.choices[0].message.content

    template = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
    chain = (
        {"context": RunnableLambda(search), "question": RunnablePassthrough()}
        | template
        | RunnableLambda(complete)
        | StrOutputParser()
    )
    print("ANSWER", chain.invoke(QUESTION))
    print("PROVIDER", type(trace.get_tracer_provider()).__module__)


if __name__ == "__main__":
    main(sys.argv[1])
