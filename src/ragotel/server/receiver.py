"""Receiver: one OTLP body, whatever brought it, decoded, handed to the writer and awaited.

Pipeline: OTLP/HTTP | OTLP/gRPC -> [receiver] -> writer -> otel_traces
"""

from __future__ import annotations

import asyncio
import hashlib
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
        self._storing: dict[bytes, asyncio.Future[Decoded]] = {}
        """Bodies that are being stored, by their hash."""
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
        raw, key = await loop.run_in_executor(self._pool, _unpack, unpacked, is_json)
        # A store that is slower than its senders' patience would insert ever more copies, and
        # never come to the next body: who sends one again waits for the copy that is under way.
        if key not in self._storing:
            self._storing[key] = asyncio.ensure_future(self._store(raw, is_json))
            # Forgotten once it is stored: what comes again later is a delivery of its own.
            self._storing[key].add_done_callback(lambda _: self._storing.pop(key))
        del raw
        return await asyncio.shield(self._storing[key])

    async def _store(self, raw: bytes, is_json: bool) -> Decoded:
        loop = asyncio.get_running_loop()
        rows, decoded, foreign = await loop.run_in_executor(self._pool, _decode, raw, is_json)
        del raw
        refused = await asyncio.wrap_future(self._writer.submit(rows))
        if foreign and self._settler is not None:
            self._settler.note(foreign)
        decoded.reasons.update(refused)
        return decoded

    def close(self) -> None:
        self._pool.shutdown(wait=True)


def _unpack(unpacked: Callable[[], bytes], is_json: bool) -> tuple[bytes, bytes]:
    raw = unpacked()
    return raw, hashlib.blake2b(raw, digest_size=16, person=b"json" if is_json else b"").digest()


def _decode(raw: bytes, is_json: bool) -> tuple[list[bytes], Decoded, set[str]]:
    decoded = decode_json(raw) if is_json else decode_protobuf(raw)
    rows, foreign = encode_rows(decoded.rows, MAX_ROWS_BYTES), foreign_traces(decoded.rows)
    decoded.rows.clear()
    return rows, decoded, foreign
