"""Streams: generators and what runs after its function returned, recorded as they are consumed.

Pipeline: call site -> wrapping -> [streams] -> recorder

A stream may be made in one task, iterated in another and closed in a third. So its stage is current
only while the inner generator runs a step, and no context token is kept across a yield.
"""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Generator, Iterator
from types import AsyncGeneratorType, GeneratorType
from typing import Any

from ragotel import clock, faults, running
from ragotel.record import ABANDONED, OK, STOPPED_EARLY, Stage
from ragotel.recorder import close_stage, end_stage, fail_stage
from ragotel.spec import GENERATE, REQUEST

_MAX_PARTS = 200_000
_LABELLED = 8
_MODES = frozenset(("values", "updates", "messages", "custom", "debug", "tasks", "checkpoints"))
"""What LangGraph names the parts of a stream by."""


def take_over(stage: Stage, result: Any) -> Any:
    """Record a coroutine, generator or streaming response that a plain function returned.

    None: *result* is complete, and the stage can end.
    """
    kind = type(result)
    if kind is GeneratorType:
        return record_stream(stage, result)
    if kind is AsyncGeneratorType:
        return record_async_stream(stage, result)
    if inspect.iscoroutine(result):
        return _record_coroutine(stage, result)
    if isinstance(result, asyncio.Future):
        result.add_done_callback(lambda future: _end_with_future(stage, future))
        return result
    if hasattr(result, "body_iterator") and stage.kind in (REQUEST, GENERATE):
        return _record_response(stage, result)
    return None


async def _record_coroutine(stage: Stage, coroutine: Coroutine[Any, Any, Any]) -> Any:
    before = running.current.get()
    running.current.set(stage)
    try:
        result = await coroutine
    except BaseException as error:
        running.leave(stage, before)
        fail_stage(stage, error)
        raise
    running.leave(stage, before)
    end_stage(stage, result)
    return result


def _end_with_future(stage: Stage, future: asyncio.Future[Any]) -> None:
    if future.cancelled():
        fail_stage(stage, asyncio.CancelledError())
    elif (error := future.exception()) is not None:
        fail_stage(stage, error)
    else:
        end_stage(stage, future.result())


def _record_response(stage: Stage, response: Any) -> Any:
    """Record the chunks of a web framework's streaming response, which outlives its handler."""
    try:
        body = response.body_iterator
        if isinstance(body, AsyncIterator):
            response.body_iterator = record_async_stream(stage, body)
            return response
        if isinstance(body, Iterator):
            response.body_iterator = record_stream(stage, body)
            return response
    except Exception:
        faults.note("follow a streaming response")
    return None


def _take(stage: Stage, item: Any) -> None:
    """Keep one chunk of a stream: texts by reference, of anything else only its text."""
    try:
        if not stage.first_chunk_ns:
            stage.first_chunk_ns = clock.tick_ns()
        if stage.read_part is not None:
            stage.answer = stage.read_part(item)
            stage.end_ns = clock.tick_ns()
            return
        if stage.parts is None:
            stage.parts = []
        if len(stage.parts) < _MAX_PARTS:
            if stage.kind in (REQUEST, GENERATE):
                stage.parts.append(item if type(item) is str else _chunk_text(stage, item))
            else:
                stage.parts.append(item)
        stage.end_ns = clock.tick_ns()
    except Exception:
        stage.faults += 1
        faults.note("keep a chunk of a stream")


def _chunk_text(stage: Stage, item: Any) -> str | None:
    from ragotel.answers import read_reply, text_of_answer

    if stage.kind == GENERATE:
        reply = (stage.read_chunk or read_reply)(item)
        if reply:
            stage.reply = {**(stage.reply or {}), **reply}
        if stage.read_chunk is not None:
            # Some libraries repeat the whole text in each chunk; the request keeps the answer.
            return None
    if isinstance(item, tuple):
        # A label and its payload, as (event, data) or LangGraph's (mode, part), or a text with
        # something beside it: of several texts none is known to be the answer.
        texts = [text for one in item[:_LABELLED] if (text := text_of_answer(one)) is not None]
        return texts[0] if len(texts) == 1 and texts[0] not in _MODES else None
    return text_of_answer(item)


def _close(stage: Stage, outcome: str) -> None:
    """End a stream at its last chunk."""
    try:
        if outcome == OK:
            stage.end_ns = clock.tick_ns()
        if stage.kind not in (REQUEST, GENERATE) and stage.parts is not None:
            from ragotel.results import look_at_result

            parts, stage.parts = stage.parts, None
            if outcome == OK or stage.kind != "assemble":
                joined = "".join(parts) if all(isinstance(p, str) for p in parts) else parts
                look_at_result(stage, joined if stage.kind == "assemble" else parts)
    except Exception:
        stage.faults += 1
        faults.note("read a finished stream")
    close_stage(stage, outcome)


