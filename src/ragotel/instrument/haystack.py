"""Haystack: pipelines as requests, their retrievers, joiners, rankers, builders and generators.

Pipeline: haystack's own call -> [instrument.haystack] -> calls -> recorder

A component is known by its class's name and by what it returns, as Haystack itself knows it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.arguments import part_of
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import columns, filter_of, first_text_of, reply_of, texts_of
from ragotel.spec import (
    ASSEMBLE,
    BLEND,
    FILTER,
    FUSE,
    GENERATE,
    QUERY_PARAMETERS,
    REQUEST,
    RERANK,
    RETRIEVE,
)

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_MADE_UP = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BLENDS = frozenset(("LostInTheMiddleRanker", "MetaFieldRanker", "MetaFieldGroupingRanker"))
_SIMILARITIES = {"dot_product": "dot", "cosine": "cosine"}
_METHODS = {"reciprocal_rank_fusion": "rrf", "distribution_based_rank_fusion": "dbsf"}


def _component(_: Any, args: Args, kwargs: Kwargs) -> Call | None:
    name = argument(args, kwargs, 0, "component_name")
    instance = argument(args, kwargs, 1, "component")["instance"]
    inputs = argument(args, kwargs, 2, "inputs", kwargs.get("component_inputs")) or {}
    kind = type(instance).__name__
    if "Retriever" in kind:
        return _retriever(name, kind, instance, inputs)
    if "Joiner" in kind and "documents" in inputs:
        return _joiner(name, instance, inputs)
    if "Ranker" in kind or kind == "TopPSampler":
        return _ranker(name, kind, instance, inputs)
    if kind in ("PromptBuilder", "ChatPromptBuilder"):
        return _builder(name, instance, inputs)
    return _generator(name, instance, inputs) if "Generator" in kind else None


def _int(*values: Any) -> int | None:
    return next((value for value in values if type(value) is int), None)


def _retriever(name: str, kind: str, instance: Any, inputs: Any) -> Call:
    store = getattr(instance, "document_store", None)
    scores = "bm25" if "BM25" in kind else None
    if "Embedding" in kind and store is not None:
        scores = _SIMILARITIES.get(getattr(store, "embedding_similarity_function", ""))
    query = inputs.get("query")
    return Call(
        RETRIEVE,
        name,
        query=query if isinstance(query, str) else None,
        values={
            at.TOP_K: _int(inputs.get("top_k"), getattr(instance, "top_k", None)),
            at.DATA_SOURCE: _index_of(store),
            at.FILTER: filter_of(inputs.get("filters") or getattr(instance, "filters", None)),
            at.SCORE_KIND: scores,
            at.HIGHER_IS_BETTER: None if scores is None else True,
        },
        read=_documents,
    )


def _index_of(store: Any) -> str | None:
    name = first_text_of(store, ("index", "index_name", "_index", "collection"))
    if name is None or type(store).__name__ != "InMemoryDocumentStore":
        return name
    # Unless it is given one, this store makes up another name in every process.
    return None if _MADE_UP.fullmatch(name) else name


def _documents(result: Any) -> Candidates | None:
    found = result.get("documents")
    if not isinstance(found, list):
        return None
    return columns(
        [one.id for one in found],
        [one.score for one in found],
        [one.content for one in found],
        source=found,
        doc_id=[(one.meta or {}).get("source_id") for one in found],
    )


def _joiner(name: str, instance: Any, inputs: Any) -> Call:
    mode = getattr(instance, "join_mode", None)
    mode = str(getattr(mode, "value", mode or "")) or None
    lists = [list(one) for one in inputs["documents"]]
    return Call(
        FUSE,
        name,
        values={
            at.FUSE_METHOD: _METHODS.get(mode or "", mode),
            at.LIMIT: _int(inputs.get("top_k"), getattr(instance, "top_k", None)),
            at.SCORE_KIND: "rrf" if mode == "reciprocal_rank_fusion" else None,
        },
        inputs=lists,
        read=_documents,
    )


def _ranker(name: str, kind: str, instance: Any, inputs: Any) -> Call:
    stage = BLEND if kind in _BLENDS else FILTER if kind == "TopPSampler" else RERANK
    return Call(
        stage,
        name,
        query=inputs.get("query"),
        values={
            at.LIMIT: _int(inputs.get("top_k"), getattr(instance, "top_k", None)),
            at.REQUEST_MODEL: first_text_of(instance, ("model", "model_name", "_model_name")),
        },
        inputs=inputs.get("documents"),
        read=_documents,
        reason="threshold" if stage == FILTER else None,
    )


def _builder(name: str, instance: Any, inputs: Any) -> Call:
    template = inputs.get("template") or getattr(instance, "template", None)
    template = template or getattr(instance, "_template_string", None)
    if isinstance(template, list):
        template = "\n\n".join(texts_of(template))
    return Call(
        ASSEMBLE,
        name,
        read=lambda result: texts_of(result.get("prompt")),
        template=template if isinstance(template, str) else None,
    )


def _generator(name: str, instance: Any, inputs: Any) -> Call:
    about = {**(getattr(instance, "generation_kwargs", None) or {})}
    about.update(inputs.get("generation_kwargs") or {})
    return Call(
        GENERATE,
        name,
        values={
            at.REQUEST_MODEL: first_text_of(instance, ("model", "model_name")),
            at.TEMPERATURE: about.get("temperature"),
        },
        messages=texts_of(inputs.get("messages") or inputs.get("prompt")),
        reply=_reply,
        said=lambda result: (result.get("replies") or [None])[0],
    )


def _reply(result: Any) -> dict[str, Any]:
    replies, metas = result.get("replies") or [], result.get("meta")
    about = getattr(replies[0], "meta", None) if replies else None
    about = about or (metas[0] if isinstance(metas, list) and metas else {}) or {}
    usage = about.get("usage") or {}
    return reply_of(
        model=about.get("model"),
        input_tokens=usage.get("prompt_tokens", usage.get("input_tokens")),
        output_tokens=usage.get("completion_tokens", usage.get("output_tokens")),
        finish_reason=about.get("finish_reason") or about.get("stop_reason"),
    )


def _pipeline(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    asked = _question(argument(args, kwargs, 0, "data"))
    # A pipeline that is asked nothing writes an index.
    return None if asked is None else Call(REQUEST, "Pipeline", query=asked, read=_answer)


def _question(data: Any) -> str | None:
    if not isinstance(data, Mapping):
        return None
    for inputs in (data, *(one for one in data.values() if isinstance(one, Mapping))):
        found = part_of(inputs, QUERY_PARAMETERS)
        if isinstance(found, str):
            return found
    return None


def _answer(result: Any) -> Any:
    if not isinstance(result, Mapping):
        return None
    for outputs in reversed([one for one in result.values() if isinstance(one, Mapping)]):
        for name in ("answers", "replies"):
            if found := outputs.get(name):
                return getattr(found[0], "data", None) or texts_of(found[:1]) or found[0]
    return None


_PIPELINE = "haystack.core.pipeline.pipeline"

LIBRARY = Library(
    name="haystack",
    package="haystack-ai",
    versions=">=3,<4",
    hooks=(
        *(
            Hook(_PIPELINE, f"Pipeline.{name}", recorded(_component))
            for name in ("_run_component", "_run_component_async")
        ),
        *(
            Hook(_PIPELINE, f"Pipeline.{name}", recorded(_pipeline))
            for name in ("run", "run_async", "run_async_generator")
        ),
    ),
)
