"""Lists: columns of candidates become JSON text: casts, hashes, bounds.

Pipeline: recorder -> encoding (on the worker's thread) -> [lists] -> span attributes
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import eq
from typing import Any, TypeAlias

from pydantic_core import to_json

from ragotel.chunks import ChunkBook
from ragotel.columns import Candidates, Column
from ragotel.fields import to_count, to_id, to_score, to_text
from ragotel.privacy import MAX_STRING_CHARS, bounded
from ragotel.text import repair

Dropped: TypeAlias = "tuple[str | None, str, bool]"
"""Id, reason, and whether that was inferred."""
_USUAL = '{"id":"%s","score":%.9g'
_USUAL_WITH_SHA = _USUAL + ',"sha":"%s"'


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
        found.shas = book.shas(found.texts)
    return found.shas


def list_json(found: Candidates, shas: Sequence[str | None] | None, limit: int) -> str:
    """Write the first *limit* candidates, best first; what is not known is left out.

    Args:
        found: a settled list.
        shas: the hashes to write beside the ids; None: none at all.
        limit: how many candidates are written.
    """
    keys, scores = found.keys or [], scores_of(found)
    if len(keys) > limit:
        keys, scores = keys[:limit], scores[:limit]
    is_usual = not found.extras and not found.states and (shas is None or None not in shas)
    if is_usual and is_plain(keys) and is_single(scores):
        columns = (keys, scores) if shas is None else (keys, scores, shas)
        return fill(_USUAL if shas is None else _USUAL_WITH_SHA, *columns)
    rows = [head_json(found, rank) for rank in range(len(keys))]
    if shas is not None:
        rows = [
            row if sha is None else f'{row},"sha":"{sha}"'
            for row, sha in zip(rows, shas, strict=False)
        ]
    for field, column in found.extras.items():
        rows = [row + extra_json(field, value) for row, value in zip(rows, column, strict=False)]
    return close_rows(rows)


def fill(row: str, *columns: Sequence[Any]) -> str:
    """Write one object per rank, each as *row* says, with a single call: the encoder's main work.

    The score follows the id at once: where a later list has the same id, gzip finds both together.
    """
    count, width = len(columns[0]), len(columns)
    flat: list[Any] = [None] * (count * width)
    for place, column in enumerate(columns):
        flat[place::width] = column
    return f"[{((row + '},') * count % tuple(flat))[:-1]}]"


def close_rows(rows: Sequence[str]) -> str:
    """Make a JSON list of objects that still lack their closing brace."""
    return f"[{'},'.join(rows)}}}]" if rows else "[]"


def head_json(found: Candidates, rank: int) -> str:
    """Write the beginning of one candidate's object: id and score, which always stand there."""
    key, score = (found.keys or [])[rank], scores_of(found)[rank]
    state = found.states.get(rank)
    mark = "" if state is None else f',"score_state":"{state}"'
    return f'{{"id":{_quoted(key)},"score":{_number(score)}{mark}'


def _quoted(key: str | None) -> str:
    if key is None:
        return "null"
    return f'"{key}"' if is_plain((key,)) else dump(key)


def is_plain(keys: Sequence[str | None]) -> bool:
    """Tell whether all ids are there and can stand between quotes as they are."""
    try:
        joined = "".join(keys)  # type: ignore[arg-type]
    except TypeError:
        return False
    return joined.isprintable() and '"' not in joined and "\\" not in joined


def is_single(scores: Column) -> bool:
    """Tell scores of single precision, as most models and indexes reckon in.

    Nine digits tell any two such numbers apart, where the same number as a double has seventeen.
    """
    try:
        return array("f", scores).tolist() == scores
    except TypeError:
        return False


def _number(score: float | None) -> str:
    if score is None:
        return "null"
    return f"{score:.9g}" if array("f", (score,))[0] == score else repr(score)


def dropped_json(dropped: Sequence[Dropped]) -> str:
    """Write what a stage let go, with reasons."""
    _, reason, mark = dropped[0]
    keys = [key for key, why, how in dropped if why == reason and how is mark]
    if len(keys) == len(dropped) and is_plain(keys):
        end = f'"{_reason_json(reason, mark)}'
        between = end + '},{"id":"'
        return f'[{{"id":"{between.join(keys)}{end}}}]'  # type: ignore[arg-type]
    return close_rows(
        [
            f'{{"id":{_quoted(key)}{_reason_json(reason, inferred)}'
            for key, reason, inferred in dropped
        ]
    )


