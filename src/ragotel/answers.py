"""Answers: text, usage and citations of what a model or the service itself replied.

Pipeline: decorators -> recorder -> [answers] -> encoding
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from ragotel import attributes as at
from ragotel.columns import READ_LIMIT, Looks

_TEXT_NAMES = (
    "answer", "output_text", "text", "content", "response", "output", "result", "message", "reply",
    "completion", "generated_text", "body",
)  # fmt: skip
_INPUT_NAMES = ("input_tokens", "prompt_tokens", "prompt_token_count")
_OUTPUT_NAMES = ("output_tokens", "completion_tokens", "candidates_token_count")
_USAGE_NAMES = ("usage", "usage_metadata", "token_usage")
_FINISH_NAMES = ("finish_reason", "stop_reason", "finish_reasons")
_CITATION_NAMES = ("citations", "cited_ids", "cited")
_LOOKS = 2_000
"""Parts of one reply that are looked at: lists of lists have millions, or have themselves."""

_CHOICES = 100


def part(value: Any, names: tuple[str, ...]) -> Any:
    """Read the first of *names* that a dict or an object has and that is not None."""
    if isinstance(value, Mapping):
        return next((value[n] for n in names if value.get(n) is not None), None)
    if value is None or isinstance(value, (str, bytes, int, float, list, tuple)):
        return None
    for name in names:
        try:
            found = getattr(value, name, None)
        except Exception:  # noqa: S112 - a property of the client's may raise; the next name may do
            continue
        if found is not None and not callable(found):
            return found
    return None


def text_of_answer(result: Any, depth: int = 0, looks: Looks | None = None) -> str | None:
    """Read the text of an answer; None where there is none to be seen."""
    if isinstance(result, str):
        return result
    looks = looks or Looks(_LOOKS)
    if looks.is_over() or result is None or depth > 4 or isinstance(result, (int, float, bool)):
        return None
    if isinstance(result, (bytes, bytearray)):
        return bytes(result).decode("utf-8", "replace")
    if isinstance(result, (list, tuple)):
        texts = [text_of_answer(item, depth + 1, looks) for item in result[:100]]
        if isinstance(result, tuple):
            return next((text for text in texts if text is not None), None)
        return "".join(text for text in texts if text is not None) if any(texts) else None
    choices = part(result, ("choices",))
    if isinstance(choices, (list, tuple)) and choices:
        inner = part(choices[0], ("message", "delta", "text"))
        chosen = text_of_answer(inner, depth + 1, looks)
        if chosen is not None:
            return chosen
    found = part(result, _TEXT_NAMES)
    return None if found is None else text_of_answer(found, depth + 1, looks)


def read_reply(result: Any, looks: Looks | None = None) -> dict[str, Any] | None:
    """Read model, usage, finish reasons and citations of a model's reply; None if there is none."""
    looks = looks or Looks(_LOOKS)
    if looks.is_over() or result is None or isinstance(result, (str, bytes, int, float)):
        return None
    if isinstance(result, (list, tuple)):
        replies = [reply for item in result[:20] if (reply := read_reply(item, looks))]
        return replies[0] if replies else None
    found: dict[str, Any] = {}
    usage = part(result, _USAGE_NAMES)
    for key, names in ((at.INPUT_TOKENS, _INPUT_NAMES), (at.OUTPUT_TOKENS, _OUTPUT_NAMES)):
        tokens = part(usage if usage is not None else result, names)
        if isinstance(tokens, int) and not isinstance(tokens, bool):
            found[key] = tokens
    model = part(result, ("model",))
    if isinstance(model, str):
        found[at.REQUEST_MODEL] = model
    reasons = _finish_reasons(result)
    if reasons:
        found[at.FINISH_REASONS] = reasons
    citations = part(result, _CITATION_NAMES)
    if isinstance(citations, (list, tuple, set, frozenset)):
        found[at.CITATIONS] = [_citation(item) for item in islice(citations, READ_LIMIT)]
    return found or None


def _finish_reasons(result: Any) -> list[str]:
    choices = part(result, ("choices", "candidates"))
    sources = choices if isinstance(choices, (list, tuple)) and choices else [result]
    reasons: list[str] = []
    for source in sources[:_CHOICES]:
        reason = part(source, _FINISH_NAMES)
        if isinstance(reason, (list, tuple)):
            reasons += [str(one) for one in reason]
        elif reason is not None:
            reasons.append(str(getattr(reason, "value", reason)))
    return reasons


def _citation(item: Any) -> Any:
    if isinstance(item, (str, int)):
        return item
    return part(item, ("id", "chunk_id", "doc_id", "document_id", "node_id", "index"))
