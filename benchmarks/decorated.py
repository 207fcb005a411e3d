"""The same service with ragotel's decorators: what the README shows, nothing tuned."""

from __future__ import annotations

from workload import INDEX_VERSION, MODEL, TEMPLATE_VERSION, Candidate, Service

import ragotel


class Decorated(Service):
    """The service with one decorator on each step."""

    def __init__(self, url: str, compression: str) -> None:
        ragotel.configure(service="rag", endpoint=url, compression=compression)

    @ragotel.request
    def answer(self, query: str) -> str:
        return super().answer(query)

    @ragotel.retrieve(index="docs", index_version=INDEX_VERSION)
    def search(self, query: str, k: int) -> list[Candidate]:
        return super().search(query, k)

    @ragotel.rerank(model="ce-v2")
    def rerank(self, query: str, candidates: list[Candidate]) -> list[Candidate]:
        return super().rerank(query, candidates)

    @ragotel.assemble(template="answer", template_version=TEMPLATE_VERSION)
    def build_prompt(self, query: str, candidates: list[Candidate]) -> str:
        return super().build_prompt(query, candidates)

    @ragotel.generate(model=MODEL)
    def complete(self, prompt: str) -> str:
        return super().complete(prompt)
