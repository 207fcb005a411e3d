"""Containers: where clients and frameworks keep the list inside of their result.

Pipeline: result of a stage -> candidates -> [containers] -> encoding
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from itertools import chain, islice
from math import prod
from typing import Any

from ragotel.columns import READ_LIMIT, Candidates, Column, Looks
from ragotel.elements import read_items
from ragotel.fields import COLUMN_NAMES, LIST_NAMES, TEXT_NAMES, is_number
from ragotel.shapes import fill_from_metadata

_COLUMNS = frozenset(name for names in COLUMN_NAMES.values() for name in names)
_MAX_DEPTH = 4
_LOOKS = 4 * READ_LIMIT
"""Elements of all lists within one result that are looked at."""
_CONTAINER = 10
"""What a list, an array or an object that may hold one costs beside its elements."""


def read_container(value: Any, depth: int = 0, looks: Looks | None = None) -> Candidates | None:
    """Find the list inside of *value* and read it; None where there is none."""
    looks = looks or Looks(_LOOKS)
    looks.left -= _CONTAINER
    if value is None or isinstance(value, (str, bytes, bytearray, Iterator)) or depth > _MAX_DEPTH:
        return None
    if looks.left <= 0:
        return None
    if isinstance(value, Mapping):
        return _read_mapping(value, depth, looks)
    if hasattr(value, "ndim") and hasattr(value, "tolist"):
        return _read_array(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _read_object(value, depth, looks)
    if isinstance(value, (Sequence, Set, ValuesView, deque)):
        items = looks.take(value)
        found = _read_sequence(items, depth, looks, is_tuple=isinstance(value, tuple))
        if found is not None:
            found.unread += max(0, len(value) - len(items))
        return found
    return _read_object(value, depth, looks)


def _read_sequence(items: Column, depth: int, looks: Looks, *, is_tuple: bool) -> Candidates | None:
    if not items:
        return Candidates([], [], [])
    if is_tuple and (found := _read_parallel(items)) is not None:
        return found
    if is_tuple and len(items) <= 4 and any(_is_list(item) for item in items):
        # A function that returns its list with something beside it: ``return hits, timings``.
        return next(
            (c for c in (read_container(i, depth + 1, looks) for i in items) if c), None
        ) or (Candidates([], [], []) if any(_is_empty_list(item) for item in items) else None)
    if all(_is_list(item) and not _is_row(item) for item in items):
        return _concatenated([read_container(item, depth + 1, looks) for item in items])
    found = read_items(items)
    if found is None and len(items) == 1:
        return read_container(items[0], depth + 1, looks)
    return found


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, deque)) or (hasattr(value, "ndim") and value.ndim > 0)


def _is_empty_list(value: Any) -> bool:
    return isinstance(value, (list, tuple, deque)) and not value


def _is_row(value: Any) -> bool:
    """Tell ``(document, score)`` from a list of candidates."""
    if not isinstance(value, (list, tuple)) or not 0 < len(value) <= 6:
        return hasattr(value, "ndim") and value.ndim == 1 and len(value) <= 4
    scalars = sum(1 for part in value if part is None or isinstance(part, str) or is_number(part))
    has_number = any(is_number(part) for part in value)
    return has_number and (scalars >= 2 or len(value) == 2) and not all(map(_is_list, value))


def _read_parallel(parts: Column) -> Candidates | None:
    """Read ``(documents, scores)`` or a vector index's ``(distances, indices)``."""
    if len(parts) != 2:
        return None
    left, right = (_flat(part) for part in parts)
    if left is None or right is None or len(left) != len(right) or not left:
        return None
    if not all(is_number(value) for value in right):
        left, right = right, left
    if not all(is_number(value) for value in right):
        return None
    if all(is_number(value) for value in left):
        if not all(hasattr(value, "__index__") for value in left):
            left, right = right, left
        return Candidates(left, right, [None] * len(left))
    found = read_items(left)
    if found is not None:
        found.scores = right
    return found


def _flat(value: Any) -> Column | None:
    """Unfold the list of a single query: ``[[1, 2]]`` is ``[1, 2]``."""
    if hasattr(value, "ndim") and hasattr(value, "tolist"):
        value = _few(value).tolist()
    if not isinstance(value, list):
        return None
    return (value[0] if len(value) == 1 and isinstance(value[0], list) else value)[:READ_LIMIT]


def _read_array(value: Any) -> Candidates | None:
    """Read a numpy array: ids, scores, objects, rows of (id, score), or named columns."""
    if hasattr(value, "columns") and hasattr(value, "to_dict"):
        return _read_frame(value)
    if value.ndim == 0:
        return None
    few = _few(value)
    names = getattr(value.dtype, "names", None) if hasattr(value, "dtype") else None
    if names:
        found = _read_named_columns({name: few[name].tolist() for name in names})
    else:
        rows = list(few.tolist())
        found = read_items(rows) if rows else Candidates([], [], [])
    if found is not None and value.ndim == 1:
        found.unread = len(value) - len(few)
    return found


