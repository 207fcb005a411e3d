"""Settings of the emit half: keyword > environment > default, resolved once.

Pipeline: configure -> [settings] -> recorder, delivery
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ragotel.errors import ConfigurationError
from ragotel.privacy import read_content

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

log = logging.getLogger("ragotel")

PROTOCOLS = ("http/protobuf", "grpc")
COMPRESSIONS = ("gzip", "none")
CONTENT_MODES = ("full", "truncated", "redacted", "hashed", "off")
_TRACES_PATH = "/v1/traces"
_MIB = 1024 * 1024


@dataclass(frozen=True)
class Settings:
    """What the recorder and the delivery obey; build it with `resolve_settings`."""

    service_name: str = "unknown_service:python"
    resource: Mapping[str, str] = field(default_factory=dict)
    """Further resource attributes, sent with every batch."""
    endpoint: str = "http://localhost:4318/v1/traces"
    """For http/protobuf the full URL of the traces, for grpc scheme, host and port."""
    protocol: str = "http/protobuf"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    compression: str = "gzip"
    timeout_s: float = 10.0
    """Longest wait for one answer of the receiver."""
    certificate: str | None = None
    """File with the certificates that the receiver's own must be signed by; None: the system's."""
    insecure: bool = False
    """For grpc without a scheme: plain text instead of TLS."""
    queue_bytes: int = 64 * _MIB
    """Limit of what waits for delivery; beyond it new requests are dropped and counted."""
    batch_bytes: int = 3 * _MIB
    """Largest message before compression: receivers accept 4 MiB by default."""
    batch_interval_s: float = 1.0
    """Longest time that a finished request waits for others before it is sent."""
    content_mode: str = "full"
    """What leaves of every text: full, truncated, redacted, hashed or off."""
    content: Mapping[str, str] = field(default_factory=dict)
    """The same by field: query, answer, prompt, chunks, metadata, user; `ids`: no text at all."""
    redact: Callable[[str], str] | None = field(default=None, repr=False)
    """Function that masks a text for mode redacted, in place of the built-in patterns."""
    max_text_chars: int = 1_000_000
    """Longer texts keep head and tail and are marked `truncated`."""
    max_candidates: int = 1000
    """Longest list that is written; the counts always tell the whole number."""
    gen_ai_messages: bool = False
    """Repeat question, prompt and answer under GenAI's keys, for backends that only read those."""
    disabled: bool = False
    flush_on_return: bool = False
    """Deliver before a request's function returns: for functions that are frozen between calls."""
    exit_timeout_s: float = 5.0
    """Longest delay of the process's end for what still waits."""
    retry_s: float = 900.0
    """How long one batch is offered again to a receiver that is down or busy."""
    spool: str | None = None
    """Folder that keeps what the receiver cannot take, also when the process is killed."""
    spool_max_bytes: int = 1024 * _MIB
    """Limit of that folder, over all processes that share it."""
    drain_on_sigterm: bool = True
    """Deliver on SIGTERM too, where the application left that signal's default action in place."""
    instrument: bool | tuple[str, ...] = True
    """Libraries whose calls are recorded without a decorator; True: all known, False: none."""
    exporter: SpanExporter | None = field(default=None, repr=False)
    """An OpenTelemetry exporter that replaces endpoint, protocol, headers and compression."""


def resolve_settings(**keywords: Any) -> Settings:
    """Build the settings from *keywords*, then RAGOTEL_* and OTEL_* variables, then the defaults.

    A keyword of None counts as not given. A variable that cannot be read is logged and ignored.

    Raises:
        ConfigurationError: a keyword is unknown or has a value that cannot work.
    """
    known = {f.name for f in fields(Settings)}
    given = {name: value for name, value in keywords.items() if value is not None}
    if unknown := sorted(set(given) - known):
        raise ConfigurationError(
            f"ragotel.configure has no setting {unknown[0]!r}; it knows {', '.join(sorted(known))}."
        )
    checked = {name: _checked(name, value) for name, value in given.items()}
    values = _from_environment()
    resource = {**values.get("resource", {}), **checked.get("resource", {})}
    if name := resource.pop("service.name", None):
        values.setdefault("service_name", name)
    values.update(checked, resource=resource)
    own = checked.get("endpoint") or _env("RAGOTEL_ENDPOINT") or ""
    if "protocol" not in checked and not _env("RAGOTEL_PROTOCOL") and _is_http(own):
        # OpenTelemetry's launcher sets its own variable to grpc where the user has set none.
        values.pop("protocol", None)
    protocol = values.get("protocol", Settings.protocol)
    values["endpoint"] = _endpoint(checked.get("endpoint"), protocol)
    return Settings(**values)


