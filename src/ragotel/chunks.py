"""Chunks: texts named by content and sent once per process.

Pipeline: recorder -> encoding (on the worker's thread) -> [chunks] -> `rag.chunks`
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from ragotel.privacy import MAX_CHUNK_CHARS
from ragotel.text import chunk_sha, repair

MAX_SENT = 100_000
"""How many texts are remembered as sent."""
SENT_FOR_S = 24 * 3600.0
"""After this long a text is sent again, so that a store with a retention still has it."""
MAX_SPAN_CHARS = 512 * 1024
"""New texts on one span; the others go with the next list that holds them."""


class ChunkBook:
    """What this process knows of texts: their hashes, and which of them it has sent."""

    def __init__(self) -> None:
        # Keyed by the text's own hash: the texts themselves would fill the memory.
        self._shas: dict[tuple[int, int], str] = {}
        self._sent_at: dict[str, float] = {}
        self._pid = os.getpid()

    def sha(self, text: str) -> str:
        """Name *text*: ``sha256:`` and 16 hex digits of its normalised form."""
        key = (hash(text), len(text))
        sha = self._shas.get(key)
        if sha is None:
            sha = chunk_sha(text)
            if len(self._shas) >= MAX_SENT:
                _drop_older_half(self._shas)
            self._shas[key] = sha
        return sha

    def take_new(
        self, shas: Iterable[str | None], texts: Iterable[str | None], withheld: frozenset[str]
    ) -> dict[str, str]:
        """Take the texts that were not sent yet, and mark them as sent."""
        if self._pid != os.getpid():
            # What the parent sent may never have arrived from the parent's queue.
            self.forget()
            self._pid = os.getpid()
        new: dict[str, str] = {}
        now = time.monotonic()
        sent_at = self._sent_at
        room_chars = MAX_SPAN_CHARS
        for sha, text in zip(shas, texts, strict=True):
            if sha is None or text is None or sha in withheld:
                continue
            if now - sent_at.get(sha, -SENT_FOR_S) < SENT_FOR_S:
                continue
            if len(text) > MAX_CHUNK_CHARS or len(text) > room_chars:
                continue
            room_chars -= len(text)
            new[sha] = repair(text)
            sent_at[sha] = now
        if len(sent_at) > MAX_SENT:
            _drop_older_half(sent_at)
        return new

    def forget(self) -> None:
        """Take every text for unsent."""
        self._sent_at = {}

    def on_loss(self, *_: object) -> None:
        """Send all texts again: some of those that were lost may be nowhere else."""
        self.forget()


def _drop_older_half(book: dict) -> None:  # type: ignore[type-arg]
    for key in list(book)[: len(book) // 2]:
        book.pop(key, None)
