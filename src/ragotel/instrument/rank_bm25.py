"""rank-bm25: the best documents with the scores that the library throws away.

Pipeline: rank-bm25's own call -> [instrument.rank_bm25] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Candidates
from ragotel.instrument.bm25s import _one as read_documents
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.spec import RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_scores: ContextVar[list[Any] | None] = ContextVar("ragotel_rank_bm25", default=None)
"""Where the scores of the search that runs here are left."""


def _top(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    box: list[Any] = []
    _scores.set(box)

    def read(result: Any) -> Candidates | None:
        _scores.set(None)
        # The library sorts by the same scores: the n best are those of what it returned.
        best = sorted(box[0].tolist(), reverse=True)[: len(result)] if box else None
        return read_documents(list(result), best, True)

    return Call(
        RETRIEVE,
        type(instance).__name__,
        values={
            at.TOP_K: argument(args, kwargs, 2, "n", 5),
            at.SCORE_KIND: "bm25",
            at.HIGHER_IS_BETTER: True,
        },
        read=read,
    )


def _keep_scores(wrapped: Any, instance: Any, args: Args, kwargs: Kwargs) -> Any:
    result = wrapped(*args, **kwargs)
    box = _scores.get()
    if box is not None:
        box[:] = [result]
    return result


LIBRARY = Library(
    name="rank_bm25",
    package="rank-bm25",
    versions=">=0.2.2,<0.3",
    hooks=(
        Hook("rank_bm25", "BM25.get_top_n", recorded(_top)),
        *(
            Hook("rank_bm25", f"{cls}.get_scores", _keep_scores)
            for cls in ("BM25Okapi", "BM25L", "BM25Plus")
        ),
    ),
)
