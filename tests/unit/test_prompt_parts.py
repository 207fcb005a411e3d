"""A recorded prompt taken apart: what its template would have made of other passages."""

from __future__ import annotations

import pytest

from ragotel.triage.prompt_parts import Block, Parts, PartsError, Passage, take_apart

QUESTION = "How many seats does the plan include?"
PASSAGES = [
    Passage("plans#1", "The team plan of this year includes ten seats."),
    Passage("plans#2", "The old plan of ours had five seats, and no more."),
    Passage("faq#9", "A seat is what one person sits on, or works at."),
]
FORMS = {
    "bare": ("{text}", "\n"),
    "numbered": ("[{number}] {text}", "\n\n"),
    "named": ("[{id}] {text}", "\n"),
    "tagged": ('<doc id="{id}" n="{number}">\n{text}\n</doc>', "\n"),
}


def render(form: str, passages: list[Passage]) -> str:
    """What a template of this form makes of *passages*."""
    pattern, joint = FORMS[form]
    body = joint.join(
        pattern.format(number=number, id=passage.id, text=passage.text)
        for number, passage in enumerate(passages, 1)
    )
    return f"Answer from these passages only.\n{body}\nQuestion: {QUESTION}"


def parts_of(form: str, passages: list[Passage] = PASSAGES) -> Parts:
    return take_apart(render(form, passages), passages, QUESTION)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kept", [[0], [1], [2], [0, 2]])
def test_the_prompt_with_some_passages_is_what_the_template_makes_of_them(
    form: str, kept: list[int]
) -> None:
    """Question, instructions and numbering are as the template would have written them."""
    assert parts_of(form).with_only(kept) == render(form, [PASSAGES[at] for at in kept])


@pytest.mark.parametrize("form", FORMS)
def test_more_passages_than_were_sent_stand_as_the_template_would_set_them(form: str) -> None:
    """Separators, ids and numbers go on beyond the recorded passages."""
    more = [Passage(f"more#{at}", f"A further passage, number {at} of them.") for at in range(4)]
    wanted = [more[0], PASSAGES[2], PASSAGES[0], *more[1:], PASSAGES[1]]
    blocks = [Block(passage.id, passage.text) for passage in wanted]
    assert parts_of(form).with_blocks(blocks) == render(form, wanted)


def test_headings_that_differ_stay_and_the_texts_alone_go() -> None:
    """Titles are the template's own words: what belongs to them is not known, so they stay."""
    titles = ["Plans", "Plans before", "Questions"]
    pieces = [f"# {title}\n{one.text}" for title, one in zip(titles, PASSAGES, strict=True)]
    parts = take_apart("\n".join(pieces), PASSAGES, QUESTION)
    assert parts.with_only([1]) == f"# Plans\n\n# Plans before\n{PASSAGES[1].text}\n# Questions\n"
    with pytest.raises(PartsError, match="differs from one to the next"):
        parts.with_blocks(parts.blocks)


def test_a_trimmed_passage_counts_as_far_as_it_was_kept() -> None:
    """What was recorded to be kept is enough; less than that is not the passage."""
    text = PASSAGES[0].text + " " + "It goes on and on about seats. " * 20
    prompt = f"{text[:200]}\n{PASSAGES[1].text}\n{QUESTION}"
    cut = Passage("long", text, kept_chars=200)
    parts = take_apart(prompt, [cut, PASSAGES[1]], QUESTION)
    assert parts.with_only([0]) == f"{text[:200]}\n{QUESTION}"
    with pytest.raises(PartsError, match="long does not stand whole"):
        take_apart(prompt, [Passage("long", text), PASSAGES[1]], QUESTION)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        (f"{PASSAGES[0].text}\n{PASSAGES[1].text}", "faq#9 is not found"),
        ("\n".join([*(one.text for one in PASSAGES), PASSAGES[0].text]), "more than once"),
    ],
)
def test_a_prompt_that_cannot_be_taken_apart_says_why(prompt: str, reason: str) -> None:
    """Half a passage, or a second copy of it, would make the ablation a lie."""
    with pytest.raises(PartsError, match=reason):
        take_apart(prompt, PASSAGES, QUESTION)


def test_one_passage_alone_is_the_prompt_as_it_was() -> None:
    """Where only the gold passage was sent there was nothing beside it; a second has no place."""
    parts = parts_of("numbered", PASSAGES[:1])
    assert parts.with_only([0]) == render("numbered", PASSAGES[:1])
    with pytest.raises(PartsError, match="one passage only"):
        parts.with_blocks([*parts.blocks, *parts.blocks])
