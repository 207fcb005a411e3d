"""The plain extractive model of the recorded runs: the one sentence that is most like the question.

Its law is what an ablation rests on: a sentence that won among all passages wins among fewer, so
what was quoted from the gold passage is quoted again, and what outweighed it is gone.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

Score = Callable[[str, Sequence[str]], Sequence[float]]
"""How much each sentence is like the question."""
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z0-9\"'(\[])")
_WORD = re.compile(r"\w+")


def sentences(text: str) -> list[str]:
    """The sentences of *text*, as the recorded runs cut it."""
    starts = [0, *(found.end() for found in _END.finditer(text))]
    ends = [*starts[1:], len(text)]
    return [text[a:b].strip() for a, b in zip(starts, ends, strict=True) if text[a:b].strip()]


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def by_rare_words(texts: Iterable[str]) -> Score:
    """Sentences score by the words that they share with the question, rare ones more."""
    counts = Counter(word for text in texts for word in set(words(text)))
    total = sum(counts.values())

    def score(question: str, found: Sequence[str]) -> list[float]:
        asked = set(words(question))
        scores = []
        for sentence in found:
            own = set(words(sentence))
            shared = sum(math.log(1 + total / (1 + counts[word])) for word in sorted(asked & own))
            scores.append(shared / math.sqrt(1 + len(own)))
        return scores

    return score


def extract(score: Score) -> Callable[[str], str]:
    """A model: prompt to the sentence of its passages that is most like its question."""

    def answer(prompt: str) -> str:
        body, _, question = prompt.rpartition("Question: ")
        found = [one for passage in body.split("\n\n") for one in sentences(passage)]
        scores = list(score(question, found)) if found else []
        return found[scores.index(max(scores))] if found else ""

    return answer


def states_one_of(answers: Iterable[str], text: str) -> bool:
    """Whether *text* states one of *answers*, word by word: how the recorded runs were graded."""
    body = f" {' '.join(words(text))} "
    return any(f" {' '.join(words(answer))} " in body for answer in answers)
