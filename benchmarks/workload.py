"""The request that is measured: 50 candidates retrieved, the same 50 reranked, a 16 KB prompt.

The functions do nothing but hand out what was prepared, so the instrumentation is what is timed.
The corpus is Python's own language reference, so nothing has to be downloaded.
"""

from __future__ import annotations

import hashlib
import pydoc_data.topics
import random
import re
import struct
from dataclasses import dataclass
from typing import Any

REQUESTS, CANDIDATES, IN_PROMPT = 250, 50, 8
CHUNK_CHARS = 1800
INDEX_VERSION, TEMPLATE_VERSION, MODEL = "kb-2026-11-01.3", "answer-v14", "m-1"


@dataclass
class Candidate:
    id: str
    score: float
    text: str
    metadata: dict[str, Any]


@dataclass
class Prepared:
    """What the functions of one request return."""

    query: str
    retrieved: list[Candidate]
    reranked: list[Candidate]
    prompt: str
    answer: str


def prepare() -> list[Prepared]:
    """Make the requests, the same ones every time."""
    rng = random.Random(11)
    chunks = _chunks()
    ids = [f"kb-{hashlib.sha1(c.encode()).hexdigest()[:12]}-{n:04d}" for n, c in enumerate(chunks)]
    pages = [
        {"source": f"docs/section-{n % 97}/page-{n}.md", "page": n % 211, "lang": "en"}
        for n in range(len(chunks))
    ]
    return [_prepare_one(number, rng, chunks, ids, pages) for number in range(REQUESTS)]


def _prepare_one(
    number: int,
    rng: random.Random,
    chunks: list[str],
    ids: list[str],
    pages: list[dict[str, Any]],
) -> Prepared:
    chosen = rng.sample(range(len(chunks)), CANDIDATES)
    words = re.sub(r"[^a-z]+", " ", rng.choice(chunks).lower())
    query = f"q{number:03d} {words}"[:59] + "?"
    scores = sorted((_float32(rng.uniform(0.35, 0.92)) for _ in chosen), reverse=True)
    retrieved = [
        Candidate(ids[n], score, chunks[n], pages[n])
        for n, score in zip(chosen, scores, strict=True)
    ]
    order = sorted(range(CANDIDATES), key=lambda rank: rank + rng.gauss(0, 14))
    scores = sorted((_float32(rng.random()) for _ in chosen), reverse=True)
    reranked = [
        Candidate(retrieved[n].id, score, retrieved[n].text, retrieved[n].metadata)
        for n, score in zip(order, scores, strict=True)
    ]
    return Prepared(query, retrieved, reranked, _prompt(query, reranked), rng.choice(chunks)[:600])


def _prompt(query: str, reranked: list[Candidate]) -> str:
    head = (
        "You are a careful assistant. Answer the question from the passages below and cite the "
        "passage numbers you used. If the passages do not hold the answer, say so plainly and do "
        "not guess.\n"
    )
    passages = "".join(
        f"\n[{n}] source={c.metadata['source']} id={c.id}\n{c.text}\n"
        for n, c in enumerate(reranked[:IN_PROMPT], 1)
    )
    return f"{head * 6}{passages}\nQuestion: {query}\nAnswer:"


def _float32(number: float) -> float:
    """Scores of rerankers and vector stores are single precision."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


def _chunks() -> list[str]:
    """Cut the language reference into prose-like pieces."""
    text = "\n\n".join(pydoc_data.topics.topics.values())
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+", " ", text))
    pieces = [text[at : at + CHUNK_CHARS] for at in range(0, len(text) - CHUNK_CHARS, CHUNK_CHARS)]
    prose = {p for p in pieces if sum(c.isalpha() or c == " " for c in p) > 0.78 * CHUNK_CHARS}
    return sorted(prose, key=lambda piece: hashlib.sha1(piece.encode()).digest())


class Service:
    """The bare service; *now* is the request whose prepared results its functions return."""

    now: Prepared

    def answer(self, query: str) -> str:
        found = self.search(query, CANDIDATES)
        ranked = self.rerank(query, found)
        prompt = self.build_prompt(query, ranked)
        return self.complete(prompt)

    def search(self, query: str, k: int) -> list[Candidate]:
        return self.now.retrieved

    def rerank(self, query: str, candidates: list[Candidate]) -> list[Candidate]:
        return self.now.reranked

    def build_prompt(self, query: str, candidates: list[Candidate]) -> str:
        return self.now.prompt

    def complete(self, prompt: str) -> str:
        return self.now.answer
