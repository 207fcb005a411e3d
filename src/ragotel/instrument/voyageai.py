"""Voyage: rerankers, sync and async.

Pipeline: voyageai's own call -> [instrument.voyageai] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.ranked import by_index, rerank_call


def _rerank(instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    documents = list(argument(args, kwargs, 1, "documents"))
    call = rerank_call(
        "voyageai.rerank",
        query=argument(args, kwargs, 0, "query"),
        documents=documents,
        model=argument(args, kwargs, 2, "model"),
        limit=argument(args, kwargs, 3, "top_k"),
    )
    call.read = lambda result: by_index(documents, result.results, "relevance_score")
    return call


LIBRARY = Library(
    name="voyageai",
    package="voyageai",
    versions=">=0.3,<1",
    hooks=(
        Hook("voyageai.client", "Client.rerank", recorded(_rerank)),
        Hook("voyageai.client_async", "AsyncClient.rerank", recorded(_rerank)),
    ),
)
