"""The reference: what a careful engineer writes by hand with the OpenTelemetry SDK.

Ids and scores as sequence attributes, the prompt as one string, the batch processor, OTLP.
"""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from workload import (
    CANDIDATES,
    IN_PROMPT,
    INDEX_VERSION,
    MODEL,
    TEMPLATE_VERSION,
    Candidate,
    Service,
)


class HandWritten(Service):
    """The service with a span around each step."""

    def __init__(self, url: str, compression: str) -> None:
        self.provider = TracerProvider(resource=Resource.create({"service.name": "rag"}))
        exporter = OTLPSpanExporter(f"{url}/v1/traces", compression=Compression(compression))
        self.provider.add_span_processor(BatchSpanProcessor(exporter))
        self.span = self.provider.get_tracer("app").start_as_current_span

    def answer(self, query: str) -> str:
        with self.span("rag") as span:
            span.set_attribute("rag.query", query)
            found = self.search(query, CANDIDATES)
            ranked = self.rerank(query, found)
            prompt = self.build_prompt(query, ranked)
            return self.complete(prompt)

    def search(self, query: str, k: int) -> list[Candidate]:
        with self.span("retrieve") as span:
            found = super().search(query, k)
            span.set_attributes(
                {
                    "rag.query": query,
                    "rag.top_k": k,
                    "rag.index.version": INDEX_VERSION,
                    "rag.candidate.ids": [c.id for c in found],
                    "rag.candidate.scores": [c.score for c in found],
                }
            )
            return found

    def rerank(self, query: str, candidates: list[Candidate]) -> list[Candidate]:
        with self.span("rerank") as span:
            ranked = super().rerank(query, candidates)
            span.set_attributes(
                {
                    "rag.rerank.model": "ce-v2",
                    "rag.rerank.ids": [c.id for c in ranked],
                    "rag.rerank.scores": [c.score for c in ranked],
                }
            )
            return ranked

    def build_prompt(self, query: str, candidates: list[Candidate]) -> str:
        with self.span("assemble") as span:
            prompt = super().build_prompt(query, candidates)
            span.set_attributes(
                {
                    "rag.template.version": TEMPLATE_VERSION,
                    "rag.survivor.ids": [c.id for c in candidates[:IN_PROMPT]],
                    "rag.prompt": prompt,
                    "rag.prompt.tokens": len(prompt) // 4,
                }
            )
            return prompt

    def complete(self, prompt: str) -> str:
        with self.span("generate") as span:
            answer = super().complete(prompt)
            span.set_attributes(
                {
                    "gen_ai.request.model": MODEL,
                    "gen_ai.usage.input_tokens": len(prompt) // 4,
                    "gen_ai.usage.output_tokens": len(answer) // 4,
                    "rag.answer": answer,
                }
            )
            return answer
