"""Decorated callables at module level, for the tests that pickle them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import ragotel


@ragotel.rerank(model="m")
def rerank_scores(scores: list[float]) -> list[float]:
    """Sort, best first."""
    return sorted(scores, reverse=True)


@ragotel.request
def stream_answer(question: str) -> Iterator[str]:
    yield question
    yield "!"


@ragotel.retrieve
async def search(query: str, k: int = 3) -> list[dict[str, object]]:
    return [{"id": query, "score": float(k)}]


@ragotel.generate
async def stream_reply(prompt: str) -> AsyncIterator[str]:
    yield prompt


class Bot:
    @ragotel.request
    def answer(self, question: str) -> str:
        return question.upper()
