"""Zero-code: what `opentelemetry-instrument` finds, so that a service needs no line of ragotel's.

Pipeline: opentelemetry-instrument -> [instrument.zero_code] -> instrument

Imported through the entry point `ragotel` alone, which only OpenTelemetry's own launcher reads: the
package it comes from need not be there otherwise. Nothing is sent unless a variable names where to.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined, unused-ignore]
    BaseInstrumentor,
)

from ragotel import instrument
from ragotel.settings import resolve_settings


class RagotelInstrumentor(BaseInstrumentor):  # type: ignore[misc, unused-ignore]
    """Hooks every library known here, as far as RAGOTEL_INSTRUMENT lets it.

    The record does not go through the provider that the launcher sets up, and is not sampled.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: each library is looked for when it is imported."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        settings = resolve_settings()
        if settings.disabled or settings.instrument is False:
            return
        instrument.instrument(*(() if settings.instrument is True else settings.instrument))

    def _uninstrument(self, **kwargs: Any) -> None:
        instrument.uninstrument()
