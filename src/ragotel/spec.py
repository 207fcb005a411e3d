"""Spec: what one decorator was told, worked out once, so that a call has little left to do.

Pipeline: decorators -> [spec] -> recorder
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ragotel import attributes as at
from ragotel import faults
from ragotel.model import KIND_CLIENT, KIND_INTERNAL, AttributeValue
from ragotel.text import content_hash

REQUEST, RETRIEVE, FUSE, RERANK, BLEND, FILTER = (
    "request", "retrieve", "fuse", "rerank", "blend", "filter",
)  # fmt: skip
ASSEMBLE, GENERATE, INGEST = "assemble", "generate", "ingest"
KINDS = (REQUEST, RETRIEVE, FUSE, RERANK, BLEND, FILTER, ASSEMBLE, GENERATE, INGEST)
RANKINGS = frozenset((FUSE, RERANK, BLEND, FILTER))
TAKES_LIST = RANKINGS | {ASSEMBLE}

_OPERATIONS = {
    REQUEST: "invoke_workflow", RETRIEVE: "retrieval", RERANK: "rerank", GENERATE: "chat",
}  # fmt: skip
"""What OpenTelemetry GenAI calls them; `rerank` is proposed there, and read by several backends."""

QUERY_PARAMETERS = (
    "question", "query", "q", "user_question", "user_query", "query_text", "query_str", "text",
    "message", "user_message", "user_input", "prompt", "input", "msg",
)  # fmt: skip
TOP_K_PARAMETERS = ("top_k", "k", "limit", "n_results", "num_results", "size", "n")
LIMIT_PARAMETERS = ("top_n", "limit", "top_k", "k", "n")
WHO_PARAMETERS: dict[str, tuple[str, ...]] = {
    at.USER_ID: ("user_id", "user", "uid", "username"),
    at.CONVERSATION_ID: (
        "session_id", "conversation_id", "thread_id", "chat_id", "session", "conversation",
    ),
    at.TENANT: ("tenant", "tenant_id", "workspace_id", "org_id"),
    at.PRINCIPAL: ("principal", "role"),
    at.TAGS: ("tags",),
}  # fmt: skip

READERS = {
    "id_of": "id", "score_of": "score", "text_of": "text", "doc_id_of": "doc_id",
    "doc_version_of": "doc_version",
}  # fmt: skip
"""The user's extractors, each called with one item of the list."""

_LITERAL_OPTIONS: dict[str, str] = {
    "index": at.DATA_SOURCE, "index_version": at.INDEX_VERSION, "where": at.FILTER,
    "excluded": at.FILTER_EXCLUDED, "score_kind": at.SCORE_KIND,
    "higher_is_better": at.HIGHER_IS_BETTER, "limit": at.LIMIT, "method": at.FUSE_METHOD,
    "model": at.REQUEST_MODEL, "window_chars": at.RERANK_WINDOW, "template": at.PROMPT_NAME,
    "template_version": at.PROMPT_VERSION, "budget": at.BUDGET_TOKENS, "provider": at.PROVIDER,
    "temperature": at.TEMPERATURE, "operation": at.OPERATION, "chunker": at.CHUNKER,
    "parent_version": at.PARENT_VERSION, "top_k": at.TOP_K, "server_side": at.SERVER_SIDE,
    "run_id": at.RUN_ID, "arm": at.ARM, "label_id": at.LABEL_ID, "user_id": at.USER_ID,
    "session_id": at.CONVERSATION_ID, "tenant": at.TENANT, "principal": at.PRINCIPAL,
    "tags": at.TAGS,
}  # fmt: skip
_MAY_NAME_PARAMETER = frozenset(
    ("run_id", "arm", "label_id", "user_id", "session_id", "tenant", "principal", "tags")
)
"""A text given for one of these names a parameter of the function if there is one so called."""

OPTIONS = frozenset(
    (*_LITERAL_OPTIONS, *READERS, "leg", "name", "query", "reason", "template_text", "tokens",
     "count_tokens", "used")
)  # fmt: skip
"""Every option that some decorator knows."""

Find = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]
NOTHING = object()


