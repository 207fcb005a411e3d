"""rerankers: every class of ranker of the package, and those of the service's own.

Pipeline: rerankers' own call -> [instrument.rerankers] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Family, Library
from ragotel.instrument.reading import columns, first_text_of
from ragotel.spec import RERANK


def _rank(instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    docs = argument(args, kwargs, 1, "docs")
    docs = list(docs) if isinstance(docs, (list, tuple)) else [docs]
    given = argument(args, kwargs, 2, "doc_ids")
    # Without ids of the service's own the package counts the documents: that is no identity.
    has_ids = given is not None or not any(isinstance(one, str) for one in docs)
    texts = [one if isinstance(one, str) else one.text for one in docs]
    ids = [*(given or ()), *[None] * len(docs)][: len(docs)]

    def read(result: Any) -> Candidates:
        found = list(result.results)
        return columns(
            [one.document.doc_id if has_ids else None for one in found],
            [one.score for one in found],
            [one.document.text for one in found],
        )

    return Call(
        RERANK,
        type(instance).__name__,
        query=argument(args, kwargs, 0, "query"),
        values={
            at.REQUEST_MODEL: first_text_of(instance, ("model_name", "model_name_or_path")),
            at.HIGHER_IS_BETTER: True,
        },
        inputs=[
            {"id": key, "text": text} if key is not None else text
            for key, text in zip(ids, texts, strict=True)
        ],
        read=read,
    )


LIBRARY = Library(
    name="rerankers",
    package="rerankers",
    versions=">=0.5,<1",
    families=(Family("rerankers.models.ranker", "BaseRanker", {"rank": recorded(_rank)}),),
)
