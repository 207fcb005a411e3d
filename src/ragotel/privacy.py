"""Privacy: the one place that decides what text may leave the process, and how long it may be.

Pipeline: recorder -> encoding -> [privacy] -> span attributes
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ragotel import faults
from ragotel.errors import ConfigurationError
from ragotel.redaction import redact_and_count
from ragotel.text import chunk_sha, content_hash, repair

FULL = "full"
REDACTED = "redacted"
TRUNCATED = "truncated"
HASHED = "hashed"
OFF = "off"
MODES = (FULL, TRUNCATED, REDACTED, HASHED, OFF)
STRENGTH = {mode: n for n, mode in enumerate((FULL, REDACTED, TRUNCATED, HASHED, OFF))}
"""How much of a text is missing, to name the one mode of a span that has several texts."""

QUERY, ANSWER, PROMPT, CHUNKS = "query", "answer", "prompt", "chunks"
METADATA = "metadata"
"""Tags and filters: free text of the service's."""
USER = "user"
"""User, session, tenant and principal: by these a request is found, so they are kept by default."""
FIELDS = (QUERY, ANSWER, PROMPT, CHUNKS, METADATA, USER)
IDS = "ids"
"""Short for: no text at all, only ids, scores, counts and hashes."""

SHORT_TEXT_CHARS = 2000
"""Length that mode `truncated` keeps of every text, unless another is named."""
MAX_STRING_CHARS = 2048
"""Longest value that is not a text: ids, names, versions, filters."""
MAX_CHUNK_CHARS = 100_000
"""Longest chunk text; a longer one is cut and so no longer answers to its hash: it is not sent."""

_TRUNCATED_TO = re.compile(r"truncated\s*\(\s*(\d{1,9})\s*\)")


@dataclass(frozen=True, slots=True)
class Rule:
    """What becomes of one field."""

    mode: str = FULL
    limit_chars: int = SHORT_TEXT_CHARS
    """For mode `truncated`."""

    @classmethod
    def of(cls, text: str) -> Rule:
        """Read `full`, `truncated`, `truncated(500)`, `redacted`, `hashed` or `off`.

        Raises:
            ConfigurationError: it is none of these.
        """
        word = text.strip().lower()
        if found := _TRUNCATED_TO.fullmatch(word):
            return cls(TRUNCATED, int(found[1]))
        if word not in MODES:
            known = ", ".join(MODES)
            raise ConfigurationError(f"A content rule is {text!r}; it can be {known}.")
        return cls(word)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of one text; *text* is None where none may leave."""

    text: str | None
    mode: str
    was_repaired: bool = False
    found: Mapping[str, int] = field(default_factory=dict)
    """What a redaction masked, by kind; `failed`: it raised, so the text is off."""


def read_content(content: str | Mapping[str, str] | None) -> dict[str, str]:
    """Check rules by field: a mapping, or the text ``query=redacted,answer=off``.

    In a text ``ids`` stands for off in all fields but the user.

    Raises:
        ConfigurationError: a field or a rule is not known.
    """
    if content is None:
        return {}
    if isinstance(content, str):
        pairs = [part.strip().lower().partition("=") for part in content.split(",")]
        named = {name.strip(): rule.strip() for name, _, rule in pairs if name}
        if named.pop(IDS, None) == "":
            named = {**{name: OFF for name in FIELDS if name != USER}, **named}
        content = named
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"content is {content!r}; it must map fields to rules, or be ids.")
    rules: dict[str, str] = {}
    for name, rule in content.items():
        if name not in FIELDS:
            known = ", ".join(FIELDS)
            raise ConfigurationError(f"content has no field {name!r}; it knows {known}, or ids.")
        Rule.of(str(rule))
        rules[name] = str(rule).strip().lower()
    return rules


class Privacy:
    """What may leave: *mode* for every field without a rule of its own in *content*."""

    def __init__(
        self,
        mode: str = FULL,
        max_text_chars: int = 1_000_000,
        content: Mapping[str, str] | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        # A mode that is not known here lets no text leave.
        usual = Rule(mode if mode in MODES else OFF)
        self._rules = {name: usual for name in FIELDS if name != USER}
        self._rules[USER] = Rule(FULL)
        self._rules.update((name, Rule.of(rule)) for name, rule in (content or {}).items())
        self._max_text_chars = max_text_chars
        self._redact = redact

    def mode(self, field: str) -> str:
        """Tell the rule of one field."""
        return self._rules[field].mode

    def keeps_text(self, field: str) -> bool:
        """Whether anything of such texts can leave."""
        return self._rules[field].mode in (FULL, TRUNCATED, REDACTED)

    def passes(self, text: str, field: str = QUERY) -> bool:
        """Tell quickly the usual text, which leaves as it is."""
        return (
            self._rules[field].mode == FULL
            and len(text) <= self._max_text_chars
            and repair(text) is text
        )

    def keeps_whole(self, text: str, field: str) -> tuple[bool, Mapping[str, int]]:
        """Whether *text* leaves without any change, for what answers to its hash; and why not."""
        if not self.keeps_text(field):
            return False, {}
        rule = self._rules[field]
        if rule.mode == TRUNCATED and len(text) > rule.limit_chars:
            return False, {}
        if rule.mode == REDACTED:
            redacted, found = self._redacted(repair(text))
            return redacted == repair(text), found
        return True, {}

    def keep(self, text: str, field: str = QUERY) -> Kept:
        """Cut, redact, hash or withhold *text*; a text cut short keeps its head and its tail."""
        rule = self._rules[field]
        if rule.mode == HASHED:
            return Kept(content_hash(text) if field == USER else chunk_sha(text), HASHED)
        if rule.mode == OFF:
            return Kept(None, OFF)
        whole = repair(text)
        was_repaired = whole is not text and whole != text
        mode = FULL
        found: Mapping[str, int] = {}
        if rule.mode == REDACTED:
            redacted, found = self._redacted(whole)
            if redacted is None:
                return Kept(None, OFF, False, found)
            if redacted != whole:
                whole, mode = repair(redacted), REDACTED
        limit_chars = self._max_text_chars
        if rule.mode == TRUNCATED:
            limit_chars = min(limit_chars, rule.limit_chars)
        if len(whole) <= limit_chars:
            return Kept(whole, mode, was_repaired, found)
        return Kept(cut_middle(whole, limit_chars), TRUNCATED, was_repaired, found)

    def _redacted(self, text: str) -> tuple[str | None, dict[str, int]]:
        """Mask *text*, by the user's function if there is one; None where that fails."""
        if self._redact is None:
            return redact_and_count(text)
        try:
            redacted = self._redact(text)
        except Exception:
            redacted = None
        if not isinstance(redacted, str):
            faults.note("redact a text, which is left out")
            return None, {"failed": 1}
        return redacted, {} if redacted == text else {"custom": 1}


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
