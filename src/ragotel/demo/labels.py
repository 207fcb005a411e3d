"""Beside the demo's pipeline: its labelled questions, claims found in the passages of this Python.

The reference differs a little from one Python to the next, so the file names pages and claims;
which passages hold a claim is looked up at start. A question whose claim is not there is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import TypedDict

from ragotel.demo.corpus import Chunk
from ragotel.demo.model import ABSTENTION
from ragotel.text import normalise

SET = "python-reference"
"""str. The name of the label set."""


class Passage(TypedDict, total=False):
    """One claim of a label; *topics* and *beside* say where it is looked for."""

    topics: list[str]
    beside: str
    spans: list[str]
    chunk_ids: list[str]


class Label(TypedDict):
    """One labelled question, as ``ragotel labels load`` takes it."""

    label_id: str
    set: str
    population: str
    question: str
    expected_answer: str
    answerable: bool
    passages: list[Passage]


def shipped_labels() -> list[Label]:
    """Read the questions that come with the demo, claims not yet looked up."""
    text = files("ragotel.demo").joinpath("labels.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def resolve(labels: Iterable[Label], chunks: Sequence[Chunk]) -> list[Label]:
    """Name every passage that states a claim; leave out labels with a claim that none states."""
    texts = [(chunk, normalise(chunk.text)) for chunk in chunks]
    found = []
    for label in labels:
        passages: list[Passage] = [
            {"chunk_ids": _holders(passage, texts), "spans": passage["spans"]}
            for passage in label["passages"]
        ]
        if all(passage["chunk_ids"] for passage in passages):
            resolved = label.copy()
            resolved["passages"] = passages
            found.append(resolved)
    return found


def states(text: str, spans: Iterable[str]) -> bool:
    """Tell whether *text* states one of *spans*; "10 seats" does not stand in "110 seats"."""
    there = normalise(text)
    return any(_stands_in(normalise(span).strip(), there) for span in spans)


def grade(label: Label, answer: str) -> str:
    """Grade exactly: correct where the answer states every claim; abstaining is not stating."""
    if answer == ABSTENTION:
        return "abstained"
    claims = [passage["spans"] for passage in label["passages"]]
    is_right = bool(claims) and all(states(answer, spans) for spans in claims)
    return "correct" if is_right else "wrong"


def _holders(passage: Passage, texts: Sequence[tuple[Chunk, str]]) -> list[str]:
    spans = [normalise(span).strip() for span in passage["spans"]]
    beside = normalise(passage.get("beside", ""))
    return [
        chunk.chunk_id
        for chunk, text in texts
        if chunk.doc_id in passage["topics"]
        and beside in text
        and any(_stands_in(span, text) for span in spans)
    ]


def _stands_in(span: str, text: str) -> bool:
    at = text.find(span)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(span) : at + len(span) + 1]
        runs_on = (before.isalnum() and span[:1].isalnum()) or (
            after.isalnum() and span[-1:].isalnum()
        )
        if not runs_on:
            return True
        at = text.find(span, at + 1)
    return False
