"""gRPC status: what a refusal over gRPC means, and when its sender may come again.

Pipeline: receiver -> [grpc_status] -> over_grpc -> courier

Source: https://opentelemetry.io/docs/specs/otlp/#otlpgrpc-throttling
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ragotel.delivery.partial import read_fields, signed
from ragotel.delivery.transport import Answer

_RETRYABLE = frozenset(
    {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"}
)
_RETRY_INFO = "google.rpc.retryinfo-bin"
_DETAILS = "grpc-status-details-bin"
_RETRY_INFO_TYPE = b"/google.rpc.RetryInfo"
_TOO_LARGE = ("too large", "larger than max", "exceeds maximum")
"""How the servers of Rust, Go and Java word it; the first of them calls it OUT_OF_RANGE."""


def read_refusal(code: str, words: str, trailers: Iterable[tuple[str, Any]]) -> Answer:
    """Translate a status: the specification names the codes that may pass."""
    detail = f"gRPC {code} {words}".strip()
    retry_after_s = _retry_after_s(trailers)
    is_about_size = any(phrase in words.lower() for phrase in _TOO_LARGE)
    if code == "RESOURCE_EXHAUSTED":
        # With a time it is a busy receiver, without one it may be this very message.
        if retry_after_s is None:
            return Answer("too_large", detail)
        return Answer("retry", detail, retry_after_s=retry_after_s)
    if code == "OUT_OF_RANGE" and is_about_size:
        return Answer("too_large", detail)
    if code in _RETRYABLE:
        return Answer("retry", detail, retry_after_s=retry_after_s)
    return Answer("refused", detail)


def _retry_after_s(trailers: Iterable[tuple[str, Any]]) -> float | None:
    """Read RetryInfo, which stands by itself or among the details of the status; None: neither."""
    try:
        for key, value in trailers:
            if key == _RETRY_INFO:
                return _delay_s(value)
            if key == _DETAILS:
                for number, detail in read_fields(value):
                    parts = dict(read_fields(detail)) if number == 3 else {}
                    if bytes(parts.get(1, b"")).endswith(_RETRY_INFO_TYPE):
                        return _delay_s(parts.get(2, b""))
    except (IndexError, TypeError, ValueError):
        pass
    return None


def _delay_s(retry_info: Any) -> float:
    """Give the seconds of a RetryInfo; 0.0 where it names none."""
    duration = dict(read_fields(retry_info)).get(1, b"")
    parts = dict(read_fields(duration))
    return signed(parts.get(1, 0)) + signed(parts.get(2, 0)) / 1e9
