"""Page: a prompt while it is searched: what is explained already, and what texts are known by.

Pipeline: recorder -> encoding -> survivors -> [page]
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragotel.pacing import Pace

PROBE_CHARS = 24
"""A text is looked for by its first so many characters; a shorter one must stand alone."""
WINDOW_CHARS = 400_000
"""Longest stretch that is searched in one go: a search keeps the interpreter to itself."""
_MAX_TRIES = 16


class Page:
    """A prompt, and which parts of it a candidate already explains."""

    __slots__ = ("_pace", "_rest", "free", "scanned_chars", "text")

    def __init__(self, text: str, pace: Pace) -> None:
        self.text = text
        self.free: list[tuple[int, int]] = [(0, len(text))]
        """The parts that no candidate explains yet, in order."""
        self.scanned_chars = 0
        self._rest: str | None = text
        self._pace = pace

    def claim(self, start: int, end: int) -> None:
        a, b = self.free[-1] if self.free else (0, 0)
        if a <= start and end <= b:
            self.free[-1:] = [part for part in ((a, start), (end, b)) if part[0] < part[1]]
        else:
            cut = [((a, min(b, start)), (max(a, end), b)) for a, b in self.free]
            self.free = [part for both in cut for part in both if part[0] < part[1]]
        self._rest = None

    def claim_up_to(self, end: int, free: list[tuple[int, int]]) -> None:
        """Claim all up to *end* but for the *free* parts, before anything else is claimed."""
        parts = [*free, (end, len(self.text))]
        self.free = [part for part in parts if part[0] < part[1]]
        self._rest = None

    @property
    def rest(self) -> str:
        """Join what no candidate explains: it tells quickly what is not there at all."""
        if self._rest is None:
            text = self.text
            self._rest = "\0".join([text[a:b] for a, b in self.free])
        return self._rest

    def find(self, probe: str) -> Iterator[int]:
        """Walk the free places where *probe* stands."""
        tries = 0
        for free_start, free_end in self.free:
            for start in range(free_start, free_end, WINDOW_CHARS):
                end = min(free_end, start + WINDOW_CHARS + len(probe) - 1)
                self.scanned_chars += end - start
                self._pace.step()
                at = self.text.find(probe, start, end)
                while at >= 0 and tries < _MAX_TRIES:
                    yield at
                    tries += 1
                    at = self.text.find(probe, at + 1, end)

    def part(self, at: int) -> tuple[int, int]:
        """Tell the free part around *at*."""
        return next(((a, b) for a, b in self.free if a <= at < b), (at, at))


def stands_alone(text: str, start: int, end: int) -> bool:
    """Refuse "10" inside of "110": a short text must not adjoin a letter or digit."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    return not (before.isalnum() and text[start].isalnum()) and not (
        after.isalnum() and text[end - 1].isalnum()
    )


def common_chars(text: str, offset: int, page: str, at: int, end: int) -> int:
    """Count how far *text* from *offset* runs along *page* from *at*, by halving."""
    low, high = 0, min(len(text) - offset, end - at)
    while low < high:
        middle = (low + high + 1) // 2
        if text[offset + low : offset + middle] == page[at + low : at + middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Probe(NamedTuple):
    """What one text is looked for by: pieces of its head and its middle, simplified.

    The two keys are a whole word inside of each piece, or None if it has none: a word that the
    prompt does not have tells at the cost of one look-up that the piece is not there either.
    """

    head: str
    middle: str
    keys: tuple[str | None, str | None]


def make_probe(text: str) -> Probe:
    """Cut the pieces that *text* is looked for by."""
    middle_at = len(text) // 2
    head = simplify(text[: 4 * PROBE_CHARS])[:PROBE_CHARS]
    middle = simplify(text[middle_at : middle_at + 3 * PROBE_CHARS])[:PROBE_CHARS]
    return Probe(head, middle, (_inner_word(head), _inner_word(middle)))


def make_probes(texts: Sequence[str]) -> list[Probe]:
    """Cut the pieces that each of *texts* is looked for by."""
    return list(map(make_probe, texts))


def _inner_word(piece: str) -> str | None:
    # The first and last words may be cut, or touch a mark of the template's.
    words = piece.split(" ")[1:-1]
    return max(words, key=len) if words else None


def simplified_words(text: str) -> list[str]:
    """Undo what templates do to a text: escapes of JSON and HTML, other white space."""
    if "\\" in text:
        text = text.replace("\\n", " ").replace("\\t", " ").replace("\\r", " ").replace('\\"', '"')
    if "&" in text and ";" in text:
        text = html.unescape(text)
    return text.split()


def simplify(text: str) -> str:
    """Join the words of *text* by single blanks."""
    return " ".join(simplified_words(text))
