"""ragotel: why a RAG service answered wrongly, as a look-up.

Pipeline: your function -> [this door] -> recorder -> delivery -> OTLP -> store -> views -> CLI
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ragotel import recorder as _recorder
from ragotel.blocks import context, stage
from ragotel.decorators import (
    assemble,
    blend,
    filter,
    fuse,
    generate,
    ingest,
    request,
    rerank,
    retrieve,
)
from ragotel.recorder import current_request_id, flush, shutdown
from ragotel.services import service

if TYPE_CHECKING:
    from ragotel.settings import Settings

__all__ = [
    "assemble",
    "blend",
    "configure",
    "context",
    "current_request_id",
    "filter",
    "flush",
    "fuse",
    "generate",
    "ingest",
    "request",
    "rerank",
    "retrieve",
    "service",
    "shutdown",
    "stage",
]


def configure(service: str | None = None, **settings: Any) -> None:
    """Start to record; to be called once, when the service starts. Twice is harmless.

    Without it a variable that names the receiver is enough: RAGOTEL_ENDPOINT, or
    OTEL_EXPORTER_OTLP_ENDPOINT. Each setting is a keyword here, else RAGOTEL_<NAME>, else the
    OTEL_ variable of the same meaning, else its default; `ragotel.settings.Settings` lists them.

    Args:
        service: the service's name.
        settings: endpoint, protocol, headers, resource, content_mode, max_text_chars, disabled,
            instrument (libraries to be recorded without a decorator; all that are known), ...

    Raises:
        ConfigurationError: a setting is unknown or has a value that cannot work.
    """
    from ragotel.settings import resolve_settings

    _recorder.configure(resolve_settings(service_name=service, **settings))


def _instrument(settings: Settings) -> None:
    """Hook the libraries that the settings name, and no others."""
    if settings.instrument is False and "ragotel.instrument" not in sys.modules:
        return
    from ragotel import instrument

    if settings.instrument is True:
        instrument.instrument()
        return
    named = settings.instrument or ()
    instrument.uninstrument(*(name for name in instrument.instrumented() if name not in named))
    if named:
        instrument.instrument(*named)


_recorder.on_start = _instrument