def _few(array: Any) -> Any:
    """Cut an array down before its elements become objects: a matrix has millions of them."""
    if array.ndim == 0:
        return array
    if array.ndim > 1:
        array = array[:, :READ_LIMIT]
    return array[: max(1, READ_LIMIT // max(1, prod(array.shape[1:])))]


def _read_frame(frame: Any) -> Candidates | None:
    few = frame[:READ_LIMIT]
    columns = {str(name): few[name].tolist() for name in few.columns if str(name) in _COLUMNS}
    found = _read_named_columns(columns)
    if found is not None and not any(name in columns for name in COLUMN_NAMES["id"]):
        index = few.index
        if getattr(index, "name", None) in COLUMN_NAMES["id"]:
            found.ids = index.tolist()
    if found is not None:
        found.unread = len(frame) - len(few)
        found.texts = [text if isinstance(text, str) else None for text in found.texts]
    return found


def _read_mapping(value: Mapping[Any, Any], depth: int, looks: Looks) -> Candidates | None:
    if not value:
        return None
    if (found := _read_named_columns(value)) is not None:
        return found
    for name in LIST_NAMES:
        inner = value.get(name)
        if inner is not None and not isinstance(inner, str) and name in value:
            below = read_container(inner, depth + 1, looks)
            if below is not None:
                return below
    if all(isinstance(key, str) for key in value):
        entries = looks.take(value.items())
        if all(is_number(entry) for _, entry in entries) and not _is_record(value):
            found = read_items(entries)
            if found is not None:
                found.unread = len(value) - len(entries)
            return found
        if all(_is_list(entry) for _, entry in entries):
            return _concatenated_legs(entries, depth, looks)
        if all(isinstance(entry, Mapping) for _, entry in entries):
            return _read_keyed(entries)
    return read_items([value]) if _is_record(value) else None


def _is_record(value: Mapping[Any, Any]) -> bool:
    """Tell one candidate from a container: it has a text, or an id beside other things."""
    return any(isinstance(value.get(name), str) for name in TEXT_NAMES) or "id" in value


def _read_keyed(entries: list[tuple[str, Mapping[str, Any]]]) -> Candidates | None:
    """Read ``{id: {"text": ..., "score": ...}}``."""
    found = read_items([entry for _, entry in entries])
    if found is not None:
        found.ids = [
            key if i is None else i for (key, _), i in zip(entries, found.ids, strict=True)
        ]
    return found


def _concatenated_legs(
    entries: list[tuple[str, Any]], depth: int, looks: Looks
) -> Candidates | None:
    legs = [(name, read_container(part, depth + 1, looks)) for name, part in entries]
    for name, leg in legs:
        if leg is not None:
            leg.extras.setdefault("leg", [name] * len(leg))
    return _concatenated([leg for _, leg in legs])


def _concatenated(parts: list[Candidates | None]) -> Candidates | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    if len(known) == 1:
        return known[0]
    found = Candidates([], [], [])
    for part in known:
        for name in part.extras.keys() - found.extras.keys():
            found.extras[name] = [None] * len(found)
        for name, column in found.extras.items():
            column += part.extras.get(name) or [None] * len(part)
        found.ids += part.ids
        found.scores += part.scores
        found.texts += part.texts
        found.items += part.items
        found.unread += part.unread
    return found


def _read_named_columns(columns: Mapping[Any, Any]) -> Candidates | None:
    """Read parallel lists: ``{"ids": [...], "scores": [...]}``, also with one list per query."""
    parts: dict[str, Column] = {}
    for field, names in COLUMN_NAMES.items():
        for name in names:
            column = columns.get(name)
            if column is None or not _is_list(column):
                continue
            parts[field] = _unfolded(column)
            break
    lengths = {len(column) for column in parts.values()}
    if len(parts) < 2 and "id" not in parts:
        return None
    if len(lengths) != 1 or not ({"id", "text", "score"} & set(parts)):
        return None
    return _from_columns(parts, lengths.pop())


def _unfolded(column: Any) -> Column:
    """Join the lists of several queries, as Chroma returns them."""
    rows = _few(column).tolist() if hasattr(column, "tolist") else column
    rows = list(islice(rows, READ_LIMIT))
    if rows and all(isinstance(row, list) for row in rows):
        return list(islice(chain.from_iterable(rows), READ_LIMIT))
    return rows


def _from_columns(parts: dict[str, Column], length: int) -> Candidates:
    nothing: Column = [None] * length
    texts = parts.get("text", nothing)
    found = Candidates(parts.get("id", nothing), parts.get("score", nothing), texts)
    if "score" not in parts and "distance" in parts:
        found.scores = parts["distance"]
        found.higher_is_better = False
    if any(not isinstance(text, (str, type(None))) for text in texts):
        below = read_items(texts)
        if below is not None:
            found.ids = found.ids if "id" in parts else below.ids
            found.texts, found.extras = below.texts, below.extras
    if "meta" in parts:
        fill_from_metadata(found, parts["meta"])
    return found


def _read_object(value: Any, depth: int, looks: Looks) -> Candidates | None:
    """Look into a client's result object, attribute by known attribute."""
    if hasattr(value, "columns") and hasattr(value, "to_dict") and hasattr(value, "index"):
        return _read_frame(value)
    kind = type(value)
    names = getattr(value, "__dict__", {})
    for name in LIST_NAMES:
        if name not in names and not hasattr(kind, name):
            continue
        try:
            inner = getattr(value, name)
        except Exception:  # noqa: S112 - the next name may do
            continue
        if isinstance(inner, (list, tuple, Mapping)) and not callable(inner):
            found = read_container(inner, depth + 1, looks)
            if found is not None:
                return found
    return None
