"""Lists: columns of candidates become JSON text: casts, hashes, bounds.

Pipeline: recorder -> encoding (on the worker's thread) -> [lists] -> span attributes
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import to_json

from ragotel.chunks import ChunkBook
from ragotel.columns import Candidates, Column
from ragotel.fields import to_count, to_id, to_score, to_text
from ragotel.privacy import MAX_STRING_CHARS, bounded
from ragotel.text import repair

_FLOATS = frozenset((float, type(None)))


def dump(value: Any) -> str:
    """Write JSON text that every reader accepts: no NaN, no lone surrogates."""
    try:
        return to_json(value, inf_nan_mode="null").decode()
    except Exception:
        return to_json(_repaired(value), inf_nan_mode="null").decode()


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return repair(value)
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_repaired(item) for item in value]
    return value


def settle(found: Candidates, book: ChunkBook, earlier: Sequence[Candidates] = ()) -> None:
    """Work out final ids and texts: casts, texts known from *earlier* lists, content hashes."""
    if found.keys is not None:
        return
    has_texts = set(map(type, found.texts)) == {str}
    if not has_texts:
        found.texts = [to_text(text) for text in found.texts]
    if set(map(type, found.ids)) == {str} and all(found.ids):
        is_short = max(map(len, found.ids)) <= MAX_STRING_CHARS
        found.keys = list(found.ids) if is_short else list(map(bounded, found.ids))
    else:
        found.keys = [_key(value) for value in found.ids]
    if not has_texts and earlier:
        _fill_texts(found, earlier, book)
    if None in found.keys:
        found.keys = [
            book.sha(text) if key is None and text else key
            for key, text in zip(found.keys, found.texts, strict=True)
        ]


def _key(value: Any) -> str | None:
    try:
        key = to_id(value)
    except Exception:
        return None
    return None if key is None else bounded(key)


def _fill_texts(found: Candidates, earlier: Sequence[Candidates], book: ChunkBook) -> None:
    known: dict[str | None, Any] = {}
    for before in earlier:
        settle(before, book)
        known.update(zip(before.keys or (), before.texts, strict=False))
    found.texts = [
        known.get(key) if text is None and key is not None else text
        for key, text in zip(found.keys or (), found.texts, strict=True)
    ]


def shas_of(found: Candidates, book: ChunkBook) -> list[str | None]:
    """Name the texts of a settled list by content."""
    if found.shas is None:
        sha = book.sha
        found.shas = [sha(text) if text else None for text in found.texts]
    return found.shas


def list_json(found: Candidates, shas: Sequence[str | None], limit: int) -> str:
    """Write the first *limit* candidates, best first."""
    return dump(rows(found, shas, limit))


def rows(found: Candidates, shas: Sequence[str | None], limit: int) -> list[dict[str, Any]]:
    """Make one object per candidate; what is not known is left out, but for id and score."""
    keys = found.keys or []
    scores, states = scores_of(found), found.states
    if not found.extras and not states and None not in shas:
        made = [
            {"id": key, "score": score, "sha": sha}
            for key, score, sha in zip(keys, scores, shas, strict=True)
        ]
        return made if len(made) <= limit else made[:limit]
    made = []
    for rank, key in enumerate(keys[:limit]):
        row: dict[str, Any] = {"id": key, "score": scores[rank]}
        if rank in states:
            row["score_state"] = states[rank]
        if shas[rank] is not None:
            row["sha"] = shas[rank]
        made.append(row)
    for field, column in found.extras.items():
        add_extra(made, field, column)
    return made


def scores_of(found: Candidates) -> Column:
    """Cast the scores of a list, once."""
    if found.finite is None:
        finite, found.states = finite_scores(found.scores)
        found.finite = list(finite)
    return found.finite


def finite_scores(column: Sequence[Any]) -> tuple[Sequence[Any], dict[int, str]]:
    """Cast scores to finite floats or None; tell at which ranks one was not finite."""
    kinds = set(map(type, column))
    if kinds == {float}:
        if math.isfinite(sum(column)):
            return column, {}
    elif kinds == {type(None)}:
        return column, {}
    cast = [to_score(value) for value in column]
    states = {rank: state for rank, (_, state) in enumerate(cast) if state is not None}
    return [score for score, _ in cast], states


def add_extra(made: Sequence[dict[str, Any]], field: str, column: Sequence[Any]) -> None:
    """Put one further part of each candidate where it is known."""
    for row, value in zip(made, column, strict=False):
        if value is None or value != value:
            continue
        if field == "tokens":
            value = to_count(value)
        elif field == "superseded":
            value = bool(value)
        else:
            value = _key(value)
        if value is not None:
            row[field] = value


def distinct_keys(lists: Iterable[Candidates]) -> list[str | None]:
    """List each id of settled lists once, in order; every candidate without id counts."""
    keys = [key for candidates in lists for key in candidates.keys or ()]
    if None not in keys:
        return list(dict.fromkeys(keys))
    seen: set[str] = set()
    return [key for key in keys if key is None or not (key in seen or seen.add(key))]  # type: ignore[func-returns-value]


def distinct(lists: Sequence[Candidates]) -> list[tuple[Candidates, int]]:
    """List where each id of settled lists stands first; those without id stand alone."""
    if len(lists) == 1:
        keys = lists[0].keys or []
        if len(set(keys)) == len(keys):
            return [(lists[0], rank) for rank in range(len(keys))]
    found: dict[Any, tuple[Candidates, int]] = {}
    for candidates in lists:
        for rank, key in enumerate(candidates.keys or ()):
            found.setdefault(key if key is not None else (id(candidates), rank), (candidates, rank))
    return list(found.values())
