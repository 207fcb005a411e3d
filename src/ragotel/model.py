"""Model: the shapes that pass between the recorder, the delivery and the readers.

Pipeline: recorder -> [Pending -> SpanData] -> delivery -> OTLP
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

AttributeValue: TypeAlias = str | bool | int | float

CANARY_SERVICE = "ragotel-doctor"
"""The service that `ragotel doctor` asks a question of; no reading counts it among the user's."""

KIND_INTERNAL = 1
KIND_CLIENT = 3

STATUS_UNSET = 0
STATUS_OK = 1
STATUS_ERROR = 2


@dataclass(slots=True)
class SpanData:
    """One finished span whose attributes are scalars; times are nanoseconds since 1970, UTC."""

    trace_id: int
    span_id: int
    parent_span_id: int
    """0: the span has no parent."""
    name: str
    kind: int
    """OTLP's enumeration: 1 internal, 3 client."""
    start_ns: int
    end_ns: int
    attributes: dict[str, AttributeValue]
    status_code: int = STATUS_UNSET
    """OTLP's enumeration: 0 unset, 1 ok, 2 error."""
    status_message: str = ""


class Pending(Protocol):
    """A finished request, or a stage outside of any request: references only, not yet encoded."""

    size_bytes: int
    """Estimate, held against the queue's byte limit."""
    span_count: int

    def finish(self) -> Iterator[SpanData]:
        """Yield the spans; runs on the worker's thread, and each step is a short slice."""
        ...
