"""OTLP over gRPC: TraceService/Export.

Pipeline: SDK | Collector -> [OTLP/gRPC] -> receiver -> writer -> otel_traces
The message is taken as bytes and read by our own decoder, so one bad span does not cost the batch.
"""

from __future__ import annotations

import logging
from typing import Any

import grpc

from ragotel.server.access import Access
from ragotel.server.otlp_reply import PROTOBUF, success
from ragotel.server.receiver import MAX_BODY_BYTES, Receiver
from ragotel.server.writer import StoreUnavailableError
from ragotel.store.encodings import TooLargeError
from ragotel.store.otlp_rows import OtlpError

log = logging.getLogger(__name__)

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


async def start_grpc(
    receiver: Receiver, access: Access, host: str, port: int, tls: tuple[bytes, bytes] | None = None
) -> tuple[Any, int]:
    """Start the gRPC server; it and the port it listens on (0 asks for a free one).

    Args:
        tls: Private key and certificate chain, both PEM; None for plain text.

    Raises:
        RuntimeError: The port is taken.
    """
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", MAX_BODY_BYTES),
            ("grpc.so_reuseport", 0),
        ]
    )
    export = grpc.unary_unary_rpc_method_handler(_Servicer(receiver, access).export)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, {"Export": export}),)
    )
    address = f"[{host}]" if ":" in host else host
    if tls is None:
        bound = server.add_insecure_port(f"{address}:{port}")
    else:
        bound = server.add_secure_port(f"{address}:{port}", grpc.ssl_server_credentials([tls]))
    await server.start()
    return server, bound


class _Servicer:
    def __init__(self, receiver: Receiver, access: Access) -> None:
        self._receiver = receiver
        self._access = access

    async def export(self, body: bytes, context: Any) -> bytes:
        if not self._access.is_allowed(*_bearers(context.invocation_metadata())):
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED,
                "this server wants its token: authorization: Bearer",
            )
        try:
            decoded = await self._receiver.receive(lambda: body, is_json=False)
        except OtlpError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise
        except TooLargeError as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
            raise
        except StoreUnavailableError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            raise
        return success(decoded.rejected_count, decoded.message, PROTOBUF)


def _bearers(metadata: Any) -> list[str]:
    values = [str(value) for key, value in metadata or () if key == "authorization"]
    return [value[7:].strip() for value in values if value[:7].lower() == "bearer "]
