"""Streaming: stream objects of model clients, recorded inside of the very object that is returned.

Pipeline: library's own call -> calls -> [streaming] -> streams
"""

from __future__ import annotations

import inspect
import weakref
from typing import Any

from ragotel import faults
from ragotel.record import Stage
from ragotel.streams import record_async_stream, record_stream

_MOST_WRAPPERS = 4


def follow_iterator(stage: Stage, stream: Any, name: str = "_iterator") -> bool:
    """Record what *stream* yields, by wrapping the iterator that it keeps under *name*.

    The object stays the library's own; its `close` ends the record too.
    """
    inner = getattr(stream, name, None)
    recorded: Any
    if hasattr(inner, "__anext__"):
        recorded = record_async_stream(stage, inner)  # type: ignore[arg-type]
        close = _async_close(stream, recorded)
    elif hasattr(inner, "__next__"):
        recorded = record_stream(stage, inner)  # type: ignore[arg-type]
        close = _close(stream, recorded)
    else:
        return False
    setattr(stream, name, recorded)
    if inspect.isfunction(getattr(type(stream), "close", None)):
        stream.close = close
    return True


def stream_within(result: Any, kinds: tuple[str, ...]) -> Any:
    """The client's own stream of one of *kinds*, also where another instrumentation wraps it."""
    for _ in range(_MOST_WRAPPERS):
        if type(result).__name__ in kinds:
            return result
        inner = [getattr(result, name, None) for name in ("__wrapped__", "_self_stream")]
        result = next((one for one in inner if one is not None), None)
    return None


# The stream is held weakly: a cycle would leave a dropped stream open until it is collected.


def _close(stream: Any, recorded: Any) -> Any:
    held = weakref.ref(stream)

    def close() -> Any:
        one = held()
        try:
            return None if one is None else type(one).close(one)
        finally:
            try:
                recorded.close()
            except Exception:
                faults.note("close the record of a stream")

    return close


def _async_close(stream: Any, recorded: Any) -> Any:
    held = weakref.ref(stream)

    async def close() -> Any:
        one = held()
        try:
            return None if one is None else await type(one).close(one)
        finally:
            try:
                await recorded.aclose()
            except Exception:
                faults.note("close the record of a stream")

    return close
