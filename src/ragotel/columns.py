"""Columns: one list of candidates as it was seen: ids, scores and texts side by side.

Pipeline: result of a stage -> candidates -> [columns] -> encoding
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeAlias

from ragotel.fields import to_id

Column: TypeAlias = "list[Any]"

READ_LIMIT = 5_000
"""Elements of one result that are read on the service's thread; of the rest only the number."""


class Looks:
    """How many elements may still be looked at; shared by all lists within one result."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def is_over(self) -> bool:
        """Count one look; whether there were too many."""
        self.left -= 1
        return self.left < 0

    def take(self, values: Iterable[Any]) -> Column:
        """Take the first elements: some sequences make theirs when asked, by the million."""
        items = list(islice(values, max(0, min(self.left, READ_LIMIT))))
        self.left -= len(items)
        return items


_SETTLED = frozenset((str, int, float, bool, type(None), bytes))


class Candidates:
    """What one list held when it was seen: columns of equal length, best first.

    *ids*, *scores* and *texts* are values as they were found (None: missing); *extras* maps doc_id,
    doc_version, superseded, tokens and leg to columns. *source* is the list itself and *items* its
    elements, held only while the request runs, to recognise the list when a later stage gets it.
    """

    __slots__ = (
        "extras", "faults", "finite", "higher_is_better", "ids", "items", "keys", "scores",
        "shared_texts", "shas", "source", "states", "texts", "unread",
    )  # fmt: skip

    def __init__(self, ids: Column, scores: Column, texts: Column) -> None:
        self.ids = ids
        self.scores = scores
        self.texts = texts
        self.extras: dict[str, Column] = {}
        self.higher_is_better: bool | None = None
        self.source: object = None
        self.items: Column = []
        self.faults = 0
        self.keys: list[str | None] | None = None
        """Final ids, filled in by the encoder: casts, content hashes where an id is missing."""
        self.shas: list[str | None] | None = None
        """Hashes of the texts, filled in by the encoder."""
        self.finite: Column | None = None
        """Scores as finite floats or None, filled in by the encoder; *states* says why None."""
        self.states: dict[int, str] = {}
        self.unread = 0
        """So many further elements the list had; beyond a limit only their number is kept."""
        self.shared_texts = False
        """The texts are those of an earlier list of the request, so they take no further memory."""

    def __len__(self) -> int:
        return len(self.ids)

    def forget(self) -> None:
        """Let go of the service's own objects."""
        self.source = None
        self.items = []

    def settle(self) -> None:
        """Cast what may still change under our hands: elements of tensors, ids that are objects."""
        if self.scores and type(self.scores[0]) not in _SETTLED:
            self.scores = [_settled_score(score) for score in self.scores]
        if self.ids and type(self.ids[0]) not in _SETTLED:
            self.ids = [_settled_id(value) for value in self.ids]


def _settled_score(score: Any) -> Any:
    try:
        return None if score is None else float(score)
    except Exception:
        return "not a number"


def _settled_id(value: Any) -> Any:
    if isinstance(value, (str, int, float, bytes)) or value is None:
        return value
    item = getattr(value, "item", None)
    return item() if callable(item) else to_id(value)
