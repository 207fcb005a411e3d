"""sentence-transformers: cross-encoders, asked to rank documents or to score pairs.

Pipeline: sentence-transformers' own call -> [instrument.sentence_transformers] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import columns
from ragotel.spec import RERANK

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


def _values(instance: Any, limit: Any = None) -> dict[str, Any]:
    config = getattr(instance, "config", None)
    name = getattr(config, "_name_or_path", None) or getattr(config, "name_or_path", None)
    return {
        at.REQUEST_MODEL: name if isinstance(name, str) and name else None,
        at.SCORE_KIND: "cross_encoder",
        at.HIGHER_IS_BETTER: True,
        at.LIMIT: limit if type(limit) is int else None,
    }


def _rank(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    documents = list(argument(args, kwargs, 1, "documents"))

    def read(result: Any) -> Candidates:
        return columns(
            [None] * len(result),
            [float(row["score"]) for row in result],
            [documents[row["corpus_id"]] for row in result],
        )

    return Call(
        RERANK,
        "CrossEncoder",
        query=argument(args, kwargs, 0, "query"),
        values=_values(instance, argument(args, kwargs, 2, "top_k")),
        inputs=documents,
        read=read,
    )


def _predict(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    pairs = argument(args, kwargs, 0, "inputs", kwargs.get("sentences"))
    if not isinstance(pairs, (list, tuple)) or not pairs or isinstance(pairs[0], str):
        return None
    queries, texts = {pair[0] for pair in pairs}, [pair[1] for pair in pairs]
    if len(queries) != 1 or not all(isinstance(text, str) for text in texts):
        # Pairs of several questions are no ranking.
        return None

    def read(result: Any) -> Candidates | None:
        scores = [float(score) for score in result]
        order = sorted(range(len(texts)), key=lambda place: -scores[place])
        return columns(
            [None] * len(texts),
            [scores[place] for place in order],
            [texts[place] for place in order],
        )

    return Call(
        RERANK,
        "CrossEncoder",
        query=queries.pop(),
        values=_values(instance),
        inputs=texts,
        read=read,
    )


_MODULE = "sentence_transformers.cross_encoder.model"
_OLD_MODULE = "sentence_transformers.cross_encoder.CrossEncoder"

LIBRARY = Library(
    name="sentence_transformers",
    package="sentence-transformers",
    versions=">=3,<7",
    hooks=tuple(
        Hook(module, f"CrossEncoder.{name}", recorded(describe), is_optional=module == _OLD_MODULE)
        for module in (_MODULE, _OLD_MODULE)
        for name, describe in (("rank", _rank), ("predict", _predict))
    ),
)