def _reason_json(reason: str, inferred: bool) -> str:
    return f',"reason":{dump(reason)},"inferred":{"true" if inferred else "false"}'


class Told:
    """What the lists of one request have said so far, so that no later one says it again."""

    __slots__ = ("_lists", "_shas", "_texts", "is_certain")

    def __init__(self) -> None:
        self._shas: dict[str | None, str | None] = {}
        self._texts: dict[str | None, str | None] = {}
        self._lists: list[Candidates] = []
        self.is_certain = True
        """False: some texts must be looked at again, for want of room or as an id has two."""

    def add(self, found: Candidates) -> None:
        """Remember that all texts of a settled list were looked at."""
        self._lists.append(found)

    def ids(self) -> set[str | None]:
        """List the ids that the lists of the request have named."""
        return {*self._shas, *(key for found in self._lists for key in found.keys or ())}

    def has(self, found: Candidates) -> bool:
        """Whether this very list was looked at and nothing is left to do."""
        return self.is_certain and any(found is one for one in self._lists)

    def recall(self, found: Candidates) -> bool:
        """Take over the hashes of a settled list if earlier lists had all of its texts."""
        keys = found.keys or []
        if not self.is_certain or list(map(self._texts.get, keys)) != found.texts:
            return False
        if None in keys or None in found.texts:
            return False
        if found.shas is None:
            found.shas = list(map(self._shas.get, keys))
        return True

    def unsaid(self, found: Candidates, limit: int) -> list[str | None] | None:
        """Leave out the hashes that an earlier list of the request said; None: all of them.

        An id that was seen with two texts is told each time.
        """
        keys, shas = (found.keys or [])[:limit], (found.shas or [])[:limit]
        told = self._shas
        if not told and len(set(keys)) == len(keys):
            # The usual first list; its ids without a text have no hash either.
            told.update(zip(keys, shas, strict=True))
            self._texts.update(zip(keys, found.texts, strict=False))
            before: list[str | None] = [None] * len(keys)
            if not any(map(eq, keys, shas)):
                return list(shas)
        else:
            before = list(map(told.get, keys))
            if before == shas:
                return None
            for key, sha, text in zip(keys, shas, found.texts, strict=False):
                if sha is None:
                    continue
                known = told.get(key)
                if known in (None, sha):
                    told[key], self._texts[key] = sha, text
                else:
                    told[key], self.is_certain = "", False
        return [
            None if sha in (old, key) else sha
            for key, sha, old in zip(keys, shas, before, strict=True)
        ]


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


def extra_json(field: str, value: Any) -> str:
    """Write one further part of a candidate, with the comma before it; nothing if not known."""
    if value is None or value != value:
        return ""
    known: Any
    if field == "tokens":
        known = to_count(value)
    elif field == "superseded":
        known = bool(value)
    else:
        known = _key(value)
    return "" if known is None else f',"{field}":{dump(known)}'


def distinct_keys(lists: Iterable[Candidates]) -> list[str | None]:
    """List each id of settled lists once, in order; every candidate without id counts."""
    keys = [key for candidates in lists for key in candidates.keys or ()]
    if len(set(keys)) == len(keys):
        return keys
    if None not in keys:
        return list(dict.fromkeys(keys))
    seen: set[str] = set()
    return [key for key in keys if key is None or not (key in seen or seen.add(key))]  # type: ignore[func-returns-value]


def distinct(lists: Sequence[Candidates]) -> list[tuple[Candidates, int]]:
    """List where each id of settled lists stands first; those without id stand alone."""
    if len(lists) == 1:
        keys = lists[0].keys or []
        if len(set(keys)) == len(keys):
            return list(zip(repeat(lists[0]), range(len(keys)), strict=False))
    found: dict[Any, tuple[Candidates, int]] = {}
    for candidates in lists:
        for rank, key in enumerate(candidates.keys or ()):
            found.setdefault(key if key is not None else (id(candidates), rank), (candidates, rank))
    return list(found.values())
