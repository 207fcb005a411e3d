"""Last step of the demo's pipeline: a small extractive model that answers from a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ragotel.demo.corpus import sentences
from ragotel.demo.embedding import Encoder
from ragotel.demo.search import words

NAME = "extractive-1"
"""str. The model's name on the record."""

ABSTENTION = "I do not know: the passages do not say."
"""str. The answer where no sentence of the prompt is near enough to the question."""

THRESHOLD = 0.4
"""float, 0 to 1. Below this match a sentence is no answer."""

_PASSAGE_HEAD = re.compile(r"^\[[^\]\s]+\] .*$", re.MULTILINE)
_SECOND_QUESTION = re.compile(r",? and (?=(?:what|which|how|in which|when|where|is|are)\b)")


class Relevance:
    """How well a sentence answers a question: rare words shared, and nearness in meaning."""

    def __init__(self, encoder: Encoder, rarity: Mapping[str, float]) -> None:
        self.rarity = rarity
        self._encoder = encoder

    def best(self, question: str, title: str, text: str) -> tuple[str, float]:
        """Return the passage's best sentence and its match, 0 to 1; ("", 0.0) if it has no prose.

        A word of the question counts whole where the sentence has it, half where only the passage
        or its page's title has it.
        """
        prose = [sentence for sentence in sentences(text) if _is_prose(sentence)]
        if not prose:
            return "", 0.0
        asked = set(words(question))
        around = set(words(f"{title} {text}"))
        nearness = self._encoder.nearness(question, self._encoder.vectors(prose))
        matches = [
            round(0.6 * self._shared(asked, set(words(sentence)), around) + 0.4 * float(near), 6)
            for sentence, near in zip(prose, nearness, strict=True)
        ]
        best = max(range(len(prose)), key=lambda at: (matches[at], -at))
        return prose[best], max(0.0, min(1.0, matches[best]))

    def _shared(self, asked: set[str], there: set[str], around: set[str]) -> float:
        rarest = max(self.rarity.values(), default=1.0)
        weights = {word: self.rarity.get(word, rarest) for word in asked}
        found = sum(weights[word] for word in asked & there)
        nearby = sum(weights[word] for word in asked & (around - there))
        return (found + 0.5 * nearby) / (sum(weights.values()) or 1.0)


class ExtractiveModel:
    """Answers with the best sentence of the prompt, one for each part of the question."""

    def __init__(self, relevance: Relevance) -> None:
        self._relevance = relevance

    def complete(self, prompt: str) -> str:
        """Return the answer to the last ``Question:`` of *prompt*, or `ABSTENTION`."""
        body, _, question = prompt.rpartition("Question:")
        question = question.partition("\n")[0].strip()
        passages = _passages(body)
        answers = [self._answer(part, passages) for part in questions(question)]
        given = [answer for answer in answers if answer]
        return " ".join(dict.fromkeys(given)) if given else ABSTENTION

    def _answer(self, question: str, passages: Sequence[tuple[str, str]]) -> str:
        best, best_match = "", 0.0
        for title, text in passages:
            sentence, match = self._relevance.best(question, title, text)
            if match > best_match:
                best, best_match = sentence, match
        return best if best_match >= THRESHOLD else ""


def questions(question: str) -> list[str]:
    """Split a question that asks two things."""
    return [part for part in _SECOND_QUESTION.split(question) if part.strip()]


def _passages(body: str) -> list[tuple[str, str]]:
    heads = list(_PASSAGE_HEAD.finditer(body))
    ends = [*(head.start() for head in heads[1:]), len(body)]
    return [
        (head.group().partition("] ")[2], body[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=False)
    ]


def _is_prose(sentence: str) -> bool:
    """Tell a sentence from a signature, a line of grammar and an example."""
    return "::=" not in sentence and ">>>" not in sentence and len(sentence.split()) > 3
