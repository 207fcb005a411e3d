"""A receiver in a process of its own: takes every message, counts messages, bytes and spans.

Counting spans decodes the messages, which happens only when /stats asks for it.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

messages: list[bytes] = []
totals = {"messages": 0, "bytes": 0, "spans": 0}


def stats() -> bytes:
    """Decode what has come since the last question and add it up."""
    for body in messages:
        raw = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        for resource in ExportTraceServiceRequest.FromString(raw).resource_spans:
            totals["spans"] += sum(len(scope.spans) for scope in resource.scope_spans)
        totals["messages"] += 1
        totals["bytes"] += len(body)
    messages.clear()
    return json.dumps(totals).encode()


def answer(path: str, body: bytes) -> bytes:
    if path == "/stats":
        return stats()
    if path == "/reset":
        messages.clear()
        totals.update(dict.fromkeys(totals, 0))
        return b"{}"
    messages.append(body)
    return b""


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while request := await reader.readline():
            path = request.split()[1].decode()
            length = 0
            while (line := await reader.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            reply = answer(path, await reader.readexactly(length))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(reply) + reply)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**26)
    print(server.sockets[0].getsockname()[1], flush=True)
    # The parent closes our input when it ends, in whatever way.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
