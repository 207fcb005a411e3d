"""Graphs: what a LangGraph run is asked and answers, whichever way it streams.

Pipeline: langgraph's own call -> [graphs] -> calls

A stream's parts are states, updates by node, or messages as they are written; with several modes
each part is named by its mode. What a part is not known to say is no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ragotel.answers import text_of_answer

_ASKING = frozenset(("user", "human"))
_NAMES = ("answer", "generation", "response", "output", "output_text")
"""Under which graphs keep an answer; what else stands in a state may be a step on the way."""


def question_of(asked: Any) -> Any:
    """The last message of the user's in a state of messages; any other input as it is."""
    messages = asked.get("messages") if isinstance(asked, Mapping) else None
    if not isinstance(messages, list):
        return asked
    for message in reversed(messages):
        role, content = _role_and_content(message)
        if role in _ASKING:
            return text_of_answer(content)
    return asked


def _role_and_content(message: Any) -> tuple[Any, Any]:
    if isinstance(message, str):
        return "user", message
    if isinstance(message, tuple) and len(message) == 2:
        return message
    if isinstance(message, Mapping):
        return message.get("role", message.get("type")), message.get("content")
    return getattr(message, "type", None), getattr(message, "content", None)


def answer_of(state: Any) -> str | None:
    """The answer that a state, or an update of one, holds; None where it holds none."""
    if not isinstance(state, Mapping):
        return None
    messages = state.get("messages")
    if isinstance(messages, list) and messages:
        role, content = _role_and_content(messages[-1])
        return None if role in _ASKING or role == "tool" else text_of_answer(content)
    return text_of_answer(next((state[n] for n in _NAMES if state.get(n) is not None), None))


def part_reader(graph: Any, kwargs: Mapping[str, Any]) -> Callable[[Any], str | None]:
    """Make the reader of one stream's parts: from each part the whole answer so far."""
    mode = kwargs.get("stream_mode") or getattr(graph, "stream_mode", None) or "updates"
    has_namespace = bool(kwargs.get("subgraphs"))
    written: dict[str, str | None] = {"message": None, "text": "", "said": None, "state": None}

    def read(part: Any) -> str | None:
        if has_namespace and isinstance(part, tuple):
            if part[0]:
                # A graph within this one: what it answers, the outer one passes on.
                return _best(written)
            part = part[1] if len(part) == 2 else part[1:]
        name, value = (part[0], part[1]) if isinstance(mode, (list, tuple)) else (mode, part)
        _take(written, name, value)
        return _best(written)

    return read


def _best(written: dict[str, str | None]) -> str | None:
    return written["state"] or written["said"]


def _take(written: dict[str, str | None], mode: Any, value: Any) -> None:
    if mode == "values":
        written["state"] = answer_of(value) or written["state"]
    elif mode == "updates" and isinstance(value, Mapping):
        for update in value.values():
            for one in update if isinstance(update, list) else [update]:
                written["state"] = answer_of(one) or written["state"]
    elif mode == "messages" and isinstance(value, tuple) and value:
        role, content = _role_and_content(value[0])
        if role not in _ASKING and role != "tool":
            message = getattr(value[0], "id", None)
            if message != written["message"]:
                written["message"], written["text"] = message, ""
            written["text"] = (written["text"] or "") + (text_of_answer(content) or "")
            written["said"] = written["text"] or written["said"]
    elif mode == "custom" and isinstance(value, str):
        written["said"] = (written["said"] or "") + value
