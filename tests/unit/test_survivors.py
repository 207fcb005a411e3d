"""Which candidates stand in a prompt, in which order, and how much of each."""

from __future__ import annotations

import html
import json
import textwrap
from typing import Any

import pytest

from ragotel.survivors import find_survivors

WORDS = ["apple", "banana", "cherry", "durian", "elder", "fig", "grape"]
TEXTS: list[str | None] = [
    f"Chapter {n}: the {word} rule says that within {n * 3} days you may return {word}s.\n"
    f"Second line of {word} with more.\n  indented {word} line follows, and the end is here."
    for n, word in enumerate(WORDS)
]
LONG = "".join(f"Sentence {n} about topic {n * n}. " for n in range(200))
WINDOWS: list[str | None] = [LONG[at : at + 1000] for at in range(0, 4000, 800)]


def body(rank: int) -> str:
    return TEXTS[rank] or ""


def survivors(prompt: str, texts: list[str | None] = TEXTS) -> list[Any]:
    """Rank, or rank and length kept where the text is not whole, in prompt order."""
    found, _ = find_survivors(prompt, texts)
    return [s.rank if s.is_whole else (s.rank, s.kept_chars) for s in found]


CASES: dict[str, tuple[str, list[Any]]] = {
    "in another order": ("Q\n" + "\n\n".join(map(body, (2, 0, 4))) + "\nq?", [2, 0, 4]),
    "reversed": ("Q\n" + "\n\n".join(map(body, (6, 5, 4, 3))) + "\nq?", [6, 5, 4, 3]),
    "none": ("Say hello.", []),
    "no prompt": ("", []),
    "trimmed": (f"Q\n{body(0)}\n{body(1)[:60]}\nq?", [0, (1, 60)]),
    "trimmed with a mark": (f"Q\n{body(0)}\n{body(1)[:60]}...\nq?", [0, (1, 60)]),
    "cut in the middle": (f"{body(0)}\n{body(1)[:70]} [...] {body(1)[-40:]}", [0, (1, 70)]),
    "without its head": (f"Q\n{body(2)[50:]}\nq", [(2, len(body(2)) - 50)]),
    "indented": ("Q\n" + textwrap.indent(body(3), "    ") + "\nq?", [3]),
    "white space folded": (" ".join((body(3) + " | " + body(1)).split()), [3, 1]),
    "as JSON": (json.dumps([{"text": body(n)} for n in (1, 2)]), [1, 2]),
    "escaped for HTML": (html.escape(f"<p>{body(1)}</p> & {body(2)}"), [1, 2]),
    "stripped": (f"Q: {body(5).strip()} end", [5]),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    """The template may reorder, trim, indent, fold or escape."""
    prompt, expected = CASES[name]
    assert survivors(prompt) == expected


def test_an_overlapping_neighbour_is_not_taken_for_sent() -> None:
    """Sliding windows share text; only those that were rendered count."""
    assert survivors(f"{WINDOWS[0]}\n{WINDOWS[3]}", WINDOWS) == [0, 3]


def test_a_twin_counts_as_often_as_its_text_stands_there() -> None:
    """Two candidates with one text: one occurrence is one survivor."""
    assert survivors(f"Q {body(2)} q", [TEXTS[2], TEXTS[2], TEXTS[1]]) == [0]
    assert survivors(f"{body(2)}\n{body(2)}", [TEXTS[2], TEXTS[2], TEXTS[1]]) == [0, 1]


def test_a_passage_inside_of_another_stands_there() -> None:
    """A small chunk and its parent are both there where the parent was sent."""
    parent = WINDOWS[0] or ""
    assert survivors(parent, [parent[100:300], parent]) == [1, 0]
    assert survivors(parent, [parent[:300], parent]) == [0, 1]


def test_a_common_heading_is_no_trace_of_a_passage() -> None:
    """The chunk whose heading another one shares was not sent in part."""
    texts: list[str | None] = [
        f"Title: Support handbook, page\n{x} goes on." for x in ("No", "Yes")
    ]
    assert survivors(f"H\n{texts[1]}", texts) == [1]


def test_short_texts_must_stand_alone() -> None:
    """ "10" is not in "110", and an empty or unknown text is neither there nor missing."""
    found, unknown = find_survivors("it is 42 or 110. Yes", ["42", "10", "Yes", "No", "", None])
    assert [s.rank for s in found] == [0, 2]
    assert unknown == {4, 5}


def test_kept_length_counts_the_original_characters() -> None:
    """A trimmed text whose white space was folded tells its own length, not the folded one."""
    text = "First   words\n\n   then   more   words   follow   in   this   long   text."
    folded = " ".join(text.split())
    ((rank, kept),) = survivors(f"Q {folded[:40]}", [text])
    assert rank == 0
    assert " ".join(text[:kept].split()) == folded[:40]


def test_a_question_that_quotes_a_passage_is_no_trace_of_it() -> None:
    """Words of the user's stand in the prompt, the passage that they quote does not."""
    question = body(1)[10:90]
    prompt = f"Use:\n{body(0)}\nQuestion: {question}?"
    found, _ = find_survivors(prompt, TEXTS, question=question)
    assert [s.rank for s in found] == [0]
    found, _ = find_survivors(f"{body(1)[:100]}\n{question}", TEXTS, question=question)
    assert [(s.rank, s.kept_chars) for s in found] == [(1, 100)]
