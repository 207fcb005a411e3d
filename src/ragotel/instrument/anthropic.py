"""Anthropic: messages, sync, async and streaming.

Pipeline: anthropic's own call -> [instrument.anthropic] -> calls -> recorder

The client traces itself into the application's provider; ragotel's record goes its own way, so that
neither doubles the other.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel import faults
from ragotel.instrument.calls import Call, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import reply_of
from ragotel.instrument.streaming import follow_iterator, stream_within
from ragotel.record import Stage
from ragotel.spec import GENERATE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


_NAMES = ("system", "messages", "model", "temperature")
_asked: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


def _messages(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    return _call(kwargs)


def _call(asked: Kwargs) -> Call:
    system, messages = asked.get("system"), asked.get("messages")
    model, temperature = asked.get("model"), asked.get("temperature")
    parts = [system, *(messages if isinstance(messages, (list, tuple)) else ())]
    return Call(
        GENERATE,
        "anthropic.messages",
        values={
            at.REQUEST_MODEL: model if isinstance(model, str) else None,
            at.TEMPERATURE: temperature if isinstance(temperature, (int, float)) else None,
            at.PROVIDER: "anthropic",
        },
        messages=[part for part in parts if isinstance(part, (str, Mapping, list)) and part],
        reply=_reply,
        follow=_follow,
    )


def _keep(wrapped: Any, instance: Any, args: Args, kwargs: Kwargs) -> Any:
    """Remember what a stream was asked: its request is made when its block is entered."""
    manager = wrapped(*args, **kwargs)
    try:
        _asked[manager] = {name: kwargs.get(name) for name in _NAMES}
    except Exception:
        faults.note("remember what a stream was asked")
    return manager


def _manager(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    return _call(_asked.pop(instance, {}))


def _reply(result: Any) -> dict[str, Any]:
    message = getattr(result, "message", None) or result
    usage = getattr(message, "usage", None)
    reason = getattr(getattr(result, "delta", None), "stop_reason", None)
    return reply_of(
        model=getattr(message, "model", None),
        input_tokens=_input_tokens(usage),
        output_tokens=getattr(usage, "output_tokens", None),
        finish_reason=getattr(message, "stop_reason", None) or reason,
    )


def _input_tokens(usage: Any) -> int | None:
    """Count cached tokens too, as the convention does; Anthropic's own number leaves them out."""
    fresh = getattr(usage, "input_tokens", None)
    if not isinstance(fresh, int):
        return None
    cached = (
        getattr(usage, name, None)
        for name in ("cache_creation_input_tokens", "cache_read_input_tokens")
    )
    return fresh + sum(one for one in cached if isinstance(one, int))


_STREAMS = frozenset(("Stream", "AsyncStream"))
_HELPERS = ("MessageStream", "BetaMessageStream", "AsyncMessageStream", "BetaAsyncMessageStream")


def _follow(stage: Stage, result: Any) -> bool:
    stream = stream_within(result, (*_STREAMS, *_HELPERS))
    return stream is not None and follow_iterator(stage, stream)


_RESOURCES = "anthropic.resources"
_LIB = "anthropic.lib.streaming._messages"

LIBRARY = Library(
    name="anthropic",
    package="anthropic",
    versions=">=0.40,<3",
    hooks=(
        *(
            Hook(module, f"{prefix}Messages.{name}", recorded(_messages), is_optional)
            for module, is_optional in (
                (f"{_RESOURCES}.messages.messages", False),
                (f"{_RESOURCES}.beta.messages.messages", True),
            )
            for prefix in ("", "Async")
            for name in ("create", "parse")
        ),
        *(
            Hook(f"{_RESOURCES}.messages.messages", f"{prefix}Messages.stream", _keep)
            for prefix in ("", "Async")
        ),
        Hook(_LIB, "MessageStreamManager.__enter__", recorded(_manager)),
        Hook(_LIB, "AsyncMessageStreamManager.__aenter__", recorded(_manager)),
    ),
)
