"""Hits: searches in the language of Elasticsearch and OpenSearch.

Pipeline: library's own call -> [hits] -> calls
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call
from ragotel.instrument.reading import filter_of, read_with
from ragotel.spec import RETRIEVE

_LEXICAL = frozenset(
    ("match", "match_phrase", "multi_match", "query_string", "simple_query_string",
     "combined_fields")
)  # fmt: skip
_VECTOR = frozenset(
    ("knn", "neural", "neural_sparse", "semantic", "sparse_vector", "text_expansion",
     "script_score", "hybrid", "rrf", "linear", "text_similarity_reranker")
)  # fmt: skip
_TEXT_KEYS = ("query", "query_text", "model_text", "inference_text")
_MAX_DEPTH = 12


def search_call(name: str, index: Any, body: Mapping[str, Any]) -> Call | None:
    """Describe a search; None for one that wants no hits, only counts."""
    size = body.get("size", 10)
    if size == 0:
        return None
    asked = [body.get(part) for part in ("query", "knn", "retriever")]
    clauses = _clauses(asked)
    texts = set(_texts(asked))
    is_lexical = bool(clauses & _LEXICAL) and not clauses & _VECTOR
    return Call(
        RETRIEVE,
        name,
        query=texts.pop() if len(texts) == 1 else None,
        values={
            at.DATA_SOURCE: ",".join(index) if isinstance(index, (list, tuple)) else index,
            at.TOP_K: size if type(size) is int else None,
            at.FILTER: filter_of(_filter_in(asked)),
            at.SCORE_KIND: "bm25" if is_lexical else "rrf" if "rrf" in clauses else None,
            at.HIGHER_IS_BETTER: True,
        },
        read=_hits,
    )


def _hits(result: Any) -> Candidates | None:
    return read_with(list(result["hits"]["hits"]), True)


def _walk(value: Any, depth: int = 0) -> list[tuple[str, Any]]:
    """List all keys with their values, the outer ones first."""
    if depth > _MAX_DEPTH:
        return []
    if isinstance(value, Mapping):
        found = [(str(key), inner) for key, inner in value.items()]
        return found + [one for _, inner in found for one in _walk(inner, depth + 1)]
    if isinstance(value, (list, tuple)) and len(value) < 100:
        return [one for inner in value for one in _walk(inner, depth + 1)]
    return []


def _clauses(asked: Any) -> set[str]:
    top = {"knn"} if asked[1] is not None else set()
    return top | {key for key, _ in _walk(asked)}


def _texts(asked: Any) -> list[str]:
    found = []
    for key, inner in _walk(asked):
        if key in _TEXT_KEYS and isinstance(inner, str):
            found.append(inner)
        elif key in ("match", "match_phrase") and isinstance(inner, Mapping):
            found += [text for text in inner.values() if isinstance(text, str)]
    return found


def _filter_in(asked: Any) -> Any:
    return next((inner for key, inner in _walk(asked) if key == "filter"), None)
