"""Calls: one call of a library's becomes one stage, whether it returns, awaits, streams or raises.

Pipeline: library's own call -> hooks -> [calls] -> recorder

A library's file reads the arguments into a `Call` before the library may change them; what comes
out is read by the call's own `read`. A call inside of a stage of the same kind is no step of its
own: what it knows enriches that stage.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import AsyncGeneratorType, GeneratorType
from typing import Any, TypeAlias

from ragotel import attributes as at
from ragotel import clock, faults, running
from ragotel.answers import text_of_answer
from ragotel.columns import Candidates
from ragotel.instrument import nesting, prompting
from ragotel.instrument.hooks import Wrapper
from ragotel.record import OK, Stage
from ragotel.recorder import close_stage, fail_stage, open_stage
from ragotel.results import look_at_result
from ragotel.spec import ASSEMBLE, BLEND, GENERATE, RANKINGS, REQUEST, RERANK, RETRIEVE, Spec
from ragotel.streams import record_async_stream, record_stream
from ragotel.text import content_hash


@dataclass
class Call:
    """What one call of a library is, read from its arguments."""

    kind: str
    name: str
    query: Any = None
    values: dict[str, Any] = field(default_factory=dict)
    """Attributes by their keys; None is left out."""
    inputs: Any = None
    """The list that goes into a ranking, of any shape."""
    messages: Any = None
    """What a model is asked: a text or messages."""
    stored_prompt: dict[str, Any] | None = None
    """Name and version of a prompt that the model's own service fills in."""
    read: Callable[[Any], Any] | None = None
    """Result to `Candidates`, or to what a decorated function of this kind would return."""
    reply: Callable[[Any], dict[str, Any]] | None = None
    """Result or chunk of a model to attributes: usage, finish reasons."""
    said: Callable[[Any], Any] | None = None
    """Result of a model to what holds its text; None: the result itself."""
    part: Callable[[Any], str | None] | None = None
    """Part of a stream to the whole answer so far; None: the texts of the parts are the answer."""
    follow: Callable[[Stage, Any], bool] | None = None
    """Takes over a stream object; False: the result is complete."""
    reason: str | None = None
    """Why a filter drops."""
    template: str | None = None
    """Text of a prompt's template; its hash is the version where the library has none."""


Describe: TypeAlias = Callable[[Any, tuple[Any, ...], Mapping[str, Any]], Call | None]
"""Reads instance, arguments and keywords of one call; None: it is not to be recorded."""


