"""Casting: one value that a service or a library gave becomes what its attribute holds.

Pipeline: encoding -> [casting] -> span attributes
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Looks
from ragotel.content import Attributes
from ragotel.fields import to_count, to_id
from ragotel.lists import dump, finite_scores
from ragotel.privacy import bounded

_INT_KEYS = frozenset(
    (at.TOP_K, at.LIMIT, at.FILTER_EXCLUDED, at.RERANK_WINDOW, at.BUDGET_TOKENS,
     at.DOCS_LISTED, at.DOCS_PARSED, at.DOCS_EMPTY, at.CHUNKS_WRITTEN, at.CHUNKS_DELETED,
     at.INPUT_TOKENS, at.OUTPUT_TOKENS)
)  # fmt: skip
_FLOAT_KEYS = frozenset((at.TEMPERATURE, at.MEAN_CHARS_PER_DOC))
_LIST_KEYS = frozenset((at.TAGS, at.FINISH_REASONS, at.CITATIONS))
_MAX_LISTED = 1000
_LOOKS = 10_000


def put_value(made: Attributes, key: str, value: Any) -> None:
    """Cast one value to what its attribute holds; what cannot be cast is left out."""
    if key in _LIST_KEYS:
        made[key] = dump(_strings(value))
    elif key in _INT_KEYS:
        count = to_count(value)
        if count is not None:
            made[key] = count
    elif key in _FLOAT_KEYS:
        number = finite_scores((value,))[0][0]
        if number is not None:
            made[key] = number
    elif isinstance(value, (str, bool)):
        made[key] = bounded(value) if isinstance(value, str) else value
    elif isinstance(value, (int, float)):
        made[key] = str(value)
    elif value is not None:
        text = (
            dump(_plain(value, Looks(_LOOKS)))
            if isinstance(value, (dict, list, tuple))
            else str(value)
        )
        made[key] = bounded(text)


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [bounded(f"{key}:{_word(item)}") for key, item in list(value.items())[:_MAX_LISTED]]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [
            bounded(to_id(item) or "") for item in list(value)[:_MAX_LISTED] if item is not None
        ]
    return [bounded(to_id(value) or "")]


def _word(value: Any) -> str:
    """*value* as JSON spells it where Python has a spelling of its own."""
    return str(value).lower() if isinstance(value, bool) else to_id(value) or ""


def _plain(value: Any, looks: Looks) -> Any:
    """Reduce a filter to JSON: whatever is neither text nor number becomes its type's name."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if looks.left > 0 and isinstance(value, dict):
        return {
            to_id(key) or "": _plain(part, looks)
            for key, part in looks.take(islice(value.items(), _MAX_LISTED))
        }
    if looks.left > 0 and isinstance(value, (list, tuple)):
        return [_plain(part, looks) for part in looks.take(islice(value, _MAX_LISTED))]
    return type(value).__name__
