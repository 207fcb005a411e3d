"""Questions about Python's language reference, in plain Python: one decorator on each function.

python app.py "What is the default tab size of str.expandtabs?"
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import bm25s
import numpy as np

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

ragotel.configure(service="reference-plain")


@dataclass(frozen=True)
class Hit:
    id: str
    doc_id: str
    text: str
    score: float


PASSAGES = passages()
ENCODER = Encoder()
VECTORS = np.array(ENCODER.encode([passage["text"] for passage in PASSAGES]))
KEYWORDS = bm25s.BM25()
KEYWORDS.index(
    [words(f"{passage['title']} {passage['text']}") for passage in PASSAGES], show_progress=False
)


def best(scores: Any, k: int) -> list[Hit]:
    found = [(PASSAGES[at], float(scores[at])) for at in np.argsort(-scores, kind="stable")[:k]]
    return [Hit(one["chunk_id"], one["doc_id"], one["text"], score) for one, score in found]


@ragotel.retrieve(leg="bm25", index=INDEX, index_version=VERSION, score_kind="bm25")
def by_words(question: str, k: int = 6) -> list[Hit]:
    known = [word for word in words(question) if word in KEYWORDS.vocab_dict]
    return [hit for hit in best(KEYWORDS.get_scores(known), k) if hit.score > 0] if known else []


@ragotel.retrieve(leg="dense", index=INDEX, index_version=VERSION, score_kind="cosine")
def by_meaning(question: str, k: int = 6) -> list[Hit]:
    return best(VECTORS @ np.array(ENCODER.encode([question])[0]), k)


@ragotel.fuse(method="rrf")
def fuse(*legs: list[Hit], limit: int = 8) -> list[Hit]:
    sums: dict[str, float] = {}
    hits = {hit.id: hit for leg in legs for hit in leg}
    for leg in legs:
        for rank, hit in enumerate(leg, start=1):
            sums[hit.id] = sums.get(hit.id, 0.0) + 1 / (60 + rank)
    fused = [replace(hit, score=sums[hit.id]) for hit in hits.values()]
    return sorted(fused, key=lambda hit: (-hit.score, hit.id))[:limit]


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
def complete(prompt: str) -> Any:
    if not HAS_MODEL:
        return extract(prompt)
    from openai import OpenAI

    messages: Any = [{"role": "user", "content": prompt}]
    return OpenAI().chat.completions.create(model=MODEL, messages=messages)


@ragotel.request
def answer(question: str, user_id: str) -> str:
    reply = complete(build_prompt(question, fuse(by_words(question), by_meaning(question))))
    return reply if isinstance(reply, str) else str(reply.choices[0].message.content)


if __name__ == "__main__":
    for question in sys.argv[1:]:
        print(answer(question, user_id="ana"))
