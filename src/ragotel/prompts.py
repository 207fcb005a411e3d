"""Prompts: the text of what a prompt builder returned, in whichever form the model takes it.

Pipeline: decorators -> recorder -> [prompts] -> encoding
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import faults
from ragotel.columns import Looks
from ragotel.spec import Spec

_PROMPT_NAMES = ("prompt", "text", "messages", "content", "input", "contents")
_USED_NAMES = ("used", "sent", "passages", "sources", "documents", "context_documents", "chunks")

_LOOKS = 10_000
"""Messages and parts of one prompt that are looked at: lists of lists have millions."""


def text_of_prompt(result: Any, depth: int = 0, looks: Looks | None = None) -> str | None:
    """Read the prompt: a string, messages, ``(prompt, ...)``, or an object with one of these."""
    if isinstance(result, str):
        return result
    looks = looks or Looks(_LOOKS)
    if looks.is_over() or result is None or depth > 3:
        return None
    if isinstance(result, tuple):
        texts = (text_of_prompt(part, depth + 1, looks) for part in result)
        return next((text for text in texts if text), None)
    if isinstance(result, list):
        return _text_of_messages(result, depth, looks)
    if isinstance(result, Mapping):
        return _text_of_parts(result, depth, looks)
    if callable(to_messages := getattr(result, "to_messages", None)):
        # Not its `to_string`, which writes a role before each message: the model is sent none.
        return _text_of_messages(list(to_messages()), depth, looks)
    return _text_of_parts(getattr(result, "__dict__", {}), depth, looks)


def _text_of_parts(parts: Mapping[Any, Any], depth: int, looks: Looks) -> str | None:
    for name in _PROMPT_NAMES:
        if name in parts:
            text = text_of_prompt(parts[name], depth + 1, looks)
            if text is not None:
                return text
    return None


def _text_of_messages(messages: list[Any], depth: int, looks: Looks) -> str | None:
    """Join the contents of chat messages with a blank line; pictures and tools are left out."""
    texts = []
    for message in messages:
        if looks.left < 0:
            break
        if isinstance(message, str):
            looks.left -= 1
        text = text_of_prompt(message, depth + 1, looks)
        if text is not None:
            texts.append(text)
    return "\n\n".join(texts) if texts else None


def used_in(spec: Spec, result: Any) -> Any:
    """Find the passages that the prompt builder says it used; None where it says nothing."""
    ask = spec.options.get("used")
    if callable(ask):
        try:
            return ask(result)
        except Exception:
            faults.note("ask for the passages used")
            return None
    if type(result) is str:
        return None
    if isinstance(result, tuple):
        return next((part for part in result if _is_list_of_passages(part)), None)
    if isinstance(result, Mapping):
        return next((result[n] for n in _USED_NAMES if isinstance(result.get(n), list)), None)
    if isinstance(result, (str, list)):
        return None
    parts = getattr(result, "__dict__", {})
    return next((parts[n] for n in _USED_NAMES if isinstance(parts.get(n), list)), None)


def _is_list_of_passages(part: Any) -> bool:
    if not isinstance(part, list):
        return False
    return not part or not (isinstance(part[0], Mapping) and "role" in part[0])
