"""Chroma: searches of collections, sync and async, local and over HTTP.

Pipeline: chromadb's own call -> [instrument.chroma] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import MAX_QUERIES, columns, filter_of, interleave
from ragotel.spec import RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_KINDS = {"cosine": "cosine_distance", "ip": "dot_distance", "l2": "l2"}
"""Chroma gives distances: the lower the better, whatever the space."""


def _space_of(collection: Any) -> str | None:
    about = collection.configuration_json or {}
    for name in ("hnsw", "spann"):
        space = (about.get(name) or {}).get("space")
        if isinstance(space, str):
            return space
    return None


def _one_text(value: Any) -> str | None:
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, str) else None


def _query(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    given = {
        "where": argument(args, kwargs, 6, "where"),
        "where_document": argument(args, kwargs, 7, "where_document"),
        "ids": argument(args, kwargs, 4, "ids"),
    }
    return Call(
        RETRIEVE,
        "chroma",
        query=_one_text(argument(args, kwargs, 1, "query_texts")),
        values={
            at.DATA_SOURCE: instance.name,
            at.TOP_K: argument(args, kwargs, 5, "n_results", 10),
            at.FILTER: filter_of({name: value for name, value in given.items() if value}),
            at.SCORE_KIND: _KINDS.get(_space_of(instance) or ""),
            at.HIGHER_IS_BETTER: False,
        },
        read=lambda result: _lists(result, "distances", is_higher=False),
    )


def _search(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    # Chroma's ranking expressions are distances too.
    return Call(
        RETRIEVE,
        "chroma",
        values={at.DATA_SOURCE: instance.name, at.HIGHER_IS_BETTER: False},
        read=lambda result: _lists(result, "scores", is_higher=False),
    )


def _lists(result: Any, name: str, *, is_higher: bool) -> Candidates | None:
    ids = result["ids"]
    if len(ids) > MAX_QUERIES:
        return None
    scores, texts = result.get(name), result.get("documents")
    return interleave(
        [
            columns(
                keys,
                scores[place] if scores and scores[place] else None,
                texts[place] if texts and texts[place] else None,
                higher_is_better=is_higher,
            )
            for place, keys in enumerate(ids)
        ]
    )


LIBRARY = Library(
    name="chroma",
    package="chromadb",
    versions=">=0.5,<2",
    hooks=tuple(
        Hook(f"chromadb.api.models.{cls}", f"{cls}.{name}", recorded(describe), name == "search")
        for cls in ("Collection", "AsyncCollection")
        for name, describe in (("query", _query), ("search", _search))
    ),
)
