"""Pinecone: searches of indexes and its hosted rerankers, sync, async and gRPC.

Pipeline: pinecone's own call -> [instrument.pinecone] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.answers import part
from ragotel.columns import Candidates
from ragotel.fields import TEXT_NAMES
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.ranked import by_index, rerank_call
from ragotel.instrument.reading import columns, filter_of
from ragotel.spec import RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


def _index_of(instance: Any, kwargs: Kwargs) -> str | None:
    host = getattr(instance, "host", None) or getattr(instance, "_host", None)
    namespace = kwargs.get("namespace")
    name = str(host).split("://")[-1].split(".")[0] if isinstance(host, str) else None
    return f"{name}/{namespace}" if name and namespace else name


def _query(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    return Call(
        RETRIEVE,
        "pinecone",
        values={
            at.DATA_SOURCE: _index_of(instance, kwargs),
            at.TOP_K: kwargs.get("top_k"),
            at.FILTER: filter_of(kwargs.get("filter")),
            # Of an index with the euclidean metric the lower would be better: the client cannot
            # know, so the direction is left out.
        },
        read=_matches,
    )


def _matches(result: Any) -> Candidates:
    found = list(result.matches)
    about = [one.metadata or {} for one in found]
    return columns(
        [one.id for one in found], [one.score for one in found], [_text(one) for one in about]
    )


def _search(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    query, rerank = kwargs.get("query"), kwargs.get("rerank")
    inputs = kwargs.get("inputs") or part(query, ("inputs",))
    text = part(inputs, ("text",))
    return Call(
        RETRIEVE,
        "pinecone",
        query=text if isinstance(text, str) else None,
        values={
            at.DATA_SOURCE: _index_of(instance, kwargs),
            at.TOP_K: kwargs.get("top_k") or part(query, ("top_k",)),
            at.FILTER: filter_of(kwargs.get("filter") or part(query, ("filter",))),
            # The scores are then those of a model that ran inside of the search.
            at.SERVER_SIDE: True if rerank is not None else None,
            at.SCORE_KIND: "relevance" if rerank is not None else None,
            at.HIGHER_IS_BETTER: True if rerank is not None else None,
        },
        read=_hits,
    )


def _hits(result: Any) -> Candidates:
    found = list(result.result.hits)
    return columns(
        [part(one, ("id", "_id", "id_")) for one in found],
        [part(one, ("score", "_score", "score_")) for one in found],
        [_text(getattr(one, "fields", None) or {}) for one in found],
    )


def _text(fields: Any) -> str | None:
    return next((fields[n] for n in TEXT_NAMES if isinstance(fields.get(n), str)), None)


def _rerank(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    documents = list(argument(args, kwargs, 2, "documents"))
    call = rerank_call(
        "pinecone.rerank",
        query=argument(args, kwargs, 1, "query"),
        documents=documents,
        model=argument(args, kwargs, 0, "model"),
        limit=kwargs.get("top_n"),
    )
    call.read = lambda result: by_index(documents, result.data, "score")
    return call


LIBRARY = Library(
    name="pinecone",
    package="pinecone",
    versions=">=10,<11",
    hooks=(
        *(
            Hook(module, f"{cls}.{name}", recorded(describe))
            for module, cls in (
                ("pinecone.index", "Index"),
                ("pinecone.async_client.async_index", "AsyncIndex"),
                ("pinecone.grpc", "GrpcIndex"),
            )
            for name, describe in (("query", _query), ("search", _search))
        ),
        Hook("pinecone.client.inference", "Inference.rerank", recorded(_rerank)),
        Hook("pinecone.async_client.inference", "AsyncInference.rerank", recorded(_rerank)),
    ),
)
