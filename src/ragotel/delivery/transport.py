"""Transport: the one interface of every way to a receiver, and what its answers mean.

Pipeline: worker -> [transport] -> over_http | over_grpc | over_exporter -> receiver
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from ragotel.delivery.order import Piece, arrange, piece_of
from ragotel.delivery.otlp import Envelope
from ragotel.delivery.trim import fit_span
from ragotel.model import SpanData
from ragotel.settings import Settings

GZIP_LEVEL = 4
"""A third of the time of level 9, and 6 % more bytes on English prose."""
_FIRST_BACKOFF_S = 0.25
_LONGEST_BACKOFF_S = 10.0
_LONGEST_TOLD_S = 120.0
"""A gateway that says an hour may be well in a minute."""


class Answer(NamedTuple):
    """What became of one message."""

    verdict: Literal["ok", "retry", "doubtful", "refused", "too_large"]
    """retry: the receiver is down or busy; doubtful: it may also be this very message."""
    detail: str = ""
    rejected_spans: int = 0
    retry_after_s: float | None = None


class Transport(Protocol):
    """Encodes spans one by one, joins them to a message and sends it; used by one thread."""

    overhead_bytes: int
    """Size of a message without spans."""
    can_close_after_fork: bool
    """Whether `close` in a forked child leaves the parent's connection as it is."""

    def encode(self, span: SpanData, limit_bytes: int) -> tuple[Any, int, bool]:
        """Give the encoded span, its size in bytes, and whether it was cut to fit *limit_bytes*."""
        ...

    def message(self, pieces: list[Any]) -> Any:
        """Join encoded spans to what `send` takes."""
        ...

    def send(self, message: Any, timeout_s: float) -> Answer:
        """Send once; an exception counts as doubtful."""
        ...

    def interrupt(self) -> None:
        """Have a `send` that waits on another thread fail at once."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Storable(Transport, Protocol):
    """A transport whose messages can lie on a disk; one over the user's exporter has no such."""

    def pack(self, message: Any) -> bytes:
        """Give a message the form in which it lies on a disk: OTLP protobuf, gzip."""
        ...

    def unpack(self, body: bytes) -> Any:
        """Give a message from a disk the form that `send` takes."""
        ...


class OtlpCodec:
    """The half of both OTLP transports that makes bytes."""

    can_close_after_fork = False
    sends_gzip = False
    """Whether `send` takes compressed bytes."""

    def __init__(self, settings: Settings, envelope: Envelope) -> None:
        self._envelope = envelope
        self._gzip = settings.compression == "gzip"
        self.overhead_bytes = envelope.overhead_bytes

    def encode(self, span: SpanData, limit_bytes: int) -> tuple[Piece, int, bool]:
        fitted, encoded = fit_span(span, limit_bytes)
        return piece_of(fitted, encoded), len(encoded), fitted is not span

    def message(self, pieces: list[Piece]) -> bytes:
        if not self._gzip:
            return self._envelope.message([piece.raw for piece in pieces])
        lists, others = arrange(pieces)
        tail_bytes = sum(map(len, others))
        return gzip(self._envelope.message(lists + others), tail_bytes)

    def pack(self, message: bytes) -> bytes:
        return message if self.sends_gzip else gzip(message)

    def unpack(self, body: bytes) -> bytes:
        return body if self.sends_gzip else gunzip(body)


def gunzip(body: bytes) -> bytes:
    """Undo `gzip`.

    Raises:
        zlib.error: *body* is something else.
    """
    return zlib.decompress(body, 31)


def gzip(body: bytes, tail_bytes: int = 0) -> bytes:
    """Compress *body*, which leaves the interpreter to other threads meanwhile.

    The last *tail_bytes* are of another kind than what is before, and get codes of their own.
    """
    compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 31, 8)
    whole, middle = memoryview(body), len(body) - tail_bytes
    head = compressor.compress(whole[:middle]) + compressor.flush(zlib.Z_BLOCK)
    return b"".join((head, compressor.compress(whole[middle:]), compressor.flush()))


def backoff_s(attempt: int, retry_after_s: float | None = None) -> float:
    """Give the wait before try number *attempt* + 1 (from 1): doubling, with jitter, or as told."""
    # Many processes lost the same receiver at the same moment and must not come back together.
    jitter = random.uniform(0.5, 1.0)  # noqa: S311
    if retry_after_s is not None:
        return min(_LONGEST_TOLD_S, max(_FIRST_BACKOFF_S * jitter, retry_after_s))
    longest = min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * float(2 ** min(attempt - 1, 10)))
    return longest * jitter


def choose_transport(settings: Settings) -> Callable[[Settings, Envelope], Transport]:
    """Load the transport that *settings* ask for; calling it opens no connection yet.

    To be called in setup: a thread that imports at the moment of a fork leaves a lock behind.
    """
    if settings.exporter is not None:
        from ragotel.delivery.over_exporter import ExporterTransport

        return ExporterTransport
    if settings.protocol == "grpc":
        from ragotel.delivery.over_grpc import GrpcTransport

        return GrpcTransport
    from ragotel.delivery.over_http import HttpTransport

    return HttpTransport