class Parameters:
    """Where a function's parameters stand, so that a value is found without binding a call."""

    __slots__ = ("defaults", "has_self", "positions")

    def __init__(self, function: Any) -> None:
        self.positions: dict[str, int] = {}
        self.defaults: dict[str, Any] = {}
        self.has_self = False
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            return
        for position, parameter in enumerate(parameters):
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                self.positions[parameter.name] = position
            elif parameter.kind == parameter.KEYWORD_ONLY:
                self.positions[parameter.name] = 1 << 30
            if parameter.default is not parameter.empty:
                self.defaults[parameter.name] = parameter.default
        self.has_self = bool(parameters) and parameters[0].name in ("self", "cls")

    def value(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Find the value of parameter *name* in a call; NOTHING if it has none."""
        if name in kwargs:
            return kwargs[name]
        position = self.positions.get(name)
        if position is None:
            return NOTHING
        if position < len(args):
            return args[position]
        return self.defaults.get(name, NOTHING)

    def present(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if name in self.positions]


class Spec:
    """One decorated function's or one `stage` block's options, compiled."""

    __slots__ = (
        "ask_query", "kind", "name", "options", "otlp_kind", "parameters", "query_names",
        "readers", "static", "top_k_names", "volatile", "who",
    )  # fmt: skip

    def __init__(self, kind: str, function: Any, options: Mapping[str, Any]) -> None:
        self.kind = kind
        for option in options:
            if option not in OPTIONS:
                near = difflib.get_close_matches(option, OPTIONS, 1)
                faults.advise(
                    "ragotel.%s has no option %r%s; it is ignored",
                    kind,
                    option,
                    f" (did you mean {near[0]!r}?)" if near else "",
                )
        self.options = {name: value for name, value in options.items() if value is not None}
        self.parameters = Parameters(function) if function is not None else Parameters(None)
        self.otlp_kind = KIND_CLIENT if kind in (RETRIEVE, GENERATE) else KIND_INTERNAL
        name = self.options.get("leg") or self.options.get("name")
        self.name = name if isinstance(name, str) else getattr(function, "__name__", kind)
        self.readers = {
            field: self.options[option]
            for option, field in READERS.items()
            if callable(self.options.get(option))
        }
        self.static: dict[str, AttributeValue] = {
            at.SCHEMA: at.SCHEMA_VERSION,
            at.STAGE: kind,
        }
        if kind in _OPERATIONS:
            self.static[at.OPERATION] = _OPERATIONS[kind]
        self.volatile: list[tuple[str, Find]] = []
        """Attributes to be asked for at each call."""
        self._compile()
        asked = self.options.get("query")
        self.ask_query = (
            asking(asked, self.parameters, "ask for query") if callable(asked) else None
        )
        self.query_names = self._names("query", QUERY_PARAMETERS)
        self.top_k_names = self._top_k_names()
        self.who = self._who_names() if kind == REQUEST else []

    def _names(self, option: str, usual: tuple[str, ...]) -> list[str]:
        named = self.options.get(option)
        if isinstance(named, str):
            return [named]
        return self.parameters.present(usual)

    def _top_k_names(self) -> list[str]:
        if self.kind == RETRIEVE:
            return self.parameters.present(TOP_K_PARAMETERS)
        return self.parameters.present(LIMIT_PARAMETERS) if self.kind in RANKINGS else []

    def _who_names(self) -> list[tuple[str, list[str]]]:
        found = []
        for key, names in WHO_PARAMETERS.items():
            present = self.parameters.present(names)
            if present:
                found.append((key, present))
        return found

    def _compile(self) -> None:
        """Part the options into what never changes and what each call is asked for."""
        template = self.options.get("template_text")
        if callable(template) and "template_version" not in self.options:
            # Asked at the call, as the template may be another by the time the worker looks.
            ask = self._asking(template, "template_text")
            self.volatile.append((at.PROMPT_VERSION, _hashing(ask)))
        for option, key in _LITERAL_OPTIONS.items():
            value = self.options.get(option)
            if value is None:
                continue
            if callable(value):
                self.volatile.append((key, self._asking(value, option)))
            elif (
                isinstance(value, str)
                and option in _MAY_NAME_PARAMETER
                and value in self.parameters.positions
            ):
                self.volatile.append((key, self._parameter(value)))
            elif isinstance(value, (str, bool, int, float)):
                self.static[key] = value
            else:
                self.volatile.append((key, _giving(value)))

    def _parameter(self, name: str) -> Find:
        def find(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            return self.parameters.value(name, args, kwargs)

        return find

    def _asking(self, ask: Callable[..., Any], option: str) -> Find:
        """Call *ask* with those of the call's arguments that its own parameters name."""
        return asking(ask, self.parameters, f"ask for {option}")


def _hashing(ask: Find) -> Find:
    def find(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        text = ask(args, kwargs)
        return content_hash(text) if isinstance(text, str) else None

    return find


def _giving(value: Any) -> Find:
    def find(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return value

    return find


def asking(ask: Callable[..., Any], parameters: Parameters, part: str) -> Find:
    """Make a finder from a user's callable; whatever it raises is counted, not passed on."""
    try:
        wanted = list(inspect.signature(ask).parameters.values())
    except (TypeError, ValueError):
        wanted = []
    names = [p.name for p in wanted if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    positional_only = sum(1 for p in wanted if p.kind == p.POSITIONAL_ONLY)

    def find(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        try:
            if positional_only:
                return ask(*args[:positional_only])
            given = {}
            for name in names:
                value = parameters.value(name, args, kwargs)
                if value is not NOTHING:
                    given[name] = value
            # A single parameter of another name takes the first argument: ``lambda bot: bot.k``.
            if len(names) == 1 and not given and args:
                return ask(args[0])
            return ask(**given)
        except Exception:
            faults.note(part)
            return FAULT

    return find


FAULT = object()
"""Stands for the value of a user's callable that raised."""
