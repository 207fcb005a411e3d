"""Chunks: texts named by content and sent once per process.

Pipeline: recorder -> encoding (on the worker's thread) -> [chunks] -> `rag.chunks`
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence

from ragotel.page import Probe, make_probe
from ragotel.privacy import MAX_CHUNK_CHARS
from ragotel.text import chunk_sha, repair

MAX_PROBES = 20_000
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
        self._shas: dict[int, str] = {}
        self._probes: dict[int, Probe] = {}
        self._sent_at: dict[str | None, float] = {}
        self._oldest_at = time.monotonic()
        self._pid = os.getpid()
        self.has_more = False
        """Whether the last span had no room for some of its new texts."""

    def sha(self, text: str) -> str:
        """Name *text*: ``sha256:`` and 16 hex digits of its normalised form."""
        key = hash(text)
        sha = self._shas.get(key)
        if sha is None:
            sha = chunk_sha(text)
            if len(self._shas) >= MAX_SENT:
                _drop_older_half(self._shas)
            self._shas[key] = sha
        return sha

    def shas(self, texts: Sequence[str | None]) -> list[str | None]:
        """Name each of *texts*; None where there is none."""
        known: list[str | None] = list(map(self._shas.get, map(hash, texts)))
        if None in known:
            return [self.sha(text) if text else None for text in texts]
        return known

    def probes(self, texts: Sequence[str]) -> list[Probe]:
        """Cut the pieces that *texts* are looked for by in prompts; remembered as hashes are."""
        known = list(map(self._probes.get, map(hash, texts)))
        return [
            self._probe(text) if probe is None else probe
            for text, probe in zip(texts, known, strict=True)
        ]

    def _probe(self, text: str) -> Probe:
        made = make_probe(text)
        if len(self._probes) >= MAX_PROBES:
            _drop_older_half(self._probes)
        self._probes[hash(text)] = made
        return made

    def take_new(
        self,
        shas: Sequence[str | None],
        texts: Sequence[str | None],
        withheld: frozenset[str],
        may_leave: Callable[[str], bool] | None = None,
    ) -> dict[str, str]:
        """Take the texts that were not sent yet, and mark them as sent.

        *may_leave* is asked once for each text: a changed text would not answer to its hash.
        """
        if self._pid != os.getpid():
            # What the parent sent may never have arrived from the parent's queue.
            self.forget()
            self._pid = os.getpid()
        now = time.monotonic()
        if now - self._oldest_at > SENT_FOR_S:
            self._expire(now)
        self.has_more = False
        if self._sent_at.keys() >= set(shas):
            return {}
        return self._take(shas, texts, withheld, now, may_leave)

    def _take(
        self,
        shas: Iterable[str | None],
        texts: Iterable[str | None],
        withheld: frozenset[str],
        now: float,
        may_leave: Callable[[str], bool] | None,
    ) -> dict[str, str]:
        new: dict[str, str] = {}
        room_chars = MAX_SPAN_CHARS
        for sha, text in zip(shas, texts, strict=True):
            if sha is None or text is None or sha in self._sent_at or sha in withheld:
                continue
            if len(text) > MAX_CHUNK_CHARS:
                continue
            if len(text) > room_chars:
                self.has_more = True
                continue
            self._sent_at[sha] = now
            if may_leave is not None and not may_leave(text):
                continue
            room_chars -= len(text)
            new[sha] = repair(text)
        if len(self._sent_at) > MAX_SENT:
            _drop_older_half(self._sent_at)
        return new

    def _expire(self, now: float) -> None:
        kept = {sha: at for sha, at in self._sent_at.items() if now - at < SENT_FOR_S}
        self._sent_at = kept
        self._oldest_at = min(kept.values(), default=now)

    def forget(self) -> None:
        """Take every text for unsent."""
        self._sent_at = {}
        self._oldest_at = time.monotonic()

    def on_loss(self, *_: object) -> None:
        """Send all texts again: some of those that were lost may be nowhere else."""
        self.forget()


def _drop_older_half(book: dict) -> None:  # type: ignore[type-arg]
    for key in list(book)[: len(book) // 2]:
        book.pop(key, None)
