"""LanceDB: vector, full-text and hybrid queries, recorded when they are run, sync and async.

Pipeline: lancedb's own call -> [instrument.lancedb] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Candidates
from ragotel.fields import ID_NAMES, TEXT_NAMES
from ragotel.instrument.calls import Call, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import columns, filter_of
from ragotel.record import Stage
from ragotel.spec import RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_SCORES = (("_relevance_score", True), ("_distance", False), ("_score", True))
"""Columns of scores and their direction, the last ranking first."""
_KINDS = {"l2": "l2", "cosine": "cosine_distance", "dot": "dot_distance"}
_MAX_ROWS = 5_000


def _builder(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    own = vars(instance)
    table = own.get("_table")
    query = own.get("_str_query") or own.get("_text") or own.get("_query")
    query = getattr(query, "query", query)
    call = Call(
        RETRIEVE,
        "lancedb",
        query=query if isinstance(query, str) else None,
        values={
            at.DATA_SOURCE: getattr(table, "name", None),
            at.TOP_K: own.get("_limit"),
            at.FILTER: filter_of(own.get("_where")),
        },
    )

    def follow(stage: Stage, result: Any) -> bool:
        # Which score it is, only the result's columns tell.
        name, is_higher = _score_in(result)
        kind = {"_score": "bm25", "_distance": _KINDS.get(own.get("_distance_type") or "l2")}
        if name == "_relevance_score" and type(own.get("_reranker")).__name__ == "RRFReranker":
            kind[name] = "rrf"
        for key, value in ((at.SCORE_KIND, kind.get(name)), (at.HIGHER_IS_BETTER, is_higher)):
            if value is not None:
                stage.put(key, value)
        return False

    call.follow, call.read = follow, _rows
    return call


def _async_query(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    if type(instance).__name__ not in ("AsyncVectorQuery", "AsyncFTSQuery", "AsyncHybridQuery"):
        # Reading rows by a condition is no search.
        return None
    call = _builder(instance, args, kwargs)
    ask = getattr(getattr(instance, "_inner", None), "to_query_request", None)
    request = None if ask is None else ask()
    if call is not None and request is not None:
        call.values[at.TOP_K] = getattr(request, "limit", None)
        call.values[at.FILTER] = filter_of(getattr(request, "filter", None))
    return call


def _score_in(table: Any) -> tuple[str, bool | None]:
    names = table.column_names
    return next(((n, up) for n, up in _SCORES if n in names), ("", None))


def _rows(table: Any) -> Candidates:
    head = table.slice(0, _MAX_ROWS)
    names = head.column_names

    def column(name: str | None) -> list[Any]:
        return head.column(name).to_pylist() if name in names else [None] * len(head)

    score, is_higher = _score_in(head)
    texts = next((n for n in TEXT_NAMES if n in names), None)
    ids = next((n for n in ID_NAMES if n in names), "_rowid")
    return columns(column(ids), column(score), column(texts), higher_is_better=is_higher)


LIBRARY = Library(
    name="lancedb",
    package="lancedb",
    versions=">=0.20,<1",
    hooks=(
        *(
            Hook("lancedb.query", f"{cls}.to_arrow", recorded(_builder))
            for cls in (
                "LanceVectorQueryBuilder",
                "LanceFtsQueryBuilder",
                "LanceHybridQueryBuilder",
            )
        ),
        Hook("lancedb.query", "AsyncQueryBase.to_arrow", recorded(_async_query)),
    ),
)
