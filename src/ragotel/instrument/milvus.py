"""Milvus: searches and hybrid searches of its client, sync and async.

Pipeline: pymilvus's own call -> [instrument.milvus] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Candidates
from ragotel.fields import TEXT_NAMES
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import (
    MAX_QUERIES,
    columns,
    direction_of,
    filter_of,
    interleave,
)
from ragotel.spec import RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_KINDS = {"COSINE": "cosine", "IP": "dot", "L2": "l2", "BM25": "bm25"}


def _search(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    data = argument(args, kwargs, 1, "data")
    text = data[0] if isinstance(data, list) and len(data) == 1 else None
    params = kwargs.get("search_params") or {}
    return Call(
        RETRIEVE,
        "milvus",
        query=text if isinstance(text, str) else None,
        values={
            at.DATA_SOURCE: argument(args, kwargs, 0, "collection_name"),
            at.TOP_K: argument(args, kwargs, 3, "limit", 10),
            at.FILTER: filter_of(argument(args, kwargs, 2, "filter") or None),
            at.SCORE_KIND: _KINDS.get(str(params.get("metric_type") or "").upper()),
        },
        read=_lists,
    )


def _hybrid(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    ranker = type(argument(args, kwargs, 2, "ranker")).__name__
    return Call(
        RETRIEVE,
        "milvus",
        values={
            at.DATA_SOURCE: argument(args, kwargs, 0, "collection_name"),
            at.TOP_K: argument(args, kwargs, 3, "limit", 10),
            at.SCORE_KIND: "rrf" if ranker == "RRFRanker" else None,
        },
        read=_lists,
    )


def _lists(result: Any) -> Candidates | None:
    return None if len(result) > MAX_QUERIES else interleave([_hits(one) for one in result])


def _hits(hits: Any) -> Candidates:
    found = list(hits)
    entities = [hit.get("entity") or {} for hit in found]
    scores = [hit["distance"] for hit in found]
    # What Milvus calls a distance is a similarity for some measures: the order tells.
    return columns(
        [hit.id if hasattr(hit, "id") else hit.get("id") for hit in found],
        scores,
        [next((e[n] for n in TEXT_NAMES if isinstance(e.get(n), str)), None) for e in entities],
        higher_is_better=direction_of(scores),
    )


LIBRARY = Library(
    name="milvus",
    package="pymilvus",
    versions=">=2.5,<4",
    hooks=tuple(
        Hook(f"pymilvus.milvus_client.{module}", f"{cls}.{name}", recorded(describe))
        for module, cls in (
            ("milvus_client", "MilvusClient"),
            ("async_milvus_client", "AsyncMilvusClient"),
        )
        for name, describe in (("search", _search), ("hybrid_search", _hybrid))
    ),
)
