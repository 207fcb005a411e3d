"""Elements: lists of pairs, numbers, texts and mixtures become columns.

Pipeline: result of a stage -> candidates -> [elements] -> encoding
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any
from uuid import UUID

from ragotel.columns import Candidates, Column
from ragotel.fields import is_number, looks_like_id
from ragotel.shapes import read_uniform

_STRANGE = 100
"""So many elements of one class that say nothing, and no further one of it is looked at."""
_MAX_DEPTH = 4
"""Of pairs within pairs: one that holds itself has no end."""
_ROW_PARTS = 16
"""Of a longer row no more is looked at: lists of lists would cost the product of their lengths."""


def read_items(items: Sequence[Any], depth: int = 0) -> Candidates | None:
    """Read elements of whatever kinds; None if not a single one is a candidate.

    *depth* counts the pairs that they stand inside of.
    """
    if depth > _MAX_DEPTH:
        return None
    kinds = set(map(type, items))
    if len(kinds) == 1:
        kind = kinds.pop()
        if kind is str:
            return Candidates([None] * len(items), [None] * len(items), list(items))
        if issubclass(kind, (list, tuple)) and not hasattr(kind, "_fields"):
            return _read_pairs(items, depth)
        if kind is UUID or is_number(items[0]):
            return _read_numbers(items)
        found = read_uniform(list(items), kind)
        if found is not None:
            found.items = list(items)
        return found
    return _read_mixed(items, depth) if len(items) > 1 else None


def _read_numbers(items: Sequence[Any]) -> Candidates:
    """Whole numbers are ids, as a vector index returns them; others are scores without ids."""
    nothing: Column = [None] * len(items)
    if all(hasattr(item, "__index__") or not hasattr(item, "__float__") for item in items):
        return Candidates(list(items), nothing, nothing)
    return Candidates(nothing, list(items), nothing)


def _read_mixed(items: Sequence[Any], depth: int) -> Candidates | None:
    """Read element by element; what cannot be read keeps its rank, with everything null."""
    found = Candidates([], [], [])
    understood = 0
    strange: Counter[type] = Counter()
    for rank, item in enumerate(items):
        kind = type(item)
        one = None if item is None or strange[kind] >= _STRANGE else read_items((item,), depth)
        if one is None:
            strange[kind] += 1
            one = Candidates([None], [None], [None])
        else:
            understood += 1
        found.ids += one.ids
        found.scores += one.scores
        found.texts += one.texts
        for name, column in one.extras.items():
            found.extras.setdefault(name, [None] * len(items))[rank] = column[0]
    found.items = list(items)
    return found if understood else None


def _read_pairs(items: Sequence[Any], depth: int) -> Candidates | None:
    """Read ``(document, score)``, ``(id, score)``, ``(score, document)``, ``(id, text, score)``."""
    if (found := _read_scored(items)) is not None:
        return found
    rows = [_read_row(row) for row in items]
    docs = [row[0] for row in rows]
    if any(doc is not None for doc in docs):
        kinds = set(map(type, docs))
        found = read_items(docs, depth + 1) if kinds != {type(None)} else None
        if found is None:
            return None
    if found is None:
        nothing: Column = [None] * len(rows)
        found = Candidates(list(nothing), list(nothing), list(nothing))
    for rank, (_, id_value, score, text) in enumerate(rows):
        if id_value is not None:
            found.ids = found.ids if rank else list(found.ids)
            found.ids[rank] = id_value
        if score is not None:
            found.scores = found.scores if rank else list(found.scores)
            found.scores[rank] = score
        if text is not None:
            found.texts = found.texts if rank else list(found.texts)
            found.texts[rank] = text
    has_any = any(row != (None, None, None, None) for row in rows)
    found.items = list(items)
    return found if has_any else None


def _read_scored(items: Sequence[Any]) -> Candidates | None:
    """Read the usual ``(document, score)`` by columns; None for any other kind of pairs."""
    if set(map(len, items)) != {2}:
        return None
    docs, scores = ([row[0] for row in items], [row[1] for row in items])
    kinds = set(map(type, docs))
    kind = type(docs[0])
    if len(kinds) != 1 or not set(map(type, scores)) <= {float, int} or kind is UUID:
        return None
    if issubclass(kind, (str, bytes, list, tuple, type(None))) or is_number(docs[0]):
        return None
    found = read_uniform(docs, kind)
    if found is not None:
        found.scores = scores
        found.items = list(items)
    return found


def _read_row(row: Any) -> tuple[Any, Any, Any, Any]:
    """Tell the parts of one tuple apart by their kinds: (document, id, score, text)."""
    document: Any = None
    id_value: Any = None
    score: Any = None
    text: str | None = None
    numbers: list[Any] = []
    for part in islice(row, _ROW_PARTS):
        if part is None:
            continue
        if isinstance(part, str):
            if id_value is None and not numbers and looks_like_id(part):
                id_value = part
            elif text is None and (id_value is not None or not looks_like_id(part)):
                text = part
            elif id_value is None:
                id_value = part
        elif is_number(part):
            numbers.append(part)
        elif document is None and not isinstance(part, (bytes, bytearray)):
            if isinstance(part, UUID) and id_value is None:
                id_value = part
            else:
                document = part
    if numbers:
        score = numbers[-1]
        if len(numbers) > 1 and id_value is None and document is None:
            # Two numbers: the whole one is the id; where both are whole, the first.
            whole = [n for n in numbers if hasattr(n, "__index__")]
            id_value = whole[0] if whole else numbers[0]
            score = next((n for n in numbers if n is not id_value), None)
    return document, id_value, score, text