def recorded(describe: Describe) -> Wrapper:
    """Make the wrapper of a hook: sync, async and streaming calls alike."""

    def call(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        try:
            about = describe(instance, args, kwargs)
            stage = None if about is None else begin(about)
        except Exception:
            faults.note(f"read the call of {getattr(wrapped, '__qualname__', wrapped)}")
            stage = None
        if stage is None or about is None:
            return wrapped(*args, **kwargs)
        before = running.current.get()
        running.current.set(stage)
        try:
            result = wrapped(*args, **kwargs)
        except BaseException as error:
            running.leave(stage, before)
            fail_stage(stage, error)
            raise
        running.leave(stage, before)
        return finish(stage, about, result)

    return call


@lru_cache(maxsize=64)
def _spec(kind: str, reason: str | None = None, *, of_template: bool = False) -> Spec:
    if of_template:
        # The version is put at the call; this says that it is the template's hash.
        return Spec(kind, None, {"template_text": _nothing, "template_version": _nothing})
    return Spec(kind, None, {} if reason is None else {"reason": reason})


def _nothing() -> None:
    return None


def begin(call: Call) -> Stage | None:
    """Open the stage of *call*; None where nothing is to be recorded."""
    parent = nesting.running_stage()
    if call.kind == REQUEST and parent is not None:
        return None
    if call.kind == ASSEMBLE and nesting.is_inside(parent, RANKINGS | {RETRIEVE}):
        # The prompt of a compressor's or a query rewriter's, not of the answer.
        return None
    of_template = call.template is not None and at.PROMPT_VERSION not in call.values
    spec = _spec(call.kind, call.reason, of_template=of_template)
    if parent is not None and nesting.is_same_step(parent.kind, call.kind):
        stage: Stage | None = nesting.open_nested(spec, parent)
    else:
        stage = _open(spec, call, parent)
    if stage is None:
        return None
    stage.name, stage.read_part = call.name, call.part
    if isinstance(call.query, str):
        stage.query = call.query
    for key, value in call.values.items():
        if value is not None:
            stage.put(key, value)
    if call.template is not None and of_template:
        stage.put(at.PROMPT_VERSION, content_hash(call.template))
    try:
        if call.kind in RANKINGS and call.inputs is not None:
            nesting.name_inputs(stage, call.inputs)
            if call.kind == RERANK and nesting.is_ranked_again(stage):
                stage.spec, stage.kind = _spec(BLEND), BLEND
        if call.kind == GENERATE:
            stage.read_chunk = call.reply
            if call.messages is not None or call.stored_prompt:
                prompting.note_prompt(stage, call.messages, call.stored_prompt)
    except Exception:
        stage.faults += 1
        faults.note(f"read what goes into {call.name}")
    return stage


def _open(spec: Spec, call: Call, parent: Stage | None) -> Stage | None:
    if call.kind == ASSEMBLE:
        return prompting.open_prompt(spec, parent)
    if call.kind in RANKINGS:
        return open_stage(spec, () if call.inputs is None else (call.inputs,), {})
    return open_stage(spec, () if call.query is None else (call.query,), {})


def finish(stage: Stage, call: Call, result: Any) -> Any:
    """End the stage, unless what came back is yet to run: then it ends with that."""
    try:
        kind = type(result)
        if kind is GeneratorType:
            return record_stream(stage, result)
        if kind is AsyncGeneratorType:
            return record_async_stream(stage, result)
        if inspect.iscoroutine(result):
            return _awaited(stage, call, result)
        if isinstance(result, asyncio.Future):
            result.add_done_callback(lambda future: _end_with(stage, call, future))
            return result
        if call.follow is not None and call.follow(stage, result):
            return result
    except Exception:
        faults.note(f"follow the result of {call.name}")
    end(stage, call, result)
    return result


async def _awaited(stage: Stage, call: Call, coroutine: Coroutine[Any, Any, Any]) -> Any:
    before = running.current.get()
    running.current.set(stage)
    try:
        result = await coroutine
    except BaseException as error:
        running.leave(stage, before)
        fail_stage(stage, error)
        raise
    running.leave(stage, before)
    return finish(stage, call, result)


def _end_with(stage: Stage, call: Call, future: asyncio.Future[Any]) -> None:
    if future.cancelled():
        fail_stage(stage, asyncio.CancelledError())
    elif (error := future.exception()) is not None:
        fail_stage(stage, error)
    else:
        end(stage, call, future.result())


def end(stage: Stage, call: Call, result: Any) -> None:
    """Record what came back, then close the stage as ok."""
    stage.end_ns = clock.tick_ns()
    try:
        _read(stage, call, result)
    except Exception:
        stage.faults += 1
        faults.note(f"read the result of {call.name}")
    close_stage(stage, OK)


def _read(stage: Stage, call: Call, result: Any) -> None:
    if call.kind == GENERATE and call.reply is not None:
        stage.reply = {**(stage.reply or {}), **call.reply(result)}
        if stage.answer is None and stage.parts is None:
            # Not sent by default: it tells whether this call gave the request's answer.
            stage.answer = text_of_answer(result if call.said is None else call.said(result))
        return
    found = result if call.read is None else call.read(result)
    if isinstance(found, Candidates):
        found.settle()
        if found.source is None and type(result) is list and len(result) == len(found):
            # A decorated function that is given this very list is to know it again.
            found.source, found.items = result, result[:]
        stage.output = found
    else:
        look_at_result(stage, found)
    if call.kind == ASSEMBLE:
        prompting.settle_prompt(stage)
    elif stage.output is not None and stage.inputs:
        nesting.name_rebuilt(stage.output, stage.inputs)


def argument(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], place: int, name: str, default: Any = None
) -> Any:
    """Find one argument by keyword, else by its place after the instance."""
    if name in kwargs:
        return kwargs[name]
    return args[place] if place < len(args) else default
