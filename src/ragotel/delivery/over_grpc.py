"""OTLP over gRPC: bytes that are already protobuf, sent on a channel of our own.

Pipeline: worker -> [over_grpc] -> receiver

Source: https://opentelemetry.io/docs/specs/otlp/#otlpgrpc
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc

from ragotel.delivery.grpc_status import read_refusal
from ragotel.delivery.order import Piece, arrange
from ragotel.delivery.otlp import Envelope
from ragotel.delivery.partial import read_partial_success
from ragotel.delivery.transport import Answer, OtlpCodec
from ragotel.settings import Settings

_METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


class GrpcTransport(OtlpCodec):
    """One channel, opened at the first message."""

    def __init__(self, settings: Settings, envelope: Envelope) -> None:
        super().__init__(settings, envelope)
        self._settings = settings
        self._channel: Any = None
        self._export: Any = None

    def message(self, pieces: list[Piece]) -> bytes:
        # The channel compresses; doing it here would send gzip inside of gzip.
        lists, others = arrange(pieces)
        return self._envelope.message(lists + others)

    def send(self, message: bytes, timeout_s: float) -> Answer:
        if self._channel is None:
            self._channel = self._connect()
            self._export = self._channel.unary_unary(_METHOD)
        metadata = tuple((k.lower(), v) for k, v in self._settings.headers.items())
        try:
            answer = self._export(message, timeout=timeout_s, metadata=metadata)
        except grpc.RpcError as error:
            trailers = error.trailing_metadata() or ()
            return read_refusal(error.code().name, error.details() or "", trailers)
        rejected, words = read_partial_success(answer)
        return Answer("ok", words, rejected)

    def _connect(self) -> Any:
        settings = self._settings
        url = urlsplit(
            settings.endpoint if "://" in settings.endpoint else f"//{settings.endpoint}"
        )
        compression = grpc.Compression.Gzip if self._gzip else grpc.Compression.NoCompression
        # Own reconnect pace: the channel's default waits up to two minutes after an outage.
        options = (
            ("grpc.max_reconnect_backoff_ms", 5000),
            ("grpc.initial_reconnect_backoff_ms", 250),
        )
        is_plain = url.scheme == "http" or (url.scheme != "https" and settings.insecure)
        target = url.netloc or settings.endpoint
        if is_plain:
            return grpc.insecure_channel(target, options=options, compression=compression)
        roots = Path(settings.certificate).read_bytes() if settings.certificate else None
        credentials = grpc.ssl_channel_credentials(root_certificates=roots)
        return grpc.secure_channel(target, credentials, options=options, compression=compression)

    def interrupt(self) -> None:
        self.close()

    def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
