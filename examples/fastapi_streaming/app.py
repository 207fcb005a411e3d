"""Questions about Python's language reference, over HTTP: FastAPI, answers as a stream.

    uvicorn app:app
    curl -N localhost:8000/ask -H 'content-type: application/json' \\
        -d '{"question": "What is the default tab size of str.expandtabs?", "user_id": "ana"}'
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

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

ragotel.configure(service="reference-fastapi")
app = FastAPI()


class Ask(BaseModel):
    question: str
    user_id: str


@dataclass(frozen=True)
class Hit:
    id: str
    text: str
    score: float


PASSAGES = passages()
ENCODER = Encoder()
VECTORS = np.array(ENCODER.encode([passage["text"] for passage in PASSAGES]))


@ragotel.retrieve(leg="dense", index=INDEX, index_version=VERSION, score_kind="cosine")
async def search(question: str, k: int = 10) -> list[Hit]:
    vector = (await asyncio.to_thread(ENCODER.encode, [question]))[0]
    scores = VECTORS @ np.array(vector)
    nearest = np.argsort(-scores, kind="stable")[:k]
    return [
        Hit(PASSAGES[at]["chunk_id"], PASSAGES[at]["text"], float(scores[at])) for at in nearest
    ]


@ragotel.rerank(model="shared-words")
def rerank(question: str, hits: list[Hit], top_n: int = 5) -> list[Hit]:
    asked = set(words(question))
    shares = [len(asked & set(words(hit.text))) / (len(asked) or 1) for hit in hits]
    ranked = sorted(zip(hits, shares, strict=True), key=lambda pair: -pair[1])
    return [Hit(hit.id, hit.text, share) for hit, share in ranked[:top_n]]


@ragotel.assemble(template="answer", template_text=PROMPT, budget=BUDGET_TOKENS)
def build_prompt(question: str, hits: list[Hit]) -> str:
    kept: list[str] = []
    left = BUDGET_TOKENS
    for hit in hits:
        left -= tokens(hit.text)
        if left < 0:
            break
        kept.append(f"[{hit.id}]\n{hit.text}")
    return PROMPT.format(passages="\n\n".join(kept), question=question)


@ragotel.generate(model=MODEL)
async def complete(prompt: str) -> AsyncIterator[str]:
    if not HAS_MODEL:
        first, *others = extract(prompt).split(" ")
        for word in (first, *(f" {word}" for word in others)):
            yield word
        return
    from openai import AsyncOpenAI

    messages: Any = [{"role": "user", "content": prompt}]
    stream = await AsyncOpenAI().chat.completions.create(
        model=MODEL, messages=messages, stream=True, stream_options={"include_usage": True}
    )
    async for chunk in stream:
        if chunk.choices and chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


@app.post("/ask")
@ragotel.request
async def ask(body: Ask) -> StreamingResponse:
    hits = rerank(body.question, await search(body.question))
    stream = complete(build_prompt(body.question, hits))
    # So that a complaint can quote it.
    headers = {"x-request-id": ragotel.current_request_id() or ""}
    return StreamingResponse(stream, media_type="text/plain", headers=headers)
