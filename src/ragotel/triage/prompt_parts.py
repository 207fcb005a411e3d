"""Prompt parts: takes a recorded prompt apart into its passages and what stands around them.

Pipeline: rag_prompts, rag_chunks -> [triage] -> ablating

Nothing is rendered anew: what is put together again are pieces of the recorded prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragotel.rehearsal import Place, find_places

_ID, _NUMBER = "\ue000", "\ue001"
"""Stand in a separator for the id of the passage that follows and for its number in the list."""
_HEAD_CHARS = 300
_TELLING_CHARS = 20
"""A shorter text may stand in a prompt by chance."""


class PartsError(ValueError):
    """A prompt cannot be taken apart; the message says why."""


@dataclass(frozen=True)
class Passage:
    """A candidate and its text; *kept_chars* where the prompt was recorded to hold only a part."""

    id: str
    text: str
    kept_chars: int | None = None


@dataclass(frozen=True)
class Block:
    """A passage as it stands in a prompt."""

    id: str
    text: str


@dataclass(frozen=True)
class Parts:
    """A prompt: ``before + blocks[0] + gaps[0] + blocks[1] ... + after``.

    *separator* is what stands between any two passages, None where that differs from one to the
    next; *numbers_from* is the number that the first passage bears, None where they bear none.
    """

    before: str
    blocks: list[Block]
    gaps: list[str]
    after: str
    separator: str | None
    numbers_from: int | None
    order: list[int]
    """The passages' numbers, as they were given, in prompt order."""

    def with_only(self, kept: Sequence[int]) -> str:
        """The prompt with the texts of *kept* (positions from 0) alone, in their order.

        Where all passages are set apart alike, it is the prompt that the template makes of these;
        else only the texts of the others are cut out, and their headings stay.
        """
        if self._is_regular:
            return self.with_blocks([self.blocks[at] for at in sorted(kept)])
        texts = [block.text if at in kept else "" for at, block in enumerate(self.blocks)]
        pieces = [text + gap for text, gap in zip(texts, [*self.gaps, ""], strict=True)]
        return self.before + "".join(pieces) + self.after

    @property
    def _is_regular(self) -> bool:
        return self.separator is not None or len(self.blocks) == 1

    def with_blocks(self, blocks: Sequence[Block]) -> str:
        """The prompt with *blocks* in place of its own.

        Raises:
            PartsError: What stands between two passages is not known.
        """
        if len(blocks) > 1 and self.separator is None:
            raise PartsError(
                "one passage only: what would stand between two is not known"
                if len(self.blocks) == 1
                else "what stands between the passages differs from one to the next"
            )
        pieces = [_renamed(self.before, self.blocks[0].id, blocks[0].id, self.separator)]
        for at, block in enumerate(blocks):
            if at:
                pieces.append(self._separator_before(block, at))
            pieces.append(block.text)
        return "".join(pieces) + self.after

    def _separator_before(self, block: Block, at: int) -> str:
        number = "" if self.numbers_from is None else str(self.numbers_from + at)
        return (self.separator or "").replace(_ID, block.id).replace(_NUMBER, number)


def take_apart(prompt: str, passages: Sequence[Passage], question: str) -> Parts:
    """Find *passages* in *prompt*, each whole or as far as it was recorded to be kept.

    Raises:
        PartsError: One is not found so, two overlap, or one stands there more than once.
    """
    places = _places(prompt, passages, question)
    blocks = [Block(passages[p.number].id, prompt[p.start : p.end]) for p in places]
    gaps = [prompt[left.end : right.start] for left, right in pairwise(places)]
    before, after = prompt[: places[0].start], prompt[places[-1].end :]
    for block in blocks:
        if len(block.text) >= _TELLING_CHARS and any(
            block.text in piece for piece in (before, after, *gaps)
        ):
            raise PartsError(f"the passage {block.id} stands in the prompt more than once")
    separator, first = _separator(before, blocks, gaps)
    return Parts(before, blocks, gaps, after, separator, first, [p.number for p in places])


def _places(prompt: str, passages: Sequence[Passage], question: str) -> list[Place]:
    found = find_places(prompt, [passage.text for passage in passages], question)
    by_number = {place.number: place for place in found}
    for number, passage in enumerate(passages):
        place = by_number.get(number)
        if place is None:
            raise PartsError(f"the passage {passage.id} is not found in the prompt")
        if not place.is_whole and (
            passage.kept_chars is None or place.kept_chars < passage.kept_chars
        ):
            raise PartsError(f"the passage {passage.id} does not stand whole in the prompt")
    places = sorted(found, key=lambda place: place.start)
    if not places:
        raise PartsError("no passage was sent")
    for left, right in pairwise(places):
        if right.start < left.end:
            pair = f"{passages[left.number].id} and {passages[right.number].id}"
            raise PartsError(f"the passages {pair} overlap in the prompt")
    return places


def _separator(
    before: str, blocks: Sequence[Block], gaps: Sequence[str]
) -> tuple[str | None, int | None]:
    """What stands between any two passages, and the number of the first."""
    heading = before[-_HEAD_CHARS:]
    patterns = [
        _id_pattern(block.id).sub(_ID, gap, count=1) if block.id else gap
        for gap, block in zip(gaps, blocks[1:], strict=True)
    ]
    if not patterns or (_ID in patterns[0] and not _id_pattern(blocks[0].id).search(heading)):
        return None, None
    first = _first_number(heading, patterns)
    if first is not None:
        patterns = [re.sub(r"\d+", _NUMBER, pattern) for pattern in patterns]
    if len(set(patterns)) > 1:
        return None, None
    # A single gap with a number that counts nothing known says little about the next one.
    if first is None and len(patterns) == 1 and re.search(r"\d", patterns[0]):
        return None, None
    return patterns[0], first


def _first_number(heading: str, patterns: Sequence[str]) -> int | None:
    """The number that the first passage bears, where the gaps count on from it."""
    numbers = [re.findall(r"\d+", pattern) for pattern in patterns]
    before = re.findall(r"\d+", heading)
    if not before or any(len(found) != 1 for found in numbers):
        return None
    first = int(before[-1])
    counted = [int(found[0]) for found in numbers]
    return first if counted == [first + at for at in range(1, len(counted) + 1)] else None


def _id_pattern(chunk_id: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(chunk_id)}(?!\w)")


def _renamed(before: str, old: str, new: str, separator: str | None) -> str:
    """*before* with the id of the first passage in its heading changed to that of another."""
    if not separator or _ID not in separator or old == new:
        return before
    head, tail = before[:-_HEAD_CHARS], before[-_HEAD_CHARS:]
    *_, last = _id_pattern(old).finditer(tail)
    return head + tail[: last.start()] + new + tail[last.end() :]
