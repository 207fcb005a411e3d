"""Cohere: rerankers of both versions of the client, sync and async.

Pipeline: cohere's own call -> [instrument.cohere] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel.instrument.calls import Call, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.ranked import by_index, rerank_call


def _rerank(instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    documents = list(kwargs["documents"])
    model = kwargs.get("model")
    call = rerank_call(
        "cohere.rerank",
        query=kwargs.get("query"),
        documents=documents,
        model=model if isinstance(model, str) else None,
        limit=kwargs.get("top_n"),
    )
    call.read = lambda result: by_index(documents, result.results, "relevance_score")
    return call


LIBRARY = Library(
    name="cohere",
    package="cohere",
    versions=">=5,<8",
    hooks=tuple(
        Hook(module, f"{cls}.rerank", recorded(_rerank))
        for module, classes in (
            ("cohere.v2.client", ("V2Client", "AsyncV2Client")),
            ("cohere.base_client", ("BaseCohere", "AsyncBaseCohere")),
        )
        for cls in classes
    ),
)