class _Unfinished:
    """Ends the stage of a stream that is thrown away, and tells that from one that is closed."""

    __slots__ = ("_stream", "stage")

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._stream: weakref.ref[Any] | None = None

    def watch(self, stream: Any) -> Any:
        self._stream = weakref.ref(stream)
        return stream

    def outcome(self) -> str:
        # The interpreter clears weak references before it closes a generator that nobody holds.
        is_alive = self._stream is not None and self._stream() is not None
        return STOPPED_EARLY if is_alive else ABANDONED

    def __del__(self) -> None:
        if self.stage.outcome is None:
            _close(self.stage, ABANDONED)


def record_stream(stage: Stage, stream: Iterator[Any]) -> Generator[Any, Any, Any]:
    """Pass on *stream* step by step; `send`, `throw`, `close` and the return value go through."""
    unfinished = _Unfinished(stage)
    recorded: Generator[Any, Any, Any] = unfinished.watch(
        _recorded_stream(stage, stream, unfinished)
    )
    return recorded


def _recorded_stream(
    stage: Stage, stream: Any, unfinished: _Unfinished
) -> Generator[Any, Any, Any]:
    is_generator = hasattr(stream, "send")
    sent: Any = None
    thrown: BaseException | None = None
    while True:
        before = running.current.get()
        running.current.set(stage)
        try:
            if thrown is not None:
                if not hasattr(stream, "throw"):
                    raise thrown
                item = stream.throw(thrown)
            elif is_generator:
                item = stream.send(sent)
            else:
                item = next(stream)
        except StopIteration as stop:
            running.leave(stage, before)
            _close(stage, OK)
            return stop.value
        except BaseException as error:
            running.leave(stage, before)
            _fail(stage, error, is_ours=error is thrown)
            raise
        running.leave(stage, before)
        _take(stage, item)
        thrown = None
        try:
            sent = yield item
        except GeneratorExit:
            _close_inner(stage, stream, unfinished.outcome())
            raise
        except BaseException as error:
            thrown = error


def _fail(stage: Stage, error: BaseException, *, is_ours: bool) -> None:
    if isinstance(error, GeneratorExit) and is_ours:
        _close(stage, STOPPED_EARLY)
    else:
        fail_stage(stage, error)


def _close_inner(stage: Stage, stream: Any, outcome: str) -> None:
    """Close the inner generator as the consumer closed ours."""
    before = running.current.get()
    running.current.set(stage)
    try:
        if hasattr(stream, "close"):
            stream.close()
    finally:
        running.leave(stage, before)
        _close(stage, outcome)


def record_async_stream(stage: Stage, stream: AsyncIterator[Any]) -> AsyncGenerator[Any, Any]:
    """Pass on an async *stream* step by step."""
    unfinished = _Unfinished(stage)
    recorded: AsyncGenerator[Any, Any] = unfinished.watch(
        _recorded_async_stream(stage, stream, unfinished)
    )
    return recorded


async def _recorded_async_stream(
    stage: Stage, stream: Any, unfinished: _Unfinished
) -> AsyncGenerator[Any, Any]:
    is_generator = hasattr(stream, "asend")
    sent: Any = None
    thrown: BaseException | None = None
    while True:
        before = running.current.get()
        running.current.set(stage)
        try:
            if thrown is not None:
                if not hasattr(stream, "athrow"):
                    raise thrown
                item = await stream.athrow(thrown)
            elif is_generator:
                item = await stream.asend(sent)
            else:
                item = await stream.__anext__()
        except StopAsyncIteration:
            running.leave(stage, before)
            _close(stage, OK)
            return
        except BaseException as error:
            running.leave(stage, before)
            _fail(stage, error, is_ours=error is thrown)
            raise
        running.leave(stage, before)
        _take(stage, item)
        thrown = None
        try:
            sent = yield item
        except GeneratorExit:
            await _close_inner_async(stage, stream, unfinished.outcome())
            raise
        except BaseException as error:
            thrown = error


async def _close_inner_async(stage: Stage, stream: Any, outcome: str) -> None:
    before = running.current.get()
    running.current.set(stage)
    try:
        if hasattr(stream, "aclose"):
            await stream.aclose()
    finally:
        running.leave(stage, before)
        _close(stage, outcome)
