"""Redaction: mail addresses, phone, card and account numbers, keys become marks: ``[email]``.

Pipeline: encoding -> privacy -> [redaction] -> span attributes

Numbers that carry a check digit are masked only where it is right, so that an order number of
sixteen digits stays. Patterns look no further back than a few characters: no text is slow to read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ragotel.pacing import Pace

EMAIL, PHONE, CARD, IBAN, KEY = "email", "phone", "card", "iban", "key"

# As people type them, and as PDFs and word processors set them.
_SPACES = " \t\u00a0\u2000-\u200a\u202f"
_DASHES = "\u2010-\u2013-"
_GAP = f"[{_SPACES}{_DASHES}]"

_EMAIL = re.compile(
    r"[\w.+%'-]{1,64}(?:@|%40|\uff20)"
    r"(?:(?:[\w-]{1,63}\.){1,8}\w{2,24}|\[[0-9a-fA-F.:]{3,45}\])"
)
_AT_SIGNS = ("@", "%40", "\uff20")
_IBAN = re.compile(rf"(?<!\w)[A-Z]{{2}}[0-9]{{2}}(?:{_GAP}?[A-Z0-9]){{11,34}}(?!\w)", re.IGNORECASE)
_CARD = re.compile(
    rf"(?<![0-9])(?:[0-9]{{13,19}}|[0-9]{{4}}(?:[{_SPACES}.{_DASHES}]{{1,2}}[0-9]{{2,6}}){{2,4}})(?![0-9])"
)
_PHONE = re.compile(
    # With the country's number; with a leading 0; in pairs; as in North America.
    rf"(?<![\w.+])(?:\+|00)[1-9](?:[{_SPACES}().\/{_DASHES}]{{0,3}}[0-9]){{6,14}}(?![0-9])"
    rf"|(?<![\w.])\(?0[0-9]{{1,5}}\)?[{_SPACES}/{_DASHES}][0-9](?:[{_SPACES}./{_DASHES}]?[0-9]){{5,11}}(?!\w)"
    r"|(?<![\w.])0[1-9](?:\.[0-9]{2}){4}(?!\.?\w)"
    rf"|(?<![\w.])(?:1[{_SPACES}.{_DASHES}])?(?:\([2-9][0-9]{{2}}\)[{_SPACES}]?|[2-9][0-9]{{2}}[{_SPACES}.{_DASHES}])"
    rf"[0-9]{{3}}[{_SPACES}.{_DASHES}][0-9]{{4}}(?!\w)"
)
_KEY = re.compile(
    # What providers begin their keys with, JSON web tokens, private keys.
    r"(?<![\w-])(?:"
    r"sk-[\w-]{20,300}|[rsp]k_(?:live|test)_[A-Za-z0-9]{16,200}|gh[opsur]_[A-Za-z0-9]{30,300}"
    r"|github_pat_\w{22,300}|glpat-[\w-]{20,300}|xox[abeprs]-[\w-]{10,300}|hf_[A-Za-z0-9]{30,200}"
    r"|npm_[A-Za-z0-9]{36}|A[KS]IA[A-Z0-9]{16}(?!\w)|AIza[\w-]{35}"
    r"|eyJ[\w-]{8,4000}\.[\w-]{4,8000}(?:\.[\w-]{4,4000})?"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9\s+/=]{0,12000}"
    r"(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
    r")"
)
_KEY_STARTS = (
    *("sk-", "k_live_", "k_test_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-"),
    *("xox", "hf_", "npm_", "AKIA", "ASIA", "AIza", "eyJ", "PRIVATE KEY"),
)
_WINDOW_CHARS = 16_384
_LONGEST_CHARS = 1024
_LONGEST_KEY_CHARS = 20_000
"""More than any pattern takes, so that a window cuts none of its matches."""
_SHORTEST_PHONE = 9
_CARD_DIGITS = range(13, 20)
_IBAN_CHARS = range(15, 35)


def redact(text: str) -> str:
    """Mask what the built-in patterns know."""
    return redact_and_count(text)[0]


def redact_and_count(text: str) -> tuple[str, dict[str, int]]:
    """Mask what the built-in patterns know, and tell how often each kind was found."""
    counts: dict[str, int] = {}
    if any(map(text.__contains__, _KEY_STARTS)):
        text = _mask(_KEY, text, KEY, counts, len, _LONGEST_KEY_CHARS)
    if any(map(text.__contains__, _AT_SIGNS)):
        text = _mask(_EMAIL, text, EMAIL, counts, len)
    if any(map(text.__contains__, "0123456789")):
        text = _mask(_IBAN, text, IBAN, counts, _iban_chars)
        text = _mask(_CARD, text, CARD, counts, _card_chars)
        text = _mask(_PHONE, text, PHONE, counts, _phone_chars)
    return text, counts


def _mask(
    pattern: re.Pattern[str],
    text: str,
    kind: str,
    counts: dict[str, int],
    measure: Callable[[str], int],
    longest_chars: int = _LONGEST_CHARS,
) -> str:
    """Put a mark in place of each match, or of as much of its beginning as *measure* says."""
    parts: list[str] = []
    done = at = 0
    pace = Pace()
    while at < len(text):
        # One search keeps the interpreter to itself until it ends.
        until = at + _WINDOW_CHARS
        found = pattern.search(text, at, until + longest_chars)
        pace.step()
        if found is None or found.start() >= until:
            at = until
            continue
        size = measure(found[0])
        if not size:
            at = found.start() + 1
            continue
        parts += (text[done : found.start()], f"[{kind}]")
        counts[kind] = counts.get(kind, 0) + 1
        done = at = found.start() + size
    return "".join((*parts, text[done:])) if parts else text


def _ends(found: str) -> list[int]:
    """Where a number may end, the longest first: at its end, and before each separator."""
    return [len(found), *(n for n in range(len(found) - 1, 0, -1) if not found[n].isalnum())]


def _card_chars(found: str) -> int:
    for end in _ends(found):
        digits = [int(char) for char in found[:end] if char.isdigit()]
        if len(digits) in _CARD_DIGITS and any(digits) and _luhn(digits):
            return end
    return 0


def _luhn(digits: list[int]) -> bool:
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _iban_chars(found: str) -> int:
    for end in _ends(found):
        chars = [char for char in found[:end].upper() if char.isalnum()]
        if len(chars) in _IBAN_CHARS and _mod97(chars):
            return end
    return 0


def _mod97(chars: list[str]) -> bool:
    return int("".join(str(int(char, 36)) for char in chars[4:] + chars[:4])) % 97 == 1


def _phone_chars(found: str) -> int:
    digits = sum(map(str.isdigit, found))
    return len(found) if digits >= _SHORTEST_PHONE or found[0] == "+" else 0
