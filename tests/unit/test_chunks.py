"""Texts are sent once per process, and again when that may have been in vain."""

from __future__ import annotations

import pytest

from ragotel import chunks
from ragotel.chunks import ChunkBook

NOBODY: frozenset[str] = frozenset()


def take(book: ChunkBook, *texts: str, withheld: frozenset[str] = NOBODY) -> list[str]:
    return list(book.take_new([book.sha(t) for t in texts], list(texts), withheld).values())


def test_once() -> None:
    """A text goes once, also where it stands twice in a list."""
    book = ChunkBook()
    assert take(book, "a", "b", "a") == ["a", "b"]
    assert take(book, "b", "c") == ["c"]


def test_again_after_a_loss() -> None:
    """After any loss in delivery nothing is taken for sent."""
    book = ChunkBook()
    take(book, "a")
    book.on_loss("queue_full", 1, 1)
    assert take(book, "a") == ["a"]


def test_again_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 24 hours a text is sent again, so that a store with a retention has it."""
    now = 1000.0
    monkeypatch.setattr(chunks.time, "monotonic", lambda: now)
    book = ChunkBook()
    take(book, "old")
    now += 23 * 3600
    assert take(book, "old", "young") == ["young"]
    now += 2 * 3600
    assert take(book, "old", "young") == ["old"]


def test_again_in_a_forked_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child does not rely on what its parent still had in its queue."""
    book = ChunkBook()
    take(book, "a")
    monkeypatch.setattr(chunks.os, "getpid", lambda: -1)
    assert take(book, "a") == ["a"]


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit the older half is forgotten."""
    monkeypatch.setattr(chunks, "MAX_SENT", 10)
    book = ChunkBook()
    for number in range(100):
        take(book, f"text {number}")
    assert len(book._sent_at) <= 11
    assert len(book._shas) <= 11
    assert take(book, "text 99") == []


def test_large_texts_and_many_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text over the limit is never sent; what has no room goes with a later list."""
    monkeypatch.setattr(chunks, "MAX_CHUNK_CHARS", 10)
    monkeypatch.setattr(chunks, "MAX_SPAN_CHARS", 15)
    book = ChunkBook()
    assert take(book, "x" * 11, "y" * 10, "z" * 10) == ["y" * 10]
    assert take(book, "x" * 11, "y" * 10, "z" * 10) == ["z" * 10]


def test_withheld_texts_stay() -> None:
    """A withheld text is not sent, and not taken for sent either."""
    book = ChunkBook()
    assert take(book, "a", "b", withheld=frozenset({book.sha("a")})) == ["b"]
    assert take(book, "a") == ["a"]
