"""Second step of the demo's pipeline: an index version, searched by words and by meaning."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ragotel.demo.corpus import Chunk, sentences
from ragotel.demo.embedding import DIMENSIONS, Encoder, Vectors

_WORD = re.compile(r"[a-z0-9_]+")
_STOP_WORDS = frozenset(
    re.split(
        " ",
        "a an and are as at be by can do does for from has have how i if in into is it its may of "
        "on or should that the then there this to was what when where which with",
    )
)


@dataclass(frozen=True)
class Hit:
    """A passage with the score of the stage that returned it."""

    chunk_id: str
    score: float
    text: str
    title: str
    doc_id: str
    doc_version: str
    superseded: bool

    def scored(self, score: float) -> Hit:
        """Return the same passage with the score of a later stage."""
        return replace(self, score=round(score, 6))


class Index:
    """One immutable version of the index: its passages, their words and their vectors."""

    def __init__(self, version: str, chunks: Sequence[Chunk], encoder: Encoder) -> None:
        import bm25s

        self.version = version
        self.chunks = tuple(sorted(chunks, key=lambda chunk: chunk.chunk_id))
        self._encoder = encoder
        encoder.learn(text for chunk in self.chunks for text in texts_to_encode(chunk))
        self._matrix = np.zeros((len(self.chunks), DIMENSIONS), dtype=np.float32)
        for row, chunk in enumerate(self.chunks):
            self._matrix[row] = _mean(encoder.vectors(texts_to_encode(chunk)))
        self._bm25: Any = bm25s.BM25()
        self._words: dict[str, int] = {}
        if self.chunks:
            corpus = [words(search_text(chunk)) for chunk in self.chunks]
            self._bm25.index(corpus, show_progress=False)
            self._words = self._bm25.vocab_dict

    def by_words(self, question: str, k: int) -> list[Hit]:
        """Return up to *k* passages by BM25, none that shares no word with the question."""
        known = [word for word in words(question) if word in self._words]
        return self._best(self._bm25.get_scores(known), k) if known else []

    def by_meaning(self, question: str, k: int) -> list[Hit]:
        """Return the *k* passages nearest to the question by cosine."""
        return self._best(self._encoder.nearness(question, self._matrix), k)

    def _best(self, scores: Vectors, k: int) -> list[Hit]:
        # Stable, so that equal scores keep the order of the chunk ids in every run.
        order = np.argsort(-scores.round(5), kind="stable")[:k]
        return [_hit(self.chunks[at], float(scores[at])) for at in order if scores[at] > 0]


def words(text: str) -> list[str]:
    """Return the words that carry meaning, in lower case, plurals cut."""
    found = _WORD.findall(text.lower())
    return [_stem(word) for word in found if word not in _STOP_WORDS]


def search_text(chunk: Chunk) -> str:
    """Return what of a passage is searched: the page's title and the text."""
    return f"{chunk.title}: {chunk.text}"


def texts_to_encode(chunk: Chunk) -> list[str]:
    """Return the texts whose mean is a passage's vector: the page's title and each sentence."""
    return [chunk.title, *sentences(chunk.text)]


def rarity(chunks: Sequence[Chunk]) -> dict[str, float]:
    """Return for each word how much it tells: the logarithm of passages per passage that has it."""
    having = Counter(word for chunk in chunks for word in set(words(search_text(chunk))))
    return {word: math.log(1 + len(chunks) / count) for word, count in having.items()}


def _mean(vectors: Vectors) -> Vectors:
    total: Vectors = vectors.sum(axis=0)
    mean: Vectors = total / np.float32(np.linalg.norm(total) or 1.0)
    return mean


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _hit(chunk: Chunk, score: float) -> Hit:
    return Hit(
        chunk_id=chunk.chunk_id,
        score=round(score, 6),
        text=chunk.text,
        title=chunk.title,
        doc_id=chunk.doc_id,
        doc_version=chunk.doc_version,
        superseded=chunk.superseded,
    )