def _endpoint(keyword: str | None, protocol: str) -> str:
    """Find the receiver: over HTTP the full URL of the traces, over gRPC scheme, host and port."""
    own = keyword or _env("RAGOTEL_ENDPOINT")
    # The specification: the signal's own variable is used as it stands, the general one is a base.
    if own is None and (traces := _env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")):
        return traces
    base = own or _env("OTEL_EXPORTER_OTLP_ENDPOINT")
    if protocol == "grpc":
        return base or "http://localhost:4317"
    if base is None:
        return Settings.endpoint
    base = base.rstrip("/")
    if "://" not in base:
        base = f"http://{base}"
    return base if base.endswith(_TRACES_PATH) else base + _TRACES_PATH


def _is_http(endpoint: str) -> bool:
    """Whether an address can only be one of OTLP over HTTP."""
    rest = endpoint.partition("://")[2] or endpoint
    host, slash, path = rest.partition("/")
    return host.endswith(":4318") or f"{slash}{path}".rstrip("/").endswith(_TRACES_PATH)


def _from_environment() -> dict[str, Any]:
    """Read every setting that a variable gives; a bad value is logged and left to the default."""
    found: dict[str, Any] = {}
    for name, variables in _VARIABLES.items():
        for variable in variables:
            text = _env(variable)
            if text is None:
                continue
            try:
                found[name] = _checked(name, _READERS.get(name, str)(text))
            except (ValueError, ConfigurationError) as error:
                if name in _WITHOUT_TEXT:
                    # Somebody wanted less than everything to leave.
                    log.warning("ragotel sends no text, as %s=%r: %s", variable, text, error)
                    found[name] = _WITHOUT_TEXT[name]
                    break
                log.warning("ragotel ignores %s=%r: %s", variable, text, error)
                continue
            break
    return found


def _env(variable: str) -> str | None:
    return os.environ.get(variable, "").strip() or None


def _checked(name: str, value: Any) -> Any:
    """Refuse a value that cannot work, with the values that can."""
    if name in _CHOICES and value not in _CHOICES[name]:
        raise ConfigurationError(
            f"{name} is {value!r}; it can be {' or '.join(map(repr, _CHOICES[name]))}."
        )
    if name in _MINIMA:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ConfigurationError(f"{name} is {value!r}; it must be a number.")
        # Written so that NaN is refused too.
        if not value >= _MINIMA[name]:
            raise ConfigurationError(f"{name} is {value!r}; it must be at least {_MINIMA[name]}.")
    if name == "instrument" and not isinstance(value, bool):
        return _libraries(value)
    if name == "content":
        return read_content(value)
    if name == "redact" and not callable(value):
        raise ConfigurationError(f"redact is {value!r}; it must be a function from text to text.")
    if name in ("resource", "headers"):
        if not isinstance(value, Mapping):
            raise ConfigurationError(f"{name} is {value!r}; it must map names to values.")
        return {str(k): str(v) for k, v in value.items()}
    if name == "spool" and isinstance(value, os.PathLike):
        return os.fspath(value)
    if name in ("service_name", "endpoint", "spool") and not isinstance(value, str):
        raise ConfigurationError(f"{name} is {value!r}; it must be a text.")
    return value


def _libraries(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple, set, frozenset)) or not all(
        isinstance(name, str) for name in value
    ):
        raise ConfigurationError(
            f"instrument is {value!r}; it can be True, False or a list of libraries."
        )
    return tuple(value)


