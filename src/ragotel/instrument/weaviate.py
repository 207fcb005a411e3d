"""Weaviate: queries of collections, sync and async.

Pipeline: weaviate-client's own call -> [instrument.weaviate] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Candidates
from ragotel.fields import TEXT_NAMES
from ragotel.instrument.calls import Call, Describe, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import columns
from ragotel.record import Stage
from ragotel.spec import RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_OPERATIONS = ("near_text", "near_vector", "near_object", "bm25", "hybrid")
_SCORES: dict[str, tuple[tuple[str, str | None, bool], ...]] = {
    "bm25": (("rerank_score", "relevance", True), ("score", "bm25", True)),
    "hybrid": (("rerank_score", "relevance", True), ("score", "hybrid", True)),
}
_NEAR = (
    ("rerank_score", "relevance", True),
    ("distance", None, False),
    ("certainty", "certainty", True),
)
"""Fields of an object's metadata with their kinds and directions, the last ranking first. Which
measure a distance is, only the collection's schema tells."""


def _search(operation: str) -> Describe:
    def describe(instance: Any, args: Args, kwargs: Kwargs) -> Call:
        query = argument(args, kwargs, 0, "query")
        call = Call(
            RETRIEVE,
            f"weaviate.{operation}",
            query=query if isinstance(query, str) else None,
            values={
                at.DATA_SOURCE: getattr(instance, "_name", None),
                at.TOP_K: kwargs.get("limit"),
                at.FILTER: None if kwargs.get("filters") is None else str(kwargs["filters"]),
                at.SERVER_SIDE: True if kwargs.get("rerank") is not None else None,
            },
            read=lambda result: _objects(operation, result),
        )

        def follow(stage: Stage, result: Any) -> bool:
            _, kind, is_higher = _score_of(operation, result)
            if kind is not None:
                stage.put(at.SCORE_KIND, kind)
            if is_higher is not None:
                stage.put(at.HIGHER_IS_BETTER, is_higher)
            return False

        call.follow = follow
        return call

    return describe


def _score_of(operation: str, result: Any) -> tuple[str, str | None, bool | None]:
    """Which score came with the objects: only those that were asked for do."""
    for name, kind, is_higher in _SCORES.get(operation, _NEAR):
        if any(getattr(one.metadata, name, None) is not None for one in result.objects):
            return name, kind, is_higher
    return "", None, None


def _objects(operation: str, result: Any) -> Candidates:
    found = list(result.objects)
    name, _, is_higher = _score_of(operation, result)
    about = [one.properties or {} for one in found]
    return columns(
        [str(one.uuid) for one in found],
        [getattr(one.metadata, name, None) if name else None for one in found],
        [next((p[n] for n in TEXT_NAMES if isinstance(p.get(n), str)), None) for p in about],
        higher_is_better=is_higher,
    )


LIBRARY = Library(
    name="weaviate",
    package="weaviate-client",
    versions=">=4.10,<5",
    hooks=tuple(
        Hook("weaviate.collections.query", f"{cls}.{name}", recorded(_search(name)))
        for cls in ("_QueryCollection", "_QueryCollectionAsync")
        for name in _OPERATIONS
    ),
)
