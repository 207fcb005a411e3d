"""FAISS: searches of every class of index.

Pipeline: faiss's own call -> [instrument.faiss] -> calls -> recorder

FAISS knows no documents: its ids are those given to an IndexIDMap, else places in the index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Family, Library
from ragotel.instrument.reading import MAX_QUERIES, interleave, positions
from ragotel.spec import RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_METRICS = {0: ("dot", True), 1: ("l2", False), 2: ("l1", False), 3: ("linf", False)}


def _search(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    asked = argument(args, kwargs, 0, "x")
    if len(asked) > MAX_QUERIES:
        return None
    kind, is_higher = _METRICS.get(int(getattr(instance, "metric_type", -1)), (None, None))
    if "Binary" in type(instance).__name__:
        kind, is_higher = "hamming", False

    def read(result: Any) -> Candidates | None:
        lists = []
        for scores, ids in zip(result[0].tolist(), result[1].tolist(), strict=True):
            # Where there are fewer than k, FAISS fills up with -1.
            rows = [(key, score) for key, score in zip(ids, scores, strict=True) if key >= 0]
            found = positions((key for key, _ in rows), (score for _, score in rows))
            found.higher_is_better = is_higher
            lists.append(found)
        return interleave(lists)

    return Call(
        RETRIEVE,
        "faiss",
        values={
            at.TOP_K: argument(args, kwargs, 1, "k"),
            at.SCORE_KIND: kind,
            at.HIGHER_IS_BETTER: is_higher,
        },
        read=read,
    )


LIBRARY = Library(
    name="faiss",
    package="faiss-cpu",
    versions=">=1.7.4,<2",
    families=tuple(
        Family("faiss", base, {"search": recorded(_search)}, with_base=True)
        for base in ("Index", "IndexBinary")
    ),
)
