"""Text made comparable: the one definition in Python; sql/functions/rag_normalise.sql is its twin.

Stands on both sides of the wire: emit hashes chunk texts with it, read compares claims with it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

# All of Unicode White_Space and U+001C to U+001F.
_BLANKS = re.compile(
    "[\x09-\x0d\x1c-\x1f\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)
# Default_Ignorable_Code_Point of Unicode: characters that a reader never sees.
_IGNORABLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")


_LONG_CHARS = 4096
_last: tuple[str, bytes] = ("", b"")
"""The last long text that passed, with its UTF-8: a prompt is hashed, looked at and sent."""


def repair(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 encoder accepts, by U+FFFD; others stay as is."""
    global _last
    if text.isascii() or _last[0] is text:
        return text
    try:
        # Far faster than a search, and nearly every text passes.
        raw = text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text)
    if len(text) >= _LONG_CHARS:
        _last = text, raw
    return text


def utf8(text: str) -> bytes:
    """Encode *text*; lone surrogates, which UTF-8 cannot hold, become U+FFFD."""
    whole = repair(text)
    last, raw = _last
    return raw if last is whole else whole.encode()


class _Folding(dict[int, str]):
    """Each character's NFKC case folding: by itself, since accents are put in order only after."""

    def __missing__(self, code: int) -> str:
        folded = chr(code)
        for _ in range(2):
            folded = unicodedata.normalize("NFKC", _IGNORABLE.sub("", folded)).casefold()
        folded = self[code] = unicodedata.normalize("NFKC", _IGNORABLE.sub("", folded))
        return folded


_FOLDED = _Folding()


def normalise(text: str) -> str:
    """Fold *text* to NFKC case folding without default-ignorables, white space runs as one blank.

    Blanks at the ends stay (one each): the callers that compare whole questions strip them.
    """
    if text.isascii():
        return _BLANKS.sub(" ", text.lower())
    folded = repair(text).translate(_FOLDED)
    return _BLANKS.sub(" ", unicodedata.normalize("NFC", folded))


def content_hash(text: str) -> str:
    """Name *text* as it stands, unlike `chunk_sha`: ``sha256:`` and 16 hex digits."""
    return "sha256:" + hashlib.sha256(repair(text).encode()).hexdigest()[:16]


def chunk_sha(text: str) -> str:
    """Name *text* by content: ``sha256:`` and 16 hex digits of its normalised form's SHA-256."""
    return "sha256:" + hashlib.sha256(normalise(text).encode("utf-8", "replace")).hexdigest()[:16]
