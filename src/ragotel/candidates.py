"""Candidates: any shape of result becomes columns of ids, scores and texts; copied, never consumed.

Pipeline: result of a stage -> [candidates] -> encoding

Runs on the service's own thread, so it reads by columns and does no more than that: casts, hashes
and JSON come later. Ids and scores are copied, because rerankers overwrite them in place; texts are
kept as references, because strings cannot change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from uuid import UUID

from ragotel.columns import READ_LIMIT, Candidates, Column
from ragotel.containers import read_container
from ragotel.fields import EXTRA_NAMES
from ragotel.shapes import read_uniform

Reader: TypeAlias = Callable[[Any], Any]
"""A user's extractor: one item to its id, score or text."""

_NO_CANDIDATES = frozenset((list, tuple, str, int, float, bool, type(None), UUID))
"""Kinds that mean something only beside their neighbours."""
_FIELDS = ("id", "score", "text")


def read(value: object, readers: Mapping[str, Reader] | None = None) -> Candidates | None:
    """Read *value* as a list of candidates; None where it cannot be understood.

    Iterators are left alone: to read them would consume them.

    Args:
        value: what a stage returned: a list, a client's result, a data frame, ...
        readers: the user's own extractors by field (id, score, text, doc_id, ...), each called with
            one item; one that raises counts as a fault, and the field is found as without it.
    """
    if type(value) is list and value:
        found = _read_list(value if len(value) <= READ_LIMIT else value[:READ_LIMIT])
    else:
        found = read_container(value)
    if found is None:
        return None
    found.source = value
    if type(value) is list and len(value) > READ_LIMIT:
        found.unread = len(value) - READ_LIMIT
    if readers:
        _apply_readers(found, readers)
    found.settle()
    return found


def _read_list(items: Column) -> Candidates | None:
    first = items[0]
    kind = type(first)
    if kind in _NO_CANDIDATES:
        return read_container(items)
    try:
        found = read_uniform(items, kind)
    except Exception:
        found = None
    if found is None:
        return read_container(items)
    found.items = items[:]
    return found


def _apply_readers(found: Candidates, readers: Mapping[str, Reader]) -> None:
    """Let the user's extractors replace columns; a fault keeps what was found without them."""
    items = found.items
    if len(items) != len(found):
        return
    for field, reader in readers.items():
        old = _column(found, field)
        new: Column = []
        for rank, item in enumerate(items):
            try:
                new.append(reader(item))
            except Exception:
                found.faults += 1
                new.append(old[rank])
        if field in _FIELDS:
            setattr(found, field + "s", new)
        elif field in EXTRA_NAMES:
            found.extras[field] = new


def _column(found: Candidates, field: str) -> Column:
    if field in _FIELDS:
        column: Column = getattr(found, field + "s")
        return column
    return found.extras.get(field) or [None] * len(found)
