"""Receiver: one OTLP body, whatever brought it, decoded, handed to the writer and awaited.

Pipeline: OTLP/HTTP | OTLP/gRPC -> [receiver] -> writer -> otel_traces
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ragotel.server.settler import Settler
from ragotel.server.writer import Writer
from ragotel.store.backfill import foreign_traces
from ragotel.store.otlp_json import decode_json
from ragotel.store.otlp_protobuf import decode_protobuf
from ragotel.store.otlp_rows import Decoded, encode_rows

MAX_BODY_BYTES = 64 << 20
"""Of one request, as sent and once unpacked."""
MAX_ROWS_BYTES = 256 << 20
"""Of its rows, as they are inserted."""


class Receiver:
    """Shared by both OTLP servers; never blocks the event loop."""

    def __init__(self, writer: Writer, settler: Settler | None = None) -> None:
        self._writer = writer
        self._settler = settler
        # Decoding holds the interpreter lock: more threads would only take turns.
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="ragotel-decode")

    async def receive(self, unpacked: Callable[[], bytes], *, is_json: bool) -> Decoded:
        """Store the spans of a body; returns when they are durable.

        Args:
            unpacked: Gives the body's bytes; called in another thread.

        Returns:
            What was rejected, by reason (`rows` is empty by now).

        Raises:
            OtlpError: The body is no OTLP trace message.
            TooLargeError: The body, or what it would become, is larger than the limit.
            InputError: The body cannot be unpacked.
            StoreUnavailableError: The rows may not be stored; the sender should try again.
        """
        loop = asyncio.get_running_loop()
        rows, decoded, foreign = await loop.run_in_executor(self._pool, _decode, unpacked, is_json)
        refused = await asyncio.wrap_future(self._writer.submit(rows))
        if foreign and self._settler is not None:
            self._settler.note(foreign)
        decoded.reasons.update(refused)
        return decoded

    def close(self) -> None:
        self._pool.shutdown(wait=True)


def _decode(unpacked: Callable[[], bytes], is_json: bool) -> tuple[list[bytes], Decoded, set[str]]:
    decoded = decode_json(unpacked()) if is_json else decode_protobuf(unpacked())
    rows, foreign = encode_rows(decoded.rows, MAX_ROWS_BYTES), foreign_traces(decoded.rows)
    decoded.rows.clear()
    return rows, decoded, foreign
