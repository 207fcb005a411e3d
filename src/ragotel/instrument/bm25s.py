"""bm25s: searches of a BM25 index.

Pipeline: bm25s's own call -> [instrument.bm25s] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.candidates import read
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import MAX_QUERIES, columns, interleave, positions
from ragotel.spec import RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


def _retrieve(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    corpus = argument(args, kwargs, 1, "corpus")
    has_corpus = corpus is not None or getattr(instance, "corpus", None) is not None

    def lists(result: Any) -> Candidates | None:
        documents, scores = (result if isinstance(result, tuple) else (result, None))[:2]
        if len(documents) > MAX_QUERIES:
            return None
        return interleave(
            [
                _one(row.tolist(), None if scores is None else scores[place].tolist(), has_corpus)
                for place, row in enumerate(documents)
            ]
        )

    return Call(
        RETRIEVE,
        "bm25s",
        values={
            at.TOP_K: argument(args, kwargs, 2, "k", 10),
            at.SCORE_KIND: "bm25",
            at.HIGHER_IS_BETTER: True,
        },
        read=lists,
    )


def _one(documents: list[Any], scores: list[Any] | None, has_corpus: bool) -> Candidates | None:
    if not has_corpus:
        found: Candidates | None = positions(documents, scores)
    elif all(isinstance(one, (int, str)) for one in documents):
        # The service's own ids or its texts: whatever it asked for in place of the places.
        is_text = all(isinstance(one, str) and " " in one.strip() for one in documents)
        nothing = [None] * len(documents)
        ids, texts = (nothing, documents) if is_text else (documents, nothing)
        found = columns(ids, scores, texts)
    else:
        found = read(documents)
        if found is not None and scores is not None and len(found) == len(scores):
            found.scores = scores
    if found is not None:
        found.higher_is_better = True
    return found


LIBRARY = Library(
    name="bm25s",
    package="bm25s",
    versions=">=0.2,<1",
    hooks=(Hook("bm25s", "BM25.retrieve", recorded(_retrieve)),),
)
