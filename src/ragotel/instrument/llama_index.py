"""LlamaIndex: query and chat engines, retrievers, postprocessors, prompts and models.

Pipeline: llama-index's own call -> [instrument.llama_index] -> calls -> recorder
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel import faults
from ragotel.answers import read_reply
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Family, Hook, Library
from ragotel.instrument.reading import columns, first_text_of, reply_of, texts_of
from ragotel.record import OK, Stage
from ragotel.recorder import close_stage, fail_stage
from ragotel.spec import ASSEMBLE, BLEND, FILTER, FUSE, GENERATE, REQUEST, RERANK, RETRIEVE
from ragotel.streams import record_async_stream, record_stream

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_COMPOSED = frozenset(("QueryFusionRetriever",))
"""Its legs and its fusion are the stages."""
_FILTERS = {
    "SimilarityPostprocessor": (FILTER, "threshold"),
    "KeywordNodePostprocessor": (FILTER, "other"),
    "LongContextReorder": (BLEND, None),
    "FixedRecencyPostprocessor": (BLEND, None),
    "EmbeddingRecencyPostprocessor": (BLEND, None),
    "TimeWeightedPostprocessor": (BLEND, None),
}
_METHODS = {
    "_reciprocal_rerank_fusion": "rrf",
    "_relative_score_fusion": "relative_score",
    "_simple_fusion": "max_score",
}


def _names(instance: Any) -> list[str]:
    return [cls.__name__ for cls in type(instance).__mro__]


def _query(value: Any) -> str | None:
    text = value if isinstance(value, str) else getattr(value, "query_str", None)
    return text if isinstance(text, str) else None


def _nodes(found: Any) -> Candidates | None:
    if not isinstance(found, (list, tuple)):
        return None
    nodes = [one.node for one in found]
    return columns(
        [node.node_id for node in nodes],
        [one.score for one in found],
        [node.get_content() for node in nodes],
        source=found,
        doc_id=[getattr(node, "ref_doc_id", None) for node in nodes],
    )


def _retriever(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    names = _names(instance)
    if not _COMPOSED.isdisjoint(names):
        return None
    top_k = getattr(instance, "similarity_top_k", None) or getattr(
        instance, "_similarity_top_k", None
    )
    filters = getattr(instance, "_filters", None)
    # The only store of the core; those of other packages have a client whose hook knows more.
    is_simple = type(getattr(instance, "_vector_store", None)).__name__ == "SimpleVectorStore"
    return Call(
        RETRIEVE,
        names[0],
        query=_query(argument(args, kwargs, 0, "str_or_query_bundle")),
        values={
            at.TOP_K: top_k if type(top_k) is int else None,
            at.FILTER: filters.model_dump(mode="json") if filters is not None else None,
            at.SCORE_KIND: "cosine" if is_simple else None,
            at.HIGHER_IS_BETTER: True if is_simple else None,
        },
        read=_nodes,
    )


def _fusion(method: str) -> Any:
    def describe(instance: Any, args: Args, kwargs: Kwargs) -> Call:
        limit = getattr(instance, "similarity_top_k", None)
        results = argument(args, kwargs, 0, "results")

        def read(found: Any) -> Candidates | None:
            return _nodes(found[:limit] if isinstance(found, list) else found)

        return Call(
            FUSE,
            type(instance).__name__,
            values={at.FUSE_METHOD: method, at.LIMIT: limit},
            inputs=list(results.values()),
            read=read,
        )

    return describe


def _postprocessor(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    names = _names(instance)
    kind, reason = next((_FILTERS[n] for n in names if n in _FILTERS), (None, None))
    if kind is None:
        is_reranker = any("rank" in name.lower() for name in names)
        kind, reason = (RERANK, None) if is_reranker else (FILTER, "other")
    nodes = argument(args, kwargs, 0, "nodes")
    # Many set the new score on the very nodes that came in.
    top_n = getattr(instance, "top_n", None)
    return Call(
        kind,
        names[0],
        query=_query(argument(args, kwargs, 1, "query_bundle", kwargs.get("query_str"))),
        values={
            at.LIMIT: top_n if type(top_n) is int else None,
            at.REQUEST_MODEL: first_text_of(instance, ("model", "model_name")),
        },
        inputs=nodes,
        read=_nodes,
        reason=reason,
    )


def _prompt(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    prompt = argument(args, kwargs, 0, "prompt")
    try:
        template = prompt.get_template(llm=instance)
    except Exception:
        template = None
    named = (getattr(prompt, "metadata", None) or {}).get("prompt_type")
    named = str(getattr(named, "value", named or "")) or None
    return Call(
        ASSEMBLE,
        type(prompt).__name__,
        values={at.PROMPT_NAME: None if named == "custom" else named},
        read=texts_of,
        template=template if isinstance(template, str) else None,
    )


def _model(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    asked = argument(args, kwargs, 0, "messages", kwargs.get("prompt"))
    return Call(
        GENERATE,
        type(instance).__name__,
        values={
            at.REQUEST_MODEL: first_text_of(instance, ("model", "model_name")),
            at.TEMPERATURE: kwargs.get("temperature", getattr(instance, "temperature", None)),
        },
        messages=texts_of(asked),
        reply=_reply,
    )


def _reply(result: Any) -> dict[str, Any]:
    raw = getattr(result, "raw", None)
    about = getattr(result, "additional_kwargs", None) or {}
    found = reply_of(
        input_tokens=about.get("prompt_tokens"), output_tokens=about.get("completion_tokens")
    )
    return {**found, **((read_reply(raw) if raw is not None else None) or {})}


def _engine(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    asked = argument(args, kwargs, 0, "str_or_query_bundle", kwargs.get("message"))
    return Call(REQUEST, type(instance).__name__, query=_query(asked), follow=_follow)


def _follow(stage: Stage, result: Any) -> bool:
    """Record a streaming response, whose generator outlives the query."""
    stream = getattr(result, "response_gen", None)
    if "response_gen" not in getattr(result, "__dict__", {}) or stream is None:
        return False
    if hasattr(stream, "__anext__"):
        result.response_gen = record_async_stream(stage, stream)
    elif hasattr(stream, "__next__"):
        result.response_gen = record_stream(stage, stream)
    else:
        return False
    return True


# A chat that streams is read by a thread or task of its own, which writes the history: the request
# ends with that, however much of it the service reads.

_chats: dict[int, tuple[Any, Stage]] = {}
"""Streaming replies and their requests, by the reply's address, until their writer is done."""
_chats_lock = threading.Lock()


