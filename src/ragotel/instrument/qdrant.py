"""Qdrant: searches of the client, sync and async, local, over HTTP and gRPC.

Pipeline: qdrant-client's own call -> [instrument.qdrant] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.candidates import read
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import MAX_QUERIES, direction_of, filter_of, interleave
from ragotel.spec import RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_KINDS = {"Cosine": "cosine", "Dot": "dot", "Euclid": "l2", "Manhattan": "l1"}


def _query(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    name = argument(args, kwargs, 0, "collection_name")
    query = argument(args, kwargs, 1, "query")
    return Call(
        RETRIEVE,
        "qdrant",
        query=_text_of(query),
        values={
            at.DATA_SOURCE: name,
            at.TOP_K: argument(args, kwargs, 6, "limit", 10),
            at.FILTER: filter_of(argument(args, kwargs, 4, "query_filter")),
            at.SCORE_KIND: _kind_of(instance, name, query, argument(args, kwargs, 2, "using")),
        },
        read=lambda result: _points(result.points),
    )


def _groups(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    name = argument(args, kwargs, 0, "collection_name")
    query = argument(args, kwargs, 2, "query")
    limit, size = kwargs.get("limit", 10), kwargs.get("group_size", 3)
    return Call(
        RETRIEVE,
        "qdrant",
        query=_text_of(query),
        values={
            at.DATA_SOURCE: name,
            at.TOP_K: limit * size,
            at.FILTER: filter_of(kwargs.get("query_filter")),
            at.SCORE_KIND: _kind_of(instance, name, query, kwargs.get("using")),
        },
        read=lambda result: _points([hit for group in result.groups for hit in group.hits]),
    )


def _batch(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    requests = argument(args, kwargs, 1, "requests") or ()
    if len(requests) > MAX_QUERIES:
        return None
    limits = {getattr(one, "limit", None) for one in requests}
    return Call(
        RETRIEVE,
        "qdrant",
        values={
            at.DATA_SOURCE: argument(args, kwargs, 0, "collection_name"),
            at.TOP_K: limits.pop() if len(limits) == 1 else None,
        },
        read=lambda result: interleave([_points(one.points) for one in result]),
    )


def _points(points: Any) -> Candidates | None:
    found = read(points)
    if found is not None:
        # The list is best first, and the server knows the collection's distance: the client not.
        found.higher_is_better = direction_of(found.scores)
    return found


def _text_of(query: Any) -> str | None:
    nearest = getattr(query, "nearest", query)
    text = getattr(nearest, "text", None)
    return text if isinstance(text, str) else None


def _kind_of(client: Any, name: str, query: Any, using: str | None) -> str | None:
    """The kind of score, where it can be known without asking the server for it."""
    if (fusion := getattr(query, "fusion", None)) is not None:
        return str(getattr(fusion, "value", fusion))
    collection = getattr(getattr(client, "_client", None), "collections", {}).get(name)
    if collection is None or (query is not None and hasattr(query, "indices")):
        return None
    vectors = collection.config.vectors
    if isinstance(vectors, Mapping):
        vectors = vectors.get(using or "")
    distance = getattr(vectors, "distance", None)
    return _KINDS.get(str(getattr(distance, "value", distance)))


LIBRARY = Library(
    name="qdrant",
    package="qdrant-client",
    versions=">=1.10,<2",
    hooks=tuple(
        Hook(f"qdrant_client.{module}", f"{cls}.{name}", recorded(describe))
        for module, cls in (
            ("qdrant_client", "QdrantClient"),
            ("async_qdrant_client", "AsyncQdrantClient"),
        )
        for name, describe in (
            ("query_points", _query),
            ("query_points_groups", _groups),
            ("query_batch_points", _batch),
        )
    ),
)
