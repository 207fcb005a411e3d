"""Ranked: hosted rerankers, which answer with positions in the list that they were given.

Pipeline: library's own call -> [ranked] -> calls
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragotel import attributes as at
from ragotel.answers import part
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call
from ragotel.instrument.reading import columns
from ragotel.spec import RERANK

_TEXT_NAMES = ("text", "chunk_text", "content")


def rerank_call(
    name: str, *, query: Any, documents: Sequence[Any], model: Any = None, limit: Any = None
) -> Call:
    """Describe a call whose result is read with `by_index`."""
    return Call(
        RERANK,
        name,
        query=query,
        values={
            at.REQUEST_MODEL: str(getattr(model, "value", model)) if model else None,
            at.LIMIT: limit if type(limit) is int else None,
            at.SCORE_KIND: "relevance",
            at.HIGHER_IS_BETTER: True,
        },
        inputs=list(documents),
    )


def by_index(documents: Sequence[Any], rows: Sequence[Any], score: str) -> Candidates:
    """Name each row of an answer by the document that its index tells."""
    given = [documents[_part(row, "index")] for row in rows]
    return columns(
        [None if isinstance(one, str) else part(one, ("id", "_id")) for one in given],
        [_part(row, score) for row in rows],
        [one if isinstance(one, str) else part(one, _TEXT_NAMES) for one in given],
    )


def _part(row: Any, name: str) -> Any:
    return row[name] if isinstance(row, Mapping) else getattr(row, name)