def _chat(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    call = _engine(instance, args, kwargs)
    call.follow = _follow_chat
    return call


def _follow_chat(stage: Stage, result: Any) -> bool:
    task = getattr(result, "awrite_response_to_history_task", None)
    if task is not None:
        task.add_done_callback(lambda _: _end_chat(stage, result))
        return True
    if getattr(result, "write_response_to_history_thread", None) is None:
        return _follow(stage, result)
    with _chats_lock:
        is_over = result.is_done or result.exception is not None
        if not is_over:
            _chats[id(result)] = (result, stage)
    if is_over:
        _end_chat(stage, result)
    return True


def _write(wrapped: Any, instance: Any, args: Args, kwargs: Kwargs) -> Any:
    try:
        return wrapped(*args, **kwargs)
    finally:
        with _chats_lock:
            _, stage = _chats.pop(id(instance), (None, None))
        if stage is not None:
            _end_chat(stage, instance)


def _end_chat(stage: Stage, result: Any) -> None:
    try:
        stage.answer = result.response or None
        task = result.awrite_response_to_history_task
        if task is not None and task.cancelled():
            fail_stage(stage, asyncio.CancelledError())
        elif result.exception is not None:
            fail_stage(stage, result.exception)
        else:
            close_stage(stage, OK)
    except Exception:
        faults.note("end the request of a chat that streams")


_BASE = "llama_index.core.base"
_FUSION = "llama_index.core.retrievers.fusion_retriever"

LIBRARY = Library(
    name="llama_index",
    package="llama-index-core",
    versions=">=0.12,<0.15",
    hooks=(
        *(
            Hook(f"{_BASE}.base_retriever", f"BaseRetriever.{name}", recorded(_retriever))
            for name in ("retrieve", "aretrieve")
        ),
        *(
            Hook(_FUSION, f"QueryFusionRetriever.{name}", recorded(_fusion(method)))
            for name, method in _METHODS.items()
        ),
        *(
            Hook(
                "llama_index.core.postprocessor.types",
                f"BaseNodePostprocessor.{name}",
                recorded(_postprocessor),
            )
            for name in ("postprocess_nodes", "apostprocess_nodes")
        ),
        *(
            Hook("llama_index.core.llms.llm", f"LLM.{name}", recorded(_prompt))
            for name in ("_get_prompt", "_get_messages")
        ),
        *(
            Hook(f"{_BASE}.base_query_engine", f"BaseQueryEngine.{name}", recorded(_engine))
            for name in ("query", "aquery")
        ),
        Hook(
            "llama_index.core.chat_engine.types",
            "StreamingAgentChatResponse.write_response_to_history",
            _write,
        ),
    ),
    families=(
        Family(
            f"{_BASE}.llms.base",
            "BaseLLM",
            {
                f"{prefix}{name}": recorded(_model)
                for prefix in ("", "a")
                for name in ("chat", "complete", "stream_chat", "stream_complete")
            },
        ),
        Family(
            "llama_index.core.chat_engine.types",
            "BaseChatEngine",
            {
                **{name: recorded(_engine) for name in ("chat", "achat")},
                **{name: recorded(_chat) for name in ("stream_chat", "astream_chat")},
            },
        ),
    ),
)
