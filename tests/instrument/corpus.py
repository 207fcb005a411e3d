"""A small corpus, an embedding and a scorer without any model: the same numbers every time."""

from __future__ import annotations

import hashlib
import math
import re

TEXTS = {
    "returns-1": "Hardware can be returned within 21 calendar days of delivery, unopened.",
    "returns-2": "Software licences can be returned within 14 days unless they were activated.",
    "shipping-1": "Orders placed before noon are shipped on the same working day.",
    "shipping-2": "Delivery of hardware to islands takes five further calendar days.",
    "warranty-1": "The warranty of hardware ends two years after the day of delivery.",
    "support-1": "Support answers on working days between eight and six.",
}
QUESTION = "How many calendar days do I have to return hardware?"
_WORD = re.compile(r"[a-z0-9]+")


def words(text: str) -> list[str]:
    return [word.rstrip("s") for word in _WORD.findall(text.lower())]


def embed(text: str, dimensions: int = 64) -> list[float]:
    """A hashed bag of words, of length 1."""
    vector = [0.0] * dimensions
    for word in words(text):
        vector[int(hashlib.sha1(word.encode()).hexdigest(), 16) % dimensions] += 1.0
    norm = math.sqrt(sum(v * v for v in vector)) or 1.0
    return [v / norm for v in vector]


def overlap(query: str, text: str) -> float:
    """Share of the query's words that the text has: what the tests' rerankers score by."""
    asked = set(words(query))
    return len(asked & set(words(text))) / len(asked)


def nearest(question: str, k: int) -> list[tuple[str, float]]:
    """Ids and cosines of the k nearest texts, best first."""
    asked = embed(question)
    found = [
        (key, sum(a * b for a, b in zip(asked, embed(text), strict=True)))
        for key, text in TEXTS.items()
    ]
    return sorted(found, key=lambda row: -row[1])[:k]
