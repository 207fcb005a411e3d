"""LiteLLM: completions and rerankers of any provider, sync, async and streaming.

Pipeline: litellm's own call -> [instrument.litellm] -> calls -> recorder
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel import faults, running
from ragotel.instrument.calls import Call, argument, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.ranked import by_index, rerank_call
from ragotel.instrument.reading import reply_of
from ragotel.record import OK, Stage
from ragotel.recorder import close_stage, fail_stage
from ragotel.spec import GENERATE
from ragotel.streams import _take as take_chunk
from ragotel.streams import _Unfinished as Unfinished

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_streams: weakref.WeakKeyDictionary[Any, Unfinished] = weakref.WeakKeyDictionary()
"""Stages of streams that were returned; one that is thrown away ends its stage."""


def _completion(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    if kwargs.get("acompletion") is True:
        # The sync function as the async one calls it.
        return None
    model = argument(args, kwargs, 0, "model")
    provider = kwargs.get("custom_llm_provider")
    if provider is None and isinstance(model, str) and "/" in model:
        provider = model.split("/")[0]
    return Call(
        GENERATE,
        "litellm",
        values={
            at.REQUEST_MODEL: model,
            at.TEMPERATURE: kwargs.get("temperature"),
            at.PROVIDER: provider,
        },
        messages=argument(args, kwargs, 1, "messages"),
        reply=_reply,
        follow=_follow,
    )


def _reply(result: Any) -> dict[str, Any]:
    usage, choices = getattr(result, "usage", None), getattr(result, "choices", None) or []
    return reply_of(
        model=getattr(result, "model", None),
        input_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        finish_reason=[getattr(choice, "finish_reason", None) for choice in choices],
    )


def _follow(stage: Stage, result: Any) -> bool:
    if type(result).__name__ != "CustomStreamWrapper":
        return False
    held = Unfinished(stage)
    held.watch(result)
    _streams[result] = held
    return True


def _next(wrapped: Any, instance: Any, args: Args, kwargs: Kwargs) -> Any:
    held = _streams.get(instance)
    if held is None:
        return wrapped(*args, **kwargs)
    stage, before = held.stage, running.current.get()
    running.current.set(stage)
    try:
        item = wrapped(*args, **kwargs)
    except BaseException as error:
        running.leave(stage, before)
        _end(instance, stage, error)
        raise
    running.leave(stage, before)
    take_chunk(stage, item)
    return item


async def _anext(wrapped: Any, instance: Any, args: Args, kwargs: Kwargs) -> Any:
    held = _streams.get(instance)
    if held is None:
        return await wrapped(*args, **kwargs)
    stage, before = held.stage, running.current.get()
    running.current.set(stage)
    try:
        item = await wrapped(*args, **kwargs)
    except BaseException as error:
        running.leave(stage, before)
        _end(instance, stage, error)
        raise
    running.leave(stage, before)
    take_chunk(stage, item)
    return item


def _end(stream: Any, stage: Stage, error: BaseException) -> None:
    try:
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            close_stage(stage, OK)
        else:
            fail_stage(stage, error)
        _streams.pop(stream, None)
    except Exception:
        faults.note("end a stream of litellm")


def _rerank(instance: Any, args: Args, kwargs: Kwargs) -> Call | None:
    if kwargs.get("arerank") is True:
        return None
    documents = list(argument(args, kwargs, 2, "documents"))
    call = rerank_call(
        "litellm.rerank",
        query=argument(args, kwargs, 1, "query"),
        documents=documents,
        model=argument(args, kwargs, 0, "model"),
        limit=argument(args, kwargs, 4, "top_n"),
    )
    call.read = lambda result: by_index(documents, result.results or [], "relevance_score")
    return call


_WRAPPER = "litellm.litellm_core_utils.streaming_handler"

LIBRARY = Library(
    name="litellm",
    package="litellm",
    versions=">=1.60,<2",
    hooks=(
        *(Hook("litellm", name, recorded(_completion)) for name in ("completion", "acompletion")),
        *(Hook("litellm", name, recorded(_rerank)) for name in ("rerank", "arerank")),
        Hook(_WRAPPER, "CustomStreamWrapper.__next__", _next),
        Hook(_WRAPPER, "CustomStreamWrapper.__anext__", _anext),
    ),
)
