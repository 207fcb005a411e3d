"""FlashRank: rerankers that sort the passages they are given in place.

Pipeline: flashrank's own call -> [instrument.flashrank] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import read_with
from ragotel.spec import RERANK


def _rerank(instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    request = argument(args, kwargs, 0, "request")
    is_listwise = getattr(instance, "llm_model", None) is not None
    folder = getattr(instance, "model_dir", None)
    return Call(
        RERANK,
        "flashrank",
        query=request.query,
        values={
            at.REQUEST_MODEL: getattr(folder, "name", None),
            # A model that only tells the order gives no scores.
            at.SCORE_KIND: None if is_listwise else "cross_encoder",
            at.HIGHER_IS_BETTER: None if is_listwise else True,
        },
        inputs=request.passages,
        read=lambda result: read_with(result, None if is_listwise else True),
    )


LIBRARY = Library(
    name="flashrank",
    package="FlashRank",
    versions=">=0.2,<0.3",
    hooks=(Hook("flashrank.Ranker", "Ranker.rerank", recorded(_rerank)),),
)
