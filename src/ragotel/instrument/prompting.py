"""Prompting: the prompt of a template, and the prompt that only the model's call shows.

Pipeline: calls -> [prompting] -> recorder

Where no template and no decorator told the prompt, what the model is asked is the prompt: the exact
string that was sent. A prompt takes the lists that it quotes, and leaves the others waiting.
"""

from __future__ import annotations

from typing import Any

from ragotel import faults
from ragotel.columns import Candidates
from ragotel.instrument import nesting
from ragotel.prompts import text_of_prompt
from ragotel.record import OK, Stage, Trace
from ragotel.recorder import close_stage, open_stage
from ragotel.spec import ASSEMBLE, GENERATE, RANKINGS, REQUEST, RETRIEVE, Spec

_PROBE_CHARS = 40
_FROM_MESSAGES = Spec(ASSEMBLE, None, {"name": "messages"})


def open_prompt(spec: Spec, parent: Stage | None) -> Stage | None:
    """Begin a prompt without taking any list: it is not known yet which of them it quotes."""
    waiting = [] if parent is None else list(parent.trace.frontier)
    stage = open_stage(spec, (), {})
    if stage is not None:
        stage.trace.frontier = waiting
        stage.inputs = []
    return stage


def settle_prompt(stage: Stage) -> None:
    """Give a finished prompt its lists: those that wait, else those of an earlier prompt.

    A prompt that quotes none of them (one that rephrases the question) leaves them to the next.
    """
    prompt, trace = stage.prompt, stage.trace
    if not prompt:
        return
    waiting = list(trace.frontier)
    if any(_is_quoted(found, prompt) for found in waiting):
        stage.inputs = waiting
        trace.frontier = [found for found in trace.frontier if found not in waiting]
        return
    for earlier in reversed(list(trace.finished)):
        lists = earlier.inputs if earlier.kind == ASSEMBLE else None
        if lists and any(_is_quoted(found, prompt) for found in lists):
            stage.inputs = lists
            return
    if waiting and not any(any(found.texts) for found in waiting):
        # Ids without texts: nothing can be looked for, and nothing else will take them.
        stage.inputs = waiting


def _is_quoted(found: Candidates, prompt: str) -> bool:
    for text in found.texts:
        if isinstance(text, str) and (probe := text.strip()[:_PROBE_CHARS]) and probe in prompt:
            return True
    return False


def note_prompt(stage: Stage, messages: Any, stored: dict[str, Any] | None = None) -> None:
    """Record what a model is asked as the request's prompt, if no assembly told it before.

    Of a *stored* prompt, which the model's own service fills in, only name and version are known.
    """
    trace = stage.trace
    if not trace.request_number or nesting.is_inside(stage.parent, RANKINGS | {RETRIEVE}):
        return
    prompt = None if stored else text_of_prompt(messages)
    if not stored and (not prompt or _is_told(trace, stage, prompt, messages)):
        return
    outer = stage
    while outer.parent is not None and outer.parent.kind == GENERATE:
        outer = outer.parent
    told = Stage(_FROM_MESSAGES, trace, outer.parent)
    told.start_ns = told.end_ns = outer.start_ns
    told.prompt, told.inputs, told.values = prompt, [], stored
    try:
        settle_prompt(told)
    except Exception:
        told.faults += 1
        faults.note("find the lists that a prompt quotes")
    close_stage(told, OK)


def _is_told(trace: Trace, stage: Stage, prompt: str, messages: Any) -> bool:
    parts = _parts(messages)
    around: Stage | None = stage.parent
    running = []
    while around is not None and around.kind != REQUEST:
        running.append(around)
        around = around.parent
    for earlier in (*running, *reversed(list(trace.finished))):
        known = earlier.prompt if earlier.kind == ASSEMBLE else None
        if known and (known in prompt or all(part in known for part in parts)):
            return True
    return False


def _parts(messages: Any) -> list[str]:
    if isinstance(messages, (list, tuple)):
        return [text for one in messages if (text := text_of_prompt(one))]
    text = text_of_prompt(messages)
    return [text] if text else []
