"""Fields: reads one value of a loaded JSON object with its type, or says what is wrong with it.

Pipeline: file -> [triage] -> store. An absent key and null mean the same: not given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ragotel.triage.lines import kind

_MOST_ID_CHARS = 8_192
"""Ids stand in full wherever a command prints them."""


class FieldError(ValueError):
    """A value cannot be used; the message names its key."""


def text_of(record: Mapping[str, Any], key: str, default: str = "") -> str:
    """A text; *default* where it is not given."""
    value = record.get(key)
    if value is None:
        return default
    if not isinstance(value, str):
        raise FieldError(f"{key} is {kind(value)}, a text is wanted")
    return value


def id_of(record: Mapping[str, Any], key: str) -> str:
    """An id: a text, or a whole number that is taken as its digits; '' where it is not given."""
    value = record.get(key)
    return "" if value is None else _as_id(value, key)


def _as_id(value: Any, key: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise FieldError(f"{key} is {kind(value)}, an id is wanted")
    if len(value) > _MOST_ID_CHARS:
        raise FieldError(f"{key} has {len(value):,} characters, at most {_MOST_ID_CHARS:,} can be")
    return value


def ids_of(record: Mapping[str, Any], key: str) -> list[str]:
    """A list of ids; empty ones are refused, for nothing has such an id."""
    values = [_as_id(value, f"an entry of {key}") for value in _list_of(record, key)]
    if "" in values:
        raise FieldError(f"an entry of {key} is empty")
    return values


def texts_of(record: Mapping[str, Any], key: str) -> list[str]:
    """A list of texts; empty ones are left out."""
    values = _list_of(record, key)
    for value in values:
        if not isinstance(value, str):
            raise FieldError(f"an entry of {key} is {kind(value)}, a text is wanted")
    return [value for value in values if value.strip()]


def _list_of(record: Mapping[str, Any], key: str) -> list[Any]:
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise FieldError(f"{key} is {kind(value)}, a list is wanted")
    return value


def flag_of(record: Mapping[str, Any], key: str, default: bool | None = None) -> bool:
    """A boolean; *default* where it is not given, and without a default it must be."""
    value = record.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, bool):
        found = "missing" if value is None else kind(value)
        raise FieldError(f"{key} is {found}, true or false is wanted")
    return value


def count_of(record: Mapping[str, Any], key: str, *, least: int = 0) -> int | None:
    """A whole number from *least* to what 32 bits hold; None where it is not given."""
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise FieldError(f"{key} is {kind(value)}, a whole number is wanted")
    if not least <= value < 2**32:
        raise FieldError(f"{key} is {value}, {least} to {2**32 - 1} is wanted")
    return value


def number_of(record: Mapping[str, Any], key: str) -> float | None:
    """A finite number; None where it is not given."""
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(f"{key} is {kind(value)}, a number is wanted")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise FieldError(f"{key} is no finite number")
    return number


def choice_of(
    record: Mapping[str, Any], key: str, choices: tuple[str, ...], default: str = ""
) -> str:
    """One of *choices*."""
    value = text_of(record, key, default)
    if value not in choices:
        found = repr(value) if value else "missing"
        raise FieldError(f"{key} is {found}, one of {', '.join(choices)} is wanted")
    return value


def require(value: str, key: str) -> str:
    """*value*, which must not be blank."""
    if not value.strip():
        raise FieldError(f"{key} is missing or empty")
    return value
