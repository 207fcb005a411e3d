"""Messages: question, prompt and answer once more, as readers of OpenTelemetry GenAI seek them.

Pipeline: encoding -> [messages] -> span attributes, where the setting `gen_ai_messages` is on

Backends that know nothing of `rag.*` show these. Off by default: every text is then sent twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from ragotel import attributes as at
from ragotel.content import Attributes, Content
from ragotel.lists import dump
from ragotel.privacy import ANSWER, PROMPT
from ragotel.record import Stage
from ragotel.spec import ASSEMBLE, GENERATE

_UNKNOWN = "unknown"
"""Readers refuse a whole answer without a reason of its end."""


def prompts_of(stages: Iterable[Stage]) -> dict[Stage, str]:
    """Find for each generation the last prompt that was built before it began."""
    found: dict[Stage, str] = {}
    last: str | None = None
    for stage in sorted(stages, key=lambda one: (one.start_ns, one.kind == GENERATE)):
        if stage.kind == ASSEMBLE and stage.prompt is not None:
            last = stage.prompt
        elif stage.kind == GENERATE and last is not None:
            found[stage] = last
    return found


def put_exchange(made: Attributes) -> None:
    """Repeat a request's question and answer, as far as they stand on its span already."""
    if isinstance(question := made.get(at.QUERY), str):
        made[at.INPUT_MESSAGES] = _message("user", question)
    if isinstance(answer := made.get(at.ANSWER), str):
        made[at.OUTPUT_MESSAGES] = _message("assistant", answer, _UNKNOWN)


def put_call(made: Attributes, content: Content, prompt: str | None, reply: str | None) -> None:
    """Put what a model was asked and what it replied, as far as they may leave.

    The prompt is one message of the user's: which part of it had which role is not recorded.
    """
    if prompt:
        content.put_text(made, at.INPUT_MESSAGES, prompt, PROMPT)
        if isinstance(kept := made.get(at.INPUT_MESSAGES), str):
            made[at.INPUT_MESSAGES] = _message("user", kept)
    if reply:
        content.put_text(made, at.OUTPUT_MESSAGES, reply, ANSWER)
        if isinstance(kept := made.get(at.OUTPUT_MESSAGES), str):
            made[at.OUTPUT_MESSAGES] = _message("assistant", kept, _finish_reason(made))


def _message(role: str, text: str, finish_reason: str | None = None) -> str:
    message: dict[str, object] = {"role": role, "parts": [{"type": "text", "content": text}]}
    if finish_reason is not None:
        message["finish_reason"] = finish_reason
    return dump([message])


def _finish_reason(made: Attributes) -> str:
    reasons = json.loads(str(made.get(at.FINISH_REASONS, "[]")))
    return str(reasons[0]) if reasons else _UNKNOWN
