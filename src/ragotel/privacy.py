"""Privacy: the one place that decides what text may leave the process, and how long it may be.

Pipeline: recorder -> encoding -> [privacy] -> span attributes
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ragotel.text import chunk_sha, repair

FULL = "full"
TRUNCATED = "truncated"
HASHED = "hashed"
OFF = "off"

SHORT_TEXT_CHARS = 2000
"""Length that mode `truncated` keeps of every text."""
MAX_STRING_CHARS = 2048
"""Longest value that is not a text: ids, names, versions, filters."""
MAX_CHUNK_CHARS = 100_000
"""Longest chunk text; a longer one is cut and so no longer answers to its hash: it is not sent."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of one text; *text* is None where none may leave."""

    text: str | None
    mode: str
    was_repaired: bool = False


@dataclass(frozen=True, slots=True)
class Privacy:
    """What may leave: *mode* is `full`, `truncated`, `hashed` or `off`."""

    mode: str = FULL
    max_text_chars: int = 1_000_000

    @classmethod
    def of(cls, mode: str, max_text_chars: int) -> Privacy:
        """Build the policy of the settings; a mode that is not known here lets no text leave."""
        known = (FULL, TRUNCATED, HASHED)
        return cls(mode if mode in known else OFF, max_text_chars)

    @property
    def keeps_text(self) -> bool:
        return self.mode in (FULL, TRUNCATED)

    def passes(self, text: str) -> bool:
        """Tell quickly the usual text, which leaves as it is."""
        return self.mode == FULL and len(text) <= self.max_text_chars and repair(text) is text

    def keep(self, text: str) -> Kept:
        """Cut, hash or withhold *text*; a text cut short keeps its head and its tail."""
        if self.mode == HASHED:
            return Kept(chunk_sha(text), HASHED)
        if not self.keeps_text:
            return Kept(None, OFF)
        limit_chars = self.max_text_chars
        if self.mode == TRUNCATED:
            limit_chars = min(limit_chars, SHORT_TEXT_CHARS)
        whole = repair(text)
        was_repaired = whole is not text and whole != text
        if len(whole) <= limit_chars:
            return Kept(whole, FULL, was_repaired)
        return Kept(cut_middle(whole, limit_chars), TRUNCATED, was_repaired)


def cut_middle(text: str, limit_chars: int) -> str:
    """Keep head and tail of *text* within *limit_chars*, and say between them what is missing."""
    if len(text) <= limit_chars:
        return text
    note = f"\n[... {len(text) - limit_chars} characters cut ...]\n"
    room_chars = limit_chars - len(note)
    if room_chars <= 0:
        return text[:limit_chars]
    head_chars = room_chars - room_chars // 2
    tail_chars = room_chars - head_chars
    return text[:head_chars] + note + text[len(text) - tail_chars :]


def bounded(value: str, limit_chars: int = MAX_STRING_CHARS) -> str:
    """Repair *value* and keep it short; a longer one ends in its hash, so that it stays unique."""
    value = repair(value)
    if len(value) <= limit_chars:
        return value
    digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{value[: limit_chars - 24]}~sha256:{digest}"
