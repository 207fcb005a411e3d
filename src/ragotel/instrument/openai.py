"""OpenAI: chat completions, responses and vector stores, sync, async and streaming.

Pipeline: openai's own call -> [instrument.openai] -> calls -> recorder
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragotel import attributes as at
from ragotel.columns import Candidates
from ragotel.instrument.calls import Call, recorded
from ragotel.instrument.hooks import Hook, Library
from ragotel.instrument.reading import columns, filter_of, reply_of
from ragotel.instrument.streaming import follow_iterator, stream_within
from ragotel.record import Stage
from ragotel.spec import GENERATE, RETRIEVE

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


def _known(value: Any) -> Any:
    """Leave out the client's own marks of what was not given."""
    return value if isinstance(value, (str, int, float)) else None


def provider_of(resource: Any) -> str:
    """Tell Azure from OpenAI; other services behind the same client are not told apart."""
    client = getattr(resource, "_client", None)
    return "azure.ai.openai" if "Azure" in type(client).__name__ else "openai"


def _chat(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    return Call(
        GENERATE,
        "openai.chat",
        values={
            at.REQUEST_MODEL: _known(kwargs.get("model")),
            at.TEMPERATURE: _known(kwargs.get("temperature")),
            at.PROVIDER: provider_of(instance),
        },
        messages=kwargs.get("messages"),
        reply=_chat_reply,
        follow=_follow,
    )


def _chat_reply(result: Any) -> dict[str, Any]:
    result = _unpacked(result)
    choices = getattr(result, "choices", None) or []
    usage = getattr(result, "usage", None)
    return reply_of(
        model=getattr(result, "model", None),
        input_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        finish_reason=[getattr(choice, "finish_reason", None) for choice in choices],
    )


def _response(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    asked = kwargs.get("input")
    parts = [kwargs.get("instructions"), *(asked if isinstance(asked, (list, tuple)) else [asked])]
    messages = [part for part in parts if isinstance(part, (str, Mapping)) or hasattr(part, "role")]
    stored = kwargs.get("prompt")
    named = None
    if isinstance(stored, Mapping):
        named = {at.PROMPT_NAME: stored.get("id"), at.PROMPT_VERSION: stored.get("version")}
        named = {key: value for key, value in named.items() if isinstance(value, str)}
    return Call(
        GENERATE,
        "openai.responses",
        values={
            at.REQUEST_MODEL: _known(kwargs.get("model")),
            at.TEMPERATURE: _known(kwargs.get("temperature")),
            at.PROVIDER: provider_of(instance),
        },
        messages=messages,
        stored_prompt=named,
        reply=_response_reply,
        follow=_follow,
    )


def _response_reply(result: Any) -> dict[str, Any]:
    result = _unpacked(result)
    # Of a stream's events those of its end have the whole response.
    result = getattr(result, "response", None) or result
    usage = getattr(result, "usage", None)
    status = getattr(result, "status", None)
    why = getattr(getattr(result, "incomplete_details", None), "reason", None)
    return reply_of(
        model=getattr(result, "model", None),
        input_tokens=getattr(usage, "input_tokens", None),
        output_tokens=getattr(usage, "output_tokens", None),
        finish_reason=why or (status if status != "in_progress" else None),
    )


def _is_raw(result: Any) -> bool:
    return type(result).__name__ == "LegacyAPIResponse"


def _unpacked(result: Any) -> Any:
    """Look into a raw response; it keeps what it has parsed, for the service too."""
    return result.parse() if _is_raw(result) else result


def _follow(stage: Stage, result: Any) -> bool:
    if _is_raw(result) and getattr(result, "_stream", False):
        result = result.parse()
    stream = stream_within(result, ("Stream", "AsyncStream"))
    return stream is not None and follow_iterator(stage, stream)


def _search(instance: Any, args: Args, kwargs: Kwargs) -> Call:
    store = kwargs.get("vector_store_id", args[0] if args else None)
    query, limit = kwargs.get("query"), kwargs.get("max_num_results")
    filters = kwargs.get("filters")
    return Call(
        RETRIEVE,
        "openai.vector_store",
        query=query if isinstance(query, str) else None,
        values={
            at.DATA_SOURCE: store,
            at.TOP_K: _known(limit),
            at.FILTER: filter_of(filters) if isinstance(filters, Mapping) else None,
            at.PROVIDER: "openai",
            at.HIGHER_IS_BETTER: True,
        },
        read=_page,
    )


def _page(result: Any) -> Candidates:
    found = result.data
    # A file's id names no chunk.
    return columns(
        [None] * len(found),
        [one.score for one in found],
        ["\n".join(part.text for part in one.content) for one in found],
        source=found,
        doc_id=[one.file_id for one in found],
    )


_CHAT = "openai.resources.chat.completions.completions"
_RESPONSES = "openai.resources.responses.responses"

LIBRARY = Library(
    name="openai",
    package="openai",
    versions=">=1.66,<4",
    hooks=(
        *(
            Hook(module, f"{prefix}{cls}.{name}", recorded(describe))
            for module, cls, describe in (
                (_CHAT, "Completions", _chat),
                (_RESPONSES, "Responses", _response),
            )
            for prefix in ("", "Async")
            for name in ("create", "parse")
        ),
        # The async search gives a page that is awaited or iterated: left alone.
        Hook(
            "openai.resources.vector_stores.vector_stores", "VectorStores.search", recorded(_search)
        ),
    ),
)