def _some(text: str) -> bool | tuple[str, ...]:
    """Read true, false, or the names of libraries with commas between them."""
    try:
        return _flag(text)
    except ValueError:
        return tuple(name.strip() for name in text.split(",") if name.strip())


def _pairs(text: str) -> dict[str, str]:
    """Read ``a=1,b=2``, the percent-encoded form of OTEL_RESOURCE_ATTRIBUTES and of the headers."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{part.strip()!r} is not name=value")
        pairs[unquote(key.strip())] = unquote(value.strip())
    return pairs


def _headers(text: str) -> dict[str, str]:
    return {key.lower(): value for key, value in _pairs(text).items()}


def _flag(text: str) -> bool:
    word = text.lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off"):
        return False
    raise ValueError("it can be true or false")


def _seconds(text: str) -> float:
    """Read a timeout: the specification counts milliseconds, Python's SDK seconds."""
    value = float(text)
    return value / 1000 if value >= 1000 else value


def _lower(text: str) -> str:
    return text.lower()


_WITHOUT_TEXT: dict[str, Any] = {"content_mode": "off", "content": read_content("ids,user=off")}
"""What stands for a variable that cannot be read, where its default would let texts leave."""
_CHOICES: dict[str, tuple[str, ...]] = {
    "protocol": PROTOCOLS,
    "compression": COMPRESSIONS,
    "content_mode": CONTENT_MODES,
}
_MINIMA: dict[str, float] = {
    "timeout_s": 0.001,
    "queue_bytes": 0,
    "batch_bytes": 4096,
    "batch_interval_s": 0,
    "max_text_chars": 0,
    "max_candidates": 0,
    "exit_timeout_s": 0,
    "retry_s": 0,
    "spool_max_bytes": 0,
}
_READERS: dict[str, Callable[[str], Any]] = {
    "resource": _pairs,
    "headers": _headers,
    "protocol": _lower,
    "compression": _lower,
    "content_mode": _lower,
    "timeout_s": _seconds,
    "insecure": _flag,
    "queue_bytes": int,
    "batch_bytes": int,
    "batch_interval_s": float,
    "max_text_chars": int,
    "max_candidates": int,
    "gen_ai_messages": _flag,
    "disabled": _flag,
    "flush_on_return": _flag,
    "exit_timeout_s": float,
    "retry_s": float,
    "spool_max_bytes": int,
    "drain_on_sigterm": _flag,
    "instrument": _some,
}


def _otlp(name: str) -> tuple[str, str]:
    return f"OTEL_EXPORTER_OTLP_TRACES_{name}", f"OTEL_EXPORTER_OTLP_{name}"


_VARIABLES: dict[str, tuple[str, ...]] = {
    "service_name": ("RAGOTEL_SERVICE_NAME", "OTEL_SERVICE_NAME"),
    "resource": ("OTEL_RESOURCE_ATTRIBUTES",),
    "protocol": ("RAGOTEL_PROTOCOL", *_otlp("PROTOCOL")),
    "headers": ("RAGOTEL_HEADERS", *_otlp("HEADERS")),
    "compression": ("RAGOTEL_COMPRESSION", *_otlp("COMPRESSION")),
    "timeout_s": ("RAGOTEL_TIMEOUT_S", *_otlp("TIMEOUT")),
    "certificate": ("RAGOTEL_CERTIFICATE", *_otlp("CERTIFICATE")),
    "insecure": ("RAGOTEL_INSECURE", *_otlp("INSECURE")),
    "disabled": ("RAGOTEL_DISABLED", "OTEL_SDK_DISABLED"),
    **{
        name: (f"RAGOTEL_{name.upper()}",)
        for name in (
            "queue_bytes",
            "batch_bytes",
            "batch_interval_s",
            "content_mode",
            "content",
            "max_text_chars",
            "max_candidates",
            "gen_ai_messages",
            "flush_on_return",
            "exit_timeout_s",
            "retry_s",
            "spool",
            "spool_max_bytes",
            "drain_on_sigterm",
            "instrument",
        )
    },
}
"""Setting to the variables that give it, the strongest first. The endpoint has rules of its own."""
