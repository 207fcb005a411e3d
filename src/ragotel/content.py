"""Content: puts texts on a span as far as they may leave, and says there what became of them.

Pipeline: encoding -> [content] -> privacy -> span attributes
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial

from ragotel import attributes as at
from ragotel.lists import dump
from ragotel.model import AttributeValue
from ragotel.privacy import ANSWER, CHUNKS, FULL, METADATA, STRENGTH, USER, Kept, Privacy

Attributes = dict[str, AttributeValue]

_WHO_KEYS = (at.USER_ID, at.CONVERSATION_ID, at.TENANT, at.PRINCIPAL)


class Content:
    """The rules of one process, applied to the attributes of spans in the making."""

    def __init__(self, privacy: Privacy) -> None:
        self._privacy = privacy
        self._guards_metadata = privacy.mode(METADATA) != FULL
        self._guards_users = privacy.mode(USER) != FULL

    def put_text(self, made: Attributes, key: str, text: str, field: str) -> None:
        """Put one text as far as it may leave."""
        if self._privacy.passes(text, field):
            made[key] = text
            _put_mode(made, FULL)
            return
        kept = self._privacy.keep(text, field)
        _put_kept(made, key, kept)
        _put_mode(made, kept.mode)

    def guard_values(self, made: Attributes) -> None:
        """Treat what is no text of its own but may quote one: tags, filters, names of people."""
        if self._guards_metadata:
            condition, tags = made.pop(at.FILTER, None), made.pop(at.TAGS, None)
            if condition is not None:
                _put_kept(made, at.FILTER, self._privacy.keep(str(condition), METADATA))
            if tags is not None:
                kept = [self._privacy.keep(tag, METADATA) for tag in json.loads(str(tags))]
                _put_list(made, at.TAGS, kept)
        if self._guards_users:
            for key in _WHO_KEYS:
                if (who := made.pop(key, None)) is not None:
                    _put_kept(made, key, self._privacy.keep(str(who), USER))

    def guard_citations(
        self, made: Attributes, known_ids: Callable[[], Collection[str | None]]
    ) -> None:
        """Treat quotations as the answer that they are of; ids and positions of passages stay."""
        if self._privacy.mode(ANSWER) == FULL:
            return
        known = known_ids()
        kept = [
            Kept(cited, FULL)
            if cited in known or cited.isdecimal()
            else self._privacy.keep(cited, ANSWER)
            for cited in json.loads(str(made.pop(at.CITATIONS)))
        ]
        _put_list(made, at.CITATIONS, kept)

    def chunk_filter(self, made: Attributes) -> Callable[[str], bool] | None:
        """Give what says whether a chunk text may leave; None: all may."""
        return None if self._privacy.mode(CHUNKS) == FULL else partial(self._may_leave, made)

    def _may_leave(self, made: Attributes, text: str) -> bool:
        is_whole, found = self._privacy.keeps_whole(text, CHUNKS)
        _count_redactions(made, found)
        return is_whole


def failures(made: Attributes) -> int:
    """Count the texts of a span that are left out because their redaction failed."""
    if at.REDACTIONS not in made:
        return 0
    failed: int = json.loads(str(made[at.REDACTIONS])).get("failed", 0)
    return failed


def _put_kept(made: Attributes, key: str, kept: Kept) -> None:
    if kept.text is not None:
        made[key] = kept.text
    if kept.was_repaired:
        made[at.TEXT_REPAIRED] = True
    _count_redactions(made, kept.found)


def _put_list(made: Attributes, key: str, kept: list[Kept]) -> None:
    for one in kept:
        _count_redactions(made, one.found)
    left = [one.text for one in kept if one.text is not None]
    if left or not kept:
        made[key] = dump(left)


def _put_mode(made: Attributes, mode: str) -> None:
    """Name what became of the texts of a span: of several, the one that lacks most."""
    before = made.get(at.CONTENT_MODE)
    if before is None or STRENGTH[mode] > STRENGTH[str(before)]:
        made[at.CONTENT_MODE] = mode


def _count_redactions(made: Attributes, found: Mapping[str, int]) -> None:
    if not found:
        return
    counts = json.loads(str(made.get(at.REDACTIONS, "{}")))
    for kind, count in found.items():
        counts[kind] = counts.get(kind, 0) + count
    made[at.REDACTIONS] = dump(counts)
